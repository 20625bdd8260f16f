"""Read the front matter of Markdown: keys and values before the text, as YAML or TOML.

Nothing of it is trusted: no tag is constructed, no alias is followed, and what is no plain mapping stays text.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

import yaml

from lamina.core.memories import Metadata

MAX_CHARS = 65_536
MAX_DEPTH = 32
_OPENING = re.compile(r"(---|\+\+\+)[ \t]*\n")
_CLOSINGS = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*$", re.MULTILINE),
}
_KEY_LINE = re.compile(r"^[^\s#\-][^\n]*[:=]", re.MULTILINE)
# Plain scalars by the core schema of YAML 1.2, in which "no" is a word; a leading zero is part of a code.
_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?[0-9]{1,17}\.[0-9]{1,17}(?:[eE][-+]?[0-9]{1,2})?")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of a text.

    Args:
        end: Where the text after it begins.
        values: Its keys and values; ``None`` where it cannot be read, and is text itself.
    """

    end: int
    values: Metadata | None


class _RefusedError(ValueError):
    """YAML beyond plain mappings, lists and scalars."""


def find_front_matter(text: str) -> FrontMatter:
    """Return the front matter of a text; it ends at 0 if there is none."""
    opening = _OPENING.match(text)
    closing = opening and _CLOSINGS[opening.group(1)].search(text, opening.end())
    if opening is None or closing is None:
        return FrontMatter(0, None)
    inside, end = text[opening.end() : closing.start()], min(closing.end() + 1, len(text))
    if not _KEY_LINE.search(inside):  # Text between two rules.
        return FrontMatter(0, None)
    if len(inside) > MAX_CHARS:
        return FrontMatter(end, None)
    try:
        values = _read_yaml(inside) if opening.group(1) == "---" else _plain(tomllib.loads(inside), MAX_DEPTH)
    except (ValueError, yaml.YAMLError, RecursionError):
        return FrontMatter(end, None)
    return FrontMatter(end, values) if isinstance(values, dict) else FrontMatter(0, None)


def _read_yaml(text: str) -> Any:
    """Return the value of a YAML text, built from its events.

    Raises:
        YAMLError: For no YAML.
        _RefusedError: For aliases, anchors, tags, double keys, keys that are no scalars, more documents, and depth.
    """
    events = _contents(yaml.parse(text, Loader=_LOADER))
    return _value(next(events, None), events, MAX_DEPTH)


def _contents(events: Iterator[Any]) -> Iterator[Any]:
    documents = 0
    for event in events:
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1 or getattr(event, "anchor", None) or isinstance(event, yaml.AliasEvent):
            raise _RefusedError
        if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            if getattr(event, "tag", None):
                raise _RefusedError
            yield event
    if not documents:
        raise _RefusedError


def _value(event: Any, events: Iterator[Any], depth: int) -> Any:
    if depth == 0:
        raise _RefusedError
    match event:
        case yaml.ScalarEvent():
            return _scalar(event.value) if event.implicit[0] else event.value
        case yaml.SequenceStartEvent():
            items = []
            while not isinstance(item := next(events, None), yaml.SequenceEndEvent):
                items.append(_value(item, events, depth - 1))
            return items
        case yaml.MappingStartEvent():
            return _mapping(events, depth)
        case _:
            raise _RefusedError


def _mapping(events: Iterator[Any], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while not isinstance(key := next(events, None), yaml.MappingEndEvent):
        if not isinstance(key, yaml.ScalarEvent) or key.value in found:
            raise _RefusedError
        found[key.value] = _value(next(events, None), events, depth - 1)
    return found


def _scalar(text: str) -> Any:
    if (lowered := text.lower()) in _CONSTANTS:
        return _CONSTANTS[lowered]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _plain(value: Any, depth: int) -> Any:
    """Return a value of TOML as JSON has it; moments as text.

    Raises:
        _RefusedError: For more than 32 levels.
    """
    if depth == 0:
        raise _RefusedError
    match value:
        case dict():
            return {key: _plain(item, depth - 1) for key, item in value.items()}
        case list():
            return [_plain(item, depth - 1) for item in value]
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return value
