"""Settings of workspaces."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from lamina.core.tiers import TIERS
from lamina.core.workspace_settings import UNSET, WorkspaceSettings
from lamina.stores.postgres.connection import Connection, connect, in_transaction
from lamina.stores.postgres.epochs import bump_workspace_epochs
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("workspace_settings.sql")
_SETTINGS = TypeAdapter(WorkspaceSettings)


class WorkspaceSettingsStore(PostgresStore):
    """Reads and writes settings of workspaces; a write raises the epochs, since it changes search results."""

    async def get(self, tenant: str, workspace: str) -> WorkspaceSettings:
        """Return the settings of a workspace, with nothing set if they were never written."""
        async with connect(self._pool) as connection:
            return await read_settings(connection, tenant, workspace)

    async def put(self, tenant: str, workspace: str, settings: WorkspaceSettings, now: datetime) -> WorkspaceSettings:
        """Replace the settings of a workspace, and return them as stored."""
        set_ = {name: value for name, value in asdict(settings).items() if value is not None and name != "updated_at"}
        if settings.tiers is not None:
            set_["tiers"] = [tier.name.lower() for tier in settings.tiers]
        parameters = {"tenant": tenant, "workspace": workspace, "settings": Jsonb(set_), "now": now}

        async def act(connection: Connection) -> None:
            await connection.execute(QUERIES["put_workspace_settings"], parameters)
            await bump_workspace_epochs(connection, tenant, workspace)

        await in_transaction(self._pool, act)
        return replace(settings, updated_at=now)


async def read_settings(connection: Connection, tenant: str, workspace: str) -> WorkspaceSettings:
    """Return the settings of a workspace, with nothing set if they were never written."""
    parameters = {"tenant": tenant, "workspace": workspace}
    row = await (await connection.execute(QUERIES["get_workspace_settings"], parameters)).fetchone()
    return UNSET if row is None else stored_settings(row["settings"], row["updated_at"])


def stored_settings(stored: Mapping[str, Any], updated_at: datetime) -> WorkspaceSettings:
    """Return settings from their JSON; a name that only a later release knows is left out."""
    known = {name: value for name, value in stored.items() if name in WorkspaceSettings.__dataclass_fields__}
    if "tiers" in known:
        known["tiers"] = tuple(spec.tier for name, spec in TIERS.items() if name in known["tiers"])
    return replace(_SETTINGS.validate_python(known), updated_at=updated_at)
