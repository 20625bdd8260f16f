"""Every store tells whose it is, and goes on telling it through a build."""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient

from lamina.projections.locations import OwnedFolder
from lamina.settings.stores import (
    MeilisearchSettings,
    Neo4jServerSettings,
    QdrantServerSettings,
)
from lamina.stores.graph.falkordb import falkordb_graph
from lamina.stores.graph.neo4j import neo4j_graph
from lamina.stores.graph.store import CypherGraph
from lamina.stores.index.cold.qdrant import QdrantColdIndex
from lamina.stores.index.meilisearch.index import MeilisearchIndex
from lamina.stores.index.qdrant.index import QdrantIndex
from tests.support.bolt import bolt_graph, bolt_server, take_unanswered
from tests.support.meilisearch import Wire, served
from tests.support.scratch import new_folder
from tests.support.servers import running_falkordb

Connect = Callable[[], Any]
MINE, OTHER = str(uuid.uuid4()), str(uuid.uuid4())


@pytest.fixture
def folder(tmp_path: Path) -> Connect:
    return lambda: OwnedFolder(tmp_path / "edge")


@pytest.fixture
def falkordb_alone() -> Iterator[Connect]:
    """A FalkorDB of this test alone: whose it is, is the whole server's."""
    with running_falkordb() as server:
        yield lambda: falkordb_graph(server.url, connections=2, read_deadline_s=60)


@pytest.fixture
def bolt() -> Iterator[Connect]:
    with new_folder() as home, bolt_server(home) as url:
        made = count()

        def connect() -> CypherGraph:
            if next(made):
                take_unanswered(url)
            return bolt_graph(url)

        yield connect


@pytest.fixture
async def on_neo4j(neo4j_server: Neo4jServerSettings) -> AsyncIterator[Connect]:
    """The configured server, or that of the run; it belongs to nobody for a while."""
    store = neo4j_graph(neo4j_server, read_deadline_s=60)
    before = await store.installation()
    forget = "MATCH (i:Installation) DELETE i"
    await store._engine.write(forget, {})
    yield lambda: neo4j_graph(neo4j_server, read_deadline_s=60)
    await store._engine.write(forget, {})
    if before is not None:
        await store.belong_to(before)
    await store.close()


@pytest.fixture
def qdrant(tmp_path: Path) -> Connect:
    return lambda: QdrantIndex(QdrantServerSettings(url=str(tmp_path)), "lamina_notes", dimension=64)


@pytest.fixture
def cold_on_qdrant(tmp_path: Path) -> Connect:
    settings = QdrantServerSettings(url=str(tmp_path))
    return lambda: QdrantColdIndex(settings, "lamina_cold", dimension=64, layout="shared")


@pytest.fixture
def meilisearch() -> Iterator[Connect]:
    with served(Wire()) as url:
        yield lambda: MeilisearchIndex(MeilisearchSettings(url=url), "lamina_notes", dimension=64)


@pytest.fixture(params=["folder", "falkordb_alone", "bolt", "on_neo4j", "qdrant", "cold_on_qdrant", "meilisearch"])
def connect(request: pytest.FixtureRequest) -> Connect:
    chosen: Connect = request.getfixturevalue(request.param)
    return chosen


async def test_a_store_tells_whose_it_is_to_whoever_connects_later(connect: Connect) -> None:
    told = []
    for installation in (None, MINE, MINE, OTHER):
        store = connect()
        if installation is not None:
            await store.belong_to(installation)
        told.append(await store.installation())
        await store.close()
    last = connect()

    assert [*told, await last.installation()] == [None, MINE, MINE, OTHER, OTHER]
    await last.close()


async def test_a_store_tells_the_number_of_its_last_flush_to_whoever_connects_later(connect: Connect) -> None:
    told = []
    for mark in (None, 1, 2, 2**40):
        store = connect()
        if mark is not None:
            await store.set_mark(mark)
        told.append(await store.mark())
        await store.close()
    last = connect()
    await last.belong_to(MINE)

    assert [*told, await last.mark(), await last.installation()] == [0, 1, 2, 2**40, 2**40, MINE]
    await last.close()


async def test_a_folder_whose_mark_a_full_disk_left_empty_belongs_to_nobody(tmp_path: Path) -> None:
    folder = OwnedFolder(tmp_path)
    await folder.belong_to(MINE)
    (tmp_path / "installation").write_text("")

    owner = await folder.installation()
    await folder.belong_to(OTHER)

    assert (owner, await folder.installation()) == (None, OTHER)


async def test_stores_of_one_prefix_have_each_a_number_of_their_own(tmp_path: Path) -> None:
    client = AsyncQdrantClient(path=str(tmp_path / "qdrant"))
    settings = QdrantServerSettings(url=str(tmp_path / "qdrant"))
    notes, messages = (QdrantIndex(settings, name, dimension=64, client=client) for name in ("notes", "messages"))
    folders = [OwnedFolder(tmp_path, name) for name in ("notes", "messages")]
    with served(Wire()) as url:
        words = [MeilisearchIndex(MeilisearchSettings(url=url), name, dimension=64) for name in ("notes", "messages")]
        marks = []
        for one, other in ((notes, messages), folders, words):
            await one.set_mark(7)
            await other.set_mark(9)
            await one.belong_to(MINE)
            marks.append((await one.mark(), await other.mark(), await other.installation()))
        for index in words:
            await index.close()
    await client.close()

    assert marks == [(7, 9, MINE)] * 3


async def test_a_build_that_takes_the_place_of_a_store_belongs_to_the_same_installation(connect: Connect) -> None:
    store = connect()
    await store.belong_to(MINE)

    if hasattr(store, "switch"):
        await store.switch(3)

    assert await store.installation() == MINE
    await store.close()


async def test_whose_a_graph_is_counts_as_no_node_of_it(falkordb_alone: Connect, bolt: Connect) -> None:
    for connect in (falkordb_alone, bolt):
        store = connect()
        await store.belong_to(MINE)

        assert (await store.prepare(), await store.nodes(None, 10)) == (True, [])
        await store.close()
