"""Maintenance in this process: the same runs as on a cluster, over tasks instead of machines."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lamina.core.areas import Area
from lamina.core.runs import JobName, Order, Run, RunCounts
from lamina.core.scope import Scope
from lamina.maintenance.driver import Driver, fan_out_over
from lamina.maintenance.job import Job, Page, PageCursor, Removes
from lamina.maintenance.row_writer import RowWriter
from lamina.maintenance.worker import Worker
from lamina.models.batching import BatchingEmbedder
from lamina.wiring.jobs import Tools, build_driver, build_job, build_undo, build_worker, job_limits
from tests.support.application import Application


def in_days(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def tools_of(app: Application) -> Tools:
    return Tools(BatchingEmbedder(app.model), app.services.audits)


def driver_of(app: Application, name: JobName, job: Job[Any] | None = None) -> Driver:
    """Return the driver of a job's runs, of a double's if one is given."""
    worker = (
        build_worker(app.settings, app.pool, name, tools_of(app))
        if job is None
        else Worker(app.pool, job, job_limits(app.settings, name))
    )
    return build_driver(app.settings, app.pool, name, fan_out_over(worker.work, app.settings.jobs.parallelism))


async def run_job(app: Application, name: JobName, moment: datetime | None = None, **order: Any) -> Run:
    """Run a job on the tenant, or on the part of it that ``workspace`` names, and wait for the indexer."""
    ids = {level: order.pop(level) for level in ("workspace", "namespace") if level in order}
    area = order.pop("area", Area(app.tenant, **ids))
    run = await driver_of(app, name).start(Order(name, area, moment or datetime.now(UTC), **order))
    await app.followed()
    return run


async def undo_run(app: Application, run: Run, now: datetime | None = None) -> RunCounts:
    """Take a run back, and wait for the indexer."""
    undo = build_undo(app.settings, app.pool, run.order.job, tools_of(app))
    counts = await undo.undo(run.id, now or datetime.now(UTC))
    await app.followed()
    return counts


@asynccontextmanager
async def rows_of(app: Application, table: str) -> AsyncIterator[list[dict[str, Any]]]:
    async with app.pool.connection() as connection:
        text = f"SELECT * FROM {table} WHERE tenant = %s ORDER BY 1"  # noqa: S608 - a test names the table
        cursor = await connection.execute(text.encode(), [app.tenant])
        yield await cursor.fetchall()


def area_of(scope: Scope) -> Area:
    """Return the namespace of a scope as what a run is about."""
    return Area(scope.tenant, scope.workspace, scope.namespace)


def in_pages(app: Application, rows: int) -> Application:
    """Return the same application, whose jobs decide and change so many rows together."""
    jobs = app.settings.jobs.model_copy(update={"page_rows": rows})
    return replace(app, settings=app.settings.model_copy(update={"jobs": jobs}))


def job_of(app: Application, name: JobName) -> Job[Any]:
    """Return what decides and acts, to be put into a double."""
    return build_job(app.settings, app.pool, name, tools_of(app))


async def nothing() -> None:
    """Let nothing happen."""


@dataclass
class Watched:
    """A job that lets something happen before it decides, or between a decision and its change.

    Args:
        job: The job itself.
        before_deciding: Awaited before each page is decided.
        before_acting: Awaited in the transaction of each page, before it changes anything.
        decided: The areas of the pages that were decided.
    """

    job: Job[Any]
    before_deciding: Callable[[], Awaitable[None]] = nothing
    before_acting: Callable[[], Awaitable[None]] = nothing
    decided: list[Area] = field(default_factory=list)

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[Any]:
        self.decided.append(area)
        await self.before_deciding()
        return await self.job.decide(area, after, moment)

    async def act(self, writer: RowWriter, area: Area, plan: Any) -> RunCounts:
        await self.before_acting()
        return await self.job.act(writer, area, plan)


class WatchedRemoval(Watched):
    """The same for a job that removes rows."""

    async def size(self, area: Area) -> int:
        assert isinstance(self.job, Removes)
        return await self.job.size(area)


@dataclass
class Halt:
    """A place where a run stands still until the test lets it go on.

    Args:
        reached: Set once the run has come to it.
        passed: Set by the test.
    """

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    passed: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> None:
        self.reached.set()
        await self.passed.wait()
