"""The audit: every projection against Postgres."""

import asyncio

from fastapi import APIRouter
from pydantic import BaseModel, Field

from deployments.routes.models import Strict
from deployments.services import AdminDep, ServicesDep
from lamina.auditing import Drift
from lamina.stores.postgres.outbox import Lag

router = APIRouter(prefix="/v1", tags=["operations"])


class AuditIn(Strict):
    """What to do about drift."""

    repair: bool = Field(default=False, description="Have what differs taken over from Postgres again.")


class DriftOut(BaseModel):
    """How a projection differs from Postgres, in this key's tenant."""

    expected: int = Field(description="Memories that belong in it.")
    found: int = Field(description="Memories that are in it.")
    missing: int = Field(description="Those that belong in it and are not.")
    surplus: int = Field(description="Those that are in it and do not belong.")
    different: int = Field(description="Those that are in it in another state.")
    pending: int = Field(description="Memories of any tenant that the outbox still holds for it.")
    repaired: int = Field(description="Memories that were put into the outbox to be taken over again.")


class AuditOut(BaseModel):
    """The audit's report."""

    consistent: bool = Field(description="Whether every projection holds what Postgres says.")
    projections: dict[str, DriftOut] = Field(description="One entry a projection.")


@router.post("/audit")
async def audit(body: AuditIn, services: ServicesDep, credential: AdminDep) -> AuditOut:
    """Compare every projection with Postgres, memory by memory, and repair what differs if asked to.

    A memory that is still in the outbox shows as drift; audit when nothing is pending.
    """
    lag = await services.reads.outbox.lag()
    drifts = await asyncio.gather(*(check(credential.tenant) for check in services.audits.values()))
    report = dict(zip(services.audits, drifts, strict=True))
    if body.repair:
        for projection, drift in report.items():
            await services.reads.outbox.enqueue(projection, drift.ids())
    shown = {name: _shown(drift, lag[name], is_repaired=body.repair) for name, drift in report.items()}
    return AuditOut(consistent=not any(drift.ids() for drift in drifts), projections=shown)


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
