"""The jobs over whole tenants: the caches' upkeep, the audit with its repair (field case 51)."""

from datetime import UTC, datetime, timedelta

from lamina.core.areas import Area
from lamina.core.runs import Order, RunState
from lamina.errors import Unavailable
from lamina.maintenance.tenant_jobs import AuditJob
from lamina.projections.audit import Drift
from tests.support.application import Application
from tests.support.jobs import driver_of, in_days, run_job


async def test_upkeep_removes_what_has_expired_and_nothing_else(application: Application) -> None:
    client = application.client()
    await client.post("/v1/responses", json={"query": "what is the boat", "response": {"a": 1}, "agent": "a"})
    await application.services.caches.flush()
    early = await run_job(application, "caches")
    dry = await run_job(application, "caches", in_days(40), is_dry_run=True)
    late = await run_job(application, "caches", in_days(40))
    again = await run_job(application, "caches", in_days(40))

    assert early.counts.changed == 0
    assert dry.counts.planned == late.counts.planned >= 1
    assert late.counts.changed >= 1
    assert again.counts.changed == 0


async def test_upkeep_ends_old_states_of_profiles_of_the_whole_tenant(application: Application) -> None:
    client, user = application.client(), {"user": "eve"}
    for liked in ("herons", "egrets", "storks"):
        await client.patch("/v1/users/profile", json={**user, "patch": {"likes": liked}})

    early = await run_job(application, "caches", in_days(300))
    late = await run_job(application, "caches", in_days(800))
    again = await run_job(application, "caches", in_days(800))

    assert [early.counts.changed, late.counts.planned, late.counts.changed, again.counts.changed] == [0, 2, 2, 0]
    versions = (await client.get("/v1/users/profile/versions", params=user)).json()["versions"]
    assert [one["version"] for one in versions] == [3]


async def test_a_projection_that_was_emptied_behind_our_back_is_repaired(unshared: Application) -> None:
    client = unshared.client()
    for number in range(3):
        await client.post("/v1/notes", json={"content": f"the boat has number {number}", "workspace": "audited"})
    await unshared.indexed()
    projection = unshared.tiers["notes"].projections["notes"]
    ids = await unshared.services.reads.outbox.ids("notes", unshared.tenant, None, 100)
    from lamina.core.ports import Change

    await projection.apply([Change(id_, None) for id_ in ids])

    first = await run_job(unshared, "audit")
    await unshared.indexed()
    second = await run_job(unshared, "audit")

    assert (first.counts.planned, first.counts.changed) == (3, 3)
    assert second.counts.planned == 0
    assert second.counts.seen >= 3


async def test_a_projection_that_does_not_answer_is_a_problem_and_the_others_are_compared(
    application: Application,
) -> None:
    async def broken(tenant: str) -> Drift:
        raise Unavailable("graph", "gone")

    async def fine(tenant: str) -> Drift:
        return Drift(expected=7, found=7)

    job = AuditJob({"graph": broken, "notes": fine})
    order = Order("audit", Area(application.tenant), datetime.now(UTC) + timedelta(seconds=1))
    run = await driver_of(application, "audit", job).start(order)

    assert (run.state, run.counts.seen) == (RunState.DONE, 7)
    assert [problem.partition(";")[0] for problem in run.problems] == [
        f"graph of tenant={application.tenant}: graph is not available: gone"
    ]
