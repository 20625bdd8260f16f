"""What is kept for a while after it ended: earlier versions, deleted rows, outcomes, keys, shares, receipts, places."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction
from lamina.stores.postgres.erasure import count_empty_sessions, delete_empty_sessions
from lamina.stores.postgres.links import remove_from_graph
from lamina.stores.postgres.outbox import enqueue
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_row, fetch_rows, run_statement

QUERIES = load_queries("retention.sql")

SESSIONS_AT_ONCE = 500

VersionsOf = Literal["note", "profile"]
EndedRows = Literal["notes", "procedures", "outcomes"]
_ENDED_VERSIONS: Mapping[VersionsOf, bytes] = {
    "note": QUERIES["ended_note_versions"],
    "profile": QUERIES["ended_profile_versions"],
}
_END_VERSIONS: Mapping[VersionsOf, bytes] = {
    "note": QUERIES["end_note_versions"],
    "profile": QUERIES["end_profile_versions"],
}
_ENDED_ROWS: Mapping[EndedRows, bytes] = {
    "notes": QUERIES["ended_notes"],
    "procedures": QUERIES["ended_procedures"],
    "outcomes": QUERIES["ended_outcomes"],
}
_END_ROWS: Mapping[EndedRows, bytes] = {
    "notes": QUERIES["end_notes"],
    "procedures": QUERIES["end_procedures"],
    "outcomes": QUERIES["end_outcomes"],
}
EndedOfTenant = Literal[
    "keys", "shares", "receipts", "user_profile_versions", "events", "letters", "operations", "trash", "feedback"
]
# The others tell of changes, and are none: nobody counts them.
_COUNT_ENDED: Mapping[EndedOfTenant, bytes] = {
    "keys": QUERIES["count_ended_keys"],
    "shares": QUERIES["count_ended_shares"],
    "receipts": QUERIES["count_ended_receipts"],
    "user_profile_versions": QUERIES["count_ended_user_profile_versions"],
}
_END: Mapping[EndedOfTenant, bytes] = {
    "keys": QUERIES["end_keys"],
    "shares": QUERIES["end_shares"],
    "receipts": QUERIES["end_receipts"],
    "user_profile_versions": QUERIES["end_user_profile_versions"],
    "events": QUERIES["end_events"],
    "letters": QUERIES["end_letters"],
    "operations": QUERIES["end_operations"],
    "trash": QUERIES["end_trash"],
    "feedback": QUERIES["end_feedback"],
}
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
    return [(str(row[id_column]), row["version"]) for row in await fetch_rows(pool, _ENDED_VERSIONS[of], parameters)]


async def end_versions(connection: Connection, of: VersionsOf, area: Area, versions: Sequence[VersionKey]) -> int:
    """Delete versions; return how many were there."""
    ids, numbers = zip(*versions, strict=True)
    parameters = area.ids() | {"ids": list(ids), "versions": list(numbers)}
    return (await connection.execute(_END_VERSIONS[of], parameters)).rowcount


async def ended_rows(
    pool: Pool, rows: EndedRows, area: Area, *, cutoff: datetime, after: str | None, limit: int
) -> list[UUID]:
    """Return a page of the ids of a namespace's rows that were deleted, or outcomes reported, before the cutoff."""
    parameters: dict[str, Any] = area.ids() | {"cutoff": cutoff, "after": after, "limit": limit}
    return [row["id"] for row in await fetch_rows(pool, _ENDED_ROWS[rows], parameters)]


async def end_rows(
    connection: Connection, rows: EndedRows, area: Area, ids: Sequence[UUID], *, cutoff: datetime
) -> int:
    """Delete for good those of the rows to which it still applies, with their links; return how many."""
    parameters = {"ids": list(ids), "tenant": area.tenant, "cutoff": cutoff}
    cursor = await connection.execute(_END_ROWS[rows], parameters)
    ended = [row["id"] async for row in cursor]
    if ended and rows == "notes":
        await enqueue(connection, "graph", sorted(await remove_from_graph(connection, ended)))
    return len(ended)


async def count_ended(pool: Pool, tenant: str, kept: Mapping[EndedOfTenant, timedelta], now: datetime) -> int:
    """Count the records of a tenant that ended longer ago than those of their kind are kept."""
    found = [
        await fetch_row(pool, statement, {"tenant": tenant, "cutoff": now - kept[kind]})
        for kind, statement in _COUNT_ENDED.items()
    ]
    return sum(int(row["ended"]) for row in found if row)


async def end_of_tenant(pool: Pool, tenant: str, kept: Mapping[EndedOfTenant, timedelta], now: datetime) -> int:
    """Delete the records of a tenant that ended longer ago than those of their kind are kept; count the counted ones.

    Dead letters and feedback have no end of their own: they go with the events and the memories.
    """
    ended = 0
    for kind, time in kept.items():
        deleted = await run_statement(pool, _END[kind], {"tenant": tenant, "cutoff": now - time})
        ended += deleted if kind in _COUNT_ENDED else 0
    return ended


async def count_empty_places(pool: Pool, tenant: str, *, cutoff: datetime) -> int:
    """Count the sessions and places of a tenant that were empty before the cutoff."""
    parameters = {"tenant": tenant, "cutoff": cutoff}
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES["count_empty_places"], parameters)
        row = await cursor.fetchone()
        sessions = await count_empty_sessions(connection, tenant, cutoff)
    return sessions + (int(row["places"]) if row else 0)


async def end_empty_places(pool: Pool, tenant: str, *, now: datetime, cutoff: datetime) -> int:
    """Delete a tenant's empty sessions, and the epochs of places in which nothing is left.

    An epoch that began anew could meet answers that were cached under the same number before. So a place is noted as
    empty first, and goes once it was empty since the cutoff, when no cache has such an answer any more.

    Args:
        pool: Connections to Postgres.
        tenant: Owner of the places.
        now: The present time.
        cutoff: Places go that were empty since then, and sessions that were made before.

    Returns:
        The number of both.
    """
    ended = 0
    while count := len(await _end_sessions(pool, tenant, cutoff)):
        ended += count
    parameters = {"tenant": tenant, "now": now, "cutoff": cutoff}
    # Namespaces before the rows of their workspaces, which are empty without them.
    async with connect(pool) as connection:
        ended += (await connection.execute(QUERIES["end_empty_places"], parameters)).rowcount
        await connection.execute(QUERIES["mark_empty_places"], parameters)
    return ended


async def _end_sessions(pool: Pool, tenant: str, cutoff: datetime) -> list[DictRow]:
    return await in_transaction(
        pool, lambda connection: delete_empty_sessions(connection, tenant, limit=SESSIONS_AT_ONCE, made_before=cutoff)
    )
