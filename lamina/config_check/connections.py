"""Connections to Postgres that all processes of a configuration may open together."""

from collections.abc import Iterator
from dataclasses import dataclass

from lamina.settings.loading import Settings, served_tiers

# Copies of values in code that this package must not import; tests compare.
STAMPS_POOL = 2
DRIVEN_RUNS = 4
# Connections that Postgres keeps for its superuser.
RESERVED = 3


@dataclass(frozen=True, slots=True)
class Demand:
    """Connections that one kind of process may open.

    Args:
        who: The kind of process.
        processes: Most processes at a time.
        each: Most connections of one process.
    """

    who: str
    processes: int
    each: int

    @property
    def total(self) -> int:
        """Connections of all these processes."""
        return self.processes * self.each

    def __str__(self) -> str:
        return f"{self.who} {self.processes} × {self.each}"


def connection_demands(settings: Settings) -> Iterator[Demand]:
    """Return the demand of each kind of process, with as many of them as the settings allow."""
    pool, jobs, routers = settings.pool.max_size, settings.jobs, settings.serve.router.max_replicas
    is_compact = settings.serve.topology == "compact"
    searchers = [getattr(settings.serve.searchers, name).max_replicas for name in served_tiers(settings)]
    yield Demand("routers", routers, pool + STAMPS_POOL)
    # The searchers of one process share a pool.
    yield Demand("searchers", routers if is_compact else sum(searchers), pool)
    # Both listen, on a connection of their own.
    yield Demand("indexer and scheduler", 1 + (routers if is_compact else 1), pool + 1)
    yield Demand("drivers of jobs", DRIVEN_RUNS, pool + 1)  # Each holds the lock of its run.
    yield Demand("workers of jobs", DRIVEN_RUNS * jobs.parallelism, pool)
