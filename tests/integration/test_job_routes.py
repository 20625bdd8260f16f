"""Maintenance over HTTP: who may order what, and what they are shown."""

import uuid
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from lamina.core.areas import Area
from lamina.core.principals import KeyRole
from lamina.core.runs import BY_SCHEDULE, JOB_NAMES, Order, RunState
from lamina.stores.postgres.job_runs import JobRuns
from lamina.wiring.jobs import JOBS
from lamina.wiring.stores import utc_now
from tests.support.application import Application
from tests.support.jobs import in_days, run_job

ROUTES = [
    ("POST", "/v1/jobs", {"job": "sweep"}),
    ("GET", "/v1/jobs", None),
    ("GET", "/v1/jobs/schedule", None),
    ("GET", f"/v1/jobs/{UUID(int=1)}", None),
    ("POST", f"/v1/jobs/{UUID(int=1)}/undo", None),
]


async def ordered(app: Application, **body: Any) -> dict[str, Any]:
    answer = await app.admin().post("/v1/jobs", json={"job": "sweep", **body})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def stored(app: Application) -> list[UUID]:
    return [run.id for run in await JobRuns(app.pool).latest(tenant=app.tenant)]


@pytest.mark.parametrize("role", [KeyRole.READER, KeyRole.WRITER])
@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_only_an_admin_may(
    application: Application, role: KeyRole, method: str, path: str, body: dict[str, Any] | None
) -> None:
    client = application.client(application.new_key(application.tenant, role))

    refused = await client.request(method, path, json=body)

    assert refused.status_code == 403
    assert f"has the role {role}; this call needs admin" in refused.json()["detail"]
    assert await stored(application) == []


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_without_a_key_nobody_may(
    application: Application, method: str, path: str, body: dict[str, Any] | None
) -> None:
    assert (await application.client("wrong").request(method, path, json=body)).status_code == 401


async def test_an_order_waits_in_the_queue_with_what_was_asked(application: Application) -> None:
    before = utc_now()
    run = await ordered(application, workspace="docks", namespace="crew", dry_run=True, force=True)

    assert (run["job"], run["state"], run["requested_by"]) == ("sweep", "queued", "api")
    assert (run["workspace"], run["namespace"], run["dry_run"], run["force"]) == ("docks", "crew", True, True)
    assert before <= datetime.fromisoformat(run["moment"]) <= utc_now()
    assert run["report"][0].startswith(f"sweep (dry run) on tenant={application.tenant} workspace=docks")
    kept = await JobRuns(application.pool).get(UUID(run["id"]))
    assert kept.order.area == Area(application.tenant, "docks", "crew")


async def test_the_tenant_is_the_keys_and_may_be_named(application: Application) -> None:
    named = await ordered(application, tenant=application.tenant)
    other = await application.admin().post("/v1/jobs", json={"job": "sweep", "tenant": "globex"})

    assert other.status_code == 422
    assert "is globex, which is not the key's; leave it out" in other.text
    assert [str(id_) for id_ in await stored(application)] == [named["id"]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"job": "gossip"}, "sweep"),
        ({}, "job"),
        ({"job": "sweep", "namespace": "crew"}, "names a namespace without its workspace"),
        ({"job": "sweep", "workspace": ""}, "workspace"),
        ({"job": "sweep", "workspace": "a\x00b"}, "workspace"),
        ({"job": "sweep", "workspace": "x" * 200}, "workspace"),
        ({"job": "sweep", "user": "ann"}, "user"),
        ({"job": "sweep", "moment": "2020-01-01"}, "moment"),
    ],
)
async def test_a_wrong_order_is_refused_with_what_is_wrong(
    application: Application, body: dict[str, Any], said: str
) -> None:
    refused = await application.admin().post("/v1/jobs", json=body)

    assert refused.status_code == 422, refused.text
    assert said in refused.text
    assert await stored(application) == []


async def test_an_unknown_job_is_refused_with_all_that_there_are(application: Application) -> None:
    for refused in (
        await application.admin().post("/v1/jobs", json={"job": "gossip"}),
        await application.admin().get("/v1/jobs", params={"job": "gossip"}),
    ):
        assert refused.status_code == 422
        assert all(name in refused.text for name in JOB_NAMES)


async def test_an_idempotency_key_orders_one_run(application: Application) -> None:
    client, headers = application.admin(), {"Idempotency-Key": "k"}

    first, again = [(await client.post("/v1/jobs", json={"job": "sweep"}, headers=headers)).json() for _ in range(2)]
    other = await client.post("/v1/jobs", json={"job": "decay"}, headers=headers)

    assert first["id"] == again["id"]
    assert len(await stored(application)) == 1
    assert other.status_code == 409
    assert "was used for another request" in other.text


async def test_the_same_idempotency_key_of_two_tenants_orders_two(application: Application) -> None:
    neighbour = application.for_tenant(f"tenant {uuid.uuid4()}")
    headers = {"Idempotency-Key": "k"}

    ids = {
        (await app.admin().post("/v1/jobs", json={"job": "sweep"}, headers=headers)).json()["id"]
        for app in (application, neighbour)
    }
    await neighbour.close_clients()

    assert len(ids) == 2


async def test_nobody_sees_or_undoes_the_runs_of_another_tenant_or_of_all(application: Application) -> None:
    neighbour = application.for_tenant(f"tenant {uuid.uuid4()}")
    mine = await ordered(application)
    theirs = await ordered(neighbour)
    of_all = await JobRuns(application.pool).add(Order("sweep", Area(), utc_now(), requested_by="schedule"))
    await JobRuns(application.pool).finish(of_all, RunState.DONE)
    client = application.admin()

    listed = (await client.get("/v1/jobs")).json()["runs"]
    answers = [
        await client.request(method, f"/v1/jobs/{id_}{end}")
        for id_ in (theirs["id"], of_all, UUID(int=5))
        for method, end in (("GET", ""), ("POST", "/undo"))
    ]
    await neighbour.close_clients()

    assert [run["id"] for run in listed] == [mine["id"]]
    assert {answer.status_code for answer in answers} == {404}
    assert (await JobRuns(application.pool).get(of_all)).state is RunState.DONE


async def test_a_list_has_the_latest_first_of_one_job_if_asked(application: Application) -> None:
    made = [(await ordered(application, job=job))["id"] for job in ("sweep", "decay", "sweep")]
    client = application.admin()

    def ids(answer: httpx.Response) -> list[str]:
        return [run["id"] for run in answer.json()["runs"]]

    assert ids(await client.get("/v1/jobs")) == made[::-1]
    assert ids(await client.get("/v1/jobs", params={"job": "sweep"})) == [made[2], made[0]]
    assert ids(await client.get("/v1/jobs", params={"limit": 1})) == [made[2]]
    assert (await client.get("/v1/jobs", params={"limit": 0})).status_code == 422


async def test_what_a_run_did_is_shown_and_its_undo_is_queued(application: Application) -> None:
    await application.client().post("/v1/notes", json={"content": "the boat is green"})
    run = await run_job(application, "sweep", in_days(8))
    client = application.admin()

    shown = (await client.get(f"/v1/jobs/{run.id}")).json()
    undone = await client.post(f"/v1/jobs/{run.id}/undo")
    twice = await client.post(f"/v1/jobs/{run.id}/undo")

    assert (shown["state"], shown["counts"]["changed"]) == ("done", 1)
    assert f"  undo     lamina jobs undo {run.id}" in shown["report"]
    assert (undone.status_code, undone.json()["state"]) == (202, "undoing")
    assert twice.status_code == 202


async def test_what_cannot_be_undone_is_refused_with_the_reason(application: Application) -> None:
    dry = await run_job(application, "sweep", in_days(8), is_dry_run=True)
    queued = await ordered(application)
    undone = await run_job(application, "decay", in_days(8))
    await JobRuns(application.pool).finish(undone.id, RunState.UNDONE)
    learnt = await run_job(application, "learning", in_days(8))
    client = application.admin()

    answers = [await client.post(f"/v1/jobs/{id_}/undo") for id_ in (dry.id, queued["id"], undone.id, learnt.id)]

    assert [answer.status_code for answer in answers] == [409, 409, 409, 409]
    assert [answer.json()["detail"].partition(" ")[2].partition(" ")[2] for answer in answers] == [
        "was a dry run; it changed nothing",
        "is queued; only what has ended is undone, and once",
        "is undone; only what has ended is undone, and once",
        "was one of learning, which cannot be undone",
    ]


async def test_a_run_that_ended_long_ago_cannot_be_undone(application: Application) -> None:
    run = await run_job(application, "sweep", in_days(8))
    async with application.pool.connection() as connection:
        await connection.execute(
            "UPDATE job_runs SET finished_at = finished_at - interval '40 days' WHERE id = %s", [run.id]
        )

    refused = await application.admin().post(f"/v1/jobs/{run.id}/undo")

    assert refused.status_code == 409
    assert "a run can be undone for 30 days" in refused.text


async def test_the_schedule_has_every_job_with_its_times(application: Application) -> None:
    now = datetime.now(UTC)
    order = Order("sweep", Area(), now, requested_by=BY_SCHEDULE)
    by_schedule = await JobRuns(application.pool).get(await JobRuns(application.pool).add(order))
    await JobRuns(application.pool).finish(by_schedule.id, RunState.DONE)
    await ordered(application)

    jobs = {job["job"]: job for job in (await application.admin().get("/v1/jobs/schedule")).json()["jobs"]}

    assert list(jobs) == [*JOB_NAMES]
    assert jobs["sweep"]["schedule"] == "5 */6 * * *"
    assert jobs["sweep"]["told"] == JOBS["sweep"].description
    assert datetime.fromisoformat(jobs["sweep"]["last_at"]) == by_schedule.created_at
    assert now < datetime.fromisoformat(jobs["sweep"]["next_at"])
    assert all((job["schedule"] == "off") is (job["next_at"] is None) for job in jobs.values())


@pytest.mark.parametrize("job", ["audit", "caches"])
async def test_a_job_on_whole_tenants_refuses_a_part_of_one(application: Application, job: str) -> None:
    answer = await application.admin().post("/v1/jobs", json={"job": job, "workspace": "atlas"})

    assert answer.status_code == 422
    assert f"{job} works on whole tenants; leave it out" in answer.json()["detail"]
    assert await stored(application) == []
