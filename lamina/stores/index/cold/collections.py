"""The collections that cold notes lie in."""

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Literal, TypeVar
from uuid import UUID

from lamina.core.ports import Change, PlacedRecord, Record

Layout = Literal["per_namespace", "named", "shared"]
Key = TypeVar("Key", bound=Hashable)
MAX_SHOWN_CHARS = 32
_NO_LETTER = re.compile(r"[^A-Za-z0-9-]")


@dataclass(frozen=True, slots=True)
class Collection:
    """The ids of the namespace whose cold notes lie in a collection; without ids, those of all do."""

    tenant: str | None = None
    workspace: str | None = None
    namespace: str | None = None

    def name(self, layout: Layout = "per_namespace") -> str:
        """Return its name: a hash of the ids, which may hold anything but are never mixed up.

        Where collections are named, the ids stand before it, as far as their letters can stand in a name.
        """
        digest = hashlib.blake2b(digest_size=16)
        for part in (part for part in astuple(self) if part is not None):
            digest.update(len(part.encode()).to_bytes(8, "big") + part.encode())
        if layout != "named":
            return digest.hexdigest()
        shown = (_NO_LETTER.sub("-", part)[:MAX_SHOWN_CHARS] for part in astuple(self) if part is not None)
        return "_".join([*shown, digest.hexdigest()[:16]])


SHARED = Collection()


def collection_of(layout: Layout, tenant: str, workspace: str, namespace: str) -> Collection:
    """Return the collection that a namespace's cold notes lie in."""
    return SHARED if layout == "shared" else Collection(tenant, workspace, namespace)


def by_collection(
    changes: Sequence[Change[PlacedRecord]], key_of: Callable[[str, str, str], Key], everywhere: Iterable[Key]
) -> Mapping[Key, list[Change[Record]]]:
    """Return the changes of each collection, each memory once.

    One that was moved is removed from where it was, unless it lies in the same collection now.

    Args:
        changes: Changes of memories, with the namespace of each.
        key_of: The collection of a tenant, workspace and namespace.
        everywhere: The collections that may hold a memory that Postgres does not know any more.
    """
    grouped: dict[Key, dict[UUID, Change[Record]]] = {}
    for change in changes:
        placed = change.record
        here = everywhere if placed is None else [key_of(placed.tenant, placed.workspace, placed.namespace)]
        for key in here:
            group, record = grouped.setdefault(key, {}), placed.record if placed else None
            if record is not None or change.id not in group:
                group[change.id] = Change(change.id, record)
    return {key: list(group.values()) for key, group in grouped.items()}
