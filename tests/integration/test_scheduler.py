"""The scheduler of jobs, in this process: it starts each queued or due run once."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from actors import scheduler as scheduling
from actors.scheduler import BY_SCHEDULE, MOST_DRIVEN, Scheduler, open_scheduler
from lamina.core.areas import Area
from lamina.core.runs import JOB_NAMES, JobName, Order, Run, RunState
from lamina.errors import Misconfigured
from lamina.maintenance.undo import request_undo
from lamina.stores.postgres.job_runs import JobRuns, job_lock
from lamina.wiring.jobs import settings_digest
from lamina.wiring.stores import build_pool
from tests.support.application import settings_for
from tests.support.idle_notes import cold, idle, one_of
from tests.support.job_process import LAUNCHED

TIMEOUT_S = 180.0
DAY = timedelta(days=1)


async def until_seen(check: Callable[[], Any]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not check():  # noqa: ASYNC110 - what is waited for stands in Postgres
            await asyncio.sleep(0.02)


@dataclass
class Waiting:
    """A database whose scheduler is here, and the runs in it."""

    url: str
    runs: JobRuns
    folder: Path
    settings: dict[str, Any]

    @asynccontextmanager
    async def scheduler(self, launcher: str = "launch_here", **jobs: Any) -> AsyncIterator[Scheduler]:
        chosen = {"is_scheduled": False, "launcher": f"tests.support.job_process:{launcher}", **jobs}
        one = Scheduler(settings_for(self.url, self.folder, jobs=chosen))
        try:
            yield one
        finally:
            await one.close()

    async def add(self, job: JobName = "sweep", tenant: str | None = "acme", **order: Any) -> UUID:
        return await self.runs.add(Order(job, Area(tenant), order.pop("moment", datetime.now(UTC)), **order))

    def state(self, run: UUID) -> str:
        return str(one_of(self.url, "SELECT state FROM job_runs WHERE id = %s", run))

    async def has_ended(self, run: UUID, state: RunState = RunState.DONE) -> Run:
        await until_seen(lambda: self.state(run) == state)
        return await self.runs.get(run)


@pytest.fixture
async def waiting(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Waiting]:
    monkeypatch.setattr(scheduling, "LOOK_S", 0.1)
    monkeypatch.setattr(scheduling, "RETRY_S", 0.05)
    LAUNCHED.clear()
    async with build_pool(settings_for(database, tmp_path)) as pool:
        yield Waiting(database, JobRuns(pool), tmp_path, {})


async def test_what_was_queued_before_and_after_it_began_is_started_by_itself(waiting: Waiting) -> None:
    rows = idle(waiting.url, "acme", 3)
    before = await waiting.add("sweep")

    async with waiting.scheduler():
        swept = await waiting.has_ended(before)
        after = await waiting.add("decay")
        await waiting.has_ended(after)

    assert swept.counts.changed == rows == cold(waiting.url)
    assert [before, after] == LAUNCHED


async def test_a_queued_run_is_started_at_once_and_not_at_the_next_look(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "LOOK_S", 600.0)

    async with waiting.scheduler():
        await waiting.has_ended(await waiting.add("sweep"))
        await waiting.has_ended(await waiting.add("decay"))


async def test_an_interrupted_run_is_gone_on_with_and_an_ended_one_is_not(waiting: Waiting) -> None:
    interrupted, failed = await waiting.add("sweep"), await waiting.add("decay")
    await waiting.runs.begin(interrupted, units=0, partitions=1)
    await waiting.runs.finish(failed, RunState.FAILED, "it was so")

    async with waiting.scheduler():
        await waiting.has_ended(interrupted)
        await asyncio.sleep(0.5)

    assert [interrupted] == LAUNCHED
    assert waiting.state(failed) == "failed"


async def test_a_run_by_other_settings_is_left_to_these_and_ended_after_a_day(waiting: Waiting) -> None:
    chosen = {"is_scheduled": False, "launcher": "tests.support.job_process:launch_here"}
    own = settings_digest(settings_for(waiting.url, waiting.folder, jobs=chosen))
    others = [await waiting.add(tenant=name, settings_digest=name) for name in ("a", "b")]
    old = await waiting.add(tenant="c", settings_digest="c")
    same = await waiting.add(tenant="d", settings_digest=own)
    with psycopg.connect(waiting.url) as connection:
        connection.execute("UPDATE job_runs SET created_at = now() - interval '25 hours' WHERE id = %s", [old])
    async with waiting.scheduler():
        await waiting.has_ended(same)
        failed = await waiting.has_ended(old, RunState.FAILED)
        # After a look at all that is open.
        await waiting.has_ended(await waiting.add(tenant="e"))

    assert [waiting.state(run) for run in others] == ["queued", "queued"]
    assert "by its settings" in (failed.error or "")


async def test_an_old_run_whose_driver_comes_back_between_two_looks_is_not_ended(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await waiting.add(tenant="c", settings_digest="c")
    with psycopg.connect(waiting.url) as connection:
        connection.execute("UPDATE job_runs SET created_at = now() - interval '25 hours' WHERE id = %s", [old])

    async def is_taken_up_at_once(_: Scheduler, run: Run) -> bool:
        if run.id == old:
            await waiting.runs.begin(old, units=0, partitions=1)
        return True

    monkeypatch.setattr(Scheduler, "_is_free", is_taken_up_at_once)
    async with waiting.scheduler():
        for tenant in ("d", "e"):  # Each is ordered after a look at the old one.
            await waiting.has_ended(await waiting.add(tenant=tenant))

    assert (await waiting.runs.get(old)).attempt > 0
    assert waiting.state(old) == "running"


async def test_while_somebody_else_drives_a_run_nothing_is_started(waiting: Waiting) -> None:
    run = await waiting.add("sweep")
    await waiting.runs.begin(run, units=0, partitions=1)

    async with job_lock(waiting.url, (await waiting.runs.get(run)).order) as is_ours, waiting.scheduler():
        await asyncio.sleep(1)
        during = list(LAUNCHED)
        assert is_ours
    async with waiting.scheduler():
        await waiting.has_ended(run)

    assert during == []
    assert [run] == LAUNCHED


async def test_what_cannot_be_started_is_tried_again_once_at_each_look(waiting: Waiting) -> None:
    run = await waiting.add("sweep")

    began = time.monotonic()
    async with waiting.scheduler("launch_nothing"):
        await until_seen(lambda: len(LAUNCHED) >= 3)
        await asyncio.sleep(0.5)
    looks = (time.monotonic() - began) / scheduling.LOOK_S

    assert len(LAUNCHED) <= looks + 1
    assert waiting.state(run) == "queued"


async def test_only_so_many_runs_are_driven_at_the_same_time_the_oldest_first(waiting: Waiting) -> None:
    queued = [await waiting.add("sweep", tenant=f"t{number}") for number in range(MOST_DRIVEN + 3)]

    async with waiting.scheduler("launch_forever"):
        await until_seen(lambda: len(LAUNCHED) >= MOST_DRIVEN)
        await asyncio.sleep(0.5)

    assert queued[:MOST_DRIVEN] == LAUNCHED


async def test_an_undo_goes_through_the_queue(waiting: Waiting) -> None:
    rows = idle(waiting.url, "acme", 2)
    async with waiting.scheduler():
        run = await waiting.add("sweep")
        await waiting.has_ended(run)
        assert cold(waiting.url) == rows

        await request_undo(waiting.runs, run, datetime.now(UTC), 30 * DAY)
        await waiting.has_ended(run, RunState.UNDONE)

    assert cold(waiting.url) == 0


async def scheduled_before(waiting: Waiting, ago: timedelta, job: JobName = "sweep") -> None:
    """Let a job have run by its schedule some time ago."""
    run = await waiting.add(job, tenant=None, requested_by=BY_SCHEDULE)
    await waiting.runs.finish(run, RunState.DONE)
    with psycopg.connect(waiting.url) as connection:
        connection.execute("UPDATE job_runs SET created_at = now() - %s WHERE id = %s", [ago, run])


def ordered(url: str) -> int:
    return int(one_of(url, "SELECT count(*) FROM job_runs WHERE requested_by = 'schedule' AND job = 'sweep'"))


def daily(hours_from_now: int) -> dict[str, Any]:
    """Return a schedule by which only the sweep runs, at the hour that is so far from now."""
    at = datetime.now(UTC) + timedelta(hours=hours_from_now)
    return {
        "is_scheduled": True,
        "schedule": dict.fromkeys(JOB_NAMES, "off") | {"sweep": f"{at.minute} {at.hour} * * *"},
    }


async def test_what_was_missed_is_ordered_once(waiting: Waiting) -> None:
    await scheduled_before(waiting, 5 * DAY)

    async with waiting.scheduler(**daily(-1)):
        await until_seen(lambda: ordered(waiting.url) == 2)
        await until_seen(lambda: len(LAUNCHED) == 1)
    async with waiting.scheduler(**daily(-1)):
        await asyncio.sleep(0.5)

    assert ordered(waiting.url) == 2


async def test_what_was_not_missed_or_never_ran_waits_for_its_time(waiting: Waiting) -> None:
    async with waiting.scheduler(**daily(-1)):
        await asyncio.sleep(0.5)
    never_ran = ordered(waiting.url)
    await scheduled_before(waiting, timedelta(minutes=30))
    async with waiting.scheduler(**daily(-1)):
        await asyncio.sleep(0.5)

    assert never_ran == 0
    assert ordered(waiting.url) == 1


async def test_a_job_whose_last_order_still_waits_is_not_ordered_again(waiting: Waiting) -> None:
    async with waiting.scheduler("launch_forever", **daily(+2)) as scheduler:
        await asyncio.gather(*(scheduler.order("sweep") for _ in range(5)))

    assert ordered(waiting.url) == 1


async def test_two_schedulers_do_no_harm(waiting: Waiting) -> None:
    rows = idle(waiting.url, "acme", 20)
    await scheduled_before(waiting, 5 * DAY)

    async with waiting.scheduler(**daily(-1)), waiting.scheduler(**daily(-1)):
        runs = [await waiting.add("sweep", tenant=tenant) for tenant in ("acme", "globex")]
        ended = [await waiting.has_ended(run) for run in runs]
        await until_seen(lambda: not one_of(waiting.url, "SELECT count(*) FROM job_runs WHERE state <> 'done'"))

    assert ordered(waiting.url) in {2, 3}
    assert cold(waiting.url) == rows
    assert one_of(waiting.url, "SELECT count(*) FROM job_changes") == rows
    assert {run.state for run in ended} == {RunState.DONE}


async def test_it_goes_on_when_postgres_has_cut_its_connections(waiting: Waiting) -> None:
    await scheduled_before(waiting, 5 * DAY)
    async with waiting.scheduler():
        await waiting.has_ended(await waiting.add("sweep"))
        with psycopg.connect(waiting.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%LISTEN%'"
            )
        await waiting.has_ended(await waiting.add("decay"))


def test_a_schedule_that_cannot_be_read_is_refused_where_the_service_is_started(tmp_path: Path) -> None:
    settings = settings_for("postgresql://nowhere/db", tmp_path, jobs={"schedule": {"sweep": "99 * * * *"}})

    with pytest.raises(Misconfigured, match=r"jobs\.schedule\.sweep is '99 \* \* \* \*'"):
        open_scheduler(settings)
