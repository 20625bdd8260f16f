import time

import pytest

from lamina.errors import Unavailable
from lamina.settings import PoolSettings
from lamina.stores.postgres.connection import Pool, connect, connect_directly, in_transaction, new_pool

NOBODY = "postgresql://nobody@127.0.0.1:1/nowhere"
PATIENCE_S = 2.5


def pool_of(url: str, *, max_size: int = 2, timeout_s: float = PATIENCE_S) -> Pool:
    return new_pool(url, PoolSettings(min_size=0, max_size=max_size, timeout_s=timeout_s))


async def seconds_until_refused(pool: Pool) -> float:
    begin = time.monotonic()
    with pytest.raises(Unavailable, match="postgres is not available"):
        async with connect(pool):
            pass
    return time.monotonic() - begin


async def test_once_a_server_is_known_to_be_away_nobody_waits_long_for_it() -> None:
    pool = pool_of(NOBODY)

    first_s, then_s = await seconds_until_refused(pool), await seconds_until_refused(pool)
    begin = time.monotonic()
    with pytest.raises(Unavailable, match="postgres is not available"):
        await in_transaction(pool, lambda connection: connection.execute("SELECT 1"))
    transaction_s = time.monotonic() - begin
    await pool.close()

    assert first_s > PATIENCE_S * 0.9
    assert then_s < 1.5
    assert transaction_s < 1.5


async def test_a_pool_whose_connections_are_all_in_use_is_waited_for_as_long_as_it_is_set_to_be(database: str) -> None:
    pool = pool_of(database, max_size=1, timeout_s=1.6)

    async with connect(pool):
        waits = [await seconds_until_refused(pool) for _ in range(2)]
    async with connect(pool) as connection:
        cursor = await connection.execute("SELECT 1 AS one")
        row = await cursor.fetchone()
    await pool.close()

    assert min(waits) > 1.5
    assert row == {"one": 1}


LAST_STATEMENTS = (
    "SELECT pid, query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def test_a_connection_is_given_out_without_a_statement(database: str) -> None:
    pool = pool_of(database)
    async with connect(pool) as connection:
        await connection.execute("SELECT 1 AS asked")

    async with connect(pool):
        with connect_directly(database) as observer:
            (seen,) = observer.execute(LAST_STATEMENTS).fetchall()
    await pool.close()

    assert seen["query"] == "SELECT 1 AS asked"


async def test_a_connection_that_the_server_closed_is_not_given_out(database: str) -> None:
    pool = pool_of(database)
    async with connect(pool) as connection:
        ended = connection.info.backend_pid
    with connect_directly(database) as operator:
        operator.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])

    async with connect(pool) as connection:
        cursor = await connection.execute("SELECT 1 AS one")
        row = await cursor.fetchone()
        used = connection.info.backend_pid
    await pool.close()

    assert row == {"one": 1}
    assert used != ended
