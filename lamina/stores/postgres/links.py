"""Links of memories: to the entities they mention, and to the memories nearest to them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.links import LinkKind
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.core.trash import TrashKind
from lamina.errors import NotFound
from lamina.stores.postgres.connection import Connection, scope_parameters
from lamina.stores.postgres.entities import keep_entities, weigh_edges
from lamina.stores.postgres.graph_trash import discard_node, strip_discarded
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.tiers import LINKED
from lamina.stores.postgres.trash import TrashPolicy
from lamina.stores.postgres.validity import find_stated, lock_subjects, settle_edges
from lamina.stores.postgres.vector_indexes import typed_by_generation

QUERIES = load_queries("links.sql")

MENTIONS_AT_ONCE = 500
MAX_UNLINKED = 500


@dataclass(frozen=True, slots=True)
class SimilarLinks:
    """How new memories are linked to their nearest neighbours.

    Args:
        most: Links from one memory; none are made if 0.
        least: Least cosine of the two.
    """

    most: int
    least: float


@dataclass(frozen=True, slots=True)
class Mention:
    """A memory that mentions an entity.

    Args:
        memory: The memory.
        tier: Tier of the memory.
        entity: The entity.
        kind: ``about`` if the memory is titled after it, else ``mentions``.
        source: Source of the memory's text; the same source counts once as evidence.
        user: Owner of the memory; ``None`` for a shared one.
        seen_at: When it happened, in UTC.
        witness: Who vouches for it, and counts once, too; ``None`` if nobody knows.
        strength: 0..1, the share of a score that following the link carries over.
    """

    memory: UUID
    tier: Tier
    entity: UUID
    kind: LinkKind
    source: str
    user: str | None
    seen_at: datetime
    witness: str | None = None
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class UnlinkedMemory:
    """A note or passage that is older than an entity whose name it holds, and not linked to it."""

    id: UUID
    tier: Tier
    content: str
    user: str | None
    source: str
    seen_at: datetime


async def put_mentions(
    connection: Connection, scope: Scope, mentions: Sequence[Mention], kept: Collection[UUID] = ()
) -> None:
    """Store mentions of entities that exist; every new witness raises an entity's confidence.

    Args:
        connection: Inside the transaction.
        scope: Where they belong.
        mentions: The mentions.
        kept: Entities that the transaction has locked against deletion already.
    """
    unkept = {item.entity for item in mentions}.difference(kept)
    existing = await keep_entities(connection, scope, unkept) | set(kept)
    valid = (item for item in mentions if item.entity in existing)
    # In one order, so that two writers of the same entities cannot deadlock.
    in_order = sorted(valid, key=lambda item: (item.entity, item.memory, item.kind))
    # In parts: the arrays of a long document take the time of many requests to write.
    for start in range(0, len(in_order), MENTIONS_AT_ONCE):
        await _put_some(connection, scope, in_order[start : start + MENTIONS_AT_ONCE])


async def _put_some(connection: Connection, scope: Scope, in_order: Sequence[Mention]) -> None:
    told = {
        **scope_parameters(scope),
        "entity_ids": [item.entity for item in in_order],
        "memory_ids": [item.memory for item in in_order],
        "sources": [item.source for item in in_order],
        "witnesses": [item.witness for item in in_order],
        "times": [item.seen_at for item in in_order],
        "kinds": [item.kind.value for item in in_order],
        "tiers": [int(item.tier) for item in in_order],
        "owners": [item.user for item in in_order],
        "strengths": [item.strength for item in in_order],
    }
    await connection.execute(QUERIES["put_mentions"], told)


async def count_witness(connection: Connection, witness: str, memories: Sequence[UUID]) -> None:
    """Count a witness of stored memories for the entities that they mention."""
    parameters = {"witness": witness, "ids": list(memories)}
    await connection.execute(QUERIES["raise_mentioned_confidence"], parameters)


async def copy_mentions(
    connection: Connection,
    area: Area,
    sources: Sequence[tuple[UUID, UUID]],
    named: Sequence[tuple[UUID, UUID]],
) -> None:
    """Link summaries to the entities that they name, as their sources are: with the sources' own evidence, no new one.

    Args:
        connection: In a transaction.
        area: A namespace.
        sources: Each summary with a memory that it was made from.
        named: Each summary with an entity whose name it holds.
    """
    parameters = {
        **area.ids(),
        "ids": [id_ for id_, _ in sources],
        "sources": [source for _, source in sources],
        "namers": [id_ for id_, _ in named],
        "entities": [entity for _, entity in named],
    }
    await connection.execute(QUERIES["copy_mentions"], parameters)


async def link_similar(
    connection: Connection, tier: Tier, ids: Sequence[UUID], generation: int, similar: SimilarLinks
) -> None:
    """Link new memories of a tier to their nearest neighbours; messages and procedures have none."""
    statement = LINKED[tier].link_similar if tier in LINKED else None
    if statement and ids and similar.most:
        wanted = {"fan_out": similar.most, "min_similarity": similar.least}
        text = await typed_by_generation(connection, statement, generation)
        await connection.execute(text, {"ids": list(ids), "generation": generation, **wanted})


async def remove_from_graph(connection: Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Remove memories from the graph: their links, and the edges and entities that rest on them alone.

    Returns:
        Every other node of the graph that changed.
    """
    await strip_discarded(connection, ids)
    cursor = await connection.execute(QUERIES["delete_evidence"], {"ids": list(ids)})
    evidence = [row async for row in cursor]
    links = await delete_links(connection, ids)
    await strip_discarded(connection, ids)
    entities = {row["to_id"] for row in links if row["kind"] != LinkKind.SIMILAR}
    entities |= {id_ for row in evidence for id_ in (row["from_id"], row["to_id"])}
    await prune_evidence(connection, sorted(entities), sorted({row["edge_id"] for row in evidence}))
    lost = {row["from_id"] for row in links if row["kind"] == LinkKind.SIMILAR}
    return (entities | lost) - set(ids)


async def delete_links(connection: Connection, ids: Sequence[UUID]) -> list[DictRow]:
    """Delete the links from and to memories; return ``from_id``, ``to_id`` and ``kind`` of each."""
    cursor = await connection.execute(QUERIES["delete_links"], {"ids": list(ids)})
    return await cursor.fetchall()


async def prune_evidence(connection: Connection, entities: Sequence[UUID], edges: Sequence[UUID]) -> None:
    """Weigh edges by the evidence that is left; delete edges without evidence and entities without mentions.

    A statement that waits for a row goes on with its snapshot from before the wait. So all rows are locked first,
    entities before edges as their writers do, and read afterwards.
    """
    await connection.execute(QUERIES["lock_entities"], {"ids": entities})
    subjects = await find_stated(connection, entities)
    await lock_subjects(connection, subjects)
    await connection.execute(QUERIES["lock_edges"], {"ids": edges})
    await weigh_edges(connection, edges)
    await connection.execute(QUERIES["delete_unfounded_edges"], {"ids": edges})
    await connection.execute(QUERIES["delete_unmentioned_entities"], {"ids": entities})
    await settle_edges(connection, subjects)


async def delete_entity(
    connection: Connection, tenant: str, id_: UUID, trash: TrashPolicy, now: datetime
) -> tuple[Scope, list[UUID]]:
    """Put an entity with its edges and mentions into the trash; return where it was, and the other nodes that changed.

    Raises:
        NotFound: If the tenant has no such entity.
    """
    cursor = await connection.execute(QUERIES["find_entity_and_neighbours"], {"id": id_, "tenant": tenant})
    row = await cursor.fetchone()
    if row is None:
        raise NotFound("entity", str(id_))
    neighbours = sorted(set(row["neighbours"]))
    await connection.execute(QUERIES["lock_entities"], {"ids": [id_, *neighbours]})
    await discard_node(connection, trash, TrashKind.ENTITY, tenant, id_, now)
    links = await delete_links(connection, [id_])
    await connection.execute(QUERIES["delete_entity"], {"id": id_})
    await prune_evidence(connection, neighbours, [])
    return Scope(tenant, row["workspace"], row["namespace"]), [*(link["from_id"] for link in links), *neighbours]


async def delete_edge(
    connection: Connection, tenant: str, id_: UUID, trash: TrashPolicy, now: datetime
) -> tuple[Scope, list[UUID]]:
    """Put an edge with all its evidence into the trash; return where it was, and the nodes that changed.

    Raises:
        NotFound: If the tenant has no such edge.
    """
    await connection.execute(QUERIES["lock_ends_of_edge"], {"id": id_, "tenant": tenant})
    await discard_node(connection, trash, TrashKind.FACT, tenant, id_, now)
    cursor = await connection.execute(QUERIES["delete_edge_evidence"], {"id": id_, "tenant": tenant})
    row = await cursor.fetchone()
    if row is None:
        raise NotFound("edge", str(id_))
    ends = [row["from_id"], row["to_id"]]
    await prune_evidence(connection, ends, [id_])
    return Scope(tenant, row["workspace"], row["namespace"], row["user_id"]), ends


async def find_unlinked(connection: Connection, scope: Scope, keys: Sequence[str], limit: int) -> list[UnlinkedMemory]:
    """Return memories that hold the words of a name in a row, at most ``limit`` for each tier and name, 500 in all.

    They are locked against changes until the transaction ends.
    """
    wanted = {**scope_parameters(scope), "keys": list(keys), "limit": limit, "limit_in_all": MAX_UNLINKED}
    cursor = await connection.execute(QUERIES["find_unlinked"], wanted)
    chosen = {**scope_parameters(scope), "ids": [row["id"] async for row in cursor]}
    notes = await connection.execute(QUERIES["lock_unlinked_notes"], chosen)
    passages = await connection.execute(QUERIES["lock_unlinked_passages"], chosen)
    return [
        UnlinkedMemory(row["id"], Tier(row["tier"]), row["content"], row["user_id"], row["source"], row["seen_at"])
        for row in (*await notes.fetchall(), *await passages.fetchall())
    ]
