"""A reading of Meilisearch's filter expressions, for tests that have no server.

It follows the documented grammar and what the engine (1.13 to 1.50) makes of values: a text is trimmed, decomposed and
lower-cased before it is compared, one that reads as a number is compared as a number too, numbers are 64-bit floats.
It says which documents an expression selects, as far as that reading is right; a server has the last word.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

Document = Mapping[str, Any]
Selects = Callable[[Document], bool]
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[<>]=?|!?=|[()\[\],]|[\w.-]+)')
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
MAX_DEPTH = 150


def selects(expression: str, document: Document) -> bool:
    """Tell whether an expression selects a document."""
    return Reader(expression).read()(document)


class Reader:
    """Reads one expression."""

    def __init__(self, expression: str) -> None:
        self._tokens = _tokens(expression)
        self._place = 0

    def read(self) -> Selects:
        condition = self._or(0)
        assert self._next() is None, f"left over: {self._tokens[self._place - 1 :]}"
        return condition

    def _or(self, depth: int) -> Selects:
        parts = [self._and(depth + 1)]
        while self._is("OR"):
            parts.append(self._and(depth + 1))
        return lambda document: any(part(document) for part in parts)

    def _and(self, depth: int) -> Selects:
        parts = [self._not(depth + 1)]
        while self._is("AND"):
            parts.append(self._not(depth + 1))
        return lambda document: all(part(document) for part in parts)

    def _not(self, depth: int) -> Selects:
        assert depth + 1 <= MAX_DEPTH, "the engine reads nothing so deep"
        if self._is("NOT"):
            part = self._not(depth + 1)
            return lambda document: not part(document)
        if self._is("("):
            inner = self._or(depth + 2)
            assert self._is(")")
            return inner
        return self._condition(str(self._next()))

    def _condition(self, field: str) -> Selects:
        match self._next():
            case "EXISTS":
                return lambda document: field in document
            case "NOT":
                assert self._is("EXISTS")
                return lambda document: field not in document
            case "IN":
                values = self._list()
                return lambda document: any(_equal(document, field, value) for value in values)
            case "=":
                value = self._value()
                return lambda document: _equal(document, field, value)
            case str() as sign:
                compare, bound = _SIGNS[sign], float(self._value())
                return lambda document: any(compare(number, bound) for number in _numbers(document, field))
        raise AssertionError(field)

    def _list(self) -> list[str]:
        assert self._is("[")
        values = [self._value()]
        while self._is(","):
            values.append(self._value())
        assert self._is("]")
        return values

    def _value(self) -> str:
        token = self._next()
        assert token is not None
        if not token.startswith('"'):
            return token
        assert "\\" not in token, "how the engine reads a backslash is not told here"
        return token[1:-1]

    def _is(self, token: str) -> bool:
        if self._place < len(self._tokens) and self._tokens[self._place] == token:
            self._place += 1
            return True
        return False

    def _next(self) -> str | None:
        self._place += 1
        return self._tokens[self._place - 1] if self._place <= len(self._tokens) else None


def _tokens(expression: str) -> list[str]:
    tokens, place = [], 0
    while place < len(expression.rstrip()):
        found = _TOKEN.match(expression, place)
        assert found, expression[place:]
        tokens.append(found.group(1))
        place = found.end()
    return tokens


def _values(document: Document, field: str) -> list[Any]:
    value = document.get(field, [])
    return value if isinstance(value, list) else [value]


def _numbers(document: Document, field: str) -> list[float]:
    found = [_number(value) for value in _values(document, field)]
    return [number for number in found if number is not None]


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _equal(document: Document, field: str, value: str) -> bool:
    texts = {normalised(kept) for kept in _values(document, field) if isinstance(kept, str)}
    number = _number(value)
    return normalised(value) in texts or (number is not None and number in _numbers(document, field))


def normalised(text: str) -> str:
    """Return what the engine compares of a text."""
    return unicodedata.normalize("NFKD", text.strip()).lower()[:468]
