"""Time of processors by part of the service, as Linux counts it, and statements as Postgres counts them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg

from benchmarks.replica_watch import processes
from benchmarks.start import name_of

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_COUNT = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements"


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """Seconds of processors of one process, and of its children that have ended."""

    own_s: float
    ended_children_s: float

    @classmethod
    def parse(cls, stat: str) -> Self:
        """Read a line of `/proc/PID/stat`; a program's name in it may hold spaces and brackets."""
        user, system, of_children, system_of_children = map(int, stat.rpartition(")")[2].split()[11:15])
        return cls((user + system) * TICK_S, (of_children + system_of_children) * TICK_S)

    @property
    def all_s(self) -> float:
        """All seconds; connections of Postgres, which end, stay counted by its first process."""
        return self.own_s + self.ended_children_s


def times_of(pid: int) -> ProcessTimes:
    """Return the times of a process; none if it has ended."""
    try:
        return ProcessTimes.parse(Path(f"/proc/{pid}/stat").read_text())
    except OSError:
        return ProcessTimes(0.0, 0.0)


def cpu_by_part(pid: int | None = None) -> dict[str, float]:
    """Return the seconds of processors of the processes below one, this one if none is named, by part of Lamina."""
    found: dict[str, float] = {}
    for process in processes(pid):
        name = name_of(process.command)
        found[name] = found.get(name, 0.0) + times_of(process.pid).all_s
    return found


def spent(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds that each part took between two readings, the largest first.

    A part that has fewer in the second reading lost a process meanwhile; nobody knows what that one took.
    """
    differences = {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}
    return dict(sorted(((name, s) for name, s in differences.items() if s > 0), key=lambda item: -item[1]))


def count_statements(url: str) -> int:
    """Return how many statements Postgres has executed, those that begin and end transactions among them.

    Args:
        url: A database of a server that counts (`benchmarks.counted_service.count_from_now_on`).
    """
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(_COUNT).fetchone()
    return int(row[0]) if row else 0
