"""Servers of a test run: one that waits for no disk, and those that are there already (``LAMINA_TEST_…_URL``)."""

from collections.abc import Iterator
from contextlib import contextmanager

from lamina.embedded import EmbeddedFalkorDB, EmbeddedPostgres
from lamina.settings.stores import EmbeddedFalkorDBSettings
from tests.support.scratch import new_folder

UNSYNCED = """
fsync = off
synchronous_commit = off
full_page_writes = off
"""


class UnsyncedPostgres(EmbeddedPostgres):
    """A server whose data need not survive itself: it waits for no disk.

    Tests that kill Postgres, or start `lamina up`, use an ``EmbeddedPostgres``.
    """

    def _initialise(self) -> None:
        super()._initialise()
        with (self.directory / "postgresql.conf").open("a") as config:
            config.write(UNSYNCED)


class GivenPostgres(EmbeddedPostgres):
    """A server in the place of an embedded one, which nobody starts or stops.

    Args:
        url: URL of a database there whose user may make others.
    """

    def __init__(self, url: str) -> None:
        self._given = url

    @property
    def url(self) -> str:
        """Return the connection URL."""
        return self._given


@contextmanager
def running_falkordb() -> Iterator[EmbeddedFalkorDB]:
    """Run a FalkorDB without data."""
    with new_folder() as home:
        server = EmbeddedFalkorDB(home / "graph", EmbeddedFalkorDBSettings())
        server.start()
        yield server
        server.stop()
