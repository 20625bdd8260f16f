"""A service as `lamina up` starts it, whose Postgres counts the statements."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.service import Endpoint, started
from lamina.embedded import EmbeddedPostgres
from lamina.settings.stores import EmbeddedPostgresSettings

# Schedules would work beside a measurement, or not, as the clock has it.
VARIABLES = {"LAMINA_JOBS__IS_SCHEDULED": "false"}


@dataclass(frozen=True, slots=True)
class CountedService:
    """A running service, and the URL of its database."""

    endpoint: Endpoint
    database_url: str


@contextmanager
def counting_postgres(directory: Path) -> Iterator[EmbeddedPostgres]:
    """Give an embedded Postgres that counts statements, now and whenever it is started on these data."""
    server = EmbeddedPostgres(directory, EmbeddedPostgresSettings())
    try:
        with psycopg.connect(server.start(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
            connection.execute("ALTER SYSTEM SET max_wal_size = '8GB'")
        server.stop()
        with psycopg.connect(server.start(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        yield server
    finally:
        server.stop()


@contextmanager
def counted_service(
    load: Callable[[Path, str], None] | None = None, variables: Mapping[str, str] = VARIABLES
) -> Iterator[CountedService]:
    """Start a service on a temporary folder, and stop it afterwards.

    Args:
        load: Writes into the empty database before: it is given the data directory and the URL.
        variables: Settings of the service, by environment variable.
    """
    with tempfile.TemporaryDirectory(prefix="lamina-benchmark-") as temporary:
        folder = Path(temporary)
        directory = folder / "data" / "postgres"
        directory.parent.mkdir()
        with counting_postgres(directory) as server:
            url = server.url
            if load is not None:
                load(folder / "data", url)
        with started(folder, variables) as endpoint:
            yield CountedService(endpoint, url)
