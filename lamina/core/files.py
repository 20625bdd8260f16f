"""Files of a workspace as values: their paths and their marks."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from lamina.core.documents import Span
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean, composed, is_blank
from lamina.text.patterns import regex

MAX_PATH_BYTES = 1000
MAX_MIRROR_CHARS = 500
# No key that a caller may send begins so: a document never takes the place of a file.
_KEY_PREFIX = "\x1f"
_CONTROL = regex.compile(r"\p{Cc}")
_LINE_END = regex.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as Postgres holds it.

    Args:
        content: Its text as it was sent; ``None`` where it was not asked for.
        etag: SHA-256 of the text, in hex.
        size: Bytes of the text in UTF-8.
        passages: How many passages searches find it by; none of a blank one.
    """

    id: UUID
    path: str
    content: str | None
    etag: str
    size: int
    passages: int
    is_always: bool
    mirror: str | None
    version: int
    workspace: str
    namespace: str
    user: str | None
    agent: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file that every context block of its workspace shows.

    Args:
        content: Its text; ``None`` if that is too long to be shown.
    """

    id: UUID
    path: str
    content: str | None
    user: str | None = None


def clean_path(value: str, field: str = "path") -> str:
    """Return the path of a file within its workspace, in NFC.

    Raises:
        InvalidInput: For one that is empty, too long, absolute, leads out of the workspace, or has a part without a
            visible character.
    """
    path = composed(clean(value, field))
    if len(path.encode()) > MAX_PATH_BYTES:
        raise InvalidInput(field, f"has {len(path.encode())} bytes in UTF-8; at most {MAX_PATH_BYTES} are accepted")
    if _CONTROL.search(path) or "\\" in path:
        raise InvalidInput(field, "contains a control character or a backslash; parts are separated by /")
    for part in path.split("/"):
        if part in {".", ".."}:
            raise InvalidInput(field, f"has the part {part!r}; name the file from the workspace's folder on")
        if is_blank(part):
            raise InvalidInput(field, "has an empty part; a path has no / at its beginning or end, and no two in a row")
    return path


def file_key(path: str) -> str:
    """Return the key of the document that a file is: a path may be longer than a key."""
    return _KEY_PREFIX + hashlib.sha256(path.encode()).hexdigest()


def text_hash(content: str) -> bytes:
    """Return the hash of a text, of which a file's ETag is made."""
    return hashlib.sha256(content.encode()).digest()


def spans_in_sent(content: str, normal: str, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return passages of a text whose line ends were made line feeds as passages of the text that was sent.

    Args:
        content: The text as it was sent.
        normal: The same without a byte order mark and without carriage returns.
        spans: In the normal text.
    """
    if content == normal:
        return tuple(spans)
    shift = 1 if content.startswith("\ufeff") else 0
    # Where in the normal text a line feed stands for two characters.
    pairs = [match.start() - number - shift for number, match in enumerate(regex.finditer("\r\n", content))]

    def sent(place: int) -> int:
        return place + shift + bisect_left(pairs, place)

    moved = [replace(span, start=sent(span.start), end=sent(span.end)) for span in spans]
    return (replace(moved[0], start=0), *moved[1:]) if moved else ()


def lines_of(content: str, spans: Sequence[Span]) -> tuple[tuple[int, int], ...]:
    """Return the first and the last line of each passage that holds something visible of it, from 1."""
    ends = [match.end() for match in _LINE_END.finditer(content)]
    lines = []
    for span in spans:
        text = content[span.start : span.end]
        begin = span.start + len(text) - len(text.lstrip())
        end = max(begin, span.start + len(text.rstrip()) - 1)
        lines.append((1 + bisect_right(ends, begin), 1 + bisect_right(ends, end)))
    return tuple(lines)
