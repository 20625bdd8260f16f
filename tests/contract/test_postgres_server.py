"""Postgres by URL: behind a pooler, over TLS, and refused where it does not do."""

import asyncio
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError

from lamina.core.areas import Area
from lamina.core.runs import Order
from lamina.embedded import EmbeddedPostgres
from lamina.errors import Conflict, Misconfigured, Unavailable
from lamina.models.hashing import HashingModel
from lamina.settings.loading import Settings
from lamina.settings.stores import FalkorDBServerSettings, PoolSettings, PostgresServerSettings
from lamina.stores.postgres.connection import Connection, Pool, Pooling, connect, in_transaction, new_pool
from lamina.stores.postgres.job_runs import JobRuns, job_lock
from lamina.stores.postgres.migrate import migrate, refuse_versions
from lamina.wiring.stores import build_pool, postgres_url, session_url, utc_now
from tests.support.application import Application, running, settings_for
from tests.support.databases import database_url
from tests.support.jobs import run_job
from tests.support.pooler import pooled
from tests.support.servers import GivenPostgres
from tests.support.wires import new_certificate, tls_front

PGBOUNCER_URL = os.environ.get("LAMINA_TEST_PGBOUNCER_URL")
POOLERS = ("strict", *(("pgbouncer",) if PGBOUNCER_URL else ()))
IN_EFFECT = """
SELECT current_setting('TimeZone') AS zone, current_setting('hnsw.ef_search') AS ef_search,
       current_setting('hnsw.iterative_scan', true) AS iterative_scan, current_setting('ivfflat.probes') AS probes
"""
LIMITS = PoolSettings(min_size=0, max_size=4, timeout_s=60)


@pytest.fixture(params=POOLERS)
def server(request: pytest.FixtureRequest, database: str) -> Iterator[PostgresServerSettings]:
    """The database behind a pooler that keeps sessions for transactions alone."""
    with ExitStack() as stack:
        if request.param == "pgbouncer":
            assert PGBOUNCER_URL
            path = conninfo_to_dict(database)["dbname"]
            url = urlunsplit(urlsplit(PGBOUNCER_URL)._replace(path=f"/{path}"))
        else:
            url = stack.enter_context(pooled(database))
        yield PostgresServerSettings(url=url, direct_url=database, pooling="transaction")


@pytest.fixture
async def behind(server: PostgresServerSettings, tmp_path: Path, falkordb: Any) -> AsyncIterator[Application]:
    """The application whose connections, all but those that need a session, go through the pooler."""
    settings = settings_for(
        server.url,
        tmp_path,
        postgres=server,
        graph=FalkorDBServerSettings(url=falkordb.url),
        indexer={"poll_interval_s": 600},
    )
    async with running(settings, session_url(settings), HashingModel()) as app:
        mine = app.for_tenant(f"tenant {uuid.uuid4()}")
        yield mine
        await mine.close_clients()


def chosen(**postgres: Any) -> Settings:
    return Settings(postgres=PostgresServerSettings(**postgres))


async def in_effect(connection: Connection) -> dict[str, Any]:
    row = await (await connection.execute(IN_EFFECT.encode())).fetchone()
    assert row is not None
    return row


@pytest.mark.parametrize("way", ["session", "transaction"])
async def test_what_statements_rely_on_is_set_however_sessions_are_kept(
    server: PostgresServerSettings, way: Pooling
) -> None:
    url = server.url if way == "transaction" else session_url(Settings(postgres=server))
    with psycopg.connect(session_url(Settings(postgres=server)), autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET TimeZone = 'Asia/Tokyo'".encode())
    wanted = {"zone": "UTC", "ef_search": "32", "iterative_scan": "relaxed_order", "probes": "32"}

    async with new_pool(url, LIMITS, pooling=way) as pool:
        for _ in range(4):
            async with connect(pool) as connection:
                assert [await in_effect(connection), await in_effect(connection)] == [wanted, wanted]
            assert await in_transaction(pool, in_effect) == wanted


async def test_a_statement_that_is_run_often_needs_no_session(server: PostgresServerSettings) -> None:
    async def ask(pool: Pool, number: int) -> int:
        async with connect(pool) as connection:
            row = await (await connection.execute("SELECT %s::int AS number", [number])).fetchone()
            assert row is not None
            return int(row["number"])

    async with build_pool(Settings(postgres=server, pool=LIMITS)) as pool:
        answers = [await ask(pool, number) for number in range(30)]
        together = await asyncio.gather(*(ask(pool, number) for number in range(30)))

    assert answers == together == list(range(30))


async def test_what_fails_behind_a_pooler_changes_nothing_and_spoils_no_connection(
    server: PostgresServerSettings, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(connection: Connection) -> None:
        await connection.execute("CREATE TABLE half (id int)")
        await connection.execute("SELECT 1 / 0")

    async with new_pool(server.url, LIMITS, pooling="transaction") as pool:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await in_transaction(pool, fail)
        with pytest.raises(Conflict):
            async with connect(pool) as connection:
                raise Conflict("found out while reading")
        async with connect(pool) as connection:
            row = await (await connection.execute("SELECT to_regclass('half') AS half")).fetchone()

    assert row == {"half": None}
    assert "rolling back" not in caplog.text, "a connection was given back amid a transaction"


async def test_a_cancelled_statement_leaves_a_usable_pool(server: PostgresServerSettings) -> None:
    async with new_pool(server.url, LIMITS, pooling="transaction") as pool:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2), connect(pool) as connection:
                    await connection.execute("SELECT pg_sleep(20)")

        assert (await in_transaction(pool, in_effect))["zone"] == "UTC"


async def test_the_whole_application_works_behind_a_pooler(behind: Application) -> None:
    client = behind.client()
    question = {"query": "who approves the parser deployment?", "session": "s1"}
    said = [{"content": "My sister Ada works at Initech in Lisbon"}, {"role": "assistant", "content": "Noted."}]
    writes: list[tuple[str, dict[str, Any]]] = [
        ("/v1/turns", {"session": "s1", "user": "ann", "messages": said}),
        ("/v1/notes", {"content": "The deployment of the parser needs two approvals"}),
        ("/v1/procedures", {"trigger": "deploy the parser", "action": "ask two people"}),
    ]
    for path, body in writes:
        (await client.post(path, json=body)).raise_for_status()
    await behind.indexed()

    found, again = [(await client.post("/v1/search", json=question)).json() for _ in range(2)]
    together = await asyncio.gather(*(client.post("/v1/context", json=question) for _ in range(20)))
    runs = [await run_job(behind, job) for job in ("sweep", "dedup", "audit")]

    assert any("two approvals" in str(result) for result in found["results"])
    assert found["degraded"] == again["degraded"] == []
    assert [result["id"] for result in again["results"]] == [result["id"] for result in found["results"]]
    assert {answer.status_code for answer in together} == {200}
    assert [run.error for run in runs] == [None] * 3


async def test_changes_are_told_at_once_behind_a_pooler(behind: Application) -> None:
    client = behind.client()
    (await client.post("/v1/notes", json={"content": "Penguins sleep standing"})).raise_for_status()
    async with asyncio.timeout(60):
        await nothing_is_pending(behind)  # So the indexer runs, and waits.

    (await client.post("/v1/notes", json={"content": "Puffins sleep at sea"})).raise_for_status()

    async with asyncio.timeout(60):  # By itself the indexer looks once in ten minutes.
        await nothing_is_pending(behind)


async def nothing_is_pending(app: Application) -> None:
    while any(lag.pending for lag in (await app.services.reads.outbox.lag()).values()):  # noqa: ASYNC110 - Postgres tells, if asked
        await asyncio.sleep(0.1)


async def test_a_lock_of_a_job_is_held_past_the_pooler(server: PostgresServerSettings) -> None:
    settings, order = Settings(postgres=server), Order("sweep", Area("acme"), utc_now())

    async with job_lock(session_url(settings), order) as is_mine, job_lock(session_url(settings), order) as is_free:
        held = (is_mine, is_free)
    async with job_lock(postgres_url(settings), order) as is_mine, job_lock(postgres_url(settings), order) as is_free:
        through = (is_mine, is_free)

    assert held == (True, False)
    assert through == (True, True), "a pooler that held it would need no second URL"


async def test_runs_of_jobs_are_kept_behind_a_pooler(server: PostgresServerSettings) -> None:
    async with build_pool(Settings(postgres=server, pool=LIMITS)) as pool:
        run = await JobRuns(pool).add(Order("sweep", Area("acme"), utc_now()))

        assert await JobRuns(pool).begin(run, units=1, partitions=2) == (2, 1)
        assert [one.id for one in await JobRuns(pool).open()] == [run]


def test_a_pooler_by_transaction_wants_a_url_past_it() -> None:
    with pytest.raises(ValidationError, match="set direct_url"):
        PostgresServerSettings(url="postgresql://pooler/lamina", pooling="transaction")
    assert session_url(chosen(url="postgresql://a/lamina")) == "postgresql://a/lamina"
    both = chosen(url="postgresql://a/lamina", direct_url="postgresql://b/lamina")
    assert (postgres_url(both), session_url(both)) == ("postgresql://a/lamina", "postgresql://b/lamina")


def test_an_older_pgvector_is_asked_for_no_iterative_scans(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")

    async def scans(way: Pooling) -> Any:
        async with new_pool(database, LIMITS, pooling=way) as pool:
            return (await in_transaction(pool, in_effect))["iterative_scan"]

    for way in ("session", "transaction"):
        assert asyncio.run(scans(way)) in (None, "", "off")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lamina-test-") as name:
        yield Path(name)


async def test_postgres_is_trusted_by_the_root_that_the_url_names(database: str, folder: Path) -> None:
    target = conninfo_to_dict(database)
    own, foreign = new_certificate(folder, "own"), new_certificate(folder, "foreign")
    open_socket = partial(asyncio.open_unix_connection, f"{target['host']}/.s.PGSQL.5432")
    with tls_front(open_socket, own, after_request=True) as port:
        url = f"postgresql://postgres@localhost:{port}/{target['dbname']}?sslmode=verify-full&sslrootcert="

        assert await asyncio.to_thread(migrate, f"{url}{own.file}") == []
        async with new_pool(f"{url}{own.file}", LIMITS) as pool, connect(pool) as connection:
            assert connection.pgconn.ssl_in_use
        with pytest.raises(Misconfigured, match=r"certificate.*; name the file .* sslrootcert"):
            await asyncio.to_thread(migrate, f"{url}{foreign.file}")
        async with new_pool(f"{url}{foreign.file}", PoolSettings(min_size=0, timeout_s=1)) as pool:
            with pytest.raises(Unavailable):
                await in_transaction(pool, in_effect)


def test_a_server_without_tls_is_refused_where_the_url_wants_it(database: str) -> None:
    target = conninfo_to_dict(database)
    with pooled(database) as url, pytest.raises(Misconfigured, match="; switch TLS on at the server"):
        migrate(f"{url}?sslmode=require")
    assert target["dbname"] in url


def test_a_missing_database_is_told_with_the_remedy(postgres: EmbeddedPostgres) -> None:
    with pytest.raises(Misconfigured, match='database "nowhere" does not exist; create the database'):
        migrate(database_url(postgres.url, "nowhere"))


@pytest.fixture
def limited(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The URL of an empty database, for a user who has a password and no rights."""
    if isinstance(postgres, GivenPostgres):
        pytest.skip("passwords are tested where they can be set up")
    name = f"limited_{uuid.uuid4().hex}"
    rules = postgres.directory / "pg_hba.conf"
    before = rules.read_text()
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'right'".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
        rules.write_text(f"local all {name} scram-sha-256\n{before}")
        connection.execute("SELECT pg_reload_conf()")
        yield database_url(postgres.url, name).replace("postgres@", f"{name}:right@")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        connection.execute(f"DROP ROLE {name}".encode())
        rules.write_text(before)
        connection.execute("SELECT pg_reload_conf()")


def test_a_wrong_password_is_told_with_the_remedy_and_without_itself(limited: str) -> None:
    with pytest.raises(Misconfigured, match=r"password.*; correct user and password in postgres\.url") as told:
        migrate(limited.replace(":right@", ":wrong@"))
    assert "wrong" not in str(told.value)


def test_a_user_who_may_not_make_extensions_is_told_what_to_grant(limited: str) -> None:
    with pytest.raises(Misconfigured, match=r"may not: permission denied .*; have its owner GRANT CREATE ON SCHEMA"):
        migrate(limited)


@pytest.mark.parametrize(
    ("server", "vector", "said"),
    [
        (140_012, "0.8.0", "postgres is version 14.12, needed is 15 or later"),
        (150_000, None, "postgres has no pgvector"),
        (150_000, "0.6.2", "postgres has pgvector 0.6.2, needed is 0.7 or later"),
        (180_006, "0.5", "postgres has pgvector 0.5, needed is 0.7 or later"),
    ],
)
def test_versions_that_are_too_old_are_told(server: int, vector: str | None, said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        refuse_versions(server, vector)


@pytest.mark.parametrize(("server", "vector"), [(150_000, "0.7.0"), (180_006, "0.10.1"), (170_000, "1.0")])
def test_versions_that_do_are_taken(server: int, vector: str) -> None:
    refuse_versions(server, vector)


def test_an_old_pgvector_is_refused_before_anything_changes(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE pg_extension SET extversion = '0.6.2' WHERE extname = 'vector'")

    with pytest.raises(Misconfigured, match=r"pgvector 0\.6\.2.* ALTER EXTENSION vector UPDATE"):
        migrate(database)
