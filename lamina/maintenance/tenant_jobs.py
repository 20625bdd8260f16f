"""The jobs caches and audit, which work on whole tenants."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lamina.core.areas import Area
from lamina.core.runs import RunCounts
from lamina.core.tiers import ProjectionName
from lamina.errors import LaminaError
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.projections.audit import Audit, Drift
from lamina.stores.postgres.epochs import unsettle
from lamina.stores.postgres.outbox import enqueue

Repairs = Mapping[ProjectionName, Sequence[UUID]]


@dataclass(frozen=True, slots=True)
class CacheExpiryJob:
    """Removes expired rows from the caches' tables, which are copies, and what ended long ago: it needs no undo.

    Args:
        count: Counts the expired rows of a tenant.
        purge: Removes them, and returns their number.
    """

    count: Callable[[datetime, str], Awaitable[int]]
    purge: Callable[[datetime, str], Awaitable[int]]

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[bool]:  # noqa: ARG002 - one page
        """Count the expired rows."""
        expired = await self.count(moment, _tenant(area))
        return Page(plan=True, seen=expired, planned=expired)

    async def act(self, writer: RowWriter, area: Area, plan: bool) -> RunCounts:  # noqa: ARG002 - all of it goes
        """Remove the expired rows."""
        return RunCounts(changed=await self.purge(writer.moment, _tenant(area)))


@dataclass(frozen=True, slots=True)
class AuditJob:
    """Compares every projection with Postgres, and queues the rows that differ.

    Args:
        audits: Compares one projection with Postgres, for a tenant.
    """

    audits: Mapping[ProjectionName, Audit]

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[Repairs]:  # noqa: ARG002 - one page
        """Compare all projections; one that does not answer is a problem of the page."""
        drifts: dict[ProjectionName, Drift] = {}
        problems = []
        for name, audit in self.audits.items():
            try:
                drifts[name] = await audit(_tenant(area))
            except LaminaError as error:
                problems.append(f"{name} of {area}: {error}")
        repairs: Repairs = {name: drift.ids() for name, drift in drifts.items() if drift.ids()}
        return Page(
            plan=repairs or None,
            seen=sum(drift.expected for drift in drifts.values()),
            planned=sum(map(len, repairs.values())),
            problems=tuple(problems),
        )

    async def act(self, writer: RowWriter, area: Area, plan: Repairs) -> RunCounts:
        """Put the rows that differ into the outbox."""
        for projection, ids in plan.items():
            await enqueue(writer.connection, projection, ids)
        await unsettle(writer.connection, _tenant(area))
        return RunCounts(changed=sum(map(len, plan.values())))


def _tenant(area: Area) -> str:
    assert area.tenant is not None  # noqa: S101 - the units of these jobs are tenants
    return area.tenant
