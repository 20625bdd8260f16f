"""Places of values in a JSON text, so that something is put in and every other byte stays as it came."""

import json
import re

Span = tuple[int, int]
_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\n\r]*")


def member_spans(text: str) -> dict[str, Span]:
    """Return where the value of each member of an object stands; of a repeated name the last, as readers take it.

    Raises:
        ValueError: If the text is no JSON object.
    """
    spans = dict[str, Span]()
    at = _after(text, _skipped(text, 0), "{")
    while not text.startswith("}", at):
        name, at = _DECODER.raw_decode(text, at)
        start = _skipped(text, _after(text, _skipped(text, at), ":"))
        _, end = _DECODER.raw_decode(text, start)
        spans[str(name)] = start, end
        at = _next(text, end, "}")
    return spans


def item_spans(text: str, start: int) -> list[Span]:
    """Return where each item of the list that begins at ``start`` stands.

    Raises:
        ValueError: If no list begins there.
    """
    spans: list[Span] = []
    at = _skipped(text, _after(text, start, "["))
    while not text.startswith("]", at):
        _, end = _DECODER.raw_decode(text, at)
        spans.append((at, end))
        at = _next(text, end, "]")
    return spans


def _next(text: str, at: int, closing: str) -> int:
    """Return where the next item begins, or the closing bracket stands."""
    at = _skipped(text, at)
    return at if text.startswith(closing, at) else _skipped(text, _after(text, at, ","))


def _after(text: str, at: int, mark: str) -> int:
    if not text.startswith(mark, at):
        raise ValueError(f"expected {mark} at character {at}")
    return _skipped(text, at + 1)


def _skipped(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    assert found is not None  # noqa: S101 - it matches nothing, too
    return found.end()
