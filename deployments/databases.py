"""Postgres and FalkorDB of `lamina up`: started beside Ray, and again where they end."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

import psycopg

from lamina.cli.local import ensure_local_key
from lamina.embedded import EmbeddedFalkorDB, EmbeddedPostgres
from lamina.errors import Misconfigured
from lamina.settings.loading import Settings
from lamina.settings.stores import (
    EmbeddedFalkorDBSettings,
    EmbeddedPostgresSettings,
    FalkorDBServerSettings,
    GraphSettings,
    PostgresServerSettings,
)
from lamina.stores.postgres.migrate import migrate
from lamina.stores.postgres.outbox import enqueue_all

Report = Callable[[str], None]


class Databases:
    """The databases that the settings choose; those that are embedded are started and stopped.

    They start in a thread of their own, which lives as long as they do: Linux ends them with the thread that started
    them.

    Args:
        settings: Which databases, and where embedded ones keep their data.
        report: Takes lines of progress.
    """

    def __init__(self, settings: Settings, report: Report) -> None:
        self._settings = settings
        self._report = report
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="databases")
        self._postgres: EmbeddedPostgres | None = None
        self._falkordb: EmbeddedFalkorDB | None = None
        self._url = ""
        self._starting: Future[tuple[Settings, str]] | None = None

    def __enter__(self) -> Self:
        self._starting = self._thread.submit(self._start)
        return self

    def __exit__(self, *_: object) -> None:
        if self._starting is not None:
            self._starting.exception()  # Until it has ended, there may be more to stop.
        for server in (self._falkordb, self._postgres):
            if server is not None:
                server.stop()
        self._thread.shutdown()

    def refuse_failure(self) -> None:
        """Raise the error of a start that has failed already; a server's is waited for, since it comes at once."""
        has_started = self._starting is not None and self._starting.done()
        if has_started or isinstance(self._settings.postgres, PostgresServerSettings):
            self.started()

    def started(self) -> tuple[Settings, str]:
        """Wait for them; return the settings with their addresses, and the local key.

        Raises:
            Misconfigured: If one of them does not start.
        """
        assert self._starting is not None  # noqa: S101 - entered
        return self._starting.result()

    def revivals(self) -> Sequence[Callable[[], None]]:
        """Return a function for each that starts it again if it has ended."""
        return [revive_postgres(self._postgres, self._report), revive_graph(self._falkordb, self._url, self._report)]

    def _start(self) -> tuple[Settings, str]:
        postgres = self._start_postgres()
        self._url = postgres.direct_url or postgres.url
        graph = self._start_graph()
        migrate(self._url)
        key = ensure_local_key(self._settings.data_dir, self._url)
        addresses: Mapping[str, Any] = {
            "postgres": postgres,
            "graph": graph,
            "data_dir": self._settings.data_dir.resolve(),
        }
        return self._settings.model_copy(update=addresses), key

    def _start_postgres(self) -> PostgresServerSettings:
        match self._settings.postgres:
            case PostgresServerSettings() as chosen:
                return chosen
            case EmbeddedPostgresSettings() as chosen:
                self._report("starting postgres")
                self._postgres = EmbeddedPostgres(self._settings.data_dir / "postgres", chosen)
                url = self._postgres.start()
                return PostgresServerSettings(url=url, note_words=chosen.note_words, ivfflat_rows=chosen.ivfflat_rows)

    def _start_graph(self) -> GraphSettings:
        match self._settings.graph:
            case EmbeddedFalkorDBSettings() as chosen:
                self._report("starting falkordb")
                self._falkordb = EmbeddedFalkorDB(self._settings.data_dir / "graph", chosen)
                url = self._falkordb.start()
                if aside := self._falkordb.set_aside:
                    self._report(f"falkordb could not load its data, which are in {aside} now; the graph is rebuilt")
                return FalkorDBServerSettings(url=url, connections=chosen.connections)
            case chosen:
                return chosen


def revive_postgres(postgres: EmbeddedPostgres | None, report: Report) -> Callable[[], None]:
    """Return a function that restarts Postgres if it ended."""

    def revive() -> None:
        if postgres is not None and _was_revived(postgres, "postgres", report):
            report("postgres ended and was started again")

    return revive


def revive_graph(falkordb: EmbeddedFalkorDB | None, postgres_url: str, report: Report) -> Callable[[], None]:
    """Return a function that restarts FalkorDB if it ended and, where its data were lost, has the graph rebuilt."""
    is_lost = False

    def revive() -> None:
        nonlocal is_lost
        if falkordb is not None and _was_revived(falkordb, "falkordb", report):
            is_lost = is_lost or falkordb.is_new
            report(f"falkordb ended and was started again{', empty; the graph is rebuilt' if is_lost else ''}")
        if is_lost:
            is_lost = not _enqueue_graph(postgres_url)

    return revive


def _enqueue_graph(postgres_url: str) -> bool:
    try:
        enqueue_all(postgres_url, "graph")
    except psycopg.OperationalError:
        return False  # Postgres ended with it, and is started again first.
    return True


def _was_revived(server: EmbeddedPostgres | EmbeddedFalkorDB, name: str, report: Report) -> bool:
    try:
        return server.ensure_running()
    except Misconfigured as error:
        report(f"{name} does not start again yet: {error}")
        return False
