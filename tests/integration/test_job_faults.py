"""What goes wrong in a run: one scope's fault is no other one's, and nobody acts for a run that is over."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from lamina.core.areas import Area
from lamina.core.runs import Order, Run, RunCounts, RunState
from lamina.errors import Conflict, TextRefused, Unavailable
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_jobs import DECAY, RowJob
from lamina.maintenance.row_writer import RowWriter
from lamina.maintenance.worker import Worker
from lamina.stores.postgres.job_changes import RowChange, change_rows
from lamina.stores.postgres.job_runs import JobRuns
from lamina.wiring.jobs import build_driver, job_limits
from tests.support.application import Application
from tests.support.jobs import driver_of, in_days, run_job, undo_run


async def add(app: Application, workspace: str) -> UUID:
    body = {"content": f"a note of {workspace}", "workspace": workspace}
    return UUID((await app.client().post("/v1/notes", json=body)).json()["id"])


async def weight_of(app: Application, id_: UUID) -> float:
    async with app.pool.connection() as connection:
        row = await (await connection.execute("SELECT weight FROM notes WHERE id = %s", [id_])).fetchone()
    assert row is not None
    return float(row["weight"])


class Poisoned(RowJob):
    """Decay that cannot read one workspace."""

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[list[RowChange]]:
        if area.workspace == "poisoned":
            raise ValueError("None is not a valid Level")
        return await super().decide(area, after, moment)


async def test_a_scope_that_fails_is_told_and_every_other_one_is_worked_on(application: Application) -> None:
    ids = {name: await add(application, name) for name in ("before", "poisoned", "then")}
    job = Poisoned(application.pool, DECAY, page_rows=10)

    run = await driver_of(application, "decay", job).start(Order("decay", Area(application.tenant), in_days(12)))

    assert (run.state, run.counts.units, run.counts.changed) == (RunState.DONE, 3, 2)
    assert [problem.split(": ")[0] for problem in run.problems] == [
        f"tenant={application.tenant} workspace=poisoned namespace=default"
    ]
    assert await weight_of(application, ids["poisoned"]) == 1
    assert await weight_of(application, ids["then"]) < 1


class Down(RowJob):
    """Decay without its database."""

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[list[RowChange]]:
        raise Unavailable("postgres", "it restarts")


async def test_an_outage_leaves_a_run_to_be_gone_on_with(application: Application) -> None:
    await add(application, "w")
    order = Order("decay", Area(application.tenant), in_days(12))
    with pytest.raises(Unavailable):
        await driver_of(application, "decay", Down(application.pool, DECAY, page_rows=10)).start(order)
    [waiting] = await JobRuns(application.pool).latest("decay", application.tenant)

    ended = await driver_of(application, "decay").start(order)

    assert waiting.state is RunState.RUNNING
    assert (ended.id, ended.state, ended.counts.changed) == (waiting.id, RunState.DONE, 1)


class Refused(RowJob):
    """Decay whose model refuses a text of one workspace."""

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[list[RowChange]]:
        if area.workspace == "refused":
            raise TextRefused("embedder", "its endpoint answers 413")
        return await super().decide(area, after, moment)


async def test_a_text_that_the_model_refuses_holds_up_its_scope_alone(application: Application) -> None:
    ids = {name: await add(application, name) for name in ("before", "refused", "then")}
    job = Refused(application.pool, DECAY, page_rows=10)

    run = await driver_of(application, "decay", job).start(Order("decay", Area(application.tenant), in_days(12)))

    assert (run.state, run.counts.changed) == (RunState.DONE, 2)
    [problem] = run.problems
    assert "workspace=refused" in problem
    assert "answers 413" in problem
    assert await weight_of(application, ids["then"]) < 1


async def test_a_worker_that_was_left_behind_changes_nothing_for_a_run_that_is_over(application: Application) -> None:
    id_ = await add(application, "w")
    runs = JobRuns(application.pool)
    run_id = await runs.add(Order("decay", Area(application.tenant), in_days(12)))
    await runs.begin(run_id, units=1, partitions=1)
    run = await runs.get(run_id)
    await runs.finish(run_id, RunState.FAILED, "its driver was lost")
    await undo_run(application, await runs.get(run_id))

    job = RowJob(application.pool, DECAY, page_rows=10)
    await asyncio.wait_for(Worker(application.pool, job, job_limits(application.settings, "decay")).work(run, 0), 60)

    assert await weight_of(application, id_) == 1
    assert (await runs.get(run_id)).state is RunState.UNDONE


async def test_an_attempt_ends_no_run_that_another_one_has_taken_up_or_ended(application: Application) -> None:
    runs = JobRuns(application.pool)
    id_ = await runs.add(Order("decay", Area(application.tenant), in_days(12)))
    seen = await runs.get(id_)
    first = await runs.begin(id_, units=1, partitions=3)
    second = await runs.begin(id_, units=1, partitions=1)

    states = []
    for attempt, state in (
        (seen.attempt, RunState.FAILED),
        (first.attempt, RunState.FAILED),
        (second.attempt, RunState.DONE),
        (second.attempt, RunState.FAILED),
    ):
        await runs.finish(id_, state, attempt=attempt)
        states.append((await runs.get(id_)).state)

    assert (first, second) == ((3, 1), (3, 2))
    assert states == [RunState.RUNNING, RunState.RUNNING, RunState.DONE, RunState.DONE]


async def test_a_driver_that_fails_leaves_the_run_to_the_one_that_has_taken_it_up(application: Application) -> None:
    runs = JobRuns(application.pool)

    async def overtaken(run: Run, partitions: Sequence[int]) -> None:
        await runs.begin(run.id, units=1, partitions=1)  # As another driver, once the lock of this one is lost.
        raise RuntimeError("its connection broke")

    order = Order("decay", Area(application.tenant), in_days(12))
    with pytest.raises(RuntimeError):
        await build_driver(application.settings, application.pool, "decay", overtaken).start(order)
    [left] = await runs.latest("decay", application.tenant)
    ended = await driver_of(application, "decay").start(order)

    assert (left.state, left.attempt) == (RunState.RUNNING, 2)
    assert (ended.id, ended.state, ended.error) == (left.id, RunState.DONE, None)


async def test_an_undo_that_is_asked_for_is_not_lost_to_a_driver_that_ends(application: Application) -> None:
    runs = JobRuns(application.pool)
    run = await run_job(application, "decay", in_days(12))
    await runs.reopen(run.id, RunState.UNDOING, of=(RunState.DONE,))

    await runs.finish(run.id, RunState.DONE)
    with pytest.raises(Conflict):
        await driver_of(application, "decay").drive(run.id)

    assert (await runs.get(run.id)).state is RunState.UNDOING


async def test_what_can_be_undone_outlives_an_undo_that_takes_longer_than_its_time(application: Application) -> None:
    id_ = await add(application, "w")
    run = await run_job(application, "decay", in_days(12))
    await JobRuns(application.pool).reopen(run.id, RunState.UNDOING, of=(RunState.DONE,))
    await JobRuns(application.pool).forget(in_days(1))

    undone = await undo_run(application, run)

    assert undone.changed == 1
    assert await weight_of(application, id_) == 1


async def test_a_row_that_another_writer_holds_is_compared_as_it_is_afterwards(application: Application) -> None:
    id_ = await add(application, "w")
    change = RowChange(id_, {"weight": 0.4}, {"weight": 1.0})
    async with application.pool.connection() as writer, application.pool.connection() as job:
        async with writer.transaction():
            await writer.execute("UPDATE notes SET importance = 0.9 WHERE id = %s", [id_])
            changing = asyncio.create_task(change_rows(job, "notes", [change]))
            await asyncio.sleep(0.3)
            assert not changing.done()
        rows = await changing

    assert [row["id"] for row in rows] == [id_]
    assert await weight_of(application, id_) == 0.4


async def test_a_row_that_another_writer_changes_meanwhile_stays_as_that_one_left_it(application: Application) -> None:
    id_ = await add(application, "w")
    change = RowChange(id_, {"weight": 0.4}, {"weight": 1.0})
    async with application.pool.connection() as writer, application.pool.connection() as job:
        async with writer.transaction():
            await writer.execute("UPDATE notes SET weight = 0.7 WHERE id = %s", [id_])
            changing = asyncio.create_task(change_rows(job, "notes", [change]))
            await asyncio.sleep(0.3)
            assert not changing.done()
        rows = await changing

    assert rows == []
    assert await weight_of(application, id_) == 0.7


class Teaching(RowJob):
    """Raises the epoch early, and then takes its time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.is_held, self.may_end = asyncio.Event(), asyncio.Event()

    async def act(self, writer: RowWriter, area: Area, plan: list[RowChange]) -> RunCounts:
        writer.bump(area.scope(), teaches=True)
        self.is_held.set()
        await self.may_end.wait()
        return await super().act(writer, area, plan)


async def test_no_writer_waits_for_a_page(application: Application) -> None:
    await add(application, "w")
    job = Teaching(application.pool, DECAY, page_rows=10)
    order = Order("decay", Area(application.tenant), in_days(12))
    running = asyncio.create_task(driver_of(application, "decay", job).start(order))
    await asyncio.wait_for(job.is_held.wait(), 60)

    body = {"content": "written meanwhile", "workspace": "w"}
    written = await asyncio.wait_for(application.client().post("/v1/notes", json=body), 60)
    job.may_end.set()
    run = await running

    assert written.status_code in {200, 201}
    assert run.state is RunState.DONE


async def test_a_tenant_may_have_only_so_many_runs_open(application: Application) -> None:
    runs = JobRuns(application.pool)
    order = Order("decay", Area(application.tenant), datetime.now(UTC))
    for _ in range(48):
        await runs.add(order)
    admin, key = application.admin(), {"Idempotency-Key": "last"}
    others = [admin.post("/v1/jobs", json={"job": "decay"}) for _ in range(4)]
    last = await admin.post("/v1/jobs", json={"job": "decay"}, headers=key)
    beside = [other.status_code for other in await asyncio.gather(*others)]
    answer = await admin.post("/v1/jobs", json={"job": "decay"})
    again = await admin.post("/v1/jobs", json={"job": "decay"}, headers=key)
    oldest = (await runs.open(limit=10_000))[0].created_at

    assert sorted(beside) == [202, 503, 503, 503]
    assert (last.status_code, again.status_code, again.json()["id"]) == (202, 202, last.json()["id"])
    assert answer.status_code == 503
    assert "50 runs" in answer.json()["detail"]
    assert oldest <= (await runs.latest("decay", application.tenant, limit=200))[-1].created_at
    async with application.pool.connection() as connection:
        await connection.execute("DELETE FROM job_runs WHERE tenant = %s", [application.tenant])


async def test_what_a_summary_was_made_from_stays_and_is_archived_when_the_summary_is_undone(
    application: Application,
) -> None:
    for number in range(3):
        body = {"content": f"the crew loaded {number} barrels", "event_at": f"2026-09-07T0{number}:00:00Z"}
        await application.client().post("/v1/notes", json=body)
    summaries = await run_job(application, "summaries", in_days(1))
    await run_job(application, "sweep", in_days(30))
    kept = await run_job(application, "archival", in_days(300), is_dry_run=True, is_forced=True)

    await undo_run(application, summaries)
    taken = await run_job(application, "archival", in_days(300), is_dry_run=True, is_forced=True)

    assert (kept.counts.planned, taken.counts.planned) == (0, 3)


async def test_no_caller_speaks_as_a_job(application: Application) -> None:
    client = application.client()
    edge = {"subject": "Ann", "type": "related_to", "object": "Bob", "source": "job:consolidation"}

    stated = await client.post("/v1/graph/edges", json={"edges": [edge]})
    note = await client.post("/v1/notes", json={"content": "x y", "source": "job:summaries"})

    assert (stated.status_code, note.status_code) == (422, 422)
    assert "name another source" in stated.json()["detail"]
