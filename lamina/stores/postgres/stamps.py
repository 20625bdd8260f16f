"""Reading stamps: one small statement that proves cached answers fresh."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from lamina.aio.coalescing import Coalescer
from lamina.core.memory_profiles import MemoryProfile
from lamina.core.scope import Scope
from lamina.core.sharing import Share
from lamina.core.stamps import SharedEpoch, Stamp
from lamina.core.tiers import TIERS, ProjectionName, Segment
from lamina.stores.postgres.connection import Pool, connect
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("stamps.sql")

MAX_IN_FLIGHT = 2


class Stamps:
    """Reads stamps; those asked for while others are read come together, in one statement.

    Args:
        pool: Connections to Postgres.
        kept: The projections that somebody keeps up to date.
        deadline_s: Seconds after which a connection that does not answer is given up.
    """

    def __init__(self, pool: Pool, kept: Sequence[ProjectionName], *, deadline_s: float) -> None:
        self._pool = pool
        self._deadline_s = deadline_s
        self._kept = list(kept)
        self._calls: Coalescer[Scope, Stamp] = Coalescer(self._read, part="postgres", max_in_flight=MAX_IN_FLIGHT)

    async def read(self, scope: Scope) -> Stamp:
        """Return the scope's stamp as of a moment after this call began.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return await self._calls.submit(scope)

    async def _read(self, scopes: Sequence[Scope]) -> list[Stamp]:
        parameters = {
            "projections": self._kept,
            "tenants": [scope.tenant for scope in scopes],
            "workspaces": [scope.workspace for scope in scopes],
            "namespaces": [scope.namespace for scope in scopes],
            "agents": [scope.agent for scope in scopes],
        }
        # The caller's deadline frees the caller, this one the connection: two that hang would end all stamps.
        async with asyncio.timeout(self._deadline_s), connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["stamps"], parameters)
            return [_stamp(row) async for row in cursor]


def _stamp(row: DictRow) -> Stamp:
    return Stamp(
        namespace=row["namespace_epoch"],
        workspace=row["workspace_epoch"],
        shared=tuple(SharedEpoch(_share(item), item["epoch"]) for item in row["shares"]),
        profile=None if row["profile"] is None else _profile(row["profile"]),
        is_settled=row["is_settled"],
    )


def _share(item: dict[str, Any]) -> Share:
    return Share(
        id=UUID(item["id"]),
        workspace=item["from_workspace"],
        namespace=item["from_namespace"],
        to_workspace=item["to_workspace"],
        segment=Segment(item["segment"]),
        tags=tuple(item["tags"]),
        label=item["label"],
        created_at=datetime.fromisoformat(item["created_at"]),
        expires_at=_moment(item["expires_at"]),
    )


def _profile(item: dict[str, Any]) -> MemoryProfile:
    tiers = tuple(spec.tier for name, spec in TIERS.items() if name in item["tiers"])
    return MemoryProfile(**{**item, "tiers": tiers, "updated_at": _moment(item["updated_at"])})


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
