import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from lamina.backends import EmbeddedPostgres
from lamina.embedding.hashing import HashingModel
from lamina.ports import Model
from lamina.settings import EmbeddedPostgresSettings, SentenceTransformersSettings
from lamina.stores.postgres.migrate import migrate
from tests.support.application import Application, running, settings_for

TEMPLATE = "lamina_template"


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A real Postgres of this test run, with a migrated template database."""
    with tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres", EmbeddedPostgresSettings(max_connections=200))
        url = server.start()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {TEMPLATE}".encode())
        migrate(database_url(url, TEMPLATE))
        yield server
        server.stop()


def database_url(url: str, name: str) -> str:
    return url.replace("/postgres?", f"/{name}?")


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The URL of a migrated, empty database of this test alone."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}".encode())
    yield database_url(postgres.url, name)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture(scope="session")
def minilm() -> Model:
    """The real embedding model, loaded once."""
    from lamina.embedding.sentence_transformers import SentenceTransformerModel

    return SentenceTransformerModel(SentenceTransformersSettings(threads=2), "cpu")


@pytest.fixture
async def application(database: str, tmp_path: Path) -> AsyncIterator[Application]:
    """The application over real stores; its embedding model hashes words, which is fast and exact enough."""
    async with running(settings_for(database, tmp_path), database, HashingModel()) as app:
        yield app


@pytest.fixture
async def semantic(database: str, tmp_path: Path, minilm: Model) -> AsyncIterator[Application]:
    """The application with the real embedding model."""
    settings = settings_for(database, tmp_path, embedding=SentenceTransformersSettings())
    async with running(settings, database, minilm) as app:
        yield app
