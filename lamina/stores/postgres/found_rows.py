"""The rows of the memories that leave with an answer, read together."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from lamina.core.memories import Message, Role
from lamina.core.procedures import Procedure
from lamina.core.queries import Candidate, Memory, RowRequest
from lamina.core.tiers import TIERS, Tier, TierName
from lamina.stores.postgres import documents, messages, notes, procedures
from lamina.stores.postgres.connection import Pool, read_tuples
from lamina.stores.postgres.filters import Columns, apply_filters, query_parameters, union
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("found_rows.sql")
_COLUMNS: Mapping[TierName, Columns] = {
    "sessions": messages.COLUMNS,
    "notes": notes.COLUMNS,
    "procedures": procedures.COLUMNS,
    "documents": documents.COLUMNS,
}
_NAMES: Mapping[Tier, TierName] = {spec.tier: name for name, spec in TIERS.items()}
_KINDS = {Tier.SESSIONS: "message", Tier.PROCEDURES: "procedure", Tier.DOCUMENTS: "passage"}


class _Row(NamedTuple):
    """A row of every part of the statement; a procedure has its trigger as its name."""

    tier: int
    id: UUID
    kind: str | None
    content: str
    occurred_at: datetime
    confidence: float
    importance: float
    user: str | None
    agent: str | None
    session: str | None
    name: str | None
    ref: str | None
    tags: list[str]
    metadata: dict[str, Any]
    source: str | None
    last_hit_at: datetime | None
    temperature: str
    title: str | None
    document: UUID | None
    position: int | None
    expires_at: datetime | None
    heading: str | None
    page: int | None


class FoundRows:
    """Reads the rows of hits of every tier in one statement.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def rows(self, wanted: Sequence[RowRequest]) -> Mapping[tuple[Tier, UUID], Memory]:
        """Return the memories that exist still and that their query may see.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        if not wanted:
            return {}
        text, parameters = union(map(_part, wanted))
        found = {(item.tier, item.id): item for request in wanted for item in request.found}
        memories = {}
        for row in map(_Row._make, await read_tuples(self._pool, text, parameters, by_key=True)):
            key = Tier(row.tier), row.id
            memory = _memory(row, found[key])
            # A text that was shortened meanwhile may have lost what was found in it.
            if memory.content or not row.content:
                memories[key] = memory
        return memories


def _part(request: RowRequest) -> tuple[bytes, dict[str, Any]]:
    """Return the statement over one tier and scope."""
    name = _NAMES[request.tier]
    text, filters = apply_filters(QUERIES[name], request.query.filters, _COLUMNS[name])
    return text, {**query_parameters(request.query), **filters, "ids": [item.id for item in request.found]}


def _memory(row: _Row, found: Candidate) -> Memory:
    where = {name: value for name, value in (("heading", row.heading), ("page", row.page)) if value is not None}
    return Memory(
        id=row.id,
        tier=found.tier,
        kind=_KINDS.get(found.tier) or row.kind or "",
        content=_content(row, found),
        occurred_at=row.occurred_at,
        confidence=row.confidence,
        importance=row.importance,
        user=row.user,
        agent=row.agent,
        session=row.session,
        name=row.name if found.tier is Tier.SESSIONS else None,
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
    )


def _content(row: _Row, found: Candidate) -> str:
    """Return the stretch of the text that was found."""
    content = row.content
    match found.tier:
        case Tier.PROCEDURES:
            return Procedure(row.name or "", content).text()
        case Tier.DOCUMENTS:
            return content.strip()
        case Tier.SESSIONS:
            text = Message(Role(row.source or Role.USER), content, name=row.name).text()
            covers_all = found.start == 0 and (found.end is None or found.end >= len(text))
            return content if covers_all else text[found.start : found.end]
        case _:
            return content[found.start : found.end]
