"""Runs of jobs over a real Postgres: what they change, what they leave, how they go back."""

from dataclasses import replace
from typing import Any

import pytest

from lamina.core.areas import Area
from lamina.core.runs import Order, RunState
from lamina.errors import Conflict
from lamina.stores.postgres.job_runs import JobRuns
from tests.support.application import Application
from tests.support.jobs import driver_of, in_days, run_job, undo_run


async def notes_of(app: Application, columns: str = "content, temperature, weight") -> list[tuple[Any, ...]]:
    async with app.pool.connection() as connection:
        statement = f"SELECT {columns} FROM notes WHERE tenant = %s AND deleted_at IS NULL ORDER BY content"  # noqa: S608
        cursor = await connection.execute(statement.encode(), [app.tenant])
        return [tuple(row.values()) async for row in cursor]


async def add(app: Application, *contents: str, **fields: Any) -> None:
    for content in contents:
        answer = await app.client().post("/v1/notes", json={"content": content, **fields})
        assert answer.status_code in {200, 201}, answer.text


async def test_a_sweep_demotes_what_is_idle_and_its_undo_brings_it_back(application: Application) -> None:
    await add(application, "the boat is green", "the mast is high")
    await application.indexed()

    run = await run_job(application, "sweep", in_days(8))
    await application.indexed()
    cold = await notes_of(application)
    found = (await application.client().post("/v1/search", json={"query": "boat green"})).json()

    assert (run.state, run.counts.changed) == (RunState.DONE, 2)
    assert [temperature for _, temperature, _ in cold] == ["cold", "cold"]
    assert found["results"][0]["temperature"] == "cold"

    undone = await undo_run(application, run)
    await application.indexed()

    assert undone.changed == 2
    assert [temperature for _, temperature, _ in await notes_of(application)] == ["warm", "warm"]


async def test_a_run_by_other_settings_is_not_gone_on_with(application: Application) -> None:
    await add(application, "the boat is green")
    runs, area = JobRuns(application.pool), Area(application.tenant)
    order = Order("sweep", area, in_days(8), settings_digest="new")
    interrupted = [await runs.add(replace(order, settings_digest=digest)) for digest in ("old", "new", None)]

    resumed = await driver_of(application, "sweep").start(order)
    states = [(await runs.get(run)).state for run in interrupted]
    another = await driver_of(application, "sweep").start(order)

    assert resumed.id == interrupted[1]
    assert resumed.order == order
    assert states == [RunState.FAILED, RunState.DONE, RunState.QUEUED]
    assert another.id not in interrupted


async def test_a_second_run_changes_nothing(application: Application) -> None:
    await add(application, "one", "two", "three")
    first = await run_job(application, "decay", in_days(12))
    second = await run_job(application, "decay", in_days(12))

    assert (first.counts.changed, second.counts.changed) == (3, 0)


async def test_what_was_changed_since_stays_when_a_run_is_undone(application: Application) -> None:
    await add(application, "one", "two")
    run = await run_job(application, "sweep", in_days(8))
    found = await application.client().get("/v1/notes")
    await application.client().patch(f"/v1/notes/{found.json()['notes'][0]['id']}", json={"content": "uno"})

    undone = await undo_run(application, run)

    assert (undone.seen, undone.changed) == (2, 1)
    with pytest.raises(Conflict, match="only what has ended is undone, and once"):
        await undo_run(application, run)


async def test_a_dry_run_changes_nothing_and_has_nothing_to_undo(application: Application) -> None:
    await add(application, "one")
    run = await run_job(application, "sweep", in_days(8), is_dry_run=True)

    assert (run.state, run.counts.planned, run.counts.changed) == (RunState.DONE, 1, 0)
    assert [temperature for _, temperature, _ in await notes_of(application)] == ["warm"]
    with pytest.raises(Conflict, match="dry run"):
        await undo_run(application, run)


async def test_a_sweep_takes_out_what_has_expired_and_nothing_else(application: Application) -> None:
    await add(application, "the tide is out", ttl_s=3600)
    await add(application, "the tide turns twice a day")
    early = await run_job(application, "sweep")
    late = await run_job(application, "sweep", in_days(1))

    assert (early.counts.planned, late.counts.changed, late.counts.removed) == (0, 1, 1)
    assert [content for content, _, _ in await notes_of(application)] == ["the tide turns twice a day"]
