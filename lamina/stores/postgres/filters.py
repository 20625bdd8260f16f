"""Filters and scopes of queries as conditions and parameters of statements."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any, assert_never

import numpy as np
from pgvector import Vector

from lamina.core.queries import AllOf, AnyOf, Compare, Condition, FilterField, Filters, Negation, Operator, Place, Query
from lamina.stores.postgres.connection import scope_parameters

MARKER = "/*filters*/ true"
# The SQL expression of each field in one statement; ours alone, never from input.
Columns = Mapping[FilterField, str]

_COMPARISONS = {Operator.GT: ">", Operator.GTE: ">=", Operator.LT: "<", Operator.LTE: "<="}


def apply_filters(
    template: bytes, filters: Filters, columns: Columns, marker: str = MARKER
) -> tuple[bytes, dict[str, Any]]:
    """Replace the marker of a statement by the filters; return the text and their parameters.

    ``min_weight`` is a parameter of its own, which only statements over notes refer to. A statement over two tables has
    a marker for each; the parameters of both are the same.
    """
    assert marker.encode() in template, template  # noqa: S101 - a statement of ours, which would ignore the filters
    text, parameters = _compile(filters.condition(), columns, (f"filter_{place}" for place in count()))
    replaced = template.replace(marker.encode(), f"({text})".encode())
    return replaced, {**parameters, "min_weight": filters.min_weight}


def _compile(condition: Condition, columns: Columns, names: Iterator[str]) -> tuple[str, dict[str, Any]]:
    match condition:
        case Compare():
            return _compile_comparison(condition, columns[condition.field], next(names))
        case AllOf(parts=parts):
            return _join([_compile(part, columns, names) for part in parts], "AND", "true")
        case AnyOf(parts=parts):
            return _join([_compile(part, columns, names) for part in parts], "OR", "false")
        case Negation(part=part):
            text, parameters = _compile(part, columns, names)
            # A comparison with a missing value is null, which counts as false here and in a WHERE.
            return f"({text}) IS NOT TRUE", parameters
        case _ as other:
            assert_never(other)


def _join(parts: Sequence[tuple[str, dict[str, Any]]], word: str, empty: str) -> tuple[str, dict[str, Any]]:
    text = f" {word} ".join(f"({text})" for text, _ in parts)
    return text or empty, {name: value for _, parameters in parts for name, value in parameters.items()}


def _compile_comparison(compare: Compare, column: str, name: str) -> tuple[str, dict[str, Any]]:
    if compare.value is None:
        return f"{column} IS NULL", {}
    value = list(compare.value) if isinstance(compare.value, tuple) else compare.value
    return _comparison_text(compare, column, f"%({name})s::{_sql_type(compare)}"), {name: value}


def _comparison_text(compare: Compare, column: str, parameter: str) -> str:
    match compare.operator:
        case Operator.EQ:
            return f"{column} = {parameter}"
        case Operator.IN:
            return f"{column} = ANY({parameter})"
        case Operator.CONTAINS:
            return f"{column} @> ARRAY[{parameter}]"
        case _ as operator:
            return f"{column} {_COMPARISONS[operator]} {parameter}"


def _sql_type(compare: Compare) -> str:
    if compare.operator is Operator.IN:
        return "text[]"
    match compare.value:
        case datetime():
            return "timestamptz"
        case float() | int():
            return "float8"
        case _:
            return "text"


def query_parameters(query: Query) -> dict[str, Any]:
    """Return the parameters of a searching statement, but for those of its filters."""
    embedding = None if query.embedding is None else Vector(np.frombuffer(query.embedding, dtype=np.float32))
    return {
        **scope_parameters(query.scope),
        "embedding": embedding,
        "generation": query.generation,
        "words": " ".join(query.words),
    }


def place_parameters(places: Sequence[Place]) -> dict[str, Any]:
    """Return (memory id, chunk) places as two arrays of equal length."""
    return {"ids": [id_ for id_, _ in places], "chunks": [chunk for _, chunk in places]}


def union(parts: Iterable[tuple[bytes, Mapping[str, Any]]]) -> tuple[bytes, dict[str, Any]]:
    """Return one statement of several with equal columns; each has its parameters under names of its own."""
    texts: list[bytes] = []
    parameters: dict[str, Any] = {}
    for place, (text, values) in enumerate(parts):
        texts.append(text.replace(b"%(", b"%%(part_%d_" % place))
        parameters |= {f"part_{place}_{name}": value for name, value in values.items()}
    return b"\nUNION ALL\n".join(texts), parameters
