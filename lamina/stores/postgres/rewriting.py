"""Tables written anew, so that deleted rows are in none of their files.

``VACUUM`` alone leaves the bytes of deleted rows in their pages until something is written there; GIN indexes keep the
words of deleted rows, and the planner's statistics keep samples of them.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from lamina.core.erasures import Remnant
from lamina.errors import Unavailable
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("rewriting.sql")

LOCK_TIMEOUT_S = 1.0
LOCK_ATTEMPTS = 10
READERS_DEADLINE_S = 5.0
_STEP_S = 0.05
_STATISTICS = "pg_statistic"


async def rewrite_tables(url: str, *, largest_bytes: int) -> list[Remnant]:
    """Write every table with memories anew, without the rows that were deleted before; return what may be left.

    A table is locked while it is written; one that is larger than ``largest_bytes``, with its indexes, is vacuumed and
    indexed anew instead, which locks nothing, and is named.

    Args:
        url: The database; not that of a pooler in transaction mode.
        largest_bytes: Largest table that is locked and written anew.

    Raises:
        Unavailable: If Postgres does not answer, or deleted rows are still read by an open transaction or a standby.
    """
    async with _connected(url) as connection:
        await connection.execute(QUERIES["forget_cursors"])
        await _wait_for_readers(connection)
        tables = await (await connection.execute(QUERIES["list_tables"])).fetchall()
        remnants = [await _rewrite(connection, row["name"], largest_bytes) for row in tables]
        remnants.append(await _rewrite_statistics(connection))
        # Files of before are empty by now; this removes them.
        with suppress(psycopg.errors.InsufficientPrivilege):
            await connection.execute("CHECKPOINT")
    return [remnant for remnant in remnants if remnant is not None]


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[AsyncConnection[DictRow]]:
    try:
        async with await AsyncConnection[DictRow].connect(
            url, autocommit=True, row_factory=dict_row, connect_timeout=5, application_name="lamina erasure"
        ) as connection:
            yield connection
    except psycopg.OperationalError as error:
        raise Unavailable("postgres", str(error).strip().split("\n")[0] or type(error).__name__) from error


async def _wait_for_readers(connection: AsyncConnection[DictRow]) -> None:
    row = await (await connection.execute(QUERIES["current_transaction"])).fetchone()
    deadline = time.monotonic() + READERS_DEADLINE_S
    while readers := await _number(connection, QUERIES["find_older_readers"], "readers", **(row or {})):
        if time.monotonic() > deadline:
            reason = f"{readers} open transactions, or slots of standbys, may still read what was erased"
            raise Unavailable("postgres", reason)
        await asyncio.sleep(_STEP_S)


async def _rewrite(connection: AsyncConnection[DictRow], table: str, largest_bytes: int) -> Remnant | None:
    is_small = await _number(connection, QUERIES["measure_table"], "size_bytes", table=table) <= largest_bytes
    is_cleared = await _clear_statistics(connection, table)
    if is_small:
        await _with_lock(connection, f"VACUUM (FULL, ANALYZE) public.{table}")
        return None if is_cleared else _statistics_remnant(table)
    await connection.execute(f"VACUUM (ANALYZE) public.{table}".encode())
    cursor = await connection.execute(QUERIES["list_indexes"], {"table": table})
    for row in await cursor.fetchall():
        await connection.execute(f"REINDEX INDEX CONCURRENTLY {row['name']}".encode())
    return Remnant(
        f"postgres: free space in the table {table}",
        "rows that were deleted",
        f"when it is written over; VACUUM FULL {table} ends it at once, and locks the table meanwhile",
    )


async def _clear_statistics(connection: AsyncConnection[DictRow], table: str) -> bool:
    """Forget the samples of a table's rows: of a table without rows no new ones are taken."""
    cursor = await connection.execute(QUERIES["list_statistics"], {"table": table})
    columns = [row["attname"] for row in await cursor.fetchall()]
    try:
        if connection.info.server_version >= 180_000:  # noqa: PLR2004 - Postgres 18
            for column in columns:
                await connection.execute(QUERIES["clear_statistics"], {"table": table, "column": column})
        elif columns:
            await connection.execute(QUERIES["delete_statistics"], {"table": table})
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


async def _rewrite_statistics(connection: AsyncConnection[DictRow]) -> Remnant | None:
    before = await _number(connection, QUERIES["file_of_statistics"], "number")
    await _with_lock(connection, f"VACUUM (FULL) pg_catalog.{_STATISTICS}")
    # Without the right to do it, Postgres warns and goes on.
    after = await _number(connection, QUERIES["file_of_statistics"], "number")
    return _statistics_remnant("memories") if after == before else None


def _statistics_remnant(table: str) -> Remnant:
    return Remnant(
        f"postgres: {_STATISTICS}",
        f"samples of columns of {table}",
        f"when a superuser runs VACUUM FULL pg_catalog.{_STATISTICS}",
    )


async def _with_lock(connection: AsyncConnection[DictRow], command: str) -> None:
    """Run a command that waits for a lock a short while at a time: everybody else waits behind it."""
    await connection.execute(f"SET lock_timeout = '{int(LOCK_TIMEOUT_S * 1000)}ms'".encode())
    try:
        for attempt in range(LOCK_ATTEMPTS):
            try:
                await connection.execute(command.encode())
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
                if attempt == LOCK_ATTEMPTS - 1:
                    raise Unavailable("postgres", f"{command} found no moment without readers") from error
                await asyncio.sleep(LOCK_TIMEOUT_S)
            else:
                return
    finally:
        await connection.execute(b"RESET lock_timeout")


async def _number(connection: AsyncConnection[DictRow], query: bytes, column: str, **parameters: object) -> int:
    row = await (await connection.execute(query, parameters)).fetchone()
    assert row is not None  # noqa: S101 - an aggregate, or a function
    return int(row[column])
