"""Changes in the middle of a JSON text, with comments and trailing commas too: every other byte stays as it was."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from lamina.text.json_spans import Span, item_spans, member_spans

_TOKENS = re.compile(r'"(?:\\.|[^"\\])*+(?:"|\Z)|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRINGS_AND_COMMAS = re.compile(r'"(?:\\.|[^"\\])*+(?:"|\Z)|,(?=\s*[}\]])', re.DOTALL)


def parsed(text: str) -> Any:
    """Return the value of a text; an object without members for an empty one.

    Raises:
        ValueError: If it is no JSON.
    """
    return json.loads(_plain(text)) if text.strip() else {}


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with a member set, behind those that are there; one that has the value already stays as it is.

    Raises:
        ValueError: If an object is expected where something else stands.
    """
    text = text if text.strip() else "{}\n"
    parsed(text)
    start, depth = _start(text), 1
    for place, name in enumerate(path):
        spans = _members(text, start)
        if name not in spans:
            nested: Any = value
            for inner in reversed(path[place + 1 :]):
                nested = {inner: nested}
            member = f"{json.dumps(name)}: {_dumped(nested, depth)}"
            return _behind(text, start, list(spans.values()), member, depth)
        start, end = spans[name]
        depth += 1
    if json.loads(_plain(text)[start:end]) == value:
        return text
    return f"{text[:start]}{_dumped(value, depth - 1)}{text[end:]}"


def without_member(text: str, path: Sequence[str]) -> str:
    """Return the text without a member, if it is there."""
    if not text.strip():
        return text
    start = _start(text)
    for name in path[:-1]:
        spans = _members(text, start)
        if name not in spans:
            return text
        start = spans[name][0]
    spans = _members(text, start)
    names = list(spans)
    if path[-1] not in names:
        return text
    at = names.index(path[-1])
    name_at = _plain(text).rindex(json.dumps(path[-1]), start, spans[path[-1]][0])
    return _cut(text, start, list(spans.values()), at, name_at, len(path))


def with_item(text: str, path: Sequence[str], value: Any, is_same: Callable[[Any], bool]) -> str:
    """Return the text with an item in a list, in place of the one that is the same, else behind the others."""
    start = _list_at(text, path)
    if start is None:
        return with_member(text, path, [value])
    plain = _plain(text)
    spans = item_spans(plain, start)
    for begin, end in spans:
        item = json.loads(plain[begin:end])
        if is_same(item):
            changed = f"{text[:begin]}{_dumped(value, len(path) + 1)}{text[end:]}"
            return text if item == value else changed
    return _behind(text, start, spans, _dumped(value, len(path) + 1), len(path) + 1)


def without_item(text: str, path: Sequence[str], is_same: Callable[[Any], bool]) -> str:
    """Return the text without the item of a list that is the same, if there is one."""
    start = _list_at(text, path) if text.strip() else None
    if start is None:
        return text
    plain = _plain(text)
    spans = item_spans(plain, start)
    at = next((at for at, (begin, end) in enumerate(spans) if is_same(json.loads(plain[begin:end]))), None)
    return text if at is None else _cut(text, start, spans, at, spans[at][0], len(path) + 1)


def _plain(text: str) -> str:
    """Return the text with blanks in place of comments and trailing commas, so that all places stay the same."""
    return _STRINGS_AND_COMMAS.sub(_blank, _TOKENS.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    token = found.group()
    return token if token.startswith('"') else re.sub(r"[^\n]", " ", token)


def _start(text: str) -> int:
    return len(text) - len(_plain(text).lstrip())


def _members(text: str, start: int) -> dict[str, Span]:
    plain = _plain(text)
    _, end = json.JSONDecoder().raw_decode(plain, start)
    spans = member_spans(plain[start:end])
    return {name: (begin + start, to + start) for name, (begin, to) in spans.items()}


def _list_at(text: str, path: Sequence[str]) -> int | None:
    start = _start(text) if text.strip() else None
    for name in path:
        span = None if start is None else _members(text, start).get(name)
        start = None if span is None else span[0]
    return start


def _dumped(value: Any, depth: int) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + "  " * depth)


def _behind(text: str, start: int, spans: Sequence[Span], member: str, depth: int) -> str:
    indent = "\n" + "  " * depth
    if spans:
        end = spans[-1][1]
        return f"{text[:end]},{indent}{member}{text[end:]}"
    return f"{text[: start + 1]}{indent}{member}\n{'  ' * (depth - 1)}{text[start + 1 :]}"


def _cut(text: str, start: int, spans: Sequence[Span], at: int, begin: int, depth: int) -> str:
    """Return the text without an entry and one comma; comments of others stay."""
    end = spans[at][1]
    if at > 0:
        last = spans[at - 1][1]
        comma = _plain(text).index(",", last, begin)
        between = text[last:comma] + text[comma + 1 : begin]
        return text[:last] + between.rstrip(" " if between.strip() else None) + text[end:]
    uncommented = _TOKENS.sub(_blank, text)
    if uncommented[end:].lstrip().startswith(","):  # A trailing one, too.
        comma = uncommented.index(",", end)
        own = text[end:comma]
        rest = text[comma + 1 :]
        text = text[:end] + (own if own.strip() else "") + (rest.lstrip(" \t\r\n") if len(spans) > 1 else rest)
    if len(spans) > 1:
        return text[:begin] + text[end:].lstrip(" \t\r\n")
    head = text[: start + 1] if text[start + 1 : begin].isspace() else text[:begin]
    return head + text[end:].removeprefix("\n" + "  " * (depth - 1))
