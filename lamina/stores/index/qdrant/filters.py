"""Conditions for a Qdrant server."""

from qdrant_client import models

from lamina.stores.index.filters import Bounds, Dialect, has_moments

Condition = models.Condition


def _between(field: str, bounds: Bounds) -> Condition:
    interval = models.DatetimeRange(**bounds) if has_moments(bounds) else models.Range(**bounds)
    return models.FieldCondition(key=field, range=interval)


# Conditions as the client's models.
DIALECT: Dialect[Condition] = Dialect(
    equals=lambda field, value: models.FieldCondition(key=field, match=models.MatchValue(value=value)),
    one_of=lambda field, values: models.FieldCondition(key=field, match=models.MatchAny(any=list(values))),
    between=_between,
    is_missing=lambda field: models.IsEmptyCondition(is_empty=models.PayloadField(key=field)),
    all_of=lambda parts: models.Filter(must=list(parts)),
    # A filter without parts would let everything pass.
    any_of=lambda parts: models.Filter(should=list(parts) or [models.HasIdCondition(has_id=[])]),
    negation=lambda part: models.Filter(must_not=[part]),
)
