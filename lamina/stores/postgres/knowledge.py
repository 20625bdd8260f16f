"""Entities, edges as facts, and memories that the graph links to, as a reader may see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.memories import Entity
from lamina.core.queries import Candidate, FilterField, Filters, Memory, Query
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.policies.retention.decay import LEAST_STRENGTH
from lamina.stores.postgres.connection import Pool, read_rows, read_tuples, scope_parameters
from lamina.stores.postgres.entities import NAMES, entities_by_name
from lamina.stores.postgres.filters import Columns, apply_filters, query_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.tiers import LINKED

QUERIES = load_queries("knowledge.sql")

# Nobody owns an entity or an edge, and neither has a category or tags.
_BARE: Columns = {
    FilterField.CATEGORY: "NULL::text",
    FilterField.TAGS: "'{}'::text[]",
    FilterField.SOURCE: "NULL::text",
    FilterField.USER: "NULL::text",
    FilterField.AGENT: "NULL::text",
    FilterField.SESSION: "NULL::text",
}
ENTITY_COLUMNS: Columns = {
    **_BARE,
    FilterField.OCCURRED_AT: "n.first_seen_at",
    FilterField.CONFIDENCE: "n.confidence * n.standing",
    FilterField.IMPORTANCE: "0.5",
}
EDGE_COLUMNS: Columns = {
    **_BARE,
    FilterField.OCCURRED_AT: "e.first_seen_at",
    FilterField.CONFIDENCE: "e.confidence",
    FilterField.IMPORTANCE: "e.strength * e.standing",
}
EdgeKey = tuple[UUID, str, UUID]


@dataclass(frozen=True, slots=True)
class StoredEntity:
    """An entity as a reader sees it.

    Args:
        mentions: Number of memories that mention it and that the reader may see, counted up to 10 000.
        is_asserted: Whether a caller stated it; otherwise a text mentions it.
        expires_at: When the last note that mentions it expires, if nothing else does; ``None`` means never.
    """

    id: UUID
    entity: Entity
    mentions: int
    is_asserted: bool
    first_seen_at: datetime
    last_seen_at: datetime
    expires_at: datetime | None = None

    def memory(self) -> Memory:
        """Return the entity as a found memory."""
        entity = self.entity
        aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
        return Memory(
            id=self.id,
            tier=Tier.GRAPH,
            kind="entity",
            content=f"{entity.name} ({entity.type}){aliases}",
            occurred_at=self.first_seen_at,
            confidence=entity.confidence,
            name=entity.name,
            expires_at=self.expires_at,
        )


@dataclass(frozen=True, slots=True)
class LinkedMemory:
    """A memory that the graph leads to, at its chunk nearest to the query.

    Args:
        memory: The memory.
        cosine: Of that chunk; 0 where the query has no vector.
    """

    memory: Candidate
    cosine: float


class KnowledgeReader:
    """Reads the graph's tables."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def named(self, scope: Scope, keys: Sequence[str]) -> dict[str, tuple[UUID, ...]]:
        """Return the entities known by each of these keys; unknown keys are missing."""
        rows = await read_rows(self._pool, NAMES, {**scope_parameters(scope), "keys": list(keys)}, by_key=True)
        return entities_by_name(rows)

    async def nearest(self, query: Query, *, limit: int, min_similarity: float) -> dict[UUID, float]:
        """Return the entities whose name is near the query, with the cosine; none without a vector."""
        if query.embedding is None:
            return {}
        parameters = {**query_parameters(query), "limit": limit, "min_similarity": min_similarity}
        rows = await read_rows(self._pool, QUERIES["nearest_entities"], parameters)
        return {row["id"]: float(row["cosine"]) for row in rows}

    async def mentions(self, ids: Sequence[UUID], limit: int) -> dict[UUID, int]:
        """Return how many memories mention each entity, counted up to ``limit``."""
        wanted = {"ids": list(ids), "limit": limit}
        rows = await read_rows(self._pool, QUERIES["count_mentions"], wanted, by_key=True)
        return {row["id"]: row["mentions"] for row in rows}

    async def entities(self, scope: Scope, filters: Filters, ids: Sequence[UUID]) -> dict[UUID, StoredEntity]:
        """Return those of these entities that the scope's user may know of."""
        rows = await self._rows(QUERIES["read_entities"], scope, filters, ENTITY_COLUMNS, {"ids": list(ids)})
        return {row["id"]: _entity(row) for row in rows}

    async def facts(self, scope: Scope, filters: Filters, keys: Sequence[EdgeKey]) -> dict[EdgeKey, Memory]:
        """Return those of these edges whose evidence the scope's user may see."""
        wanted = {
            "from_ids": [key[0] for key in keys],
            "types": [key[1] for key in keys],
            "to_ids": [key[2] for key in keys],
        }
        rows = await self._rows(QUERIES["read_edges"], scope, filters, EDGE_COLUMNS, wanted)
        return {(row["from_id"], row["type"], row["to_id"]): _fact(row) for row in rows}

    async def facts_of(self, scope: Scope, filters: Filters, ids: Sequence[UUID], limit: int) -> dict[EdgeKey, Memory]:
        """Return the edges at these entities, the surest first; those that expire are left out."""
        rows = await self._rows(QUERIES["find_edges"], scope, filters, EDGE_COLUMNS, {"ids": list(ids), "limit": limit})
        return {(row["from_id"], row["type"], row["to_id"]): _fact(row) for row in rows}

    async def named_in(self, scope: Scope, memories: Sequence[UUID]) -> dict[UUID, list[UUID]]:
        """Return the entities that each memory names, the rarest first."""
        parameters = {**scope_parameters(scope), "ids": list(memories)}
        found: dict[UUID, list[UUID]] = {}
        for row in await read_rows(self._pool, QUERIES["find_mentioned"], parameters, by_key=True):
            found.setdefault(row["from_id"], []).append(row["to_id"])
        return found

    async def memories(self, query: Query, ids: Mapping[Tier, Sequence[UUID]]) -> dict[UUID, LinkedMemory]:
        """Return those of these memories that the query may see."""
        found: dict[UUID, LinkedMemory] = {}
        for tier, linked in LINKED.items():
            if not ids.get(tier):
                continue
            text, values = apply_filters(linked.memories, query.filters, linked.columns)
            wanted = query_parameters(query) | values | {"ids": list(ids[tier])}
            rows = await read_tuples(self._pool, text, wanted, by_key=True)
            found |= {row[0]: LinkedMemory(linked.memory(row), float(row[-1])) for row in rows}
        return found

    async def _rows(
        self, template: bytes, scope: Scope, filters: Filters, columns: Columns, parameters: Mapping[str, Any]
    ) -> list[DictRow]:
        text, values = apply_filters(template, filters, columns)
        own = {
            **scope_parameters(scope),
            "shared_only": filters.shared_only,
            "least_strength": LEAST_STRENGTH,
        }
        return await read_rows(self._pool, text, {**own, **values, **parameters}, by_key=True)


def _entity(row: DictRow) -> StoredEntity:
    entity = Entity(row["name"], row["type"], tuple(row["aliases"]), row["confidence"])
    names = ("id", "mentions", "is_asserted", "first_seen_at", "last_seen_at", "expires_at")
    return StoredEntity(entity=entity, **{name: row[name] for name in names})


def _fact(row: DictRow) -> Memory:
    return Memory(
        id=row["id"],
        tier=Tier.GRAPH,
        kind="fact",
        content=f"{row['subject']} {row['type']} {row['object']}",
        occurred_at=row["first_seen_at"],
        confidence=row["confidence"],
        importance=row["strength"],
        expires_at=row["expires_at"],
    )
