"""From an order to its end: one run of a job on an area at a time, cut into partitions."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from lamina.core.ports import Clock
from lamina.core.runs import Order, Run, RunState, told_error
from lamina.errors import Conflict, Unavailable
from lamina.maintenance.worker import Limits
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.job_runs import JobRuns, job_lock

logger = logging.getLogger(__name__)
FanOut = Callable[[Run, Sequence[int]], Awaitable[None]]
"""Has workers bring these partitions of a run to their end, a bounded number at the same time."""
RETRIED = timedelta(days=1)
"""How long after its order a run goes on that something unavailable stopped."""


def untold(run: Run) -> None:
    """Tell nobody that a run begins."""


class Driver:
    """Drives runs of one job.

    Args:
        url: Postgres, for the lock.
        pool: Connections to Postgres.
        limits: What the job is cut into.
        fan_out: Where its workers are.
        partitions: Most partitions of a run.
        undo_window: How long a run can be undone.
        clock: The time of day.
    """

    def __init__(
        self,
        url: str,
        pool: Pool,
        limits: Limits,
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
        """Bring a queued or an interrupted run to its end, from where it stands.

        Raises:
            NotFound: If there is no such run.
            Conflict: If it has ended, or another run of the job works on a part of the same area.
        """
        run = await self._runs.get(id_)
        async with self._alone(run.order):
            await self._to_its_end(run)
        return await self._runs.get(id_)

    async def start(self, order: Order, on_begin: Callable[[Run], None] = untold) -> Run:
        """Bring what is ordered to its end: a run of the same that was interrupted, or else a new one.

        Args:
            order: What to do.
            on_begin: Told which run it is.

        Raises:
            Conflict: If another run of the job works on a part of the same area.
        """
        async with self._alone(order):
            run = await self._runs.unfinished(order) or await self._runs.get(await self._runs.add(order))
            on_begin(run)
            await self._to_its_end(run)
        return await self._runs.get(run.id)

    @asynccontextmanager
    async def _alone(self, order: Order) -> AsyncIterator[None]:
        async with job_lock(self._url, order) as is_ours:
            if not is_ours:
                raise Conflict(f"another run of {order.job} works on {order.area}; wait for its end")
            await self._runs.forget(self._clock() - self._undo_window)
            yield

    async def _to_its_end(self, run: Run) -> None:
        try:
            await self._through(run)
        except Conflict:
            raise  # It has ended already.
        except Unavailable:
            if self._clock() - run.created_at > RETRIED:
                await self._runs.finish(run.id, RunState.FAILED, "what it needs was not available for a day")
            raise
        except Exception as error:
            logger.exception("run %s of %s failed", run.id, run.order.job)
            await self._runs.finish(run.id, RunState.FAILED, told_error(error))
            raise
        ended = await self._runs.get(run.id)
        await self._runs.finish(run.id, RunState.STOPPED if ended.held else RunState.DONE)

    async def _through(self, run: Run) -> None:
        units = await self._runs.count_units(run.order, self._limits.units)
        partitions = await self._runs.begin(run.id, units=units, partitions=max(1, min(self._partitions, units)))
        await self._fan_out(await self._runs.get(run.id), range(partitions))


def fan_out_over(work: Callable[[Run, int], Awaitable[None]], parallelism: int) -> FanOut:
    """Return a fan-out whose workers are tasks of this process, or what they start elsewhere.

    All come to their end before the first error is told: nobody works on a run that has failed.
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
