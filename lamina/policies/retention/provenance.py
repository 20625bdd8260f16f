"""Ids of derived memories: the same sources in the same state always give the same id."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

from lamina.core.scope import Scope

_NAMESPACE = UUID("b8b2c1c4-7f0e-5d57-9c55-7a3d5f1f4e6b")


@dataclass(frozen=True, slots=True)
class Origin:
    """A source of a derived memory, in one state.

    Args:
        content_hash: Of its text then; another text makes another derived memory.
    """

    id: UUID
    content_hash: bytes


def derived_id(scope: Scope, user: str | None, kind: Sequence[str], origins: Sequence[Origin]) -> UUID:
    """Return the id of a derived memory: a UUID of version 5 that depends on the set of its sources, not their order.

    Args:
        scope: Its tenant, workspace and namespace count.
        user: The user it belongs to; ``None``: everybody's.
        kind: The kind of memory, as ``("daily", "2026-11-20")``.
        origins: Its sources.
    """
    states = sorted(origin.id.bytes + hashlib.sha256(origin.content_hash).digest() for origin in set(origins))
    digest = hashlib.sha256(b"".join(states)).hexdigest()
    return uuid5(_NAMESPACE, json.dumps([scope.tenant, scope.workspace, scope.namespace, user, *kind, digest]))
