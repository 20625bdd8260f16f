"""A store that comes back as it was an hour ago is noticed, and gets what it lacks without being asked."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from deployments.searcher import SearcherDeployment
from lamina.core.queries import Failure, Filters, Query
from lamina.core.scope import Scope
from lamina.core.tiers import Source
from lamina.embedded import EmbeddedFalkorDB
from lamina.errors import Unavailable
from lamina.models.hashing import HashingModel
from lamina.settings.stores import FalkorDBServerSettings, QdrantServerSettings
from lamina.stores.postgres.builds import read_installation, read_mark
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.outbox import Outbox
from tests.support.application import running, settings_for
from tests.support.older_stores import BEFORE, GONE, SINCE, claim, drift, is_noticed, mended, remember, restored, watch
from tests.support.servers import running_falkordb


@pytest.fixture
def falkordb() -> Iterator[EmbeddedFalkorDB]:
    """A FalkorDB of this test alone, whose files are put back as they were."""
    with running_falkordb() as server:
        yield server


async def test_a_graph_that_comes_back_older_gets_what_it_lacks_and_loses_what_was_deleted(
    database: str, tmp_path: Path, falkordb: EmbeddedFalkorDB
) -> None:
    settings = settings_for(database, tmp_path, graph=FalkorDBServerSettings(url=falkordb.url))
    kept: dict[bytes, Any] = {}
    async with running(settings, database, HashingModel(), follow=False) as app:
        claim(settings, database, "graph")
        with Redis(unix_socket_path=falkordb.url.removeprefix("unix://")) as client:

            def save() -> None:
                kept.update({key: client.dump(key) for key in client.keys("*") if b"telemetry" not in key})

            def put_back() -> None:
                client.flushall()
                for key, value in kept.items():
                    client.restore(key, 0, value)

            before, said, after = await restored(app, "graph", save, put_back)

    is_noticed(before, said, after)


@pytest.mark.parametrize("kind", ["edge", "qdrant"])
async def test_indexes_in_this_process_whose_folder_is_put_back_get_what_they_lack(
    database: str, tmp_path: Path, kind: str
) -> None:
    on_qdrant = {name: QdrantServerSettings(url=str(tmp_path / "qdrant")) for name in ("hybrid", "vectors")}
    settings = settings_for(database, tmp_path, **(on_qdrant if kind == "qdrant" else {}))
    folder = tmp_path / kind

    async with running(settings, database, HashingModel(), follow=False) as app:
        claim(settings, database, "notes")
        await watch(app, "notes").store.belong_to(read_installation(app.url))
        await remember(app, BEFORE)
        gone = await remember(app, GONE)
    shutil.copytree(folder, tmp_path / "backup")
    async with running(settings, database, HashingModel(), follow=False) as app:
        await remember(app, SINCE)
        assert (await app.client().delete(f"/v1/notes/{gone}")).is_success
        await app.indexed()
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)

    async with running(settings, database, HashingModel(), follow=False) as app:
        before, said = await mended(app, "notes")
        is_noticed(before, said, await drift(app, "notes"))


async def test_changes_that_come_first_notice_it_and_searches_are_told(
    database: str, tmp_path: Path, falkordb: EmbeddedFalkorDB
) -> None:
    settings = settings_for(database, tmp_path, graph=FalkorDBServerSettings(url=falkordb.url))
    async with running(settings, database, HashingModel(), follow=False) as app:
        claim(settings, database, "graph")
        watched = watch(app, "graph")
        await watched.store.belong_to(read_installation(app.url))
        await remember(app, BEFORE)
        keeper: Any = app.tiers["graph"].keepers["graph"]
        applied = await keeper.mark()
        await keeper.set_mark(applied - 1)

        await remember(app, SINCE)
        is_filling, said = watched.is_filling, watched.reason
        await app.indexed()
        await watched.look()

        assert (is_filling, watched.is_filling) == (True, False)
        assert "came back older" in said
        assert await keeper.mark() == await read_mark(app.pool, "graph")
        assert await drift(app, "graph") == 0


async def test_a_store_that_takes_no_changes_keeps_its_mark_and_takes_them_when_there_is_room_again(
    database: str, tmp_path: Path, falkordb: EmbeddedFalkorDB
) -> None:
    settings = settings_for(database, tmp_path, graph=FalkorDBServerSettings(url=falkordb.url))
    async with running(settings, database, HashingModel(), follow=False) as app:
        claim(settings, database, "graph")
        await watch(app, "graph").store.belong_to(read_installation(app.url))
        await remember(app, BEFORE)
        with Redis(unix_socket_path=falkordb.url.removeprefix("unix://")) as client:
            # As of a full disk: what is there is read, what is new is refused.
            client.config_set("maxmemory", "1")
            with pytest.raises(Unavailable):
                await remember(app, SINCE)
            found = (await app.client().post("/v1/search", json={"query": "lighthouse", "tiers": ["graph"]})).json()
            pending = (await Outbox(app.pool).lag())["graph"].pending
            client.config_set("maxmemory", "0")
        await app.indexed()
        await watch(app, "graph").look()

        assert found["degraded"] == []
        assert pending > 0
        assert await drift(app, "graph") == 0
        assert (await Outbox(app.pool).lag())["graph"].pending == 0


async def test_a_server_that_is_away_at_the_start_and_later_is_named_and_taken_in_when_it_comes(
    database: str, tmp_path: Path, falkordb: EmbeddedFalkorDB
) -> None:
    settings = settings_for(database, tmp_path, graph=FalkorDBServerSettings(url=falkordb.url))
    async with running(settings, database, HashingModel(), follow=False) as app:
        edge = {"subject": "Mira", "type": "works_at", "object": "Orion Labs"}
        assert (await app.client().post("/v1/graph/edges", json={"edges": [edge]})).is_success
        falkordb.stop()
        generation = claim_generation(database, app.model.identity)
        searcher = SearcherDeployment("graph", settings, generation)
        query = Query("Where does Mira work?", ("mira", "work"), Scope("acme"), 10, Filters(), None, generation.number)
        states, found = [], []

        async def look() -> None:
            states.append(await searcher.probe_stores())
            found.append((await searcher.search(query))[Source.GRAPH])

        await look()
        falkordb.start()
        await look()
        await app.indexed()
        await look()
        falkordb.stop()
        await look()
        falkordb.start()
        await look()

        assert [state["graph"] for state in states] == ["failed", "failed", "ok", "failed", "ok"]
        assert isinstance(found[0], Failure)
        assert isinstance(found[3], Failure)
        assert not isinstance(found[2], Failure)
        assert len(found[2]) > 0
        assert found[4] == found[2]
        await searcher._parts.aclose()
        await searcher._outbox._pool.close()


@pytest.mark.parametrize("ahead", [0, 1])
async def test_a_crash_between_the_two_numbers_of_a_flush_is_no_restore(
    database: str, tmp_path: Path, falkordb: EmbeddedFalkorDB, ahead: int
) -> None:
    settings = settings_for(database, tmp_path, graph=FalkorDBServerSettings(url=falkordb.url))
    async with running(settings, database, HashingModel(), follow=False) as app:
        claim(settings, database, "graph")
        watched = watch(app, "graph")
        await watched.store.belong_to(read_installation(app.url))
        await remember(app, BEFORE)
        keeper: Any = app.tiers["graph"].keepers["graph"]
        await keeper.set_mark(await keeper.mark() + ahead)

        await watched.look()
        await remember(app, SINCE)
        await watched.look()

        assert not watched.is_filling
