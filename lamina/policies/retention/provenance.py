"""What names a text that was made from others: the same sources always give the same id."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

from lamina.core.scope import Scope

_NAMESPACE = UUID("b8b2c1c4-7f0e-5d57-9c55-7a3d5f1f4e6b")


@dataclass(frozen=True, slots=True)
class Origin:
    """A memory that another one is made from, in the state that it had.

    Args:
        content_hash: Of its text then; another text makes another derived memory.
    """

    id: UUID
    content_hash: bytes


def derived_id(scope: Scope, user: str | None, what: Sequence[str], origins: Sequence[Origin]) -> UUID:
    """Return the id of what is made from these sources: a UUID of version 5 that depends on their set, not their order.

    Args:
        scope: Its tenant, workspace and namespace count.
        user: Whose it is; ``None``: everybody's.
        what: What is made, as ``("daily", "2026-11-20")``.
        origins: What it is made from.
    """
    place = [scope.tenant, scope.workspace, scope.namespace, user, *what]
    return uuid5(_NAMESPACE, json.dumps([*place, _digest(origins)]))


def _digest(origins: Sequence[Origin]) -> str:
    told = sorted(origin.id.bytes + hashlib.sha256(origin.content_hash).digest() for origin in set(origins))
    return hashlib.sha256(b"".join(told)).hexdigest()
