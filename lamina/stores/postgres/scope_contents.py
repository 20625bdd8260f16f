"""Memories of a whole session, namespace, workspace or tenant, of all kinds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.core.trash import TrashKind
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("scope_contents.sql")
MOST_COUNTED = 100_000


class ScopeContents(PostgresStore):
    """Counts and lists memories; the ids of a scope are parameters, and one that is ``None`` does not narrow it."""

    async def count(self, ids: Mapping[str, str | None]) -> Mapping[str, int]:
        """Count the memories of a scope that a call can delete, by kind, up to :data:`MOST_COUNTED` of each."""
        return dict(await self._row(QUERIES["count_scope"], **ids, most=MOST_COUNTED) or {})

    async def kept(self, ids: Mapping[str, str | None]) -> list[str]:
        """Return the kinds of rows in a scope that its deletion leaves there."""
        row = await self._row(QUERIES["find_kept_in_scope"], **ids)
        return [] if row is None else list(row["kinds"])

    async def page(
        self, ids: Mapping[str, str | None], *, stored_by: datetime, after: UUID | None, limit: int
    ) -> list[tuple[TrashKind, UUID]]:
        """Return a page by id of them, of those that were stored by a time."""
        rows = await self._rows(QUERIES["list_scope"], **ids, stored_by=stored_by, after=after, limit=limit)
        return [(TrashKind(row["kind"]), row["id"]) for row in rows]

    async def discarded(self, tenant: str, operation: UUID, *, after: UUID | None, limit: int) -> list[UUID]:
        """Return a page by id of what a deletion put into the trash, as far as it lies there."""
        parameters: dict[str, Any] = {"tenant": tenant, "operation_id": operation, "after": after, "limit": limit}
        return [row["id"] for row in await self._rows(QUERIES["list_discarded_of_operation"], **parameters)]
