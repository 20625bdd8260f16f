"""Maintenance jobs: order them, watch them, undo them; the cluster runs them."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from deployments.access import EVERYWHERE, WHOLE_PLACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import WriteKeyDep
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.fields import Id
from lamina.api.jobs import JobIn, RunOut, RunsOut, ScheduledOut, ScheduleOut
from lamina.core.areas import Area
from lamina.core.principals import Verb
from lamina.core.runs import BY_SCHEDULE, JOB_NAMES, JobName, Order, Run
from lamina.errors import InvalidInput
from lamina.maintenance.report import report
from lamina.maintenance.schedule import schedules
from lamina.maintenance.undo import request_undo
from lamina.stores.postgres.owners import OwnedKind
from lamina.text.hygiene import clean_id
from lamina.wiring.jobs import JOBS, refuse_area_within_tenant, undo_window
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1", tags=["operations"], route_class=JsonRoute)
BY_API = "api"
MOST_OPEN = 50


@router.post("/jobs", status_code=HTTPStatus.ACCEPTED)
@allow(Access(Verb.MAINTAIN, WHOLE_PLACE))
async def order(body: JobIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep) -> RunOut:
    """Order a job on the key's tenant, or a part of it; the cluster runs it. Needs an admin's key."""
    if body.tenant not in {None, principal.tenant}:
        raise InvalidInput("tenant", f"is {body.tenant}, which is not the key's; leave it out")
    area = Area(principal.tenant, body.workspace, body.namespace)
    refuse_area_within_tenant(body.job, area)
    job_order = Order(body.job, area, utc_now(), is_dry_run=body.dry_run, is_forced=body.force, requested_by=BY_API)
    added = await services.runs.add(job_order, write_key.once(principal.tenant, body), most_open=MOST_OPEN)
    return _run_out(await services.runs.get(added, principal.tenant))


@router.get("/jobs")
@allow(Access(Verb.MAINTAIN, WHOLE_PLACE))
async def list_runs(
    services: ServicesDep,
    principal: PrincipalDep,
    listing: Annotated[Listing, paged(AwareDatetime, UUID, default=20, most=200)],
    job: Annotated[JobName | None, Query(description="Only this job's.")] = None,
    workspace: Annotated[Id | None, Query(description="Only those on this workspace, or a part of it.")] = None,
    namespace: Annotated[Id | None, Query(description="Only those on this namespace.")] = None,
) -> RunsOut:
    """List the latest runs on the key's tenant. Needs an admin's key."""
    project = None if workspace is None else clean_id(workspace, "workspace")
    part = None if namespace is None else clean_id(namespace, "namespace")
    after, limit = listing.page.after or None, listing.page.limit + 1
    found = await services.runs.latest(
        job, principal.tenant, workspace=project, namespace=part, limit=limit, after=after
    )
    runs, following = listing.cut(found, lambda run: (run.created_at, run.id))
    return RunsOut(runs=[_run_out(run) for run in runs], next_cursor=following)


@router.get("/jobs/schedule")
@allow(Access(Verb.MAINTAIN, EVERYWHERE))
async def show_schedule(services: ServicesDep, principal: PrincipalDep) -> ScheduleOut:  # noqa: ARG001 - the schedule is everybody's
    """Return when each job runs by itself. Needs an admin's key."""
    chosen = services.settings.jobs
    due = schedules(chosen.schedule) if chosen.is_scheduled else {}
    last = {name: await services.runs.last_at(name, BY_SCHEDULE) for name in JOB_NAMES}
    now = utc_now()
    return ScheduleOut(
        jobs=[
            ScheduledOut(
                job=name,
                told=JOBS[name].description,
                schedule=due[name].expression if name in due else "off",
                next_at=due[name].next_at(now) if name in due else None,
                last_at=last[name],
            )
            for name in JOB_NAMES
        ]
    )


@router.get("/jobs/{id}")
@allow(Access(Verb.MAINTAIN, WHOLE_PLACE, of=OwnedKind.RUN))
async def show_run(id: UUID, services: ServicesDep, principal: PrincipalDep) -> RunOut:
    """Report on a run: its progress, or its result. Needs an admin's key."""
    return _run_out(await services.runs.get(id, principal.tenant))


@router.post("/jobs/{id}/undo", status_code=HTTPStatus.ACCEPTED)
@allow(Access(Verb.MAINTAIN, WHOLE_PLACE, of=OwnedKind.RUN))
async def undo(id: UUID, services: ServicesDep, principal: PrincipalDep) -> RunOut:
    """Give every row that nobody changed since the run its values of before. Needs an admin's key."""
    await request_undo(services.runs, id, utc_now(), undo_window(services.settings), principal.tenant)
    return _run_out(await services.runs.get(id, principal.tenant))


def _run_out(run: Run) -> RunOut:
    return RunOut.from_run(run, report(run, JOBS[run.order.job].description))
