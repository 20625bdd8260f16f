"""A query's scope and filters as filters of Qdrant Edge, and the payload that they look at."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

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

from lamina.ports import Record
from lamina.queries import AllOf, AnyOf, Compare, Condition, Negation, Operator, Query
from lamina.scope import Scope

# Times have an index of their own type: a float holds no microseconds beyond the year 2255.
INDEXES: dict[str, Any] = {
    "tenant": KeywordIndexParams(is_tenant=True),
    **{
        name: KeywordIndexParams()
        for name in ("workspace", "namespace", "user", "agent", "session", "category", "source", "tags", "memory")
    },
    **{name: FloatIndexParams() for name in ("confidence", "importance", "chunk")},
    "occurred_at": DatetimeIndexParams(),
}
"""Every field of the payload with the parameters of its index."""

_NEVER = HasIdCondition(set())


def payload(id_: UUID, record: Record) -> dict[str, Any]:
    """Return what is filtered by; what a memory lacks is missing."""
    fields = {
        "memory": str(id_),
        "tenant": record.tenant,
        "workspace": record.workspace,
        "namespace": record.namespace,
        "user": record.user,
        "agent": record.agent,
        "session": record.session,
        "category": record.category,
        "source": record.source,
        "tags": list(record.tags),
        "occurred_at": record.occurred_at.isoformat(),
        "confidence": record.confidence,
        "importance": record.importance,
    }
    return {key: value for key, value in fields.items() if value is not None}


def scope_filter(scope: Scope) -> Filter:
    """Return what lets the scope's tenant, workspace and namespace pass."""
    fields = {"tenant": scope.tenant, "workspace": scope.workspace, "namespace": scope.namespace}
    return Filter(must=[FieldCondition(key, MatchValue(value)) for key, value in fields.items()])


def query_filter(query: Query, *, by_session: bool) -> Filter:
    """Return what lets pass what the query may see and asks for.

    Args:
        query: Its scope and its filters.
        by_session: Whether the query's session narrows it; messages belong to one, notes outlive it.
    """
    must: list[Any] = [scope_filter(query.scope), compiled(query.filters.condition())]
    if query.scope.user is not None:
        mine = FieldCondition("user", MatchValue(query.scope.user))
        must.append(Filter(should=[mine, IsEmptyCondition("user")]))
    if by_session and query.scope.session is not None:
        must.append(FieldCondition("session", MatchValue(query.scope.session)))
    return Filter(must=must)


def compiled(condition: Condition) -> Any:
    """Return the condition as the engine's own."""
    match condition:
        case Compare():
            return _comparison(condition)
        case AllOf(parts=parts):
            return Filter(must=_each(parts))
        case AnyOf(parts=parts):
            return Filter(should=_each(parts) or [_NEVER])
        case Negation(part=part):
            return Filter(must_not=[compiled(part)])
        case _ as other:
            assert_never(other)


def _each(parts: Sequence[Condition]) -> list[Any]:
    return [compiled(part) for part in parts]


def _comparison(compare: Compare) -> Any:
    field = compare.field.value
    match compare.value:
        case None:
            return IsEmptyCondition(field)
        case tuple() as values:
            return FieldCondition(field, MatchAny(list(values)))
        case str() as text:
            return FieldCondition(field, MatchValue(text))
        case datetime() as moment:
            return FieldCondition(field, range=RangeDateTime(**_bounds(compare.operator, moment.isoformat())))
        case number:
            return FieldCondition(field, range=RangeFloat(**_bounds(compare.operator, number)))


def _bounds(operator: Operator, value: Any) -> dict[str, Any]:
    return {"gte": value, "lte": value} if operator is Operator.EQ else {operator.value: value}
