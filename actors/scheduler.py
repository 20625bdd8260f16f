"""The scheduler: a detached actor that orders jobs at their times and starts ordered ones."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, cast
from uuid import UUID

import ray
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from ray.actor import ActorHandle

from actors import logs
from actors.directory import actor_options, retire
from actors.instruments import process_meter, watch
from lamina.aio.cancelling import cancel_all
from lamina.aio.repeating import repeat
from lamina.core.areas import Area
from lamina.core.metrics import JOB_ORDERS, CallOutcome
from lamina.core.runs import BY_SCHEDULE, JobName, Order, Run, RunState
from lamina.errors import LaminaError, describe_error
from lamina.host.private_files import deny_others
from lamina.maintenance.driver import RETRIED
from lamina.maintenance.schedule import schedules
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import listen
from lamina.stores.postgres.generations import lacks_vectors
from lamina.stores.postgres.job_runs import CHANNEL, INTERRUPTED, JobRuns, job_lock
from lamina.wiring.jobs import jobs_edition, jobs_namespace, settings_digest
from lamina.wiring.stores import build_pool, session_url, utc_now

logger = logging.getLogger(__name__)
# Seconds between looks at the queue without a notification: for runs whose driver died.
LOOK_S = 5.0
# Runs that are driven at the same time; the others wait in the queue.
MOST_DRIVEN = 4
# Seconds after which a stopped run is started again.
RETRY_S = 15.0
Launch = Callable[[Settings, UUID], Awaitable[None]]


class Scheduler:
    """Orders jobs by their schedule, and starts queued and interrupted runs, but for those by other settings.

    Its whole state stands in Postgres: after a restart it goes on, and orders once the jobs that were due
    meanwhile. Two of them do no harm, since a run is driven under a lock.

    It begins in its constructor, in a running event loop: there Ray makes async actors, and makes them again.

    Args:
        settings: The schedule, and where Postgres is.
    """

    def __init__(self, settings: Settings) -> None:
        deny_others()
        self._settings = settings
        self._digest = settings_digest(settings)
        logs.install(settings.logs)
        self._launch = _launcher(settings.jobs.launcher)
        self._pool = build_pool(settings)
        self._meter = process_meter()
        watch(self, "scheduler", self._meter, self._pool)
        self._runs = JobRuns(self._pool)
        self._schedules = schedules(settings.jobs.schedule) if settings.jobs.is_scheduled else {}
        self._ordering = asyncio.Lock()
        self._started: dict[UUID, asyncio.Task[None]] = {}
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """End; runs that were started go on without it."""
        await cancel_all([self._following])  # Then it starts no run any more.
        await cancel_all(self._started.values())
        await self._pool.close()

    async def _follow(self) -> None:
        times = AsyncIOScheduler(timezone="UTC")
        for job, schedule in self._schedules.items():
            # However late: an order that an outage or a busy loop has delayed is made once, not dropped.
            times.add_job(self.order, schedule.trigger(), args=[job], coalesce=True, misfire_grace_time=None)
        times.start()
        try:
            await repeat(self._work_off, "the queue of jobs does not answer, retrying", every_s=LOOK_S)
        finally:
            times.shutdown(wait=False)

    async def _catch_up(self) -> None:
        """Order once each job that was due since its last run; one that never ran waits for its time.

        Memories that were written while one model took another's place are embedded at once, for searches do not find
        them.
        """
        now = utc_now()
        for job, schedule in self._schedules.items():
            last = await self._runs.last_at(job, BY_SCHEDULE)
            if last is not None and schedule.is_missed(last, now):
                await self.order(job)
        if "reembed" in self._schedules and await lacks_vectors(self._pool):
            await self.order("reembed")

    async def order(self, job: JobName) -> None:
        """Order a job on everything, unless its last order still waits or runs."""
        order = Order(job, Area(), moment=utc_now(), requested_by=BY_SCHEDULE)
        try:
            async with self._ordering:
                if await self._runs.unfinished(order) is None:
                    await self._runs.add(order)
                    self._meter.record(JOB_ORDERS, job_name=job, outcome=CallOutcome.OK)
        except LaminaError as error:
            self._meter.record(JOB_ORDERS, job_name=job, outcome=CallOutcome.FAILED)
            logger.warning("%s is not ordered until Postgres answers again: %s", job, error)

    async def _work_off(self) -> None:
        async with await listen(session_url(self._settings), CHANNEL, name="lamina scheduler") as connection:
            # At each connection, since orders may have come due during an outage.
            await self._catch_up()
            while True:
                await self._start_open()
                async for _ in connection.notifies(timeout=LOOK_S, stop_after=1):
                    break

    async def _start_open(self) -> None:
        self._started = {id_: task for id_, task in self._started.items() if not task.done()}
        for run in await self._runs.open():
            if len(self._started) == MOST_DRIVEN:
                return
            if run.id in self._started or not await self._is_free(run):
                continue
            if run.state is RunState.UNDOING or run.order.settings_digest in (None, self._digest):
                self._started[run.id] = asyncio.create_task(self._start(run.id))
            elif utc_now() - run.created_at > RETRIED:
                # Since the look at the queue its own driver may have come back.
                await self._runs.finish(run.id, RunState.FAILED, INTERRUPTED, attempt=run.attempt)

    async def _is_free(self, run: Run) -> bool:
        # Free again at once: it only tells whether a driver of another process works on the run, or has died.
        async with job_lock(session_url(self._settings), run.order) as is_free:
            return is_free

    async def _start(self, id_: UUID) -> None:
        """Start one run; if another driver holds its lock, it is tried again."""
        try:
            await self._launch(self._settings, id_)
        except Exception as error:  # noqa: BLE001 - the run's row says how it ended
            logger.info("run %s: %s", id_, describe_error(error))
            await asyncio.sleep(RETRY_S)


def _launcher(path: str) -> Launch:
    module, _, name = path.partition(":")
    found: Launch = getattr(import_module(module), name)
    return found


def open_scheduler(settings: Settings) -> "ActorHandle[Scheduler]":
    """Return the scheduler of the database, made if there is none; end those of other settings.

    Raises:
        Misconfigured: If the schedule cannot be read.
    """
    # Here, where the caller sees the error: in the actor's constructor it would only end the actor.
    schedules(settings.jobs.schedule)
    namespace, name = jobs_namespace(settings), f"scheduler-{jobs_edition(settings)}"
    options = actor_options(name, namespace, settings.jobs.driver_resources)
    remote: Any = ray.remote(Scheduler)
    actor = cast("ActorHandle[Scheduler]", remote.options(**options).remote(settings))
    retire(namespace, {name})
    return actor
