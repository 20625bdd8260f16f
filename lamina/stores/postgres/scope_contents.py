"""Memories of a whole session, namespace, workspace or tenant, of all kinds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.core.trash import TrashKind
from lamina.stores.postgres.connection import Pool, connect
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("scope_contents.sql")
MOST_COUNTED = 100_000


class ScopeContents:
    """Counts and lists memories; the ids of a scope are parameters, of which one that is ``None`` does not narrow it.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def count(self, ids: Mapping[str, str | None]) -> Mapping[str, int]:
        """Count the memories of a scope that a call can delete, by kind, up to :data:`MOST_COUNTED` of each."""
        async with connect(self._pool) as connection:
            row = await (await connection.execute(QUERIES["count_scope"], {**ids, "most": MOST_COUNTED})).fetchone()
        return dict(row or {})

    async def kept(self, ids: Mapping[str, str | None]) -> list[str]:
        """Return the kinds of rows in a scope that its deletion leaves there."""
        async with connect(self._pool) as connection:
            row = await (await connection.execute(QUERIES["find_kept_in_scope"], ids)).fetchone()
        return [] if row is None else list(row["kinds"])

    async def page(
        self, ids: Mapping[str, str | None], *, stored_by: datetime, after: UUID | None, limit: int
    ) -> list[tuple[TrashKind, UUID]]:
        """Return a page by id of them, of those that were stored by a time."""
        parameters = {**ids, "stored_by": stored_by, "after": after, "limit": limit}
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["list_scope"], parameters)
            return [(TrashKind(row["kind"]), row["id"]) async for row in cursor]

    async def discarded(self, tenant: str, operation: UUID, *, after: UUID | None, limit: int) -> list[UUID]:
        """Return a page by id of what a deletion put into the trash, as far as it lies there."""
        parameters: dict[str, Any] = {"tenant": tenant, "operation_id": operation, "after": after, "limit": limit}
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["list_discarded_of_operation"], parameters)
            return [row["id"] async for row in cursor]
