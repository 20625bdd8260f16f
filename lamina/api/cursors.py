"""Cursors: where a page of a list ended, as text that is of use for this list alone."""

import binascii
import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from lamina.errors import InvalidInput

MAX_CURSOR_CHARS = 8192
_DIGEST_BYTES = 12


def write_cursor(position: Sequence[Any], listed: Sequence[Any]) -> str:
    """Return the cursor of a position.

    Args:
        position: The values by which the list is ordered, of the last row that was shown.
        listed: What the list is of: its tenant, its route, its filters.
    """
    body = to_json(list(position))
    return urlsafe_b64encode(_digest(body, listed) + body).decode().rstrip("=")


def read_cursor(cursor: str, types: TypeAdapter[tuple[Any, ...]], listed: Sequence[Any]) -> tuple[Any, ...]:
    """Return the position that a cursor stands for.

    Raises:
        InvalidInput: If it is none of this list.
    """
    try:
        sent = urlsafe_b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}")
        body = sent[_DIGEST_BYTES:]
        if _digest(body, listed) == sent[:_DIGEST_BYTES]:
            return types.validate_json(body)
    except (binascii.Error, ValueError, ValidationError):
        pass
    raise InvalidInput("cursor", "is none of this list; send `next_cursor` of the page before, with the same filters")


def _digest(body: bytes, listed: Sequence[Any]) -> bytes:
    """Return a check that shows a cursor of another list, or a made-up one; it keeps nothing secret."""
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES, key=hashlib.sha256(to_json(list(listed))).digest()).digest()
