"""The worker on one partition of a run: it applies each page of each unit once."""

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from lamina.core.areas import Area
from lamina.core.runs import Cursor, Partition, Run, RunCounts, RunState, SkippedScope, error_line
from lamina.errors import Misconfigured, TextRefused, Unavailable
from lamina.maintenance.job import CountsAhead, Job, Page, PageCursor, Previews, Removes
from lamina.maintenance.row_writer import RowWriter
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.job_runs import JobRuns, advance_partition, count_changes

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The units of a job, and how much of a unit it may remove.

    Args:
        units: ``namespaces`` or ``tenants``.
        most_removed: Share of a unit's rows, 0..1; a unit that would lose more is skipped.
    """

    units: str
    most_removed: float


class Overtaken(Exception):
    """Another worker has advanced the partition meanwhile."""


class Worker:
    """Works on partitions of a run.

    Args:
        pool: Connections to Postgres.
        job: Decides and acts.
        limits: The kind of units, and the share of a unit from which it is skipped.
    """

    def __init__(self, pool: Pool, job: Job[Any], limits: JobLimits) -> None:
        self._pool = pool
        self._runs = JobRuns(pool)
        self._job = job
        self._limits = limits

    async def work(self, run: Run, number: int) -> None:
        """Work through one partition from its cursor; return at once if it has ended.

        Two workers on one partition do no harm: the first applies a page, and the other goes on after it.
        """
        while True:
            partition = await self._runs.partition(run.id, number)
            if partition.is_done:
                return
            try:
                await self._work_units(run, partition)
            except Overtaken:
                if (await self._runs.get(run.id)).state is not RunState.RUNNING:
                    return

    async def _work_units(self, run: Run, partition: Partition) -> None:
        at = partition
        async for area, after in self._units(run, partition):
            try:
                at = await self._work_unit(run, at, area, after)
            except TextRefused as error:  # Of a model that takes others, as the job has tried.
                at = await self._skip_failed(run, partition.number, area, error)
            except (Overtaken, Unavailable, Misconfigured):
                raise
            except Exception as error:
                logger.exception("%s of run %s failed at %s", run.order.job, run.id, area)
                at = await self._skip_failed(run, partition.number, area, error)
        await self._advance(run, at, at.cursor, RunCounts(), is_done=True)

    async def _skip_failed(self, run: Run, number: int, area: Area, error: Exception) -> Partition:
        """Record the error of a unit, so that the others are still worked on."""
        at = await self._runs.partition(run.id, number)
        problem = f"{area}: {error_line(error)}"
        return await self._advance(run, at, _cursor(area, None), RunCounts(units=1), problems=(problem,))

    async def _units(self, run: Run, partition: Partition) -> AsyncIterator[tuple[Area, PageCursor]]:
        """Yield the unit that was begun, with its next page, and all units after it."""
        place = partition.number, run.plan["partitions"]
        last, after = _place(partition.cursor)
        if last is not None and after is not None:
            yield last, after
        while units := await self._runs.units(run.order, self._limits.units, place, last):
            for area in units:
                yield area, None
            last = units[-1]

    async def _work_unit(self, run: Run, at: Partition, area: Area, after: PageCursor) -> Partition:
        first = None
        if after is None and isinstance(self._job, Removes) and not run.order.is_forced:
            removals, first = await self._look_ahead(run, area)
            size = await self._job.size(area) if removals else 0
            if removals > self._limits.most_removed * size:
                skipped = SkippedScope(**area.ids(), size=size, removals=removals)  # type: ignore[arg-type]
                return await self._advance(run, at, _cursor(area, None), RunCounts(units=1), held=(skipped,))
        while True:
            page, first = first or await self._decide(run, area, after), None
            at = await self._apply(run, at, area, page)
            after = page.after
            if after is None:
                return at

    async def _look_ahead(self, run: Run, area: Area) -> tuple[int, Page[Any]]:
        """Count the rows of the unit that the job would remove; return its first page too, which may have cost a model.

        Later pages are decided again, after those before them are applied.
        """
        first = page = await self._decide(run, area, None)
        removals, gone = page.removals, set(page.leaving)
        while page.after is not None:
            if isinstance(self._job, CountsAhead):
                page = await self._job.decide_without(area, page.after, run.order.moment, gone)
            else:
                page = await self._decide(run, area, page.after)
            removals += page.removals
            gone |= page.leaving
        return removals, first

    async def _decide(self, run: Run, area: Area, after: PageCursor) -> Page[Any]:
        if run.order.is_dry_run and isinstance(self._job, Previews):
            return await self._job.preview(area, after, run.order.moment)
        return await self._job.decide(area, after, run.order.moment)

    async def _apply(self, run: Run, at: Partition, area: Area, page: Page[Any]) -> Partition:
        cursor = _cursor(area, page.after)
        counts = RunCounts(units=int(page.after is None), seen=page.seen, planned=page.planned)
        if run.order.is_dry_run or page.plan is None:
            removed = page.removals if run.order.is_dry_run else 0
            return await self._advance(run, at, cursor, replace(counts, removed=removed), problems=page.problems)

        async def act(connection: Connection) -> None:
            # First: it locks the partition, so that of two workers only one applies the page.
            await _advance_cursor(connection, run.id, at, cursor, counts, problems=page.problems)
            writer = RowWriter(connection, run.id, run.order.moment)
            acted = await self._job.act(writer, area, page.plan)
            await count_changes(connection, run.id, at, acted)
            await writer.finish()

        await in_transaction(self._pool, act)
        return replace(at, cursor=cursor)

    async def _advance(
        self, run: Run, at: Partition, cursor: Cursor | None, counts: RunCounts, **events: Any
    ) -> Partition:
        async def act(connection: Connection) -> None:
            await _advance_cursor(connection, run.id, at, cursor, counts, **events)
            await count_changes(connection, run.id, at, counts)

        await in_transaction(self._pool, act)
        return replace(at, cursor=cursor)


async def _advance_cursor(
    connection: Connection, run: UUID, at: Partition, cursor: Cursor | None, counts: RunCounts, **events: Any
) -> None:
    if not await advance_partition(connection, run, at, cursor, counts, **events):
        raise Overtaken


def _cursor(area: Area, after: PageCursor) -> Cursor:
    return {**area.ids(), "after": after}


def _place(cursor: Cursor | None) -> tuple[Area | None, PageCursor]:
    if cursor is None:
        return None, None
    return Area(cursor["tenant"], cursor["workspace"], cursor["namespace"]), cursor["after"]
