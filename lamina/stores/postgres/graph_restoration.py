"""Entities and facts back from the trash, with their mentions and evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import Vector

from lamina.core.scope import Scope
from lamina.core.trash import TrashKind
from lamina.errors import Conflict, NotFound
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.links import prune_evidence
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.trash import take
from lamina.stores.postgres.validity import STATED_RELATIONS, find_stated, lock_subjects, settle_edges

QUERIES = load_queries("graph_restoration.sql")


@dataclass(frozen=True, slots=True)
class RevivedNode:
    """An entity or a fact that is back.

    Args:
        id: The one that it had, or that of the equal one that the namespace has meanwhile.
        kind: Of the two.
        scope: Where it is.
        changed: The nodes of the graph that changed; the caller enqueues them.
    """

    id: UUID
    kind: TrashKind
    scope: Scope
    changed: list[UUID]


async def revive_node(
    connection: Connection, tenant: str, id_: UUID, vectors: Mapping[str, bytes], generation: int
) -> RevivedNode:
    """Take an entity or a fact out of the trash and put its rows back, in one transaction.

    Args:
        connection: In that transaction.
        tenant: Whose it is.
        id_: That it had.
        vectors: Of the names that the graph lacks: float32 bytes of unit vectors.
        generation: Of the vectors.

    Raises:
        NotFound: If it does not lie in the trash.
        Conflict: If nothing is left that it rests on, or the graph has lost another of its names meanwhile.
    """
    own = {"tenant": tenant, "id": id_}
    entry = await (await connection.execute(QUERIES["hold_entry"], own)).fetchone()
    if entry is None:
        raise NotFound("deleted memory", str(id_))
    await connection.execute(QUERIES["hold_rows"], own)
    kind, placed = TrashKind(entry["kind"]), {**own, "workspace": entry["workspace"], "namespace": entry["namespace"]}
    entities = await _revive_entities(connection, placed, vectors, generation)
    edges, subjects = await _revive_edges(connection, placed, entities)
    memories = await _revive_mentions(connection, placed, entities) if kind is TrashKind.ENTITY else []
    now = (entities if kind is TrashKind.ENTITY else edges).get(id_)
    await prune_evidence(connection, sorted(entities.values()), sorted(edges.values()))
    await settle_edges(connection, subjects)
    found = await connection.execute(QUERIES["find_node"], {"tenant": tenant, "id": now})
    if now is None or await found.fetchone() is None:
        raise Conflict(f"nothing is left that the {kind} rests on; state it again")
    await take(connection, tenant, id_)
    scope = Scope(tenant, entry["workspace"], entry["namespace"], entry["user_id"])
    return RevivedNode(now, kind, scope, sorted({*entities.values(), *memories}))


async def _revive_entities(
    connection: Connection, placed: Mapping[str, Any], vectors: Mapping[str, bytes], generation: int
) -> dict[UUID, UUID]:
    """Return the entities of an entry by the ids that they had, each in the graph."""
    embedded = {
        "names": list(vectors),
        "embeddings": [Vector(np.frombuffer(vector, dtype=np.float32)) for vector in vectors.values()],
        "generation": generation,
    }
    await connection.execute(QUERIES["lock_ends"], placed)
    await connection.execute(QUERIES["revive_entities"], {**placed, **embedded})
    locked = await connection.execute(QUERIES["lock_ends"], placed)
    entities = {row["former"]: row["id"] async for row in locked}
    counted = await (await connection.execute(QUERIES["count_entities"], placed)).fetchone()
    if counted is None or len(entities) < counted["entities"]:
        raise Conflict("the graph lost one of its entities at the same moment; restore it again")
    mapped = _mapped(placed, entities)
    await connection.execute(QUERIES["revive_names"], mapped)
    await connection.execute(QUERIES["revive_witnesses"], mapped)
    return entities


async def _revive_edges(
    connection: Connection, placed: Mapping[str, Any], entities: Mapping[UUID, UUID]
) -> tuple[dict[UUID, UUID], set[UUID]]:
    """Return the edges of an entry by the ids that they had, each in the graph with its evidence.

    With them come the entities, locked, whose edges are to be settled when all is weighed.
    """
    mapped = _mapped(placed, entities)
    ending = await connection.execute(QUERIES["find_subjects"], {**mapped, **STATED_RELATIONS})
    subjects = {row["id"] async for row in ending}
    await lock_subjects(connection, subjects | await find_stated(connection, entities.values()))
    await connection.execute(QUERIES["revive_edges"], mapped)
    found = await connection.execute(QUERIES["find_revived_edges"], mapped)
    edges = {row["former"]: row["id"] async for row in found}
    with_edges = {**placed, "former_edges": list(edges), "edges": list(edges.values())}
    await connection.execute(QUERIES["revive_evidence"], with_edges)
    await connection.execute(QUERIES["revive_replacements"], with_edges)
    return edges, subjects


async def _revive_mentions(
    connection: Connection, placed: Mapping[str, Any], entities: Mapping[UUID, UUID]
) -> list[UUID]:
    if placed["id"] not in entities:
        return []
    mention = {**placed, "entity": entities[placed["id"]]}
    return [row["from_id"] async for row in await connection.execute(QUERIES["revive_mentions"], mention)]


def _mapped(placed: Mapping[str, Any], entities: Mapping[UUID, UUID]) -> dict[str, Any]:
    return {**placed, "former": list(entities), "ids": list(entities.values())}
