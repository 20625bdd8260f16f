"""Databases of a test's own: copies of one that is migrated, and filled, once."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from lamina.embedded import EmbeddedPostgres
from lamina.stores.postgres.migrate import migrate
from tests.support.servers import GivenPostgres

TEMPLATE = f"lamina_template_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"


def database_url(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def name_of(url: str) -> str:
    return urlsplit(url).path[1:]


def make_template(server: EmbeddedPostgres) -> None:
    """Make the migrated database that all others are copies of."""
    drop_database(server, TEMPLATE)
    _execute(server, f"CREATE DATABASE {TEMPLATE}")
    migrate(database_url(server.url, TEMPLATE))


@contextmanager
def new_database(server: EmbeddedPostgres, template: str = TEMPLATE) -> Iterator[str]:
    """Give the URL of a copy of a database to which nobody is connected."""
    name = f"test_{uuid.uuid4().hex}"
    # Files are copied for half the CPU time of logged blocks, but only where a checkpoint waits for no disk.
    strategy = "wal_log" if isinstance(server, GivenPostgres) else "file_copy"
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {strategy}")
    yield database_url(server.url, name)
    drop_database(server, name)


@contextmanager
def vectors_indexed_afterwards(connection: "psycopg.Connection[Any]") -> Iterator[None]:
    """Make the indexes of vectors at the end of the block: a row at a time takes 4 000 rows ten seconds."""
    rows = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%'"
    ).fetchall()
    indexes = {str(row["indexname"]): str(row["indexdef"]) for row in rows}
    connection.execute(f"DROP INDEX {', '.join(indexes)}".encode())
    yield
    for definition in indexes.values():
        connection.execute(definition.encode())


def drop_database(server: EmbeddedPostgres, name: str) -> None:
    _execute(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _execute(server: EmbeddedPostgres, command: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(command.encode())
