"""How Qdrant Edge writes conditions, and the indexes of the fields that they look at."""

from collections.abc import Sequence
from datetime import datetime
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

from lamina.stores.index.filters import Bounds
from lamina.stores.index.ports import FIGURES, KEYWORDS, MOMENT

# Times have an index of their own type: a float holds no microseconds beyond the year 2255.
INDEXES: dict[str, Any] = {
    **{name: KeywordIndexParams(is_tenant=name == "tenant") for name in KEYWORDS},
    **{name: FloatIndexParams() for name in FIGURES},
    MOMENT: DatetimeIndexParams(),
}
"""Every field of the payload that is filtered by, with the parameters of its index."""


class EdgeDialect:
    """Conditions as the engine's own values."""

    def equals(self, field: str, value: str) -> Any:
        """Return: the field has this text, or it among others."""
        return FieldCondition(field, MatchValue(value))

    def one_of(self, field: str, values: Sequence[str]) -> Any:
        """Return: the field has one of these texts."""
        return FieldCondition(field, MatchAny(list(values)))

    def between(self, field: str, bounds: Bounds) -> Any:
        """Return: the field's number or moment lies within the bounds."""
        if any(isinstance(bound, datetime) for bound in bounds.values()):
            return FieldCondition(
                field, range=RangeDateTime(**{name: bound.isoformat() for name, bound in bounds.items()})
            )
        return FieldCondition(field, range=RangeFloat(**bounds))

    def is_missing(self, field: str) -> Any:
        """Return: there is no such field."""
        return IsEmptyCondition(field)

    def all_of(self, parts: Sequence[Any]) -> Any:
        """Return: every part holds."""
        return Filter(must=list(parts))

    def any_of(self, parts: Sequence[Any]) -> Any:
        """Return: some part holds; a filter without parts would let everything pass."""
        return Filter(should=list(parts) or [HasIdCondition(set())])

    def negation(self, part: Any) -> Any:
        """Return: the part does not hold."""
        return Filter(must_not=[part])


DIALECT = EdgeDialect()
