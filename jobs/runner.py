"""Runs on the cluster: a Ray task for each partition, at most ``jobs.parallelism`` at the same time."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any
from uuid import UUID

import ray
from ray.exceptions import RayTaskError

from actors import logs
from actors.instruments import process_meter
from jobs.projections import build_audits
from lamina.core.metrics import JOB_ENDS, JOB_ROWS, JOB_SECONDS, Meter
from lamina.core.runs import JobName, Order, Run, RunCounts, RunState, error_line
from lamina.errors import LaminaError
from lamina.host.private_files import deny_others
from lamina.maintenance.driver import FanOut, fan_out_over
from lamina.maintenance.undo import Undo
from lamina.settings.jobs import JobsSettings
from lamina.settings.loading import Settings
from lamina.settings.section import MIB
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.job_runs import JobRuns
from lamina.wiring.jobs import Tools, build_driver, build_job_embedder, build_undo, build_worker, with_thresholds_of
from lamina.wiring.stores import build_pool, utc_now

# Retries of a partition whose worker died; each goes on at the page where the last one stopped.
TRIES = 5
# Ray reuses a process for any task or actor with the same environment: a niced one must not become a replica.
OWN_PROCESSES = {"env_vars": {"LAMINA_JOB_WORKER": "1"}}
# Read at import, before the first task raises it: a reused process would add to it with each task, and lowering it
# again takes privileges.
NICENESS = os.getpriority(os.PRIO_PROCESS, 0)
LOWEST = 19


def over_ray(settings: Settings) -> FanOut:
    """Return a fan-out whose workers are Ray tasks."""
    task: Any = ray.remote(max_retries=TRIES, runtime_env=OWN_PROCESSES, **worker_options(settings.jobs))(work)

    async def work_remotely(run: Run, partition: int) -> None:
        try:
            await task.remote(settings, run, partition)
        except RayTaskError as error:
            raise error.cause from error

    return fan_out_over(work_remotely, settings.jobs.parallelism)


def worker_options(limits: JobsSettings) -> dict[str, Any]:
    """Return the resources of a worker, which decide where it runs and how many a machine runs at a time."""
    return {
        "num_cpus": limits.task_cpus,
        "memory": limits.task_memory_mb * MIB,
        "resources": limits.task_resources,
    }


def work(settings: Settings, run: Run, partition: int) -> None:
    """Work through one partition, in a process of its own with a lower priority than the service's."""
    deny_others()
    logs.install(settings.logs)
    os.setpriority(os.PRIO_PROCESS, 0, min(LOWEST, NICENESS + settings.jobs.nice))
    process_loop().run(_work(settings, run, partition))


async def _work(settings: Settings, run: Run, partition: int) -> None:
    async with build_pool(settings) as pool:
        chosen = await with_thresholds_of(settings, pool)
        await build_worker(chosen, pool, run.order.job, _tools(chosen)).work(run, partition)


@cache
def process_loop() -> asyncio.Runner:
    """Return the process's only event loop: the clients that it keeps between tasks are bound to one."""
    return asyncio.Runner()


def _tools(settings: Settings) -> Tools:
    return Tools(build_job_embedder(settings), build_audits(settings))


async def start(settings: Settings, order: Order, on_begin: Callable[[Run], None] | None = None) -> Run:
    """Drive an ordered run to its end on the cluster; see lamina.maintenance.driver."""
    async with build_pool(settings) as pool:
        driver = build_driver(settings, pool, order.job, over_ray(settings))
        return await with_metrics(process_meter(), order.job, RunCounts(), driver.start(order, on_begin))


async def with_metrics(meter: Meter, job: JobName, before: RunCounts, driving: Awaitable[Run]) -> Run:
    """Await a run; record its end, its duration, and the rows that it changed beyond those of ``before``."""
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


async def resume(settings: Settings, id_: UUID) -> None:
    """Drive a run to its end that is queued or was interrupted, or undo it if that was requested."""
    async with build_pool(settings) as pool:
        run = await JobRuns(pool).get(id_)
        if run.state is RunState.UNDOING:
            await (await _undo_of(settings, pool, run)).undo(id_, utc_now())
        else:
            driver = build_driver(settings, pool, run.order.job, over_ray(settings))
            await with_metrics(process_meter(), run.order.job, run.counts, driver.drive(id_))


async def _undo_of(settings: Settings, pool: Pool, run: Run) -> Undo:
    """Build the undo of a run; mark the run as failed if its job cannot be built."""
    try:
        return build_undo(settings, pool, run.order.job, _tools(settings))
    except LaminaError as error:
        await JobRuns(pool).finish(run.id, RunState.FAILED, f"undo: {error_line(error)}")
        raise


async def undo(settings: Settings, id_: UUID) -> Run:
    """Undo a run; return it."""
    async with build_pool(settings) as pool:
        run = await JobRuns(pool).get(id_)
        await build_undo(settings, pool, run.order.job, _tools(settings)).undo(id_, utc_now())
        return await JobRuns(pool).get(id_)
