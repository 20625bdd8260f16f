"""Entities, edges as facts, and memories that the graph links to, as a reader may see them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.memories import MOST_SPEAKERS, Entity
from lamina.core.paging import Page
from lamina.core.queries import Candidate, FilterField, Filters, Memory, Query
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.policies.retention.decay import LEAST_STRENGTH
from lamina.stores.postgres.connection import read_rows, read_tuples, scope_parameters
from lamina.stores.postgres.entities import NAMES, entities_by_name
from lamina.stores.postgres.filters import Columns, apply_filters, query_parameters, union
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore
from lamina.stores.postgres.tiers import LINKED
from lamina.stores.postgres.vector_indexes import typed

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

_FIND_FACT = QUERIES["list_facts"].replace(b"/*chosen*/ e.from_id", b"e.id")
_LIST_ENTITIES = (
    QUERIES["read_entities"]
    .replace(
        b"/*chosen*/ n.id = ANY(%(ids)s)",
        b"n.id < coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')"
        b" AND (%(type)s::text IS NULL OR n.type = %(type)s)",
    )
    .replace(b"ORDER BY n.id", b"ORDER BY n.id DESC LIMIT %(limit)s")
)


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


@dataclass(frozen=True, slots=True)
class TimedFact:
    """An edge with the interval in which it holds, its end excluded, and what took its place."""

    id: UUID
    subject: str
    relation: str
    object: str
    confidence: float
    valid_from: datetime
    valid_to: datetime | None
    recorded_at: datetime
    replaced_by: UUID | None


@dataclass(frozen=True, slots=True)
class LinkedMemory:
    """A memory that the graph leads to, at its chunk nearest to the query.

    Args:
        memory: The memory.
        cosine: Of that chunk; 0 where the query has no vector.
    """

    memory: Candidate
    cosine: float


@dataclass(frozen=True, slots=True)
class Seeds:
    """Entities from which a question may start.

    Args:
        names: Those known by each of its keys.
        near: The cosine of those whose names are near it.
        described: The cosine of the nearest passage of a document that is titled after them.
        mentions: How many memories mention each of them and of the entities around them, counted up to a limit.
    """

    names: Mapping[str, tuple[UUID, ...]]
    near: Mapping[UUID, float]
    described: Mapping[UUID, float]
    mentions: Mapping[UUID, int]


@dataclass(frozen=True, slots=True)
class Reached:
    """What a walk has reached, as far as the query may see it.

    Args:
        memories: Those of the tiers.
        facts: The edges that were followed.
        stated: The entities that a caller stated.
    """

    memories: Mapping[UUID, LinkedMemory]
    facts: Mapping[EdgeKey, Memory]
    stated: Mapping[UUID, Memory]


class _ReachedRow(NamedTuple):
    """A row of any part of the statement over what was reached."""

    tier: int
    id: UUID
    occurred_at: datetime
    start: int
    end: int | None
    confidence: float
    importance: float
    user: str | None
    last_hit_at: datetime | None
    temperature: str
    expires_at: datetime | None
    cosine: float
    from_id: UUID | None
    to_id: UUID | None
    name: str
    type: str
    object: str | None
    aliases: list[str] | None
    speakers: list[str] | None


class KnowledgeReader(PostgresStore):
    """Reads the graph's tables."""

    async def named(self, scope: Scope, keys: Sequence[str]) -> dict[str, tuple[UUID, ...]]:
        """Return the entities known by each of these keys; unknown keys are missing."""
        rows = await read_rows(self._pool, NAMES, {**scope_parameters(scope), "keys": list(keys)}, by_key=True)
        return entities_by_name(rows)

    async def seeds(
        self,
        query: Query,
        keys: Sequence[str],
        *,
        limit: int,
        min_similarity: float,
        passages: int,
        common: int,
        around: int,
        ef_search: int,
    ) -> Seeds:
        """Return the entities known by these keys, named near the query or described by it, in one statement.

        Args:
            query: None is near it without a vector.
            keys: The names.
            limit: Most entities that are near.
            min_similarity: Least cosine of those.
            passages: How many of the nearest passages describe something.
            common: Where the count of mentions stops.
            around: Most memories and edges of an entity along which others are counted, too.
            ef_search: Candidates that the vector index of entities considers.
        """
        wanted = {
            "keys": list(keys),
            "limit": limit,
            "min_similarity": min_similarity,
            "passages": passages,
            "shared_only": query.filters.shared_only,
            "common": common,
            "around": around,
            "entities_ef": str(ef_search),
        }
        text = typed(QUERIES["find_seeds"], query.generation, query.dimension)
        rows = await read_tuples(self._pool, text, query_parameters(query) | wanted)
        names: dict[str, tuple[UUID, ...]] = {}
        near: dict[UUID, float] = {}
        described: dict[UUID, float] = {}
        for key, id_, cosine, is_described, _ in rows:
            if key is not None:
                names[key] = (*names.get(key, ()), id_)
            elif cosine is not None:
                found = described if is_described else near
                found[id_] = max(cosine, found.get(id_, cosine))
        return Seeds(names, near, described, {row[1]: row[4] for row in rows})

    async def mentions(self, ids: Sequence[UUID], limit: int) -> dict[UUID, int]:
        """Return how many memories mention each entity, counted up to ``limit``."""
        wanted = {"ids": list(ids), "limit": limit}
        rows = await read_rows(self._pool, QUERIES["count_mentions"], wanted, by_key=True)
        return {row["id"]: row["mentions"] for row in rows}

    async def entities(self, scope: Scope, filters: Filters, ids: Sequence[UUID]) -> dict[UUID, StoredEntity]:
        """Return those of these entities that the scope's user may know of."""
        rows = await self._filtered(QUERIES["read_entities"], scope, filters, ENTITY_COLUMNS, {"ids": list(ids)})
        return {row["id"]: _entity(row) for row in rows}

    async def page(self, scope: Scope, page: Page, type_: str | None) -> list[StoredEntity]:
        """Return the entities, of a type or all, that the scope's user may know of; the one made last first."""
        chosen = {"type": type_, **page.parameters("id")}
        rows = await self._filtered(_LIST_ENTITIES, scope, Filters(min_confidence=0.0), ENTITY_COLUMNS, chosen)
        return [_entity(row) for row in rows]

    async def reached(
        self,
        query: Query,
        memories: Mapping[Tier, Sequence[UUID]],
        edges: Sequence[EdgeKey],
        entities: Sequence[UUID],
    ) -> Reached:
        """Return those of these memories, edges and entities that the query may see, in one statement."""
        parts = list(_reached_parts(query, memories, edges, entities))
        if not parts:
            return Reached({}, {}, {})
        text, parameters = union(parts)
        rows = list(map(_ReachedRow._make, await read_tuples(self._pool, text, parameters, by_key=True)))
        of_graph = [row for row in rows if row.tier == Tier.GRAPH]
        return Reached(
            {
                row.id: LinkedMemory(Candidate(row.id, Tier(row.tier), *row[2:11]), row.cosine)
                for row in rows
                if row.tier != Tier.GRAPH
            },
            {(row.from_id, row.type, row.to_id): _fact(row) for row in of_graph if row.from_id and row.to_id},
            {
                row.id: entity_memory(
                    row.id, Entity(row.name, row.type, tuple(row.aliases or ()), row.confidence), row.occurred_at
                )
                for row in of_graph
                if row.from_id is None
            },
        )

    async def facts_of(self, scope: Scope, filters: Filters, ids: Sequence[UUID], limit: int) -> list[str]:
        """Return the edges at these entities as words, the surest first; those that expire are left out."""
        rows = await self._filtered(
            QUERIES["find_edges"], scope, filters, EDGE_COLUMNS, {"ids": list(ids), "limit": limit}
        )
        return [f"{row['subject']} {row['type']} {row['object']}" for row in rows]

    async def timed_facts(
        self, scope: Scope, ids: Sequence[UUID], *, relation: str | None, as_of: datetime | None, page: Page
    ) -> tuple[TimedFact, ...]:
        """Return the edges from these entities, the latest first; with a moment, those that held then."""
        chosen = {"ids": list(ids), "relation": relation, "as_of": as_of, **page.parameters("time", "id")}
        parameters = {**scope_parameters(scope), **chosen, "least_strength": LEAST_STRENGTH}
        rows = await read_rows(self._pool, QUERIES["list_facts"], parameters, by_key=True)
        return tuple(TimedFact(**row) for row in rows)

    async def timed_fact(self, scope: Scope, id_: UUID) -> TimedFact | None:
        """Return one edge of a place with the time in which it holds, if the scope's user may see it."""
        chosen = {"ids": [id_], "relation": None, "as_of": None, **Page(1).parameters("time", "id")}
        parameters = {**scope_parameters(scope), **chosen, "least_strength": 0.0}
        rows = await read_rows(self._pool, _FIND_FACT, parameters)
        return TimedFact(**rows[0]) if rows else None

    async def named_in(self, scope: Scope, memories: Sequence[UUID]) -> dict[UUID, list[UUID]]:
        """Return the entities that each memory names, the rarest first."""
        parameters = {**scope_parameters(scope), "ids": list(memories)}
        found: dict[UUID, list[UUID]] = {}
        for row in await read_rows(self._pool, QUERIES["find_mentioned"], parameters, by_key=True):
            found.setdefault(row["from_id"], []).append(row["to_id"])
        return found

    async def memories(self, query: Query, ids: Mapping[Tier, Sequence[UUID]]) -> Mapping[UUID, LinkedMemory]:
        """Return those of these memories that the query may see."""
        return (await self.reached(query, ids, (), ())).memories

    async def _filtered(
        self, template: bytes, scope: Scope, filters: Filters, columns: Columns, parameters: Mapping[str, Any]
    ) -> list[DictRow]:
        text, values = apply_filters(template, filters, columns)
        own = {
            **scope_parameters(scope),
            "shared_only": filters.shared_only,
            "least_strength": LEAST_STRENGTH,
            "moment": filters.as_of,
        }
        return await read_rows(self._pool, text, {**own, **values, **parameters}, by_key=True)


def _entity(row: DictRow) -> StoredEntity:
    entity = Entity(row["name"], row["type"], tuple(row["aliases"]), row["confidence"])
    names = ("id", "mentions", "is_asserted", "first_seen_at", "last_seen_at", "expires_at")
    return StoredEntity(entity=entity, **{name: row[name] for name in names})


def _reached_parts(
    query: Query, memories: Mapping[Tier, Sequence[UUID]], edges: Sequence[EdgeKey], entities: Sequence[UUID]
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield the statement over each kind of thing that was reached, with its parameters."""
    own = query_parameters(query) | {"shared_only": query.filters.shared_only, "least_strength": LEAST_STRENGTH}
    for tier, linked in LINKED.items():
        if ids := memories.get(tier):
            whole = QUERIES["reached_memories"].replace(b"/*memories*/", linked.memories)
            text, values = apply_filters(whole, query.filters, linked.columns)
            yield text, own | values | {"ids": list(ids), "tier": int(tier)}
    if edges:
        text, values = apply_filters(QUERIES["reached_edges"], query.filters, EDGE_COLUMNS)
        starts, types, ends = zip(*edges, strict=True)
        wanted = {"from_ids": list(starts), "types": list(types), "to_ids": list(ends)}
        yield text, own | values | wanted | {"moment": query.filters.as_of, "most_speakers": MOST_SPEAKERS}
    if entities:
        text, values = apply_filters(QUERIES["reached_entities"], query.filters, ENTITY_COLUMNS)
        yield text, own | values | {"ids": list(entities)}


def _fact(row: _ReachedRow) -> Memory:
    return Memory(
        id=row.id,
        tier=Tier.GRAPH,
        kind="fact",
        content=f"{row.name} {row.type} {row.object}",
        occurred_at=row.occurred_at,
        confidence=row.confidence,
        importance=row.importance,
        expires_at=row.expires_at,
        speakers=tuple(row.speakers or ()),
    )


def entity_memory(id_: UUID, entity: Entity, first_seen_at: datetime) -> Memory:
    """Return an entity as a found memory."""
    aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    return Memory(
        id=id_,
        tier=Tier.GRAPH,
        kind="entity",
        content=f"{entity.name} ({entity.type}){aliases}",
        occurred_at=first_seen_at,
        confidence=entity.confidence,
        name=entity.name,
    )
