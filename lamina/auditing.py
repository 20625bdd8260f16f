"""The audit: what a projection holds against what Postgres says it should hold."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from lamina.links import Link, Node
from lamina.ports import Inventory, Placed, Record
from lamina.stores.postgres.outbox import Outbox, ProjectionName

PAGE = 500
_DIGITS = 9
State = Record | Placed | Node | None


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


def fingerprint(state: State) -> str | None:
    """Return what makes two states of a memory equal in a projection; ``None`` if nothing is to be there.

    Of an indexed memory it is the number of its chunks, of a node of the graph everything.
    """
    match state:
        case None:
            return None
        case Placed(record=record):
            return fingerprint(record)
        case Record(texts=texts):
            return str(len(texts))
        case Node():
            return _digest(state)


def _digest(node: Node) -> str:
    fields = (node.label, node.tenant, node.workspace, node.namespace, node.tier, node.user, node.name, node.seen_at)
    links = sorted(_fields(link) for link in node.links)
    return hashlib.blake2b(repr((fields, links)).encode(), digest_size=16).hexdigest()


def _fields(link: Link) -> tuple[str, ...]:
    users = None if link.users is None else sorted(link.users)
    seen_at = link.seen_at.isoformat()
    return str(link.target), link.kind, f"{link.strength:.{_DIGITS}f}", repr(users), seen_at


def compare(expected: Mapping[UUID, str], found: Mapping[UUID, str]) -> Drift:
    """Return how what was found differs from what was expected."""
    both = expected.keys() & found.keys()
    return Drift(
        expected=len(expected),
        found=len(found),
        missing=tuple(sorted(expected.keys() - found.keys())),
        surplus=tuple(sorted(found.keys() - expected.keys())),
        different=tuple(sorted(id_ for id_ in both if expected[id_] != found[id_])),
    )


async def audit(outbox: Outbox, projection: ProjectionName, store: Inventory, tenant: str) -> Drift:
    """Compare what one projection holds of a tenant with Postgres, memory by memory.

    What is still in the outbox shows as drift; audit when nothing is pending.
    """
    return compare(await _expected(outbox, projection, tenant), await store.inventory(tenant, fingerprint))


async def _expected(outbox: Outbox, projection: ProjectionName, tenant: str) -> dict[UUID, str]:
    states: dict[UUID, str] = {}
    after: UUID | None = None
    while ids := await outbox.ids(projection, tenant, after, PAGE):
        changes = await outbox.changes(projection, ids)
        states |= {change.id: state for change in changes if (state := fingerprint(change.record)) is not None}
        after = ids[-1]
    return states
