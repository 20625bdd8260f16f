"""Memory profiles: how an agent remembers in a workspace."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from lamina.core.events import Event, EventKind
from lamina.core.memory_profiles import MemoryProfile, clean_memory_profile
from lamina.core.scope import Scope
from lamina.core.tiers import TIERS
from lamina.errors import InvalidInput, NotFound
from lamina.stores.postgres.connection import Connection, in_transaction, scope_parameters
from lamina.stores.postgres.epochs import bump_workspace_epochs
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("memory_profiles.sql")


class MemoryProfiles(PostgresStore):
    """Reads and writes memory profiles; a write raises the workspace's epochs, since it changes search results."""

    async def get(self, scope: Scope) -> MemoryProfile | None:
        """Return the agent's profile in this workspace; ``None`` if it has none."""
        row = await self._row(QUERIES["get_memory_profile"], **_parameters(scope))
        return None if row is None else stored_profile(row)

    async def put(self, scope: Scope, profile: MemoryProfile, now: datetime) -> MemoryProfile:
        """Replace the agent's profile, and return it as stored.

        Raises:
            InvalidInput: Naming the field that is out of range or unclean.
        """
        stored = replace(clean_memory_profile(profile), updated_at=now)
        names = [tier.name.lower() for tier in stored.tiers]
        parameters = _parameters(scope) | asdict(stored) | {"tiers": names, "now": now}

        async def act(connection: Connection) -> None:
            await connection.execute(QUERIES["put_memory_profile"], parameters)
            await bump_workspace_epochs(connection, scope.tenant, scope.workspace, scope.agent)
            await record_event(connection, Event.of(scope, EventKind.MEMORY_PROFILE_CHANGED))

        await in_transaction(self._pool, act)
        return stored

    async def delete(self, scope: Scope) -> None:
        """Delete the agent's profile: the defaults hold again.

        Raises:
            NotFound: If it has no profile in this workspace.
        """
        parameters = _parameters(scope)

        async def act(connection: Connection) -> None:
            cursor = await connection.execute(QUERIES["delete_memory_profile"], parameters)
            if cursor.rowcount == 0:
                raise NotFound("memory profile of agent", scope.agent or "")
            await bump_workspace_epochs(connection, scope.tenant, scope.workspace, scope.agent)
            await record_event(connection, Event.of(scope, EventKind.MEMORY_PROFILE_CHANGED))

        await in_transaction(self._pool, act)


def _parameters(scope: Scope) -> dict[str, Any]:
    if scope.agent is None:
        raise InvalidInput("agent", "is missing; a memory profile belongs to an agent")
    return scope_parameters(scope)


def stored_profile(row: Mapping[str, Any]) -> MemoryProfile:
    """Map a row to a memory profile."""
    tiers = tuple(spec.tier for name, spec in TIERS.items() if name in row["tiers"])
    return MemoryProfile(**{**row, "tiers": tiers})
