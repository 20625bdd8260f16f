"""The rows of the memories that leave with an answer, read together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from lamina.core.queries import Candidate, Memory, Query, RowRequest
from lamina.core.tiers import TIERS, Tier
from lamina.stores.postgres.connection import read_tuples
from lamina.stores.postgres.filters import apply_filters, query_parameters, union
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore
from lamina.stores.postgres.tier_rows import FoundRow, FoundStatement
from lamina.stores.postgres.tiers import TIER_ROWS

QUERIES = load_queries("found_rows.sql")
_FOUND: Mapping[Tier, FoundStatement] = {
    TIERS[name].tier: rows.found for name, rows in TIER_ROWS.items() if rows.found is not None
}


class FoundRows(PostgresStore):
    """Reads the rows of hits of every tier in one statement."""

    async def rows(self, wanted: Sequence[RowRequest]) -> Mapping[tuple[Tier, UUID], Memory]:
        """Return the memories that exist still and that their query may see.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        if not wanted:
            return {}
        text, parameters = _with_later(*union(map(_part, wanted)), wanted[0].query)
        found = {(item.tier, item.id): item for request in wanted for item in request.found}
        memories = {}
        for columns in await read_tuples(self._pool, text, parameters, by_key=True):
            row = FoundRow._make(columns[: len(FoundRow._fields)])
            key = Tier(row.tier), row.id
            memory = _memory(row, found[key])
            # Another workspace shares its memories, not the facts that are drawn from others of it.
            if memory.workspace is None and columns[-1] is not None:
                memory = replace(memory, later=tuple(columns[-2]), replaced_by=tuple(columns[-1]))
            if columns[-4] or columns[-3]:
                memory = replace(memory, votes=(columns[-4], columns[-3]))
            # A text that was shortened meanwhile may have lost what was found in it.
            if memory.content or not row.content:
                memories[key] = memory
        return memories


def _part(request: RowRequest) -> tuple[bytes, dict[str, Any]]:
    """Return the statement over one tier and scope."""
    found = _FOUND[request.tier]
    text, filters = apply_filters(found.rows, request.query.filters, found.columns)
    return text, {**query_parameters(request.query), **filters, "ids": [item.id for item in request.found]}


def _with_later(rows: bytes, parameters: dict[str, Any], query: Query) -> tuple[bytes, dict[str, Any]]:
    """Return the statement over the rows with the facts that took the place of those that they state."""
    columns = ", ".join(f'"{name}"' for name in FoundRow._fields).encode()
    text = QUERIES["with_later"].replace(b"/*rows*/", rows).replace(b"/*columns*/", columns)
    return text, {**parameters, "moment": query.filters.as_of, "voting_tenant": query.scope.tenant}


def _memory(row: FoundRow, found: Candidate) -> Memory:
    where = {name: value for name, value in (("heading", row.heading), ("page", row.page)) if value is not None}
    return Memory(
        id=row.id,
        tier=found.tier,
        kind=row.kind,
        content=_FOUND[found.tier].content(row, found),
        occurred_at=row.occurred_at,
        confidence=row.confidence,
        importance=row.importance,
        user=row.user,
        agent=row.agent,
        session=row.session,
        name=row.name,
        ref=row.ref,
        tags=tuple(row.tags),
        metadata=where | row.metadata,
        source=row.source,
        last_hit_at=row.last_hit_at,
        temperature=row.temperature,
        title=row.title,
        document=row.document,
        position=row.position,
        workspace=found.workspace,
        namespace=found.namespace,
        expires_at=row.expires_at,
        speakers=tuple(row.speakers or ()),
    )
