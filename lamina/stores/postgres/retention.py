"""What is kept for a while after it was replaced or deleted: earlier versions, deleted notes and procedures."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from lamina.core.areas import Area
from lamina.stores.postgres.connection import Connection, Pool, connect
from lamina.stores.postgres.links import remove_from_graph
from lamina.stores.postgres.outbox import enqueue
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("retention.sql")

VersionsOf = Literal["note", "profile"]
DeletedRows = Literal["notes", "procedures"]
# Of a note or user, by id, and its number.
VersionKey = tuple[str, int]


async def ended_versions(
    pool: Pool, of: VersionsOf, area: Area, *, cutoff: datetime, after: Sequence[str] | None, limit: int
) -> list[VersionKey]:
    """Return a page of a namespace's versions that were replaced before the cutoff, in order.

    Args:
        pool: Connections to Postgres.
        of: The kind of versions.
        area: A namespace.
        cutoff: Every state since then stays.
        after: Id and number of the last version of the page before.
        limit: Most versions.
    """
    parameters = area.ids() | {"cutoff": cutoff, "after": None if after is None else list(after), "limit": limit}
    id_column = "note_id" if of == "note" else "user_id"
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES[f"ended_{of}_versions"], parameters)
        return [(str(row[id_column]), row["version"]) async for row in cursor]


async def end_versions(connection: Connection, of: VersionsOf, area: Area, versions: Sequence[VersionKey]) -> int:
    """Delete versions; return how many were there."""
    ids, numbers = zip(*versions, strict=True)
    parameters = area.ids() | {"ids": list(ids), "versions": list(numbers)}
    return (await connection.execute(QUERIES[f"end_{of}_versions"], parameters)).rowcount


async def ended_rows(
    pool: Pool, rows: DeletedRows, area: Area, *, cutoff: datetime, after: str | None, limit: int
) -> list[UUID]:
    """Return a page of the ids of a namespace's rows that were deleted before the cutoff."""
    parameters: dict[str, Any] = area.ids() | {"cutoff": cutoff, "after": after, "limit": limit}
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES[f"ended_{rows}"], parameters)
        return [row["id"] async for row in cursor]


async def end_rows(
    connection: Connection, rows: DeletedRows, area: Area, ids: Sequence[UUID], *, cutoff: datetime
) -> int:
    """Delete for good those of the rows that are still deleted, with their links; return how many."""
    parameters = {"ids": list(ids), "tenant": area.tenant, "cutoff": cutoff}
    cursor = await connection.execute(QUERIES[f"end_{rows}"], parameters)
    ended = [row["id"] async for row in cursor]
    if ended and rows == "notes":
        await enqueue(connection, "graph", sorted(await remove_from_graph(connection, ended)))
    return len(ended)
