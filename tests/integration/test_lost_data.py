"""A server that comes back without its data is noticed, said to be so, and filled again without being asked."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from redis import Redis

from deployments.searcher import SearcherDeployment
from lamina.core.queries import Failure, Filters, Query
from lamina.core.scope import Scope
from lamina.core.tiers import Source
from lamina.embedded import EmbeddedFalkorDB
from lamina.errors import Misconfigured, Unavailable
from lamina.models.hashing import HashingModel
from lamina.projections.lost_data import StoreWatch
from lamina.settings.stores import FalkorDBServerSettings
from lamina.stores.graph.falkordb import FalkorDBGraph, falkordb_graph
from lamina.stores.postgres.builds import read_installation
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.outbox import Outbox, enqueue_all
from tests.support.application import Application, running, settings_for
from tests.support.servers import running_falkordb


@pytest.fixture
def server() -> Iterator[EmbeddedFalkorDB]:
    """A FalkorDB of this test alone, which loses all that it has."""
    with running_falkordb() as server:
        yield server


@pytest.fixture
async def app(database: str, server: EmbeddedFalkorDB, tmp_path: Path) -> AsyncIterator[Application]:
    """An application with a few facts, whose indexer works when the test says so."""
    settings = settings_for(database, tmp_path, graph=FalkorDBServerSettings(url=server.url))
    async with running(settings, database, HashingModel(), follow=False) as app:
        edge = {"subject": "Mira", "type": "works_at", "object": "Orion Labs"}
        assert (await app.client().post("/v1/graph/edges", json={"edges": [edge]})).is_success
        await app.indexed()
        yield app


@pytest.fixture
async def store(server: EmbeddedFalkorDB) -> AsyncIterator[FalkorDBGraph]:
    store = falkordb_graph(server.url, connections=2, read_deadline_s=60)
    yield store
    await store.close()


def watch(app: Application, store: FalkorDBGraph) -> StoreWatch:
    fill = partial(enqueue_all, app.url, "graph")
    return StoreWatch("graph", store, read_installation(app.url), fill, Outbox(app.pool))


def lose_everything(server: EmbeddedFalkorDB) -> None:
    with Redis(unix_socket_path=server.url.removeprefix("unix://")) as client:
        client.flushall()


async def test_a_store_that_lost_its_data_is_said_to_lack_it_until_it_has_it_again(
    app: Application, server: EmbeddedFalkorDB, store: FalkorDBGraph
) -> None:
    watched = watch(app, store)
    await store.belong_to(watched.installation)
    await watched.look()
    before = await store.inventory("acme")
    lose_everything(server)

    for _ in range(2):
        with pytest.raises(Unavailable, match="came back without its data"):
            await watched.look()
    is_filling = watched.is_filling
    await app.indexed()
    await watched.look()

    assert is_filling
    assert not watched.is_filling
    assert before
    assert await store.inventory("acme") == before
    assert await store.installation() == watched.installation


async def test_a_store_that_another_installation_took_meanwhile_is_not_filled(
    app: Application, store: FalkorDBGraph
) -> None:
    await store.belong_to("another")

    with pytest.raises(Misconfigured, match="another"):
        await watch(app, store).look()

    assert await store.installation() == "another"


async def test_searches_name_the_source_that_lost_its_data_and_stop_when_it_is_back(
    app: Application, server: EmbeddedFalkorDB
) -> None:
    generation = await asyncio.to_thread(claim_generation, app.url, app.model.identity)
    searcher = SearcherDeployment("graph", app.settings, generation)
    query = Query("Where does Mira work?", ("mira", "work"), Scope("acme"), 10, Filters(), None, generation.number)
    well = (await searcher.search(query))[Source.GRAPH]
    lose_everything(server)

    states = await searcher.probe_stores()
    lost = (await searcher.search(query))[Source.GRAPH]
    await app.indexed()
    states_after = await searcher.probe_stores()
    back = (await searcher.search(query))[Source.GRAPH]

    assert (states, states_after) == ({"graph": "failed"}, {"graph": "ok"})
    assert isinstance(lost, Failure)
    assert "came back without its data" in lost.reason
    assert not isinstance(well, Failure)
    assert back == well
    await searcher._parts.aclose()
    await searcher._outbox._pool.close()


async def test_a_search_notices_the_loss_by_itself(app: Application, server: EmbeddedFalkorDB) -> None:
    generation = await asyncio.to_thread(claim_generation, app.url, app.model.identity)
    searcher = SearcherDeployment("graph", app.settings, generation)
    query = Query("Where does Mira work?", ("mira", "work"), Scope("acme"), 10, Filters(), None, generation.number)
    lose_everything(server)

    await searcher.search(query)
    looking = searcher._watches["graph"].looking
    assert looking is not None
    await looking
    lost = (await searcher.search(query))[Source.GRAPH]
    await app.indexed()
    assert isinstance(lost, Failure)
    assert len(await app.tiers["graph"].projections["graph"].inventory("acme"))
    await searcher._parts.aclose()
    await searcher._outbox._pool.close()
