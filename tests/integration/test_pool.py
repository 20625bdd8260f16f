import asyncio
import time

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lamina.aio.deadline import time_limit
from lamina.core.quotas import counted_spending
from lamina.errors import Unavailable
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres import connection as connections
from lamina.stores.postgres.connection import (
    Connection,
    Pool,
    connect,
    connect_directly,
    in_transaction,
    new_pool,
    read_rows,
)
from tests.support.wires import standing_still

NOBODY = "postgresql://nobody@127.0.0.1:1/nowhere"
PATIENCE_S = 5.0
PATIENCE_OF_ALL_S = 60.0
PSYCOPG_WAITS_S = 10.0
"""For a server that stands still, to end a statement that was cancelled."""


def pool_of(url: str, *, max_size: int = 2, timeout_s: float = PATIENCE_OF_ALL_S) -> Pool:
    return new_pool(url, PoolSettings(min_size=0, max_size=max_size, timeout_s=timeout_s))


async def seconds_until_refused(pool: Pool) -> float:
    begin = time.monotonic()
    with pytest.raises(Unavailable, match="postgres is not available"):
        async with connect(pool):
            pass
    return time.monotonic() - begin


async def test_once_a_server_is_known_to_be_away_nobody_waits_long_for_it() -> None:
    pool = pool_of(NOBODY, timeout_s=PATIENCE_S)

    first_s, then_s = await seconds_until_refused(pool), await seconds_until_refused(pool)
    begin = time.monotonic()
    with pytest.raises(Unavailable, match="postgres is not available"):
        await in_transaction(pool, lambda connection: connection.execute("SELECT 1"))
    transaction_s = time.monotonic() - begin
    await pool.close()

    assert first_s > PATIENCE_S * 0.9
    assert then_s < PATIENCE_S * 0.8
    assert transaction_s < PATIENCE_S * 0.8


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


async def test_those_who_wait_for_a_connection_take_turns_by_tenant_and_are_counted(database: str) -> None:
    pool = pool_of(database, max_size=1, timeout_s=PATIENCE_OF_ALL_S)
    served: list[str] = []

    async def read(tenant: str) -> None:
        with counted_spending(tenant):
            await read_rows(pool, b"SELECT 1 AS one")
        served.append(tenant)

    async with connect(pool):
        reading = [asyncio.create_task(read(tenant)) for tenant in ("loud", "loud", "loud", "", "quiet")]
        while pool.get_stats()["requests_waiting"] < len(reading):  # noqa: ASYNC110 - the pool tells nobody
            await asyncio.sleep(0.01)
        reading[1].cancel()
    await asyncio.wait(reading)
    alone = [asyncio.create_task(read("loud")) for _ in range(3)]
    await asyncio.gather(*alone)
    left = pool.get_stats().get("requests_waiting", 0)
    await pool.close()

    assert served == ["loud", "", "quiet", "loud", "loud", "loud", "loud"]
    assert left == 0


async def test_a_connection_is_given_out_without_a_statement(database: str) -> None:
    pool = pool_of(database)
    async with connect(pool) as connection:
        await connection.execute("SELECT 1 AS asked")

    async with connect(pool):
        with connect_directly(database) as observer:
            (seen,) = observer.execute(LAST_STATEMENTS).fetchall()
    await pool.close()

    assert seen["query"] == "SELECT 1 AS asked"


async def end_connections(url: str) -> None:
    with connect_directly(url) as operator:
        operator.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_a_connection_that_the_server_closed_is_not_given_out(database: str) -> None:
    pool = pool_of(database)
    async with connect(pool) as connection:
        ended = connection.info.backend_pid
    await end_connections(database)

    async with connect(pool) as connection:
        cursor = await connection.execute("SELECT 1 AS one")
        row = await cursor.fetchone()
        used = connection.info.backend_pid
    await pool.close()

    assert row == {"one": 1}
    assert used != ended


@pytest.mark.parametrize("by_key", [True, False])
async def test_a_read_whose_connection_was_closed_is_repeated_whatever_else_was_closed(
    database: str, by_key: bool
) -> None:
    pool = pool_of(database, max_size=8)
    await asyncio.gather(*(read_rows(pool, b"SELECT pg_sleep(0.1)", by_key=by_key) for _ in range(4)))
    await end_connections(database)

    rows = [await read_rows(pool, b"SELECT 1 AS one", by_key=by_key) for _ in range(3)]
    await pool.close()

    assert rows == [[{"one": 1}]] * 3


async def test_a_read_whose_connection_breaks_again_is_given_up(database: str) -> None:
    pool = pool_of(database)

    with pytest.raises(Unavailable, match="terminating connection"):
        await read_rows(pool, b"SELECT pg_terminate_backend(pg_backend_pid())")
    await pool.close()


async def count_attempts(pool: Pool, statement: bytes, breaks: int) -> tuple[int, int]:
    """Return how often a transaction was run whose connection breaks after its statement, and what it stored."""
    attempts = 0

    async def act(connection: Connection) -> None:
        nonlocal attempts
        attempts += 1
        await connection.execute(statement)
        if attempts <= breaks:
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    await in_transaction(pool, act)
    (row,) = await read_rows(pool, b"SELECT count(*) AS stored FROM kept")
    return attempts, row["stored"]


async def test_a_transaction_whose_connection_breaks_before_its_commit_is_run_once_more(database: str) -> None:
    pool = pool_of(database)
    async with connect(pool) as connection:
        await connection.execute("CREATE TABLE kept (one int)")

    outcome = await count_attempts(pool, b"INSERT INTO kept VALUES (1)", breaks=1)
    with pytest.raises(Unavailable):
        await count_attempts(pool, b"INSERT INTO kept VALUES (1)", breaks=2)
    await end_connections(database)
    after_idling = await count_attempts(pool, b"INSERT INTO kept VALUES (1)", breaks=0)
    await pool.close()

    assert outcome == (2, 1)
    assert after_idling == (1, 2)


async def test_a_transaction_whose_commit_was_sent_is_not_run_again(database: str) -> None:
    pool = pool_of(database)
    async with connect(pool) as connection:
        # The server ends the connection while it commits: whether it has stored the row is not known.
        await connection.execute(
            "CREATE TABLE kept (one int);"
            "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;"
            "CREATE CONSTRAINT TRIGGER leaves AFTER INSERT ON kept DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION leave()"
        )
    attempts = 0

    async def act(connection: Connection) -> None:
        nonlocal attempts
        attempts += 1
        await connection.execute("INSERT INTO kept VALUES (1)")

    with pytest.raises(Unavailable, match="terminating connection"):
        await in_transaction(pool, act)
    await pool.close()

    assert attempts == 1


async def test_look_ups_by_key_are_planned_once_and_nothing_is_compiled(database: str) -> None:
    pool = pool_of(database, max_size=4)
    asked = b"SELECT current_setting('plan_cache_mode') AS plans, current_setting('jit') AS jit"

    (by_key,) = await read_rows(pool, asked, by_key=True)
    (other,) = await read_rows(pool, asked)
    await pool.close()

    assert (by_key, other) == (
        {"plans": "force_generic_plan", "jit": "off"},
        {"plans": "force_custom_plan", "jit": "off"},
    )


@pytest.mark.parametrize("is_written", [False, True])
async def test_a_deadline_holds_where_the_server_stands_still_and_the_connection_is_made_anew(
    database: str, is_written: bool
) -> None:
    socket = f"{conninfo_to_dict(database)['host']}/.s.PGSQL.5432"

    async def ask() -> object:
        if is_written:
            return await in_transaction(pool, lambda connection: connection.execute("SELECT 1"))
        return await read_rows(pool, b"SELECT 1")

    with standing_still(lambda: asyncio.open_unix_connection(socket)) as (port, stands):
        url = make_conninfo(database, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable")
        async with pool_of(url, max_size=1) as pool:
            await ask()
            stands.set()
            begin = time.monotonic()
            with pytest.raises(TimeoutError):
                async with time_limit(0.1):
                    await ask()
            waited_s = time.monotonic() - begin
            stands.clear()
            again = await read_rows(pool, b"SELECT 7 AS seven")

    assert waited_s < PSYCOPG_WAITS_S
    assert again == [{"seven": 7}]


async def test_a_connection_whose_statement_ran_out_of_time_is_used_again(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CANCEL_S", PATIENCE_OF_ALL_S)  # However busy this machine is.
    async with pool_of(database, max_size=1) as pool:
        first = await read_rows(pool, b"SELECT pg_backend_pid() AS pid")
        with pytest.raises(TimeoutError):
            async with time_limit(0.1):
                await read_rows(pool, b"SELECT pg_sleep(60)")
        then = await read_rows(pool, b"SELECT pg_backend_pid() AS pid")

    assert then == first
