"""Jobs over whole tenants: the upkeep of the caches' tables, the audit of the projections."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from lamina.core.areas import Area
from lamina.core.runs import Counts
from lamina.core.tiers import ProjectionName
from lamina.errors import LaminaError
from lamina.maintenance.changes import Changes
from lamina.maintenance.pages import After, Page
from lamina.projections.audit import Drift
from lamina.stores.postgres.epochs import unsettle
from lamina.stores.postgres.outbox import enqueue

Purge = Callable[[datetime, str], Awaitable[Mapping[str, int]]]
Audit = Callable[[str], Awaitable[Drift]]
Repairs = Mapping[ProjectionName, Sequence[UUID]]


class UpkeepJob:
    """Removes from the caches' tables what has expired; nothing of it is the truth, and nothing is kept for an undo.

    Args:
        count: Tells how many rows of a tenant have expired.
        purge: Removes them.
    """

    def __init__(self, count: Callable[[datetime, str], Awaitable[int]], purge: Purge) -> None:
        self._count = count
        self._purge = purge

    async def decide(self, area: Area, after: After, moment: datetime) -> Page[bool]:  # noqa: ARG002 - one page
        """Count what has expired."""
        expired = await self._count(moment, _tenant(area))
        return Page(plan=True, seen=expired, planned=expired)

    async def act(self, changes: Changes, area: Area, plan: bool) -> Counts:  # noqa: ARG002 - all of it goes
        """Remove what has expired."""
        purged = await self._purge(changes.moment, _tenant(area))
        return Counts(changed=sum(purged.values()))

    async def size(self, area: Area) -> int:  # noqa: ARG002 - nothing leaves a search
        """Return 0: nothing leaves a search."""
        return 0


class AuditJob:
    """Compares every projection with Postgres, and has what differs taken over again.

    Args:
        audits: Compares one projection with Postgres, for a tenant.
    """

    def __init__(self, audits: Mapping[ProjectionName, Audit]) -> None:
        self._audits = audits

    async def decide(self, area: Area, after: After, moment: datetime) -> Page[Repairs]:  # noqa: ARG002 - one page
        """Compare; a projection that does not answer is a problem, and the others are compared all the same."""
        outcomes = {name: await _audited(audit, _tenant(area)) for name, audit in self._audits.items()}
        drifts = {name: drift for name, drift in outcomes.items() if isinstance(drift, Drift)}
        repairs: Repairs = {name: drift.ids() for name, drift in drifts.items() if drift.ids()}
        return Page(
            plan=repairs or None,
            seen=sum(drift.expected for drift in drifts.values()),
            planned=sum(map(len, repairs.values())),
            problems=tuple(f"{name} of {area}: {told}" for name, told in outcomes.items() if isinstance(told, str)),
        )

    async def act(self, changes: Changes, area: Area, plan: Repairs) -> Counts:
        """Put what differs into the outbox."""
        for projection, ids in plan.items():
            await enqueue(changes.connection, projection, ids)
        await unsettle(changes.connection, _tenant(area))
        return Counts(changed=sum(map(len, plan.values())))

    async def size(self, area: Area) -> int:  # noqa: ARG002 - nothing leaves a search
        """Return 0: nothing leaves a search."""
        return 0


async def _audited(audit: Audit, tenant: str) -> Drift | str:
    try:
        return await audit(tenant)
    except LaminaError as error:
        return str(error)


def _tenant(area: Area) -> str:
    assert area.tenant is not None  # noqa: S101 - the units of these jobs are tenants
    return area.tenant
