"""A projection is built anew beside itself, and moved between stores, while the service goes on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lamina.embedding.hashing import HashingModel
from lamina.errors import Misconfigured, Unavailable
from lamina.memories import Message, Note, Role
from lamina.scope import Scope
from lamina.settings import QdrantEdgeSettings, QdrantServerSettings
from lamina.stores.hybrid.qdrant.collections import MEMORY
from lamina.stores.postgres.builds import STARTS_APART, Builds, begin_filling, claim_store, order_build
from lamina.stores.postgres.keys import KeyRole
from lamina.wiring import build_pool, claim
from tests.support.application import Application, running, settings_for
from tests.support.indexes import chunk_count

ACME = Scope("acme")
STORES: dict[str, dict[str, Any]] = {
    "embedded": {"hybrid": QdrantEdgeSettings(), "vectors": QdrantEdgeSettings()},
    "server": {"hybrid": QdrantServerSettings(url=MEMORY), "vectors": QdrantServerSettings(url=MEMORY)},
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

    assert (number, count) == (1, 2)
    assert [(build.projection, build.number, build.pending) for build in under_way] == [("notes", 1, 2)]
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
        for _ in range(1000):
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
    await asyncio.to_thread(order_build, app.url, "notes")

    with pytest.raises(Misconfigured, match="notes is being built already"):
        await asyncio.to_thread(order_build, app.url, "notes")

    await app.indexed()
    assert await asyncio.to_thread(order_build, app.url, "notes") == (2, 1)


async def test_a_build_that_fails_on_the_way_goes_on(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    await write(app, "green tea")
    await app.indexed()
    await asyncio.to_thread(order_build, app.url, "notes")
    projection = app.tiers["notes"].projections["notes"]

    async def broken(build: int) -> None:
        raise Unavailable("index", "gone")

    with monkeypatch.context() as patch:
        patch.setattr(projection, "switch", broken)
        with pytest.raises(Unavailable):
            await app.indexed()
    under_way = [build.projection for build in await Builds(app.pool).under_way()]
    await app.indexed()

    assert under_way == ["notes"]
    assert await found(app, "tea") == {"green tea"}


def test_a_store_that_was_elsewhere_before_has_missed_changes(database: str) -> None:
    told = [claim_store(database, "notes", store) for store in ("here", "here", "there", "there", "here")]

    assert told == [False, False, True, False, True]


def test_of_replicas_that_start_together_one_fills_the_store(database: str) -> None:
    first = [begin_filling(database, "notes") for _ in range(3)]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE projection_stores SET filled_at = filled_at - %s", (STARTS_APART * 1.1,))

    assert first == [True, False, False]
    assert begin_filling(database, "notes")


async def test_a_service_that_moves_to_another_store_and_back_misses_nothing(database: str, tmp_path: Path) -> None:
    seen = []
    for number, store in enumerate(("embedded", "server", "embedded")):
        settings = settings_for(database, tmp_path, **STORES[store])
        async with running(settings, database, HashingModel(), follow=False) as app:
            for name, parts in app.tiers.items():
                for projection in parts.projections:
                    is_new = projection in parts.new
                    await asyncio.to_thread(claim, settings, projection, None, is_new=is_new)
                assert name
            await write(app, f"tea number {number}")
            await app.indexed()
            seen.append(await found(app, "tea"))

    assert seen == [{f"tea number {number}" for number in range(count)} for count in (1, 2, 3)]


async def test_a_store_that_stays_where_it_is_takes_over_nothing_again(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path)
    pool = build_pool(settings)

    again = [claim(settings, "notes", None, is_new=is_new) for is_new in (True, False, True)]

    await pool.close()
    assert again == [True, False, True]


async def test_replicas_of_a_server_that_start_together_have_it_filled_once_and_again_where_it_moves(
    database: str, tmp_path: Path
) -> None:
    here, there = (
        settings_for(database, tmp_path, hybrid=QdrantServerSettings(url=url)) for url in ("http://a", "http://b")
    )

    told = [claim(settings, "notes", None, is_new=True) for settings in (here, here, there, there, here)]

    assert told == [True, False, True, False, True]
