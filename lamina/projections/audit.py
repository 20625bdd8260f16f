"""The audit: the content of a projection against the rows of Postgres."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from lamina.core.fingerprints import fingerprint
from lamina.core.ports import Inventory
from lamina.core.tiers import ProjectionName
from lamina.stores.postgres.outbox import Outbox

# Vectors of this many memories are in memory at once.
PAGE = 500


@dataclass(frozen=True, slots=True)
class Drift:
    """How a projection differs from Postgres.

    Args:
        expected: Memories that belong in it.
        found: Memories that are in it.
        missing: Those that belong in it and are not.
        surplus: Those that are in it and do not belong.
        different: Those that are in it in another state.
    """

    expected: int
    found: int
    missing: tuple[UUID, ...] = ()
    surplus: tuple[UUID, ...] = ()
    different: tuple[UUID, ...] = ()

    def ids(self) -> tuple[UUID, ...]:
        """Return everything that a repair applies again."""
        return (*self.missing, *self.surplus, *self.different)


Audit = Callable[[str], Awaitable[Drift]]
"""Compares a tenant's part of one projection with Postgres."""


def compare(expected: Mapping[UUID, str], found: Mapping[UUID, str]) -> Drift:
    """Return the differences between expected and found fingerprints."""
    both = expected.keys() & found.keys()
    return Drift(
        expected=len(expected),
        found=len(found),
        missing=tuple(sorted(expected.keys() - found.keys())),
        surplus=tuple(sorted(found.keys() - expected.keys())),
        different=tuple(sorted(id_ for id_ in both if expected[id_] != found[id_])),
    )


async def audit(outbox: Outbox, projection: ProjectionName, store: Inventory, tenant: str) -> Drift:
    """Compare a tenant's memories in one projection with Postgres.

    What is still in the outbox shows as drift; audit when nothing is pending.
    """
    return compare(await _expected(outbox, projection, tenant), await store.inventory(tenant))


async def _expected(outbox: Outbox, projection: ProjectionName, tenant: str) -> dict[UUID, str]:
    states: dict[UUID, str] = {}
    after: UUID | None = None
    while ids := await outbox.ids(projection, tenant, after, PAGE):
        changes = await outbox.changes(projection, ids)
        states |= {change.id: state for change in changes if (state := fingerprint(change.record)) is not None}
        after = ids[-1]
    return states
