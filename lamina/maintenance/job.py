"""The protocol of a job: it decides page by page, and acts on each decision in a transaction."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable
from uuid import UUID

from lamina.core.areas import Area
from lamina.core.runs import RunCounts
from lamina.maintenance.row_writer import RowWriter
from lamina.stores.postgres.connection import Connection

Plan = TypeVar("Plan")
# The start of a page, in JSON of the job's own; ``None`` is the beginning of a unit.
PageCursor = dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Page(Generic[Plan]):
    """One page of a unit, decided.

    Args:
        plan: The changes to make; ``None`` if there are none.
        after: The start of the next page; ``None`` if this is the last.
        seen: Rows looked at.
        planned: Rows that the plan changes.
        removals: Of these, rows that leave every search.
        problems: Failures, in words; the next run decides their rows again.
        leaving: The rows of ``removals``, where the job tells them apart (:class:`CountsAhead`).
    """

    plan: Plan | None
    after: PageCursor = None
    seen: int = 0
    planned: int = 0
    removals: int = 0
    problems: tuple[str, ...] = ()
    leaving: frozenset[UUID] = frozenset()


class Job(Protocol[Plan]):
    """A job, cut into units (namespaces, or tenants) and these into pages."""

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[Plan]:
        """Read one page and decide; changes nothing, and may take long."""
        ...

    async def act(self, writer: RowWriter, area: Area, plan: Plan) -> RunCounts:
        """Carry the plan out in one transaction, where the rows are still as they were when it was decided.

        Returns:
            The numbers of rows ``changed``, and of those among them ``removed``.
        """
        ...


@runtime_checkable
class Removes(Protocol):
    """A job that takes rows out of every search; a unit that would lose too large a share of its rows is skipped."""

    async def size(self, area: Area) -> int:
        """Count the rows of the unit, of which the removals are a share."""
        ...


@runtime_checkable
class CountsAhead(Protocol[Plan]):
    """A job whose pages, decided ahead, must leave out the rows that earlier pages remove."""

    async def decide_without(
        self, area: Area, after: PageCursor, moment: datetime, gone: Collection[UUID]
    ) -> Page[Plan]:
        """Decide a page as :meth:`Job.decide` does once these rows are gone."""
        ...


@runtime_checkable
class Previews(Protocol):
    """A job that asks a model to decide, and can count the due rows without it."""

    async def preview(self, area: Area, after: PageCursor, moment: datetime) -> Page[None]:
        """Count the page of :meth:`Job.decide`, as far as that is possible without the model."""
        ...


@runtime_checkable
class Undoes(Protocol):
    """A job with changes that the journal does not hold."""

    async def undo(self, connection: Connection, run: UUID) -> RunCounts:
        """Undo some of these changes of a run, in one transaction; return their number, 0 when all are undone."""
        ...
