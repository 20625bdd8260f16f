"""A projection is built anew beside itself, and moved between stores, while the service goes on."""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from lamina.cli.commands import app as cli
from lamina.core.memories import Message, Note, Role
from lamina.core.principals import KeyRole
from lamina.core.scope import Scope
from lamina.errors import Misconfigured, Unavailable
from lamina.models.hashing import HashingModel
from lamina.projections.locations import identify_folder, location_of, without_secrets
from lamina.projections.ownership import claim_projection
from lamina.settings.stores import IN_MEMORY, Neo4jServerSettings, QdrantEdgeSettings, QdrantServerSettings
from lamina.stores.postgres import builds
from lamina.stores.postgres.builds import STARTS_APART, Builds, claim_store, order_build
from lamina.stores.postgres.notes import QUERIES
from lamina.wiring.stores import build_pool
from tests.support.application import Application, running, settings_for
from tests.support.indexes import chunk_count

ACME = Scope("acme")
STORES: dict[str, dict[str, Any]] = {
    "embedded": {"hybrid": QdrantEdgeSettings(), "vectors": QdrantEdgeSettings()},
    "server": {"hybrid": QdrantServerSettings(url=IN_MEMORY), "vectors": QdrantServerSettings(url=IN_MEMORY)},
}


@pytest.fixture(params=STORES)
async def app(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> AsyncIterator[Application]:
    settings = settings_for(database, tmp_path, **STORES[request.param])
    async with running(settings, database, HashingModel(), follow=False) as application:
        yield application


async def found(app: Application, text: str) -> set[str]:
    answer = await app.client().post("/v1/search", json={"query": text, "tiers": ["notes"], "cache": False})
    assert answer.status_code == 200, answer.text
    assert answer.json()["degraded"] == [], answer.text
    return {hit["content"] for hit in answer.json()["results"]}


async def write(app: Application, *texts: str) -> None:
    await app.services.recorder.put_notes(ACME, [Note(text) for text in texts])


async def test_a_build_takes_over_everything_and_then_the_place(app: Application) -> None:
    await write(app, "green tea", "black tea")
    await app.indexed()

    number, count = await asyncio.to_thread(order_build, app.url, "notes")
    under_way = await Builds(app.pool).under_way()
    await app.indexed()

    assert count == 2
    assert [(build.projection, build.number, build.pending) for build in under_way] == [("notes", number, 2)]
    assert await Builds(app.pool).under_way() == []
    assert await chunk_count(app.tiers["notes"].projections["notes"]) == 2
    assert await found(app, "tea") == {"green tea", "black tea"}


async def test_what_is_left_over_in_the_old_store_is_gone_with_it(app: Application) -> None:
    await write(app, "green tea", "black tea")
    await app.indexed()
    async with await psycopg.AsyncConnection.connect(app.url, autocommit=True) as connection:
        await connection.execute("DELETE FROM notes WHERE content = 'black tea'")  # Past the outbox.
    before = await chunk_count(app.tiers["notes"].projections["notes"])

    await asyncio.to_thread(order_build, app.url, "notes")
    await app.indexed()

    assert (before, await chunk_count(app.tiers["notes"].projections["notes"])) == (2, 1)


async def test_what_is_written_while_a_build_is_under_way_is_in_both_stores(app: Application) -> None:
    await write(app, "green tea")
    await app.indexed()
    follower = next(item for item in app.indexer._followers if item._name == "notes")

    await asyncio.to_thread(order_build, app.url, "notes")
    await write(app, "black tea")
    async with follower._turn:
        await follower._apply()
    during = await found(app, "tea")
    await app.indexed()

    assert during == await found(app, "tea") == {"green tea", "black tea"}


async def test_a_projection_without_memories_is_built_too(app: Application) -> None:
    await asyncio.to_thread(order_build, app.url, "documents")

    await app.indexed()

    assert await Builds(app.pool).under_way() == []


async def test_the_indexer_builds_while_it_follows(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path), database, HashingModel()) as app:
        await write(app, "green tea")
        await asyncio.to_thread(order_build, database, "notes")
        await asyncio.to_thread(order_build, database, "documents")
        for _ in range(6000):
            if not await Builds(app.pool).under_way():
                break
            await asyncio.sleep(0.02)
        assert await Builds(app.pool).under_way() == []

        assert await found(app, "tea") == {"green tea"}


async def test_every_projection_can_be_built_and_is_as_before(app: Application) -> None:
    await write(app, "green tea", "black tea")
    await app.services.recorder.record_turn(Scope("acme", session="s"), [Message(Role.USER, "where is the tea?")])
    await app.indexed()
    key = app.new_key("acme", role=KeyRole.ADMIN)

    for projection in ("messages", "notes", "cold", "documents"):
        await asyncio.to_thread(order_build, app.url, projection)  # type: ignore[arg-type]
    await app.indexed()

    audit = (await app.client(key).post("/v1/audit", json={})).json()
    assert audit["consistent"], audit


async def test_one_build_at_a_time(app: Application) -> None:
    await write(app, "green tea")
    first, _ = await asyncio.to_thread(order_build, app.url, "notes")

    with pytest.raises(Misconfigured, match="notes is being built already"):
        await asyncio.to_thread(order_build, app.url, "notes")

    await app.indexed()
    second, count = await asyncio.to_thread(order_build, app.url, "notes")
    assert second > first
    assert count == 1


async def test_a_build_that_fails_on_the_way_goes_on(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    await write(app, "green tea")
    await app.indexed()
    await asyncio.to_thread(order_build, app.url, "notes")
    projection = app.tiers["notes"].projections["notes"]

    async def broken(build: int) -> None:
        raise Unavailable("index", "gone")

    with monkeypatch.context() as patch:
        patch.setattr(projection.store, "switch", broken)
        with pytest.raises(Unavailable):
            await app.indexed()
    under_way = [build.projection for build in await Builds(app.pool).under_way()]
    await app.indexed()

    assert under_way == ["notes"]
    assert await found(app, "tea") == {"green tea"}


def claimed(url: str, store: str, *, is_new: bool = False, is_shared: bool = True) -> bool:
    return claim_store(url, "notes", store, is_new=is_new, is_shared=is_shared)


def test_a_store_that_was_elsewhere_before_has_missed_changes(database: str) -> None:
    told = [claimed(database, store) for store in ("here", "here", "there", "there", "here")]

    assert told == [False, False, True, False, True]


def test_of_replicas_that_start_together_one_fills_the_store(database: str) -> None:
    first = [claimed(database, "here", is_new=True) for _ in range(3)]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE projection_stores SET filled_at = filled_at - %s", (STARTS_APART * 1.1,))

    assert first == [True, False, False]
    assert claimed(database, "here", is_new=True)


def test_of_replicas_that_claim_another_place_at_the_same_time_one_fills_it(database: str) -> None:
    claimed(database, "here")

    with ThreadPoolExecutor(6) as threads:
        told = list(threads.map(lambda _: claimed(database, "there"), range(6)))

    assert sorted(told) == [False] * 5 + [True]


def test_a_claim_that_fails_leaves_everything_to_the_next_one(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed(database, "here")

    def broken(*_: Any) -> int:
        raise psycopg.OperationalError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(builds, "_enqueue_all", broken)
        for is_new in (False, True):
            with pytest.raises(psycopg.OperationalError):
                claimed(database, "there", is_new=is_new)

    assert claimed(database, "there")


async def test_a_store_that_does_not_answer_is_not_owed_everything_again_and_again(app: Application) -> None:
    await write(app, "green tea", "black tea")

    def pending() -> int:
        with psycopg.connect(app.url, autocommit=True) as connection:
            connection.execute("UPDATE projection_stores SET filled_at = NULL")
            row = connection.execute("SELECT count(*) FROM outbox WHERE projection = 'notes'").fetchone()
        return int(row[0]) if row else 0

    seen = []
    for _ in range(3):
        await asyncio.to_thread(claimed, app.url, "silent", is_new=True)
        seen.append(await asyncio.to_thread(pending))

    assert len(set(seen)) == 1


async def test_a_service_that_another_one_relieved_feeds_its_store_no_more(app: Application) -> None:
    for name, parts in app.tiers.items():
        for projection in parts.projections:
            await asyncio.to_thread(claim_projection, app.settings, app.url, projection, None, is_new=False)
        assert name
    await asyncio.to_thread(claimed, app.url, "elsewhere")
    await write(app, "green tea")

    with pytest.raises(Unavailable, match="another service keeps it elsewhere"):
        await app.indexed()

    lag = await app.services.reads.outbox.lag()
    assert lag["notes"].pending > 0  # It waits for the other one.


async def test_a_service_that_moves_to_another_store_and_back_misses_nothing(database: str, tmp_path: Path) -> None:
    seen = []
    for number, store in enumerate(("embedded", "server", "embedded")):
        settings = settings_for(database, tmp_path, **STORES[store])
        async with running(settings, database, HashingModel(), follow=False) as app:
            for name, parts in app.tiers.items():
                for projection in parts.projections:
                    is_new = projection in parts.new
                    await asyncio.to_thread(claim_projection, settings, database, projection, None, is_new=is_new)
                assert name
            await write(app, f"tea number {number}")
            await app.indexed()
            seen.append(await found(app, "tea"))

    assert seen == [{f"tea number {number}" for number in range(count)} for count in (1, 2, 3)]


async def test_a_store_that_stays_where_it_is_takes_over_nothing_again(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path)
    pool = build_pool(settings)

    again = [claim_projection(settings, database, "notes", None, is_new=is_new) for is_new in (True, False, True)]

    await pool.close()
    assert again == [True, False, True]


async def test_replicas_of_a_server_that_start_together_have_it_filled_once_and_again_where_it_moves(
    database: str, tmp_path: Path
) -> None:
    here, there = (
        settings_for(database, tmp_path, hybrid=QdrantServerSettings(url=url)) for url in ("http://a", "http://b")
    )

    told = [
        claim_projection(settings, database, "notes", None, is_new=True)
        for settings in (here, here, there, there, here)
    ]

    assert told == [True, False, True, False, True]


async def test_what_is_written_while_a_build_is_ordered_is_not_lost(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(app, "green tea")
    await app.indexed()
    loop, enqueue_all = asyncio.get_running_loop(), builds._enqueue_all

    async def meanwhile() -> None:
        await write(app, "black tea")
        follower = next(item for item in app.indexer._followers if item._name == "notes")
        await follower.drain()

    class Slow:
        """What is written and applied while everything is enqueued is not in the snapshot of that statement."""

        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def execute(self, text: bytes, *parameters: Any) -> Any:
            done = self._connection.execute(text, *parameters)
            if text == QUERIES["enqueue_all_notes"]:
                asyncio.run_coroutine_threadsafe(meanwhile(), loop).result(20)
            return done

    def slow(connection: Any, projection: Any) -> int:
        return enqueue_all(Slow(connection), projection)

    with monkeypatch.context() as patch:
        patch.setattr(builds, "_enqueue_all", slow)
        await asyncio.to_thread(order_build, app.url, "notes")
    await app.indexed()

    assert await Builds(app.pool).under_way() == []
    assert await found(app, "tea") == {"green tea", "black tea"}
    assert await chunk_count(app.tiers["notes"].projections["notes"]) == 2


async def test_an_order_that_was_cut_off_is_not_full_and_is_made_good_by_another(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(app, "green tea")
    await app.indexed()

    def broken(*_: Any) -> int:
        raise psycopg.OperationalError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(builds, "_enqueue_all", broken)
        with pytest.raises(psycopg.OperationalError):
            await asyncio.to_thread(order_build, app.url, "notes")
    (cut_off,) = await Builds(app.pool).under_way()
    await app.indexed()
    still = await found(app, "tea")
    again, _ = await asyncio.to_thread(order_build, app.url, "notes")
    await app.indexed()

    assert again == cut_off.number
    assert still == await found(app, "tea") == {"green tea"}
    assert await Builds(app.pool).under_way() == []


@pytest.mark.parametrize(
    "restored", ["DELETE FROM projection_stores", "UPDATE projection_stores SET build = build - 1000"]
)
async def test_after_postgres_was_restored_a_build_still_takes_the_place(app: Application, restored: str) -> None:
    await write(app, "green tea")
    await app.indexed()
    before, _ = await asyncio.to_thread(order_build, app.url, "notes")
    await app.indexed()
    async with await psycopg.AsyncConnection.connect(app.url, autocommit=True) as connection:
        await connection.execute(restored.encode())
        await connection.execute("DELETE FROM notes")
    await asyncio.sleep(1.1)  # Builds are numbered by seconds at least.
    await write(app, "black tea")

    after, _ = await asyncio.to_thread(order_build, app.url, "notes")
    await app.indexed()

    assert after > before
    assert await chunk_count(app.tiers["notes"].projections["notes"]) == 1


async def test_a_build_switches_while_writes_go_on(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, indexer={"flush_interval_s": 0.05})
    async with running(settings, database, HashingModel()) as app:
        await write(app, *(f"tea {number}" for number in range(50)))
        stop = asyncio.Event()

        async def write_on() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                await write(app, f"more tea {number}")

        writing = [asyncio.create_task(write_on()) for _ in range(1)]
        await asyncio.to_thread(order_build, database, "notes")
        for _ in range(2400):
            if not await Builds(app.pool).under_way():
                break
            await asyncio.sleep(0.05)
        is_done = await Builds(app.pool).under_way() == []
        stop.set()
        await asyncio.gather(*writing)

        assert is_done


async def test_a_build_that_cannot_be_written_is_given_up_and_holds_up_nothing(
    app: Application, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await write(app, "green tea")
    await app.indexed()
    await asyncio.to_thread(order_build, app.url, "notes")
    projection = app.tiers["notes"].projections["notes"]

    class Full:
        async def apply(self, changes: Any) -> None:
            raise OSError("disk is full")

        async def flush(self) -> None: ...

    monkeypatch.setattr(projection.store, "beside", lambda build: Full())
    monkeypatch.setattr("lamina.projections.indexer.BUILD_PAUSES_S", (0.0, 0.0))
    with caplog.at_level(logging.ERROR, "lamina.projections.indexer"):
        await write(app, "black tea")
        await app.indexed()

    assert await Builds(app.pool).under_way() == []
    assert await found(app, "tea") == {"green tea", "black tea"}
    assert "given up" in caplog.text


async def test_a_claim_while_a_build_is_under_way_makes_it_wait_for_everything(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path)
    async with running(settings, database, HashingModel(), follow=False) as app:
        await write(app, "green tea")
        await app.indexed()
        await asyncio.to_thread(order_build, database, "notes")
        await asyncio.to_thread(claimed, database, "here", is_new=True, is_shared=False)
        pending = [build.pending for build in await Builds(app.pool).under_way()]

    assert pending == [2]


@pytest.mark.parametrize("kind", STORES)
async def test_another_layout_of_cold_notes_is_another_place(database: str, tmp_path: Path, kind: str) -> None:
    places = {
        location_of(settings_for(database, tmp_path, cold={"collections": layout}, **STORES[kind]), "cold")
        for layout in ("per_namespace", "shared")
    }

    assert len(places) == (2 if kind == "server" else 1)  # An embedded index refuses the other one.


@pytest.mark.parametrize(
    "secret",
    ["postgresql://u:p%40ss@h/d", "http://u:pa/ss@h:6333", "http://h:6333?api_key=s3cret", "redis://:s3cret@h"],
)
def test_a_shown_place_tells_no_secret(secret: str) -> None:
    told = without_secrets(secret)

    assert not any(word in told for word in ("p%40ss", "pa/ss", "s3cret", "u:"))


def test_places_differ_by_what_tells_stores_apart(tmp_path: Path) -> None:
    one, other = (Neo4jServerSettings(url="neo4j://h", database=name) for name in ("one", "other"))
    graphs = {location_of(settings_for("postgresql://x", tmp_path, graph=graph), "graph") for graph in (one, other)}
    edges = set()
    for folder in ("a", "b"):
        identify_folder(tmp_path / folder / "edge")
        edges.add(location_of(settings_for("postgresql://x", tmp_path / folder), "notes").split()[1])

    assert len(graphs) == len(edges) == 2


def test_a_reindex_without_a_configuration_does_not_fill_the_embedded_index_of_the_defaults(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_POSTGRES__KIND", "server")
    monkeypatch.setenv("LAMINA_POSTGRES__URL", database)
    claim_store(database, "notes", "qdrant http://q:6333 lamina_notes", is_new=False, is_shared=True)

    refused = CliRunner().invoke(cli, ["reindex", "notes", "--data-dir", str(tmp_path / "data")])

    assert isinstance(refused.exception, Misconfigured)
    assert "keeps notes elsewhere: qdrant http://q:6333" in str(refused.exception)
    assert not (tmp_path / "data").exists()
