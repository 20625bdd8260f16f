"""A query's scope and filters in the form of any index: each writes seven kinds of condition in its own dialect."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, assert_never

from lamina.core.ports import Change, Record
from lamina.core.queries import AllOf, AnyOf, Compare, Condition, Negation, Operator, Query
from lamina.core.scope import Scope

Expression = TypeVar("Expression")
# Values by ``gt``, ``gte``, ``lt`` and ``lte``.
Bounds = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dialect(Generic[Expression]):
    """The way in which an index writes conditions.

    Args:
        equals: The field has this text, or it among others.
        one_of: The field has one of these texts; of none of them, nothing passes.
        between: The field's number, or its moment if the bounds are moments, lies within them.
        is_missing: There is no such field.
        all_of: Every part holds; without parts, everything passes.
        any_of: Some part holds; without parts, nothing passes.
        negation: The part does not hold.
    """

    equals: Callable[[str, str], Expression]
    one_of: Callable[[str, Sequence[str]], Expression]
    between: Callable[[str, Bounds], Expression]
    is_missing: Callable[[str], Expression]
    all_of: Callable[[Sequence[Expression]], Expression]
    any_of: Callable[[Sequence[Expression]], Expression]
    negation: Callable[[Expression], Expression]


def has_moments(bounds: Bounds) -> bool:
    """Report whether the bounds are moments rather than numbers."""
    return any(isinstance(bound, datetime) for bound in bounds.values())


def scope_filter(scope: Scope, dialect: Dialect[Expression]) -> Expression:
    """Return the condition of the scope's tenant, workspace and namespace."""
    fields = {"tenant": scope.tenant, "workspace": scope.workspace, "namespace": scope.namespace}
    return dialect.all_of([dialect.equals(field, value) for field, value in fields.items()])


def query_filter(query: Query, dialect: Dialect[Expression], *, by_session: bool) -> Expression:
    """Return the condition of the chunks that the query may see and asks for.

    Args:
        query: Its scope and its filters.
        dialect: Of the index.
        by_session: Whether the query's session narrows it; messages belong to one, notes outlive it.
    """
    must = [scope_filter(query.scope, dialect), compile_condition(query.filters.condition(), dialect)]
    if query.scope.user is not None:
        must.append(dialect.any_of([dialect.equals("user", query.scope.user), dialect.is_missing("user")]))
    if by_session and query.scope.session is not None:
        must.append(dialect.equals("session", query.scope.session))
    return dialect.all_of(must)


def compile_condition(condition: Condition, dialect: Dialect[Expression]) -> Expression:
    """Return the condition as the index's own."""
    match condition:
        case Compare():
            return _comparison(condition, dialect)
        case AllOf(parts=parts):
            return dialect.all_of([compile_condition(part, dialect) for part in parts])
        case AnyOf(parts=parts):
            return dialect.any_of([compile_condition(part, dialect) for part in parts])
        case Negation(part=part):
            return dialect.negation(compile_condition(part, dialect))
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
            signs = ("gte", "lte") if compare.operator is Operator.EQ else (compare.operator.value,)
            return dialect.between(field, dict.fromkeys(signs, number))


def outdated_chunks(changes: Sequence[Change[Record]], dialect: Dialect[Expression]) -> Expression:
    """Return the condition of the chunks that changed memories no longer have: all of a deleted one.

    Memories of as many chunks share a part of it, for an engine may try each part on each chunk it holds.
    """
    of_length: dict[int, list[str]] = {}
    for change in changes:
        of_length.setdefault(len(change.record.texts) if change.record else 0, []).append(str(change.id))
    return dialect.any_of(
        [
            dialect.all_of([dialect.one_of("memory", ids), dialect.between("chunk", {"gte": length})])
            for length, ids in of_length.items()
        ]
    )
