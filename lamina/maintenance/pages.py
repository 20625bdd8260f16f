"""What a job is to the runner: pages that it decides, and changes that it makes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable
from uuid import UUID

from lamina.core.areas import Area
from lamina.core.runs import Counts
from lamina.maintenance.changes import Changes
from lamina.stores.postgres.connection import Connection

Plan = TypeVar("Plan")
After = dict[str, Any] | None
"""Where a page begins, as the job itself wrote it; ``None`` is the beginning of a unit. JSON."""


@dataclass(frozen=True, slots=True)
class Page(Generic[Plan]):
    """What one page of a unit comes to.

    Args:
        plan: What to do; ``None`` if nothing.
        after: Where the next page begins; ``None`` if this was the last.
        seen: Rows looked at.
        planned: Rows that the plan changes.
        removals: Of these, rows that leave every search.
        problems: What could not be decided and is left for the next run, in words.
    """

    plan: Plan | None
    after: After = None
    seen: int = 0
    planned: int = 0
    removals: int = 0
    problems: tuple[str, ...] = ()


class Job(Protocol[Plan]):
    """A job, cut into units (namespaces, or tenants) and these into pages."""

    async def decide(self, area: Area, after: After, moment: datetime) -> Page[Plan]:
        """Read one page and decide; changes nothing, and may take long."""
        ...

    async def act(self, changes: Changes, area: Area, plan: Plan) -> Counts:
        """Carry the plan out where the rows still are as they were, in one transaction.

        Returns:
            How many rows ``changed``, and how many of them were ``removed``.
        """
        ...

    async def size(self, area: Area) -> int:
        """Return of how many rows the unit's removals are a share."""
        ...


@runtime_checkable
class Previews(Protocol):
    """A job whose decisions ask a model: it can tell what is due without."""

    async def preview(self, area: Area, after: After, moment: datetime) -> Page[None]:
        """Return what :meth:`Job.decide` would come to, as far as that is known before a model is asked."""
        ...


@runtime_checkable
class Undoes(Protocol):
    """A job that changes more than rows that the journal keeps."""

    async def undo(self, connection: Connection, run: UUID) -> Counts:
        """Take some of the rest of a run back, in one transaction; return what, nothing when all is done."""
        ...
