"""How many connections to Postgres a configuration may open, all processes together."""

from collections.abc import Iterator
from dataclasses import dataclass

from lamina.settings import NoGraphSettings, Settings

# What stands in code that this package does not import; tests compare.
STAMPS_POOL = 2
DRIVEN_RUNS = 4
RESERVED = 3
"""Connections that Postgres keeps for its superuser."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one kind of process may open.

    Args:
        who: Which processes.
        processes: Most of them at a time.
        each: Most connections of one.
    """

    who: str
    processes: int
    each: int

    @property
    def total(self) -> int:
        """Connections of all of them."""
        return self.processes * self.each

    def __str__(self) -> str:
        return f"{self.who} {self.processes} × {self.each}"


def demands_of(settings: Settings) -> tuple[Demand, ...]:
    """Return what opens connections, when everything runs that may run."""
    return tuple(_demands(settings))


def _demands(settings: Settings) -> Iterator[Demand]:
    pool, jobs = settings.pool.max_size, settings.jobs
    yield Demand("routers", settings.serve.router.max_replicas, pool + STAMPS_POOL)
    yield Demand("searchers", _searchers(settings), pool)
    yield Demand("indexer and scheduler", 2, pool + 1)  # Both listen, on a connection of their own.
    yield Demand("drivers of jobs", DRIVEN_RUNS, pool + 1)  # Each holds the lock of its run.
    yield Demand("workers of jobs", DRIVEN_RUNS * jobs.parallelism, pool)


def _searchers(settings: Settings) -> int:
    searchers = settings.serve.searchers
    graph = 0 if isinstance(settings.graph, NoGraphSettings) else searchers.graph.max_replicas
    others = (searchers.sessions, searchers.notes, searchers.procedures, searchers.documents)
    return graph + sum(other.max_replicas for other in others)
