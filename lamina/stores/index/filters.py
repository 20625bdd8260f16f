"""A query's scope and filters in the form of any index: each writes seven kinds of condition in its own dialect."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar, assert_never

from lamina.core.queries import AllOf, AnyOf, Compare, Condition, Negation, Operator, Query
from lamina.core.scope import Scope

Expression = TypeVar("Expression")
Bounds = Mapping[str, Any]
"""Values by ``gt``, ``gte``, ``lt`` and ``lte``."""


class Dialect(Protocol[Expression]):
    """How an index writes conditions; seven methods, for a condition has so many kinds."""

    def equals(self, field: str, value: str) -> Expression:
        """Return: the field has this text, or it among others."""
        ...

    def one_of(self, field: str, values: Sequence[str]) -> Expression:
        """Return: the field has one of these texts; of none of them, nothing."""
        ...

    def between(self, field: str, bounds: Bounds) -> Expression:
        """Return: the field's number, or its moment where the bounds are some, lies within them."""
        ...

    def is_missing(self, field: str) -> Expression:
        """Return: there is no such field."""
        ...

    def all_of(self, parts: Sequence[Expression]) -> Expression:
        """Return: every part holds; everything, if there is none."""
        ...

    def any_of(self, parts: Sequence[Expression]) -> Expression:
        """Return: some part holds; nothing, if there is none."""
        ...

    def negation(self, part: Expression) -> Expression:
        """Return: the part does not hold."""
        ...


def scope_filter(scope: Scope, dialect: Dialect[Expression]) -> Expression:
    """Return what lets the scope's tenant, workspace and namespace pass."""
    fields = {"tenant": scope.tenant, "workspace": scope.workspace, "namespace": scope.namespace}
    return dialect.all_of([dialect.equals(field, value) for field, value in fields.items()])


def query_filter(query: Query, dialect: Dialect[Expression], *, by_session: bool) -> Expression:
    """Return what lets pass what the query may see and asks for.

    Args:
        query: Its scope and its filters.
        dialect: Of the index.
        by_session: Whether the query's session narrows it; messages belong to one, notes outlive it.
    """
    must = [scope_filter(query.scope, dialect), compiled(query.filters.condition(), dialect)]
    if query.scope.user is not None:
        must.append(dialect.any_of([dialect.equals("user", query.scope.user), dialect.is_missing("user")]))
    if by_session and query.scope.session is not None:
        must.append(dialect.equals("session", query.scope.session))
    return dialect.all_of(must)


def compiled(condition: Condition, dialect: Dialect[Expression]) -> Expression:
    """Return the condition as the index's own."""
    match condition:
        case Compare():
            return _comparison(condition, dialect)
        case AllOf(parts=parts):
            return dialect.all_of([compiled(part, dialect) for part in parts])
        case AnyOf(parts=parts):
            return dialect.any_of([compiled(part, dialect) for part in parts])
        case Negation(part=part):
            return dialect.negation(compiled(part, dialect))
        case _ as other:
            assert_never(other)


def _comparison(compare: Compare, dialect: Dialect[Expression]) -> Expression:
    field = compare.field.value
    match compare.value:
        case None:
            return dialect.is_missing(field)
        case tuple() as values:
            return dialect.one_of(field, values)
        case str() as text:
            return dialect.equals(field, text)
        case number:
            return dialect.between(field, _bounds(compare.operator, number))


def _bounds(operator: Operator, value: float | datetime) -> Bounds:
    return {"gte": value, "lte": value} if operator is Operator.EQ else {operator.value: value}
