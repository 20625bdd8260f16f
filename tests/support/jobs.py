"""Maintenance in this process: the same runs as on a cluster, over tasks instead of machines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from lamina.areas import Area
from lamina.maintenance.driving import Driver, in_process
from lamina.maintenance.pages import Job
from lamina.maintenance.working import Worker
from lamina.runs import Counts, JobName, Order, Run
from lamina.wiring import build_driver, build_undo, build_worker, job_limits
from tests.support.application import Application


def in_days(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def driver_of(app: Application, name: JobName, job: Job[Any] | None = None) -> Driver:
    """Return the driver of a job's runs, of a double's if one is given."""
    worker = (
        build_worker(app.settings, app.pool, name, app.services.recorder._embedder)  # type: ignore[arg-type]
        if job is None
        else Worker(app.pool, job, job_limits(app.settings, name))
    )
    return build_driver(app.settings, app.pool, name, in_process(worker.work, app.settings.jobs.parallelism))


async def run_job(app: Application, name: JobName, moment: datetime | None = None, **order: Any) -> Run:
    """Run a job to its end on the tenant of the application, or on the part of it that ``workspace`` names."""
    ids = {level: order.pop(level) for level in ("workspace", "namespace") if level in order}
    area = order.pop("area", Area(app.tenant, **ids))
    return await driver_of(app, name).start(Order(name, area, moment or datetime.now(UTC), **order))


async def undo_run(app: Application, run: Run, now: datetime | None = None) -> Counts:
    """Take a run back."""
    return await build_undo(app.settings, app.pool, run.order.job).undo(run.id, now or datetime.now(UTC))


@asynccontextmanager
async def rows_of(app: Application, table: str) -> AsyncIterator[list[dict[str, Any]]]:
    async with app.pool.connection() as connection:
        cursor = await connection.execute(f"SELECT * FROM {table} WHERE tenant = %s ORDER BY 1".encode(), [app.tenant])
        yield await cursor.fetchall()
