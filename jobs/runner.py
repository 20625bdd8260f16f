"""Runs over the cluster: a Ray task for each partition, a bounded number at the same time."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

import ray
from ray.exceptions import RayTaskError

from actors.instruments import process_meter
from jobs.projections import audits_of
from lamina.core.metrics import JOB_ENDS, JOB_ROWS, JOB_SECONDS, Meter
from lamina.core.runs import JobName, Order, Run, RunCounts, RunState, error_line
from lamina.errors import LaminaError
from lamina.maintenance.driver import FanOut, fan_out_over
from lamina.maintenance.undo import Undo
from lamina.settings import MIB, JobsSettings, Settings
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.job_runs import JobRuns
from lamina.wiring.jobs import Tools, build_driver, build_job_embedder, build_undo, build_worker, with_thresholds_of
from lamina.wiring.stores import build_pool, utc_now

TRIES = 5
"""How often a partition is begun whose worker died; it goes on where it stands."""
# Ray gives a process to the next task or actor with the same environment: one that stands back must become no replica.
OWN_PROCESSES = {"env_vars": {"LAMINA_JOB_WORKER": "1"}}
# Ray's own processes stand back already, and one that has been given more takes none of it back without privileges.
NICENESS = os.getpriority(os.PRIO_PROCESS, 0)
LOWEST = 19
Result = TypeVar("Result")


def over_ray(settings: Settings) -> FanOut:
    """Return a fan-out whose workers are Ray tasks."""
    task: Any = ray.remote(max_retries=TRIES, runtime_env=OWN_PROCESSES, **reserved(settings.jobs))(work)

    async def one(run: Run, partition: int) -> None:
        await _cause_of(task.remote(settings, run, partition))

    return fan_out_over(one, settings.jobs.parallelism)


def reserved(limits: JobsSettings) -> dict[str, Any]:
    """Return what a worker reserves: where it runs, and how many of them a machine bears."""
    return {
        "num_cpus": limits.task_cpus,
        "memory": limits.task_memory_mb * MIB,
        "resources": limits.task_resources,
    }


async def _cause_of(result: Awaitable[None]) -> None:
    try:
        await result
    except RayTaskError as error:
        raise error.cause from error


def work(settings: Settings, run: Run, partition: int) -> None:
    """Bring one partition to its end, in a process of its own that stands back for everything else."""
    os.setpriority(os.PRIO_PROCESS, 0, min(LOWEST, NICENESS + settings.jobs.nice))

    async def act(pool: Pool) -> None:
        chosen = await with_thresholds_of(settings, pool)
        await build_worker(chosen, pool, run.order.job, _tools(chosen)).work(run, partition)

    of_this_process().run(with_pool(settings, act))


@cache
def of_this_process() -> asyncio.Runner:
    """Return the event loop in which a process does all its work: what it keeps between tasks belongs to one."""
    return asyncio.Runner()


def _tools(settings: Settings) -> Tools:
    return Tools(build_job_embedder(settings), audits_of(settings))


async def with_pool(settings: Settings, act: Callable[[Pool], Awaitable[Result]]) -> Result:
    """Return what ``act`` makes of connections, which are closed afterwards."""
    async with build_pool(settings) as pool:
        return await act(pool)


async def start(settings: Settings, order: Order, on_begin: Callable[[Run], None] | None = None) -> Run:
    """Bring what is ordered to its end, on the cluster; see lamina.maintenance.driver."""

    async def act(pool: Pool) -> Run:
        driver = build_driver(settings, pool, order.job, over_ray(settings))
        return await measured(process_meter(), order.job, RunCounts(), driver.start(order, on_begin))

    return await with_pool(settings, act)


async def measured(meter: Meter, job: JobName, before: RunCounts, driving: Awaitable[Run]) -> Run:
    """Return the run that is driven; record how it ended, how long it took and how much more it changed."""
    began = time.monotonic()
    try:
        run = await driving
    except Exception:
        meter.record(JOB_ENDS, job_name=job, outcome=RunState.FAILED)
        raise
    meter.record(JOB_ENDS, job_name=job, outcome=run.state)
    meter.record(JOB_SECONDS, time.monotonic() - began, job_name=job)
    meter.record(JOB_ROWS, run.counts.changed - before.changed, job_name=job)
    return run


async def go_on(settings: Settings, id_: UUID) -> None:
    """Bring a run to its end that is queued, was interrupted, or is to be undone."""

    async def act(pool: Pool) -> None:
        run = await JobRuns(pool).get(id_)
        if run.state is RunState.UNDOING:
            await (await _undo_of(settings, pool, run)).undo(id_, utc_now())
        else:
            driver = build_driver(settings, pool, run.order.job, over_ray(settings))
            await measured(process_meter(), run.order.job, run.counts, driver.drive(id_))

    await with_pool(settings, act)


async def _undo_of(settings: Settings, pool: Pool, run: Run) -> Undo:
    """Build what takes a run back; if that cannot be built, the run does not wait for it."""
    try:
        return build_undo(settings, pool, run.order.job, _tools(settings))
    except LaminaError as error:
        await JobRuns(pool).finish(run.id, RunState.FAILED, f"undo: {error_line(error)}")
        raise


async def undo(settings: Settings, id_: UUID) -> RunCounts:
    """Take a run back."""

    async def act(pool: Pool) -> RunCounts:
        run = await JobRuns(pool).get(id_)
        return await build_undo(settings, pool, run.order.job, _tools(settings)).undo(id_, utc_now())

    return await with_pool(settings, act)
