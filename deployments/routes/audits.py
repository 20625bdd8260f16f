"""The audit: every projection against Postgres."""

import asyncio

from fastapi import APIRouter

from deployments.services import AdminDep, Audit, ServicesDep
from lamina.api.audits import AuditIn, AuditOut, DriftOut
from lamina.errors import LaminaError
from lamina.projections.audit import Drift
from lamina.stores.postgres.outbox import Lag

router = APIRouter(prefix="/v1", tags=["operations"])


@router.post("/audit")
async def audit(body: AuditIn, services: ServicesDep, credential: AdminDep) -> AuditOut:
    """Compare every projection with Postgres, memory by memory, and repair drift on request.

    A memory that is still in the outbox shows as drift; audit when nothing is pending.
    """
    lag = await services.reads.outbox.lag()
    drifts = await asyncio.gather(*(_audited(check, credential.tenant) for check in services.audits.values()))
    outcomes = dict(zip(services.audits, drifts, strict=True))
    report = {name: drift for name, drift in outcomes.items() if isinstance(drift, Drift)}
    failed = {name: reason for name, reason in outcomes.items() if isinstance(reason, str)}
    if body.repair:
        for projection, drift in report.items():
            await services.reads.outbox.enqueue(projection, credential.tenant, drift.ids())
    shown = {name: _shown(drift, lag[name], is_repaired=body.repair) for name, drift in report.items()}
    consistent = not failed and not any(drift.ids() for drift in report.values())
    return AuditOut(consistent=consistent, projections=shown, failed=failed)


async def _audited(check: Audit, tenant: str) -> Drift | str:
    try:
        return await check(tenant)
    except LaminaError as error:
        return str(error)


def _shown(drift: Drift, lag: Lag, *, is_repaired: bool) -> DriftOut:
    return DriftOut(
        expected=drift.expected,
        found=drift.found,
        missing=len(drift.missing),
        surplus=len(drift.surplus),
        different=len(drift.different),
        pending=lag.pending,
        repaired=len(drift.ids()) if is_repaired else 0,
    )
