"""The filter language: its wire form, and the meaning of a condition.

:func:`matches` is the reference; every store's own form of a condition must select the same memories.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, assert_never

from lamina.core.memories import Category, as_utc
from lamina.core.queries import AllOf, AnyOf, Compare, Condition, FilterField, FilterValue, Memory, Negation, Operator
from lamina.core.tiers import Tier
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean, clean_id
from lamina.text.normal_forms import normalised

MAX_LEVELS = 16
MAX_COMPARISONS = 64
MAX_VALUES = 256
MAX_SHOWN_CHARS = 80

_ORDER: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.GT: operator.gt,
    Operator.GTE: operator.ge,
    Operator.LT: operator.lt,
    Operator.LTE: operator.le,
}


def matches(condition: Condition, memory: Memory) -> bool:
    """Tell whether the memory satisfies the condition.

    A missing value makes a comparison false, except ``eq`` with ``None``; a negation is the plain
    complement of what it negates.
    """
    match condition:
        case Compare():
            return _holds(condition, _value(memory, condition.field))
        case AllOf(parts=parts):
            return all(matches(part, memory) for part in parts)
        case AnyOf(parts=parts):
            return any(matches(part, memory) for part in parts)
        case Negation(part=part):
            return not matches(part, memory)
        case _ as other:
            assert_never(other)


def _value(memory: Memory, field: FilterField) -> Any:
    if field is FilterField.CATEGORY:
        return memory.kind if memory.tier is Tier.NOTES else None
    return getattr(memory, field.value)


def _holds(compare: Compare, value: Any) -> bool:
    if compare.operator is Operator.EQ:
        return bool(value == compare.value)
    if value is None:
        return False
    match compare.operator:
        case Operator.IN:
            return value in (compare.value or ())  # type: ignore[operator]  # a tuple of texts
        case Operator.CONTAINS:
            return compare.value in value
        case _ as ordered:
            return _ORDER[ordered](value, compare.value)


def parse(json: object, path: str) -> Condition:
    """Read a condition from its wire form; several keys of one object must all hold.

    ``{"and": […]}``, ``{"or": […]}``, ``{"not": {…}}``, and for a field its value or an object of
    operators: ``{"category": {"in": ["note"]}, "occurred_at": {"gte": "2026-03-01T10:00"}}``.

    Args:
        json: The decoded JSON; an empty object lets everything pass.
        path: Where it stands in the request.

    Raises:
        InvalidInput: Naming the path and what is accepted, for anything else.
    """
    return AllOf(()) if json == {} else _Reader().read(json, path, MAX_LEVELS)


class _Reader:
    """Reads one filter and stops at the first comparison too many."""

    def __init__(self) -> None:
        self._left = MAX_COMPARISONS

    def read(self, json: object, path: str, levels: int) -> Condition:
        if not isinstance(json, dict) or not json:
            raise InvalidInput(path, f"is {_shown(json)}; expected an object of fields, and, or, not")
        if levels == 0:
            raise InvalidInput(path, f"is nested deeper than {MAX_LEVELS} levels")
        return _all_of(self._member(key, value, f"{path}.{_cut(key)}", levels - 1) for key, value in json.items())

    def _member(self, key: str, value: object, path: str, levels: int) -> Condition:
        match key:
            case "and":
                return AllOf(self._several(value, path, levels))
            case "or":
                return AnyOf(self._several(value, path, levels))
            case "not":
                return Negation(self.read(value, path, levels))
            case _ if key in _FIELDS:
                return self._field(FilterField(key), value, path)
            case _:
                raise InvalidInput(path, f"is no field; expected one of {', '.join(_FIELDS)}, and, or, not")

    def _several(self, json: object, path: str, levels: int) -> tuple[Condition, ...]:
        if not isinstance(json, list) or not json:
            raise InvalidInput(path, f"is {_shown(json)}; expected a list of conditions")
        return tuple(self.read(part, f"{path}.{place}", levels) for place, part in enumerate(json))

    def _field(self, field: FilterField, json: object, path: str) -> Condition:
        shape = _SHAPES[field]
        if not isinstance(json, dict):
            return self._comparison(field, shape.bare, json, path)
        if not json:
            raise InvalidInput(path, f"is empty; expected one of the operators {', '.join(shape.operators)}")
        return _all_of(self._operation(field, key, value, f"{path}.{_cut(key)}") for key, value in json.items())

    def _operation(self, field: FilterField, key: str, json: object, path: str) -> Condition:
        operators = _SHAPES[field].operators
        if key not in operators:
            raise InvalidInput(path, f"is no operator of {field}; expected one of {', '.join(operators)}")
        if key == CONTAINS_ANY:
            tags = _listed(json, path)
            return AnyOf(tuple(self._comparison(field, Operator.CONTAINS, tag, where) for where, tag in tags))
        return self._comparison(field, Operator(key), json, path)

    def _comparison(self, field: FilterField, operator_: Operator, json: object, path: str) -> Compare:
        self._left -= 1
        if self._left < 0:
            raise InvalidInput(path.split(".", maxsplit=1)[0], f"has more than {MAX_COMPARISONS} comparisons")
        read = _SHAPES[field].value
        if operator_ is Operator.IN:
            texts = [_text(read(item, where)) for where, item in _listed(json, path)]
            return Compare(field, operator_, _in_any_form(texts) if field is FilterField.SOURCE else tuple(texts))
        if json is None and field in _NULLABLE and operator_ is Operator.EQ:
            return Compare(field, operator_, None)
        value = read(json, path)
        if field is FilterField.SOURCE and len(forms := _in_any_form([_text(value)])) > 1:
            return Compare(field, Operator.IN, forms)
        return Compare(field, operator_, value)


def _all_of(parts: Iterable[Condition]) -> Condition:
    found = tuple(parts)
    return found[0] if len(found) == 1 else AllOf(found)


def _listed(json: object, path: str) -> list[tuple[str, object]]:
    """Return the items of a list with their paths."""
    if not isinstance(json, list) or not 1 <= len(json) <= MAX_VALUES:
        found = f"a list of {len(json)}" if isinstance(json, list) else _shown(json)
        raise InvalidInput(path, f"is {found}; expected a list of 1 to {MAX_VALUES} texts")
    return [(f"{path}.{place}", item) for place, item in enumerate(json)]


def _text(value: FilterValue) -> str:
    assert isinstance(value, str)  # noqa: S101 - fields with ``in`` read texts
    return value


def _in_any_form(sources: Iterable[str]) -> tuple[str, ...]:
    """Return the texts as they are, composed and decomposed: a source is stored as it was sent."""
    forms = ((text, normalised("NFC", text), normalised("NFD", text)) for text in sources)
    return tuple(dict.fromkeys(chain.from_iterable(forms)))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _shown(json: object) -> str:
    match json:
        case dict() | list() if json:
            return "an object" if isinstance(json, dict) else "a list"
        case dict():
            return "an empty object"
        case list():
            return "an empty list"
        case str():
            return f'the text "{_cut(json)}"'
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[json]
        case _:
            return _cut(repr(json))


def _string(json: object, path: str) -> str:
    if not isinstance(json, str):
        raise InvalidInput(path, f"is {_shown(json)}; expected a text")
    return json


def _read_category(json: object, path: str) -> FilterValue:
    text = _string(json, path)
    if text not in list(Category):
        raise InvalidInput(path, f"is {_shown(text)}; expected one of {', '.join(Category)}")
    return text


def _read_id(json: object, path: str) -> FilterValue:
    return clean_id(_string(json, path), path)


def _read_source(json: object, path: str) -> FilterValue:
    return clean(_string(json, path), path)


def _read_number(json: object, path: str) -> FilterValue:
    if isinstance(json, bool) or not isinstance(json, int | float) or not _is_finite(json):
        raise InvalidInput(path, f"is {_shown(json)}; expected a number")
    return float(json)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer beyond every float
        return False


def _read_time(json: object, path: str) -> FilterValue:
    try:
        moment = datetime.fromisoformat(json) if isinstance(json, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise InvalidInput(path, f"is {_shown(json)}; expected a time in ISO 8601, such as 2026-03-01T10:00Z")
    return as_utc(moment, path)


class _Shape:
    """The conditions of a field: operators, the one that a bare value means, and how a value is parsed."""

    def __init__(self, value: Callable[[object, str], FilterValue], bare: Operator, *others: str) -> None:
        self.value = value
        self.bare = bare
        self.operators = (bare.value, *others)


CONTAINS_ANY = "contains_any"
_RANGE = ("gt", "gte", "lt", "lte")
_SHAPES: Mapping[FilterField, _Shape] = {
    FilterField.CATEGORY: _Shape(_read_category, Operator.EQ, "in"),
    FilterField.OCCURRED_AT: _Shape(_read_time, Operator.EQ, *_RANGE),
    FilterField.TAGS: _Shape(_read_id, Operator.CONTAINS, CONTAINS_ANY),
    FilterField.SOURCE: _Shape(_read_source, Operator.EQ, "in"),
    FilterField.USER: _Shape(_read_id, Operator.EQ, "in"),
    FilterField.AGENT: _Shape(_read_id, Operator.EQ, "in"),
    FilterField.SESSION: _Shape(_read_id, Operator.EQ, "in"),
    FilterField.CONFIDENCE: _Shape(_read_number, Operator.EQ, *_RANGE),
    FilterField.IMPORTANCE: _Shape(_read_number, Operator.EQ, *_RANGE),
}
_FIELDS = tuple(field.value for field in FilterField)
_NULLABLE = frozenset(field for field, shape in _SHAPES.items() if "in" in shape.operators)
