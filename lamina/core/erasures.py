"""Erasures of users: their progress, the traces that remain by nature, and their receipts."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

RECEIPT_FORMAT = "lamina-erasure-receipt/1"


class ErasureState(StrEnum):
    """State of an erasure."""

    ERASING = "erasing"
    REWRITING = "rewriting"  # Nothing of the user is found; the files that held it are written anew.
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Remnant:
    """A place that may hold something of an erased user for some time.

    Args:
        where: Files below the data directory, where ``*`` stands for any characters, or a place in words.
        holds: What may be there.
        ends: What ends it.
        until: When it has ended at the latest, if that is known.
    """

    where: str
    holds: str
    ends: str
    until: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as a receipt says it."""
        return asdict(self) | {"until": _iso(self.until)}


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure of a user, with its progress.

    Args:
        user: Name of the user, until nothing of that user is found.
        user_salt: Random bytes, hashed together with the name.
        user_hash: SHA-256 of them: a receipt tells no name, and can be shown to be about one.
        emptied_at: When nothing of the user was found any more.
        erased: Number of erased rows, by kind.
        left: Number of rows that were found when it was last looked, by kind.
        audited: Number of memories that a projection held and Postgres did not, by projection.
        waits_for: What it waits for, in words.
        receipt: The signed receipt, once it is complete.
    """

    id: UUID
    tenant: str
    user: str | None
    user_salt: bytes
    user_hash: bytes
    state: ErasureState
    requested_at: datetime
    emptied_at: datetime | None = None
    completed_at: datetime | None = None
    erased: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)
    audited: Mapping[str, int] = field(default_factory=dict)
    waits_for: tuple[str, ...] = ()
    receipt: Mapping[str, Any] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether it has its receipt."""
        return self.state is ErasureState.COMPLETE


def hash_user(salt: bytes, user: str) -> bytes:
    """Return the salted hash by which a receipt names a user."""
    return hashlib.sha256(salt + user.encode("utf-8", "surrogatepass")).digest()


def receipt_fields(erasure: Erasure, remnants: tuple[Remnant, ...], completed_at: datetime) -> dict[str, Any]:
    """Return the contents of the receipt of an erasure, as JSON."""
    return {
        "format": RECEIPT_FORMAT,
        "id": str(erasure.id),
        "tenant": erasure.tenant,
        "user": {"salt": erasure.user_salt.hex(), "sha256": erasure.user_hash.hex()},
        "requested_at": _iso(erasure.requested_at),
        "emptied_at": _iso(erasure.emptied_at),
        "completed_at": _iso(completed_at),
        "erased": dict(erasure.erased),
        "left": dict(erasure.left),
        "audited": dict(erasure.audited),
        "remains": [remnant.as_json() for remnant in remnants],
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
