"""Fill the store of a projection that no service feeds yet, so that one may move there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from lamina.core.ports import AuditableProjection, Change
from lamina.core.tiers import ProjectionName
from lamina.projections.audit import audit
from lamina.stores.postgres.outbox import Outbox

PAGE = 500


@dataclass(frozen=True, slots=True)
class FillReport:
    """The figures of a store that was filled.

    Args:
        memories: How many it took over.
        removed: How many it held that Postgres does not know.
        differing: How many differ from Postgres all the same: they changed meanwhile.
    """

    memories: int
    removed: int
    differing: int


async def fill(
    outbox: Outbox,
    projection: ProjectionName,
    store: AuditableProjection[Any],
    tenants: Sequence[str],
    report_page: Callable[[int], None],
) -> FillReport:
    """Fill a store that no indexer feeds yet with every memory, and compare it with Postgres.

    Changes meanwhile may be missed: the service that begins to feed the store applies everything again.

    Args:
        outbox: Reads the memories.
        projection: The projection.
        store: Takes them over.
        tenants: Whose memories.
        report_page: Called with the size of each page that was taken over.

    Raises:
        Unavailable: If a store does not answer; the part that it took over stays.
    """
    memories = 0
    for tenant in tenants:
        after: UUID | None = None
        while ids := await outbox.ids(projection, tenant, after, PAGE):
            await store.apply(await outbox.changes(projection, ids))
            after = ids[-1]
            memories += len(ids)
            report_page(len(ids))
    await store.flush()
    drifts = [await audit(outbox, projection, store, tenant) for tenant in tenants]
    surplus = [id_ for drift in drifts for id_ in drift.surplus]
    await store.apply([Change(id_, None) for id_ in surplus])
    await store.flush()
    return FillReport(memories, len(surplus), sum(len(drift.missing) + len(drift.different) for drift in drifts))
