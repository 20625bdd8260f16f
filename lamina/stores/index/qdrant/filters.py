"""How a Qdrant server writes conditions."""

from collections.abc import Sequence
from datetime import datetime

from qdrant_client import models

from lamina.stores.index.filters import Bounds

Condition = models.Condition


class QdrantDialect:
    """Conditions as the client's models."""

    def equals(self, field: str, value: str) -> Condition:
        """Return: the field has this text, or it among others."""
        return models.FieldCondition(key=field, match=models.MatchValue(value=value))

    def one_of(self, field: str, values: Sequence[str]) -> Condition:
        """Return: the field has one of these texts."""
        return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))

    def between(self, field: str, bounds: Bounds) -> Condition:
        """Return: the field's number or moment lies within the bounds."""
        is_time = any(isinstance(bound, datetime) for bound in bounds.values())
        interval = models.DatetimeRange(**bounds) if is_time else models.Range(**bounds)
        return models.FieldCondition(key=field, range=interval)

    def is_missing(self, field: str) -> Condition:
        """Return: there is no such field."""
        return models.IsEmptyCondition(is_empty=models.PayloadField(key=field))

    def all_of(self, parts: Sequence[Condition]) -> models.Filter:
        """Return: every part holds."""
        return models.Filter(must=list(parts))

    def any_of(self, parts: Sequence[Condition]) -> models.Filter:
        """Return: some part holds; a filter without parts would let everything pass."""
        return models.Filter(should=list(parts) or [models.HasIdCondition(has_id=[])])

    def negation(self, part: Condition) -> models.Filter:
        """Return: the part does not hold."""
        return models.Filter(must_not=[part])


DIALECT = QdrantDialect()
