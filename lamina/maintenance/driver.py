"""Drives a run of a job from its order to its end: alone on its area, cut into partitions."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from lamina.core.ports import Clock
from lamina.core.runs import Order, Run, RunState, error_line
from lamina.errors import Conflict, Unavailable
from lamina.maintenance.worker import JobLimits
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.job_runs import JobRuns, job_lock

logger = logging.getLogger(__name__)
# Runs the workers of these partitions to their end, a bounded number at a time.
FanOut = Callable[[Run, Sequence[int]], Awaitable[None]]
# A run whose store or model is unavailable is tried again for so long after its order.
RETRIED = timedelta(days=1)


class Driver:
    """Drives runs of one job.

    Args:
        url: Postgres, for the lock.
        pool: Connections to Postgres.
        limits: The units of the job.
        fan_out: Runs its workers.
        partitions: Most partitions of a run.
        undo_window: Time in which a run can be undone.
        clock: The time of day.
    """

    def __init__(
        self,
        url: str,
        pool: Pool,
        limits: JobLimits,
        fan_out: FanOut,
        *,
        partitions: int,
        undo_window: timedelta,
        clock: Clock,
    ) -> None:
        self._url = url
        self._runs = JobRuns(pool)
        self._limits = limits
        self._fan_out = fan_out
        self._partitions = partitions
        self._undo_window = undo_window
        self._clock = clock

    async def drive(self, id_: UUID) -> Run:
        """Drive a queued or interrupted run to its end, from the cursors of its partitions.

        Raises:
            NotFound: If there is no such run.
            Conflict: If it has ended, or another run of the job works on a part of the same area.
        """
        run = await self._runs.get(id_)
        async with self._alone(run.order):
            await self._run(run)
        return await self._runs.get(id_)

    async def start(self, order: Order, on_begin: Callable[[Run], None] | None = None) -> Run:
        """Drive an order to its end: resume an interrupted run of the same order by its settings, or start a new one.

        Args:
            order: The order.
            on_begin: Called with the run before it begins.

        Raises:
            Conflict: If another run of the job works on a part of the same area.
        """
        async with self._alone(order):
            await self._runs.end_superseded(order)
            run = await self._runs.unfinished(order) or await self._runs.get(await self._runs.add(order))
            if on_begin is not None:
                on_begin(run)
            await self._run(run)
        return await self._runs.get(run.id)

    @asynccontextmanager
    async def _alone(self, order: Order) -> AsyncIterator[None]:
        async with job_lock(self._url, order) as is_ours:
            if not is_ours:
                raise Conflict(f"another run of {order.job} works on {order.area}; wait for its end")
            await self._runs.forget(self._clock() - self._undo_window)
            yield

    async def _run(self, run: Run) -> None:
        attempt = run.attempt
        try:
            units = await self._runs.count_units(run.order, self._limits.units)
            most = max(1, min(self._partitions, units))
            partitions, attempt = await self._runs.begin(run.id, units=units, partitions=most)
            await self._fan_out(await self._runs.get(run.id), range(partitions))
        except Conflict:
            raise  # It has ended already.
        except Unavailable:
            if self._clock() - run.created_at > RETRIED:
                reason = "what it needs was not available for a day"
                await self._runs.finish(run.id, RunState.FAILED, reason, attempt=attempt)
            raise
        except Exception as error:
            logger.exception("run %s of %s failed", run.id, run.order.job)
            await self._runs.finish(run.id, RunState.FAILED, error_line(error), attempt=attempt)
            raise
        ended = await self._runs.get(run.id)
        await self._runs.finish(run.id, RunState.STOPPED if ended.held else RunState.DONE, attempt=attempt)


def fan_out_over(work: Callable[[Run, int], Awaitable[None]], parallelism: int) -> FanOut:
    """Return a fan-out that awaits ``work`` for each partition, ``parallelism`` of them at a time.

    All workers end before the first error is raised: none still works on a run that has failed.
    """

    async def fan_out(run: Run, partitions: Sequence[int]) -> None:
        slots = asyncio.Semaphore(parallelism)

        async def one(partition: int) -> None:
            async with slots:
                await work(run, partition)

        for outcome in await asyncio.gather(*map(one, partitions), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    return fan_out
