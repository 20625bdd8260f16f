"""Two runs of a job keep apart where they would meet, and only there; two workers share a partition without harm."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any

import psycopg
import pytest

from lamina.core.areas import Area
from lamina.core.runs import JobName, Order, Run, RunCounts, RunState
from lamina.errors import Conflict, Misconfigured
from lamina.maintenance.job import Job
from lamina.maintenance.worker import Worker
from lamina.stores.postgres.job_runs import JobRuns
from lamina.wiring.jobs import job_limits
from tests.support.application import Application
from tests.support.jobs import Halt, Watched, driver_of, in_days, in_pages, job_of, run_job

WORKSPACES = ("one", "two")
PARTS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({}, {}),
    ({}, {"workspace": "one"}),
    ({}, {"workspace": "one", "namespace": "default"}),
    ({"workspace": "one"}, {}),
    ({"workspace": "one"}, {"workspace": "one"}),
    ({"workspace": "one"}, {"workspace": "one", "namespace": "default"}),
    ({"workspace": "one", "namespace": "default"}, {"workspace": "one"}),
    ({"workspace": "one", "namespace": "default"}, {}),
]


@pytest.fixture
async def filled(application: Application) -> Application:
    """Two workspaces of a tenant, with idle notes."""
    return await fill(application)


async def fill(app: Application) -> Application:
    for workspace in WORKSPACES:
        await put(app, 3, workspace=workspace)
    await app.indexed()
    return app


async def put(app: Application, notes: int, **ids: str) -> None:
    for number in range(notes):
        answer = await app.client().post("/v1/notes", json={"content": f"note number {number}", **ids})
        assert answer.status_code == 201, answer.text


@asynccontextmanager
async def held_run(app: Application, area: Area, name: JobName = "sweep") -> AsyncIterator["asyncio.Task[Run]"]:
    """Have a run stand still in its first page, and go on when the test is through with it."""
    halt = Halt()
    driver = driver_of(app, name, Watched(job_of(app, name), before_deciding=halt))
    task = asyncio.create_task(driver.start(Order(name, area, in_days(8))))
    try:
        await asyncio.wait_for(halt.reached.wait(), 60)
        yield task
    finally:
        halt.passed.set()
        await task


def cold(app: Application) -> dict[str, int]:
    """Return how many cold notes each workspace has."""
    with psycopg.connect(app.url) as connection:
        found = connection.execute(
            "SELECT workspace, count(*) FROM notes WHERE tenant = %s AND temperature = 'cold' GROUP BY 1", [app.tenant]
        )
        return dict(found.fetchall())


@pytest.mark.parametrize(("first", "second"), PARTS)
async def test_of_two_runs_where_one_area_holds_the_other_the_second_conflicts(
    filled: Application, first: dict[str, str], second: dict[str, str]
) -> None:
    async with held_run(filled, Area(filled.tenant, **first)) as running:
        area = Area(filled.tenant, **second)
        with pytest.raises(Conflict, match=f"another run of sweep works on {area}; wait for its end"):
            await run_job(filled, "sweep", in_days(8), area=area)
        during = cold(filled)

    assert during == {}
    assert (await running).counts.changed == (3 if first else 6)


async def test_a_run_on_everything_keeps_out_that_on_a_namespace_and_the_other_way_round(alone: Application) -> None:
    await fill(alone)
    namespace = Area(alone.tenant, "one", "default")

    async with held_run(alone, Area()):
        with pytest.raises(Conflict, match="another run of sweep"):
            await run_job(alone, "sweep", in_days(8), area=namespace)
    async with held_run(alone, namespace, "decay"):
        with pytest.raises(Conflict, match="another run of decay works on everything"):
            await run_job(alone, "decay", in_days(8), area=Area())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"workspace": "one"}, {"workspace": "two"}, id="workspaces"),
        pytest.param(
            {"workspace": "one", "namespace": "default"}, {"workspace": "two", "namespace": "default"}, id="namespaces"
        ),
    ],
)
async def test_runs_on_areas_beside_each_other_go_on_at_the_same_time(
    filled: Application, first: dict[str, str], second: dict[str, str]
) -> None:
    async with held_run(filled, Area(filled.tenant, **first)) as running:
        beside = await run_job(filled, "sweep", in_days(8), **second)
        during = cold(filled)

    assert (beside.state, beside.counts.changed) == (RunState.DONE, 3)
    assert during == {"two": 3}
    assert (await running).counts.changed == 3
    assert cold(filled) == {"one": 3, "two": 3}


async def test_runs_on_two_tenants_go_on_at_the_same_time(filled: Application) -> None:
    other = filled.for_tenant(f"{filled.tenant} and its neighbour")
    await put(other, 2)

    async with held_run(filled, Area(filled.tenant)) as running:
        beside = await run_job(other, "sweep", in_days(8))

    assert beside.counts.changed == 2
    assert (await running).counts.changed == 6
    await other.close_clients()


async def test_another_job_on_the_same_area_goes_on_at_the_same_time(filled: Application) -> None:
    async with held_run(filled, Area(filled.tenant)):
        beside = await run_job(filled, "decay", in_days(12))

    assert (beside.state, beside.counts.changed) == (RunState.DONE, 6)


async def test_ids_that_read_alike_when_they_are_joined_are_two_areas(filled: Application) -> None:
    workspace, namespace = Area(filled.tenant, 'a","b'), Area(filled.tenant, "a", "b")
    await put(filled, 1, workspace='a","b')

    async with held_run(filled, workspace) as running:
        beside = await run_job(filled, "sweep", in_days(8), area=namespace)

    assert beside.state is RunState.DONE
    assert (await running).counts.changed == 1


async def test_who_comes_when_a_run_has_ended_finds_the_area_free(filled: Application) -> None:
    async with held_run(filled, Area(filled.tenant)):
        pass

    again = await run_job(filled, "sweep", in_days(8))

    assert (again.state, again.counts.planned) == (RunState.DONE, 0)


async def test_a_run_that_fails_leaves_the_area_free_and_the_next_one_does_the_work(filled: Application) -> None:
    async def fail() -> None:
        raise Misconfigured("the disk is on fire", "put it out")

    order = Order("sweep", Area(filled.tenant), in_days(8))
    with pytest.raises(Misconfigured, match="on fire"):
        await driver_of(filled, "sweep", Watched(job_of(filled, "sweep"), before_acting=fail)).start(order)
    changed_by_it = cold(filled)
    again = await run_job(filled, "sweep", in_days(8))

    assert changed_by_it == {}
    assert (again.state, again.counts.changed) == (RunState.DONE, 6)


async def test_a_run_whose_driver_died_is_gone_on_with_by_the_next_start(filled: Application) -> None:
    halt = Halt()
    driver = driver_of(filled, "sweep", Watched(job_of(filled, "sweep"), before_acting=halt))
    dying = asyncio.create_task(driver.start(Order("sweep", Area(filled.tenant), in_days(8))))
    await asyncio.wait_for(halt.reached.wait(), 60)
    dying.cancel()
    with suppress(asyncio.CancelledError):
        await dying
    left = [run.id for run in await JobRuns(filled.pool).latest(tenant=filled.tenant)]

    again = await run_job(filled, "sweep", in_days(9))

    assert [again.id] == left
    assert (again.state, again.counts) == (RunState.DONE, RunCounts(units=2, seen=6, planned=6, changed=6))


async def test_several_workers_on_one_partition_apply_each_page_once(filled: Application) -> None:
    await put(filled, 10, namespace="larger", workspace="one")
    small, order = in_pages(filled, 2), Order("sweep", Area(filled.tenant), in_days(8))
    run = await begun(filled, order, partitions=1)

    await asyncio.gather(*(worker_of(small, job_of(small, "sweep")).work(run, 0) for _ in range(3)))

    ended = await JobRuns(filled.pool).get(run.id)
    assert ended.counts == RunCounts(units=3, seen=16, planned=16, changed=16)
    assert cold(filled) == {"one": 13, "two": 3}
    assert journal_of(filled, run) == 16


async def test_a_worker_that_is_overtaken_within_a_page_changes_nothing_of_it(filled: Application) -> None:
    halt = Halt()
    order = Order("sweep", Area(filled.tenant, "one"), in_days(8))
    run = await begun(filled, order, partitions=1)
    late = Watched(job_of(filled, "sweep"), before_deciding=halt)

    working = asyncio.create_task(worker_of(filled, late).work(run, 0))
    await asyncio.wait_for(halt.reached.wait(), 60)
    await worker_of(filled, job_of(filled, "sweep")).work(run, 0)
    ended = await JobRuns(filled.pool).get(run.id)
    halt.passed.set()
    await working

    assert ended.counts == RunCounts(units=1, seen=3, planned=3, changed=3)
    assert (await JobRuns(filled.pool).get(run.id)).counts == ended.counts
    assert late.decided == [Area(filled.tenant, "one", "default")]


async def test_the_partitions_of_a_run_have_each_namespace_once(filled: Application) -> None:
    for number in range(6):
        await put(filled, 1, workspace="many", namespace=f"n{number}")
    watched = [Watched(job_of(filled, "sweep")) for _ in range(3)]
    run = await begun(filled, Order("sweep", Area(filled.tenant), in_days(8)), partitions=3)

    await asyncio.gather(*(worker_of(filled, job).work(run, number) for number, job in enumerate(watched)))

    decided = [str(area) for job in watched for area in set(job.decided)]
    assert sorted(decided) == sorted({str(Area(filled.tenant, *ids)) for ids in namespaces(filled)})
    assert (await JobRuns(filled.pool).get(run.id)).counts.changed == 12


async def begun(app: Application, order: Order, *, partitions: int) -> Run:
    """Return a run that is cut into partitions on which nobody works yet."""
    runs = JobRuns(app.pool)
    id_ = await runs.add(order)
    await runs.begin(id_, units=partitions, partitions=partitions)
    return await runs.get(id_)


def worker_of(app: Application, job: Job[Any]) -> Worker:
    return Worker(app.pool, job, job_limits(app.settings, "sweep"))


def journal_of(app: Application, run: Run) -> int:
    with psycopg.connect(app.url) as connection:
        row = connection.execute("SELECT count(*) FROM job_changes WHERE run_id = %s", [run.id]).fetchone()
    assert row is not None
    return int(row[0])


def namespaces(app: Application) -> list[tuple[str, str]]:
    with psycopg.connect(app.url) as connection:
        found = connection.execute(
            "SELECT workspace, namespace FROM epochs WHERE tenant = %s AND namespace <> ''", [app.tenant]
        )
        return found.fetchall()


async def test_a_run_decides_from_its_moment_whoever_goes_on_with_it(filled: Application) -> None:
    moments: list[datetime] = []

    class Remembering(Watched):
        async def decide(self, area: Area, after: Any, moment: datetime) -> Any:
            moments.append(moment)
            return await super().decide(area, after, moment)

    ordered = in_days(8)
    run = await begun(filled, Order("sweep", Area(filled.tenant, "one"), ordered), partitions=1)
    driver = driver_of(filled, "sweep", Remembering(job_of(filled, "sweep")))
    ended = await driver.start(Order("sweep", Area(filled.tenant, "one"), in_days(0)))

    assert ended.id == run.id
    assert set(moments) == {ordered}
    assert ended.counts.changed == 3
