"""Examples in Markdown: requests with their answers, and blocks of code.

A block ``http`` holds a method, a path and a JSON body; the block ``json`` after it holds a status and the answer.
``"…"`` stands for any value, and as the last item of a list, or as a key of an object, for anything more. ``"<name>"``
stands for any value, too, and ``<name>`` in a later request is replaced by it. A word after ``http`` names the role.
"""

import json
import re
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

ANY = "…"
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CAPTURE = re.compile(r"<(\w+)>")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of that line, its text, and the line where it begins."""

    language: str
    info: str
    text: str
    line: int


@dataclass(frozen=True)
class Exchange:
    """A request and the answer that the document promises."""

    line: int
    role: str
    method: str
    path: str
    body: str
    status: int
    answer: Any


def blocks_of(document: Path) -> list[Block]:
    """Return the fenced blocks of a document, in order."""
    text = document.read_text()
    return [
        Block(found[1], found[2].strip(), found[3], text.count("\n", 0, found.start()) + 1)
        for found in _BLOCK.finditer(text)
    ]


def exchanges_of(document: Path) -> Iterator[Exchange]:
    """Yield each request of a document with the answer in the block after it."""
    blocks = blocks_of(document)
    for request, answer in pairwise(blocks):
        if request.language != "http":
            continue
        assert answer.language == "json", f"{document.name}:{request.line} has no answer after it"
        line, _, body = request.text.partition("\n")
        method, path = line.split(maxsplit=1)
        status, _, expected = answer.text.partition("\n")
        yield Exchange(
            request.line,
            request.info or "writer",
            method,
            path,
            body.strip(),
            int(status),
            json.loads(expected) if expected.strip() else None,
        )


def filled(text: str, captured: MutableMapping[str, str]) -> str:
    """Replace ``<name>`` by the value that an earlier answer had there."""
    return _CAPTURE.sub(lambda found: captured.get(found[1], found[0]), text)


def difference(expected: Any, seen: Any, captured: MutableMapping[str, str], place: str = "answer") -> str | None:
    """Return the first place where an answer differs from the promised one; capture values on the way."""
    parts: Iterable[tuple[Any, Any, str]] = ()
    fault = None
    match expected:
        case str() if expected == ANY:
            pass
        case str() if found := _CAPTURE.fullmatch(expected):
            captured[found[1]] = str(seen)
        case dict() if isinstance(seen, dict):
            named = {key: value for key, value in expected.items() if key != ANY}
            more = set() if ANY in expected else seen.keys() - named.keys()
            missing = named.keys() - seen.keys()
            fault = f"{place} lacks {sorted(missing)} and also has {sorted(more)}" if missing or more else None
            parts = ((value, seen.get(key), f"{place}.{key}") for key, value in named.items())
        case list() if isinstance(seen, list):
            is_open = expected[-1:] == [ANY]
            wanted = expected[:-1] if is_open else expected
            if len(seen) < len(wanted) or (not is_open and len(seen) > len(wanted)):
                fault = f"{place} has {len(seen)} items"
            parts = ((value, item, f"{place}.{at}") for at, (value, item) in enumerate(zip(wanted, seen, strict=False)))
        case _ if expected != seen:
            fault = f"{place} is {seen!r}, not {expected!r}"
    return fault or next((found for part in parts if (found := difference(part[0], part[1], captured, part[2]))), None)


def links_of(document: Path) -> Iterator[tuple[str, bool]]:
    """Yield each link to a file or heading of the repository, and whether that is there."""
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        path, _, heading = target.partition("#")
        if "://" in target:
            continue
        file = document.parent / path if path else document
        yield target, file.exists() and (not heading or heading in _anchors(file))


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
