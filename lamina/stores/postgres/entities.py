"""Tier 4: entities with their names, and the edges between them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import Vector
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from lamina.core.links import Link, Node, NodeLabel
from lamina.core.memories import Edge, Entity, new_id
from lamina.core.scope import Scope
from lamina.policies.validity import tells_of_state
from lamina.stores.postgres.connection import Connection, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.tier_rows import EmbeddingStatements, ProjectionStatements, TierRows, VectorTable
from lamina.stores.postgres.validity import lock_subjects, settle_edges

QUERIES = load_queries("entities.sql")
NAMES = QUERIES["find_entity_names"]
# Both ends of an edge, and its type.
_Relation = tuple[UUID, UUID, str]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VAGUE_TYPE = "thing"
SEEN_WITHIN = timedelta(minutes=1)
"""Mentions within it change nothing of an entity's row."""


@dataclass(frozen=True, slots=True)
class PreparedEntity:
    """An entity with the vector of its name.

    Args:
        entity: The entity.
        embedding: Float32 bytes of a unit vector.
        seen_at: When it was mentioned, in UTC.
        is_asserted: Whether a caller stated it; otherwise a text mentions it.
    """

    entity: Entity
    embedding: bytes
    seen_at: datetime
    is_asserted: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of evidence for an edge.

    Args:
        edge: The edge.
        source: Its source; the same source counts once, however often it is repeated.
        memory: The memory that says so, with which the evidence is deleted; ``None`` if it was stated.
        user: The only user who may see it; ``None`` for everybody.
        seen_at: When it was said, in UTC.
        witness: Who vouches for it, and counts once, too; ``None`` if nobody knows.
    """

    edge: Edge
    source: str
    memory: UUID | None
    user: str | None
    seen_at: datetime
    witness: str | None = None


@dataclass(frozen=True, slots=True)
class ToldGraph:
    """The entities and the evidence that memories contributed to the graph, kept to be written again.

    Args:
        evidence: For edges between entities of these names.
        entities: That they name.
    """

    evidence: tuple[Evidence, ...] = ()
    entities: tuple[Entity, ...] = ()

    @classmethod
    def of(cls, told: Mapping[str, Sequence[Mapping[str, Any]]]) -> "ToldGraph":
        """Return that of the JSON of :func:`read_told`."""
        evidence = (
            Evidence(
                Edge(item["subject"], item["type"], item["object"], item["strength"], item["confidence"]),
                item["source"],
                UUID(item["memory"]),
                item["user"],
                datetime.fromisoformat(item["seen_at"]),
                item["witness"],
            )
            for item in told["evidence"]
        )
        return cls(tuple(evidence), tuple(Entity(item["name"], item["type"]) for item in told["entities"]))


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The outcome of storing an entity or an edge.

    Args:
        id: Its id, or that of the equal one that the workspace has.
        existed: Whether the workspace had it before.
        is_earlier: Whether an entity is new, or was first seen later until now.
    """

    id: UUID
    existed: bool
    is_earlier: bool = False


async def put_entities(
    connection: Connection, scope: Scope, prepared: Sequence[PreparedEntity], generation: int
) -> dict[str, NodeResult]:
    """Store entities by key, each once, with every name they are known by.

    Rows are locked in the order of their keys, so that two writers of the same names cannot deadlock; a mention that
    tells nothing new locks the row only against deletion.
    """
    by_key = {item.entity.key: item for item in prepared}
    if not by_key:
        return {}
    wanted = {**scope_parameters(scope), "keys": sorted(by_key)}
    known = {row["key"]: row async for row in await connection.execute(QUERIES["keep_named_entities"], wanted)}
    put = {key: NodeResult(row["id"], existed=True) for key, row in known.items()}
    changed = [item for key, item in by_key.items() if key not in known or _tells_more(known[key], item)]
    return put | await _upsert_entities(connection, scope, changed, generation)


def _tells_more(row: DictRow, item: PreparedEntity) -> bool:
    """Report whether a mention changes the row of its entity.

    Each change of a row writes its vector anew, into the index of vectors, too, and has other writers of the name wait
    until the commit. So the time of the last mention is right to a minute.
    """
    return (
        item.is_asserted
        or (row["type"] == VAGUE_TYPE and item.entity.type != VAGUE_TYPE)
        or not set(item.entity.aliases).issubset(row["aliases"])
        or item.seen_at < row["first_seen_at"]
        or item.seen_at > row["last_seen_at"] + SEEN_WITHIN
        or row["standing"] < 1
    )


async def _upsert_entities(
    connection: Connection, scope: Scope, prepared: Sequence[PreparedEntity], generation: int
) -> dict[str, NodeResult]:
    if not prepared:
        return {}
    rows = {
        **scope_parameters(scope),
        "generation": generation,
        "ids": [new_id() for _ in prepared],
        "keys": [item.entity.key for item in prepared],
        "names": [item.entity.name for item in prepared],
        "types": [item.entity.type for item in prepared],
        "aliases": [Jsonb(item.entity.aliases) for item in prepared],
        "confidences": [item.entity.confidence for item in prepared],
        "asserted": [item.is_asserted for item in prepared],
        "embeddings": [Vector(np.frombuffer(item.embedding, dtype=np.float32)) for item in prepared],
        "times": [item.seen_at for item in prepared],
    }
    stored = await (await connection.execute(QUERIES["upsert_entities"], rows)).fetchall()
    put = {row["key"]: NodeResult(row["id"], not row["is_new"], row["is_earlier"]) for row in stored}
    names = [(key, put[item.entity.key].id) for item in prepared for key in item.entity.all_keys()]
    named = {"keys": [key for key, _ in names], "ids": [id_ for _, id_ in names]}
    await connection.execute(QUERIES["insert_entity_names"], {**scope_parameters(scope), **named})
    return put


async def find_names(connection: Connection, scope: Scope, keys: Sequence[str]) -> dict[str, tuple[UUID, ...]]:
    """Return the entities known by each of these keys; unknown keys are missing."""
    cursor = await connection.execute(NAMES, {**scope_parameters(scope), "keys": list(keys)})
    return entities_by_name(await cursor.fetchall())


def entities_by_name(rows: Sequence[DictRow]) -> dict[str, tuple[UUID, ...]]:
    """Return the entities of each name among the rows of :data:`NAMES`."""
    found: dict[str, tuple[UUID, ...]] = {}
    for row in rows:
        found[row["key"]] = (*found.get(row["key"], ()), row["entity_id"])
    return found


async def find_alias_holders(connection: Connection, scope: Scope, keys: Sequence[str]) -> dict[str, tuple[UUID, ...]]:
    """Return the stated entities that have each name as an alias, the oldest first, unless it is an entity's own name.

    They are locked against deletion until the transaction ends.
    """
    found: dict[str, tuple[UUID, ...]] = {}
    wanted = {**scope_parameters(scope), "keys": list(keys)}
    async for row in await connection.execute(QUERIES["find_alias_holders"], wanted):
        found[row["key"]] = (*found.get(row["key"], ()), row["id"])
    return found


async def touch_entities(connection: Connection, seen: Mapping[UUID, datetime]) -> None:
    """Record that entities were mentioned again, each at its moment."""
    for id_, seen_at in sorted(seen.items()):
        touched = {"id": id_, "seen_at": seen_at, "seen_within": SEEN_WITHIN}
        await connection.execute(QUERIES["touch_entity"], touched)


async def put_edges(
    connection: Connection, scope: Scope, evidence: Sequence[Evidence], ids: Mapping[str, UUID]
) -> dict[tuple[str, str, str], NodeResult]:
    """Store edges with their evidence, and weigh them by it.

    Args:
        connection: Inside the transaction.
        scope: Where they belong.
        evidence: Each with its edge; an edge may come several times.
        ids: The entity of each name's key.

    Returns:
        The outcome for each (subject key, type, object key).
    """
    subjects = {ids[edge_key(item.edge)[0]] for item in evidence if tells_of_state(item.edge.type)}
    await lock_subjects(connection, subjects)
    told: dict[_Relation, list[Evidence]] = {}
    # By key, as entities are, against deadlocks. Two names of one entity state one edge.
    for item in sorted(evidence, key=lambda item: edge_key(item.edge)):
        subject, type_, object_ = edge_key(item.edge)
        told.setdefault((ids[subject], ids[object_], type_), []).append(item)
    stored = await _upsert_edges(connection, scope, told)
    await _put_evidence(connection, [(stored[relation].id, item) for relation, said in told.items() for item in said])
    if stored:
        await weigh_edges(connection, sorted(item.id for item in stored.values()))
    await settle_edges(connection, subjects)
    return {edge_key(item.edge): stored[relation] for relation, said in told.items() for item in said}


async def _upsert_edges(
    connection: Connection, scope: Scope, told: Mapping[_Relation, Sequence[Evidence]]
) -> dict[_Relation, NodeResult]:
    if not told:
        return {}
    rows = {
        **scope_parameters(scope),
        "ids": [new_id() for _ in told],
        "from_ids": [from_id for from_id, _, _ in told],
        "to_ids": [to_id for _, to_id, _ in told],
        "types": [type_ for _, _, type_ in told],
        "strengths": [said[0].edge.strength for said in told.values()],
        "confidences": [said[0].edge.confidence for said in told.values()],
        "first_times": [min(item.seen_at for item in said) for said in told.values()],
        "last_times": [max(item.seen_at for item in said) for said in told.values()],
    }
    stored = await connection.execute(QUERIES["upsert_edges"], rows)
    return {
        (row["from_id"], row["to_id"], row["type"]): NodeResult(row["id"], existed=not row["is_new"])
        async for row in stored
    }


async def _put_evidence(connection: Connection, evidence: Sequence[tuple[UUID, Evidence]]) -> None:
    """Store evidence, each with the edge that it is for; of a source that comes again the greatest strength counts."""
    first: dict[tuple[UUID, str, UUID | None, str | None], Evidence] = {}
    strengths: dict[tuple[UUID, str, UUID | None, str | None], float] = {}
    for edge_id, item in evidence:
        key = edge_id, item.source, item.memory, item.user
        first.setdefault(key, item)
        strengths[key] = max(strengths.get(key, 0.0), item.edge.strength)
    if not first:
        return
    rows = {
        "edge_ids": [edge_id for edge_id, _, _, _ in first],
        "sources": [item.source for item in first.values()],
        "witnesses": [item.witness for item in first.values()],
        "memory_ids": [item.memory for item in first.values()],
        "owners": [item.user for item in first.values()],
        "strengths": list(strengths.values()),
        "confidences": [item.edge.confidence for item in first.values()],
        "times": [item.seen_at for item in first.values()],
    }
    await connection.execute(QUERIES["insert_edge_evidence"], rows)


async def back_edges(connection: Connection, scope: Scope, evidence: Sequence[Evidence]) -> set[UUID]:
    """Add evidence of further witnesses to edges that the same memories say already; return the edges' subjects.

    An edge that was retracted, or that a memory does not say, stays as it is.
    """
    keys = [edge_key(item.edge) for item in evidence]
    told = {
        "subjects": [subject for subject, _, _ in keys],
        "types": [type_ for _, type_, _ in keys],
        "objects": [object_ for _, _, object_ in keys],
        "memory_ids": [item.memory for item in evidence],
    }
    cursor = await connection.execute(QUERIES["find_backed_edges"], {**scope_parameters(scope), **told})
    backed = await cursor.fetchall()
    await _put_evidence(connection, [(row["id"], evidence[row["place"] - 1]) for row in backed])
    if backed:
        await weigh_edges(connection, sorted({row["id"] for row in backed}))
    return {row["from_id"] for row in backed}


async def read_told(connection: Connection, ids: Sequence[UUID]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Read the evidence and the entities of memories, as JSON."""
    cursor = await connection.execute(QUERIES["read_told"], {"ids": list(ids)})
    return await cursor.fetchone() or {}


def edge_key(edge: Edge) -> tuple[str, str, str]:
    """Return the key of an edge: subject, type and object, in this direction."""
    return Entity(edge.subject).key, edge.type, Entity(edge.object).key


async def weigh_edges(connection: Connection, ids: Sequence[UUID]) -> None:
    """Compute the strength and confidence of edges from their evidence."""
    await connection.execute(QUERIES["weigh_edges"], {"ids": ids})


async def keep_entities(connection: Connection, scope: Scope, ids: Collection[UUID]) -> set[UUID]:
    """Lock entities of a scope against deletion until the transaction ends; return those that exist."""
    if not ids:
        return set()
    cursor = await connection.execute(QUERIES["keep_entities"], {**scope_parameters(scope), "ids": list(ids)})
    return {row["id"] async for row in cursor}


async def find_first_words(connection: Connection, scope: Scope, words: Collection[str]) -> set[str]:
    """Return those of the words that a name of the scope begins with."""
    if not words:
        return set()
    wanted = {**scope_parameters(scope), "words": list(words)}
    cursor = await connection.execute(QUERIES["find_first_words"], wanted)
    return {row["word"] async for row in cursor}


def _node(row: DictRow) -> Node:
    links = [_link(row["id"], *fields) for fields in row["links"]]
    return Node(
        label=NodeLabel(row["label"]),
        tenant=row["tenant"],
        workspace=row["workspace"],
        namespace=row["namespace"],
        tier=row["tier"],
        user=row["user_id"],
        name=row["name"],
        seen_at=row["seen_at"],
        links=tuple(links),
    )


def _link(
    source: UUID,
    target: str,
    kind: str,
    strength: float,
    users: list[str] | None,
    seen_us: int,
    held_us: Sequence[tuple[int, int | None]] = (),
) -> Link:
    found = None if users is None else tuple(users)
    held = tuple((_moment(begin), None if end is None else _moment(end)) for begin, end in held_us)
    return Link(source, UUID(target), kind, float(strength), found, _moment(seen_us), held)


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


TIER_ROWS = TierRows(
    present=QUERIES["find_present_nodes"],
    projected={
        "graph": ProjectionStatements(
            QUERIES["read_graph_nodes"], QUERIES["list_graph_ids"], QUERIES["enqueue_all_graph"], _node
        )
    },
    embedded={
        "entities": EmbeddingStatements(
            table="entities",
            vectors=(VectorTable("entity_embeddings", "entity_id"),),
            unembedded=QUERIES["find_unembedded_entities"],
            embed=QUERIES["embed_entities"],
            count=QUERIES["count_unembedded_entities"],
            text=itemgetter("name"),
            is_cut=False,
        )
    },
    count_user=QUERIES["count_user_links"],
)
