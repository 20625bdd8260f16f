"""Conditions for Qdrant Edge, and the indexes of the fields that they look at."""

from typing import Any

from qdrant_edge import (
    DatetimeIndexParams,
    FieldCondition,
    Filter,
    FloatIndexParams,
    HasIdCondition,
    IsEmptyCondition,
    KeywordIndexParams,
    MatchAny,
    MatchValue,
    RangeDateTime,
    RangeFloat,
)

from lamina.stores.index.filters import Bounds, Dialect, has_moments
from lamina.stores.index.ports import KEYWORD_FIELDS, NUMBER_FIELDS, TIME_FIELD

# Times have an index of their own type: a float holds no microseconds beyond the year 2255.
# Every field of the payload that is filtered by, with the parameters of its index.
INDEXES: dict[str, Any] = {
    **{name: KeywordIndexParams(is_tenant=name == "tenant") for name in KEYWORD_FIELDS},
    **{name: FloatIndexParams() for name in NUMBER_FIELDS},
    TIME_FIELD: DatetimeIndexParams(),
}


def _between(field: str, bounds: Bounds) -> Any:
    if has_moments(bounds):
        moments = {name: bound.isoformat() for name, bound in bounds.items()}
        return FieldCondition(field, range=RangeDateTime(**moments))
    return FieldCondition(field, range=RangeFloat(**bounds))


# Conditions as the engine's own values.
DIALECT: Dialect[Any] = Dialect(
    equals=lambda field, value: FieldCondition(field, MatchValue(value)),
    one_of=lambda field, values: FieldCondition(field, MatchAny(list(values))),
    between=_between,
    is_missing=IsEmptyCondition,
    all_of=lambda parts: Filter(must=list(parts)),
    any_of=lambda parts: Filter(should=list(parts) or [HasIdCondition(set())]),  # Without parts, all would pass.
    negation=lambda part: Filter(must_not=[part]),
)
