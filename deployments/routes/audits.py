"""The audit: every projection against Postgres."""

import asyncio

from fastapi import APIRouter

from deployments.access import WHOLE_TENANT, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.audits import AuditIn, AuditOut, DriftOut
from lamina.core.principals import Verb
from lamina.errors import LaminaError
from lamina.projections.audit import Audit, Drift
from lamina.stores.postgres.outbox import Lag

router = APIRouter(prefix="/v1", tags=["operations"], route_class=JsonRoute)


@router.post("/audit")
@allow(Access(Verb.MAINTAIN, WHOLE_TENANT))
async def audit(body: AuditIn, services: ServicesDep, principal: PrincipalDep) -> AuditOut:
    """Compare every projection with Postgres, memory by memory, and repair drift on request.

    A memory that is still in the outbox shows as drift; audit when nothing is pending.
    """
    lag = await services.reads.outbox.lag()
    compared = await asyncio.gather(*(_compare(audit, principal.tenant) for audit in services.audits.values()))
    results = dict(zip(services.audits, compared, strict=True))
    drifts = {name: drift for name, drift in results.items() if isinstance(drift, Drift)}
    failed = {name: reason for name, reason in results.items() if isinstance(reason, str)}
    if body.repair:
        for projection, drift in drifts.items():
            await services.reads.outbox.enqueue(projection, principal.tenant, drift.ids())
    projections = {name: _drift_out(drift, lag[name], is_repaired=body.repair) for name, drift in drifts.items()}
    consistent = not failed and not any(drift.ids() for drift in drifts.values())
    return AuditOut(consistent=consistent, projections=projections, failed=failed)


async def _compare(audit: Audit, tenant: str) -> Drift | str:
    """Return the drift of one projection, or why it could not be compared: the others still are."""
    try:
        return await audit(tenant)
    except LaminaError as error:
        return str(error)


def _drift_out(drift: Drift, lag: Lag, *, is_repaired: bool) -> DriftOut:
    return DriftOut(
        expected=drift.expected,
        found=drift.found,
        missing=len(drift.missing),
        surplus=len(drift.surplus),
        different=len(drift.different),
        pending=lag.pending,
        repaired=len(drift.ids()) if is_repaired else 0,
    )
