"""Runs of maintenance jobs: area, progress and result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, get_args
from uuid import UUID

from lamina.core.areas import Area

JobName = Literal[
    "sweep",
    "decay",
    "dedup",
    "entities",
    "edges",
    "summaries",
    "compaction",
    "consolidation",
    "learning",
    "archival",
    "caches",
    "audit",
    "reembed",
]
JOB_NAMES: tuple[JobName, ...] = get_args(JobName)
NOT_UNDONE: frozenset[JobName] = frozenset({"learning", "caches", "audit"})
"""Jobs whose runs cannot be undone."""
# Where a partition stands: the ids of a unit, and ``after``, which the job reads; JSON.
Cursor = dict[str, Any]


BY_SCHEDULE = "schedule"
MOST_ERROR_CHARS = 500


class RunState(StrEnum):
    """State of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    UNDOING = "undoing"
    UNDONE = "undone"


OPEN = (RunState.QUEUED, RunState.RUNNING, RunState.UNDOING)


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How much a run saw and did.

    Args:
        units: Scopes (of some jobs: tenants) that are finished.
        seen: Rows looked at.
        planned: Rows it decided to change.
        changed: Rows it changed: at most those planned, for others may have changed one first.
        removed: Of these, rows that left every search.
    """

    units: int = 0
    seen: int = 0
    planned: int = 0
    changed: int = 0
    removed: int = 0

    def __add__(self, other: "RunCounts") -> "RunCounts":
        return RunCounts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class SkippedScope:
    """A scope that a run left alone, because it would have removed too much of it.

    Args:
        size: Rows the scope has.
        removals: Rows that would have gone.
    """

    tenant: str
    workspace: str | None
    namespace: str | None
    size: int
    removals: int


@dataclass(frozen=True, slots=True)
class Order:
    """An order to run a job.

    Args:
        job: Which job.
        area: On what.
        is_dry_run: Whether it only tells what it would do.
        is_forced: Whether it may remove more of a scope than otherwise.
        requested_by: Who: ``cli``, ``schedule`` or ``api``.
        moment: The time from which it decides, in UTC.
        settings_digest: Of the settings that it works by; ``None``: those of the service, whichever it has then.
    """

    job: JobName
    area: Area
    moment: datetime
    is_dry_run: bool = False
    is_forced: bool = False
    requested_by: str = "cli"
    settings_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A run as Postgres holds it.

    Args:
        plan: ``units`` and ``partitions`` that it is cut into, and the number of its last ``attempt``.
        problems: What could not be done, and is tried again by the next run.
        undone: Once it is undone: rows it had changed (``seen``), and those that are as they were (``changed``).
    """

    id: UUID
    order: Order
    state: RunState
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    undone_at: datetime | None = None
    error: str | None = None
    plan: Mapping[str, int] = field(default_factory=dict)
    counts: RunCounts = RunCounts()
    held: tuple[SkippedScope, ...] = ()
    problems: tuple[str, ...] = ()
    undone: RunCounts | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether something is still to happen."""
        return self.state in OPEN

    @property
    def attempt(self) -> int:
        """Return how often it was begun."""
        return self.plan.get("attempt", 0)

    @property
    def duration(self) -> timedelta | None:
        """Return how long it took, once it is finished."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at


@dataclass(frozen=True, slots=True)
class Partition:
    """How far a run is in one partition."""

    number: int
    cursor: Cursor | None
    is_done: bool


def error_line(error: BaseException) -> str:
    """Return an error in one line, as the row of a run keeps it; of a group, its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:MOST_ERROR_CHARS]
