"""Edges that a job infers from shared neighbours: evidence of their own, which no memory states."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid5

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.policies.retention.clusters import InferredEdge
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("inferred_edges.sql")


async def read_shared_links(connection: Connection, area: Area, type_: str) -> list[tuple[UUID, UUID]]:
    """Return the ends of all edges that everybody may see, but for those of one type."""
    cursor = await connection.execute(QUERIES["read_shared_links"], {**area.ids(), "type": type_})
    return [(row["from_id"], row["to_id"]) async for row in cursor]


async def read_edges(connection: Connection, area: Area, type_: str, source: str) -> list[DictRow]:
    """Return all edges of a type: ``id``, ``from_id``, ``to_id`` and whether ``source`` ``is_inferred`` it."""
    parameters = {**area.ids(), "type": type_, "source": source}
    return await (await connection.execute(QUERIES["read_related_edges"], parameters)).fetchall()


async def insert_edges(
    connection: Connection,
    area: Area,
    edges: Sequence[InferredEdge],
    *,
    type_: str,
    source: str,
    confidence: float,
    moment: datetime,
    run: UUID | None,
) -> list[DictRow]:
    """Insert edges with their evidence, and list them for the undo of the run; those that exist stay as they are.

    Returns:
        ``id`` and ``from_id`` of each new edge.
    """
    parameters = {
        **area.ids(),
        "ids": [uuid5(edge.subject, f"{type_} {edge.object}") for edge in edges],
        "from_ids": [edge.subject for edge in edges],
        "to_ids": [edge.object for edge in edges],
        "strengths": [edge.strength for edge in edges],
        "type": type_,
        "source": source,
        "confidence": confidence,
        "moment": moment,
        "run_id": run,
    }
    return await (await connection.execute(QUERIES["insert_inferred_edges"], parameters)).fetchall()


async def delete_inferences(connection: Connection, ids: Sequence[UUID], source: str) -> list[DictRow]:
    """Delete the inferred evidence of edges; the edges stay until their evidence is pruned.

    Returns:
        ``id``, ``from_id``, ``to_id``, ``tenant``, ``workspace`` and ``namespace`` of each edge.
    """
    parameters = {"ids": list(ids), "source": source}
    return await (await connection.execute(QUERIES["delete_inferences"], parameters)).fetchall()
