"""Which cold notes lie together."""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Literal, TypeVar

from lamina.core.ports import Change, Placed, Record

Layout = Literal["per_namespace", "shared"]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Collection:
    """Whose cold notes lie together; without ids everybody's do."""

    tenant: str | None = None
    workspace: str | None = None
    namespace: str | None = None

    def name(self) -> str:
        """Return what it is called: a hash of the ids, which may hold anything but are never mixed up."""
        digest = hashlib.blake2b(digest_size=16)
        for part in (part for part in astuple(self) if part is not None):
            digest.update(len(part.encode()).to_bytes(8, "big") + part.encode())
        return digest.hexdigest()


SHARED = Collection()


def collection_of(layout: Layout, tenant: str, workspace: str, namespace: str) -> Collection:
    """Return the collection that a namespace's cold notes lie in."""
    return SHARED if layout == "shared" else Collection(tenant, workspace, namespace)


def by_collection(
    changes: Sequence[Change[Placed]], key_of: Callable[[str, str, str], Key], everywhere: Iterable[Key]
) -> Mapping[Key, list[Change[Record]]]:
    """Return the changes of each collection.

    Args:
        changes: Of memories, which say where they belong.
        key_of: The collection of a tenant, workspace and namespace.
        everywhere: The collections that a memory may be in of which nothing is known any more.
    """
    grouped: dict[Key, list[Change[Record]]] = {}
    for change in changes:
        placed = change.record
        here = everywhere if placed is None else [key_of(placed.tenant, placed.workspace, placed.namespace)]
        for key in here:
            grouped.setdefault(key, []).append(Change(change.id, placed.record if placed else None))
    return grouped


def is_gone_somewhere(changes: Sequence[Change[Placed]]) -> bool:
    """Tell whether of some memory nothing is known any more, not even where it was."""
    return any(change.record is None for change in changes)
