"""Rows that belong to one user, deleted for good a page at a time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow

from lamina.stores.postgres.connection import Connection, Pool, connect
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import run_statement
from lamina.stores.postgres.tiers import ERASED, TIER_ROWS

QUERIES = load_queries("erasure.sql")
_COUNT_EMPTY, _LOCK_EMPTY, _DELETE_EMPTY = (
    statement.replace(b"/*is_empty*/ true", QUERIES["is_empty_session"])
    for statement in (
        QUERIES["count_empty_sessions"],
        QUERIES["lock_empty_sessions"],
        QUERIES["delete_empty_sessions"],
    )
)
_ELSEWHERE: Mapping[str, bytes] = {
    "response_chains": QUERIES["erase_user_chains"],
    "idempotency_keys": QUERIES["erase_user_idempotency_keys"],
    # In the bounds of keys that are revoked or expired, another name takes the user's place.
    "keys": QUERIES["forget_bound_user"],
    "events": QUERIES["erase_user_events"],
}


async def delete_user_rows(connection: Connection, kind: str, tenant: str, user: str, *, limit: int) -> list[DictRow]:
    """Delete rows of a user; return ``workspace``, ``namespace`` and other columns of each.

    Args:
        connection: In a transaction.
        kind: A kind of :data:`ERASED`, ``profiles`` or ``statements``.
        tenant: Tenant of the user.
        user: The user.
        limit: Most memories; all rows of other kinds go at once.
    """
    own = {"profiles": QUERIES["erase_user_profiles"], "statements": QUERIES["erase_user_statements"]}
    parameters = {"tenant": tenant, "user_id": user, "limit": limit}
    delete = ERASED[kind].delete if kind in ERASED else own[kind]
    return await (await connection.execute(delete, parameters)).fetchall()


async def lock_user_notes(connection: Connection, tenant: str, user: str, *, limit: int) -> list[DictRow]:
    """Lock notes of a user, deleted and merged ones too; return ``id``, ``workspace`` and ``namespace`` of each."""
    parameters = {"tenant": tenant, "user_id": user, "limit": limit}
    return await (await connection.execute(QUERIES["erase_user_notes"], parameters)).fetchall()


async def lock_derived_notes(connection: Connection, tenant: str, ids: Sequence[UUID]) -> list[DictRow]:
    """Lock all notes that were made from these, also by way of others; return the same of each."""
    parameters = {"ids": list(ids), "tenant": tenant}
    return await (await connection.execute(QUERIES["erase_derived_notes"], parameters)).fetchall()


async def erase_notes(connection: Connection, tenant: str, ids: Sequence[UUID]) -> None:
    """Delete rows of notes with everything that belongs to them, also from the journal of job runs."""
    await connection.execute(QUERIES["erase_notes"], {"ids": list(ids), "tenant": tenant})


async def count_empty_sessions(connection: Connection, tenant: str, made_before: datetime) -> int:
    """Count the sessions without messages that were made before a time."""
    parameters = {"tenant": tenant, "made_before": made_before}
    row = await (await connection.execute(_COUNT_EMPTY, parameters)).fetchone()
    return int(row["sessions"]) if row else 0


async def delete_empty_sessions(
    connection: Connection, tenant: str, *, limit: int, made_before: datetime | None = None
) -> list[DictRow]:
    """Delete sessions that have no messages any more; return ``workspace`` and ``namespace`` of each.

    They are locked before it is looked: the transaction that writes into one may not have ended.
    """
    parameters = {"tenant": tenant, "limit": limit, "made_before": made_before}
    rows = await (await connection.execute(_LOCK_EMPTY, parameters)).fetchall()
    names = {name: [row[name] for row in rows] for name in ("workspace", "namespace", "session_id")}
    return await (await connection.execute(_DELETE_EMPTY, names | {"tenant": tenant})).fetchall()


async def erase_elsewhere(pool: Pool, kind: str, tenant: str, user: str) -> int:
    """Take a user out of records of a kind beside the memories; return how many those are."""
    return await run_statement(pool, _ELSEWHERE[kind], {"tenant": tenant, "user_id": user})


async def count_user_rows(pool: Pool, tenant: str, user: str) -> Mapping[str, int]:
    """Return how many rows there are of a user, by kind."""
    counts: dict[str, int] = {}
    of_tiers = (rows.count_user for rows in TIER_ROWS.values())
    async with connect(pool) as connection:
        for statement in (*filter(None, of_tiers), QUERIES["count_user_profiles"]):
            cursor = await connection.execute(statement, {"tenant": tenant, "user_id": user})
            counts |= await cursor.fetchone() or {}
    return counts
