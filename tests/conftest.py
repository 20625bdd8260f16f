import asyncio
import gc
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from lamina.core.ports import Model
from lamina.embedded import EmbeddedFalkorDB, EmbeddedPostgres
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.models.runtimes import is_torch_installed
from lamina.settings.models import SentenceTransformersSettings
from lamina.settings.stores import EmbeddedPostgresSettings, Neo4jServerSettings
from tests.support.application import Application, running, running_with_graph, settings_for
from tests.support.databases import TEMPLATE, drop_database, make_template, new_database
from tests.support.effort import IS_LONG
from tests.support.embedders import WritesOnly
from tests.support.neo4j_server import running_neo4j
from tests.support.schedule import FilesAndRay, needs_neo4j, needs_ray
from tests.support.scratch import new_folder, use_memory_disk
from tests.support.servers import GivenPostgres, UnsyncedPostgres, running_falkordb

use_memory_disk()  # Before the first of them is made.

# In environments of their own, or minutes of starts and kills: make test-doors, test-install, test-cluster.
collect_ignore = ["doors", "install", "cluster"]
CANCELLATIONS = 20
hypothesis.settings.register_profile("short", max_examples=30, deadline=None)
hypothesis.settings.register_profile("long", max_examples=150, deadline=None)
hypothesis.settings.load_profile("long" if IS_LONG else "short")


def pytest_collectstart() -> None:
    """Leave the collector of garbage off while the tests are made, most of which stay to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Freeze the collected tests: a full garbage collection over them stopped a worker for 0.7 s and more."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that need Ray: the worker that has them is busy with them for longest."""
    items.sort(key=lambda item: not needs_ray(item.nodeid))
    for item in items:
        if "neo4j_server" in getattr(item, "fixturenames", ()) and not needs_neo4j(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid}: a test of a real Neo4j says on_neo4j in its name")
    if not is_torch_installed() and "LAMINA_TEST_TORCH" not in os.environ:
        for item in items:
            if item.get_closest_marker("torch"):
                item.add_marker(pytest.mark.skip(reason="torch is not installed: make test-torch"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesAndRay:
    return FilesAndRay(config, log)


@pytest.fixture(scope="session", autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    """End what still runs at the very end, such as the pools of an application in local testing mode.

    In Python 3.11 a task can lose a cancellation (psycopg's pools use ``wait_for``): the loop, which cancels once and
    then waits, would never close.
    """
    yield
    me = asyncio.current_task()
    for _ in range(CANCELLATIONS):
        left = [task for task in asyncio.all_tasks() if task is not me]
        if not left:
            break
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=0.5)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A real Postgres of this test run, or the configured one, with a migrated template database."""
    given = os.environ.get("LAMINA_TEST_POSTGRES_URL")
    if given is not None:
        server: EmbeddedPostgres = GivenPostgres(given)
        make_template(server)
        yield server
        drop_database(server, TEMPLATE)
        return
    with new_folder() as folder:
        server = UnsyncedPostgres(folder / "postgres", EmbeddedPostgresSettings(max_connections=200))
        server.start()
        make_template(server)
        yield server
        server.stop()


@pytest.fixture(scope="session")
def falkordb() -> Iterator[EmbeddedFalkorDB]:
    """A real FalkorDB of this test run; each test works as a tenant of its own."""
    with running_falkordb() as server:
        yield server


@pytest.fixture(scope="session")
def neo4j_server() -> Iterator[Neo4jServerSettings]:
    """A real Neo4j of this test run, or the configured one; each test works as a tenant of its own."""
    with running_neo4j() as settings:
        yield settings


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The URL of a migrated, empty database of this test alone."""
    with new_database(postgres) as url:
        yield url


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The real embedding model on ONNX Runtime, loaded once."""
    from lamina.models.onnx.model import OnnxModel

    return OnnxModel(SentenceTransformersSettings(threads=2), "cpu", tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def minilm_torch() -> Model:
    """The same model on torch; for tests with its mark."""
    from lamina.models.sentence_transformers import SentenceTransformerModel

    return SentenceTransformerModel(SentenceTransformersSettings(threads=2, precision="float32"), "cpu")


@pytest.fixture(scope="session")
async def shared_application(
    postgres: EmbeddedPostgres, falkordb: EmbeddedFalkorDB, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Application]:
    """One application over real stores; its embedding model hashes words, which is fast and exact enough."""
    folder = tmp_path_factory.mktemp("application")
    with new_database(postgres) as url:
        async with running_with_graph(url, falkordb, folder, HashingModel()) as app:
            yield app


@pytest.fixture(scope="module")
async def application_of_module(
    postgres: EmbeddedPostgres, falkordb: EmbeddedFalkorDB, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Application]:
    """Another application like the shared one, in whose place a module puts it whose tests reach all that is stored.

    An audit reads, and an erasure writes anew, all that other tests left: it took up to 56 s.
    """
    folder = tmp_path_factory.mktemp("module")
    with new_database(postgres) as url:
        async with running_with_graph(url, falkordb, folder, HashingModel()) as app:
            yield app


@pytest.fixture
async def application(shared_application: Application) -> AsyncIterator[Application]:
    """The shared application as a tenant of this test alone."""
    mine = shared_application.for_tenant(f"tenant {uuid.uuid4()}")
    yield mine
    await mine.close_clients()


@pytest.fixture
async def replica(application: Application, tmp_path: Path) -> AsyncIterator[Application]:
    """A second replica over the same database, with pools and caches of its own."""
    settings = settings_for(application.url, tmp_path / "replica")
    async with running(settings, application.url, HashingModel(), follow=False) as second:
        yield second


@pytest.fixture
async def alone(database: str, tmp_path: Path) -> AsyncIterator[Application]:
    """An application of this test alone, whose indexer works when the test says so; without a graph."""
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as app:
        yield app


@pytest.fixture
async def unshared(database: str, falkordb: EmbeddedFalkorDB, tmp_path: Path) -> AsyncIterator[Application]:
    """An application of this test alone, for what reaches all that is stored, too."""
    async with running_with_graph(database, falkordb, tmp_path, HashingModel()) as app:
        mine = app.for_tenant(f"tenant {uuid.uuid4()}")
        yield mine
        await mine.close_clients()


@pytest.fixture(scope="session")
async def shared_semantic(
    postgres: EmbeddedPostgres, falkordb: EmbeddedFalkorDB, tmp_path_factory: pytest.TempPathFactory, minilm: Model
) -> AsyncIterator[Application]:
    """One application with the real embedding model."""
    folder = tmp_path_factory.mktemp("semantic")
    with new_database(postgres) as url:
        async with running_with_graph(url, falkordb, folder, minilm, embedding=SentenceTransformersSettings()) as app:
            yield app


@pytest.fixture
async def semantic(shared_semantic: Application) -> AsyncIterator[Application]:
    """The application with the real embedding model, as a tenant of this test alone."""
    mine = shared_semantic.for_tenant(f"tenant {uuid.uuid4()}")
    yield mine
    await mine.close_clients()


@pytest.fixture
async def without_vectors(database: str, tmp_path: Path) -> AsyncIterator[Application]:
    """The application whose queries get no vector: words alone must do."""
    embedder = WritesOnly(BatchingEmbedder(HashingModel()))
    async with running(settings_for(database, tmp_path), database, HashingModel(), embedder=embedder) as app:
        yield app


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory for servers that run as another user; pytest closes its own to them now and then."""
    with new_folder() as folder:
        yield folder
