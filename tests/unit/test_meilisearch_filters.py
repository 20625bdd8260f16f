"""How texts, numbers and conditions are written for Meilisearch."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.filters import MAX_LEVELS, parse
from lamina.core.queries import Filters, Query
from lamina.core.scope import Scope
from lamina.stores.index.filters import query_filter
from lamina.stores.index.meilisearch.filters import DIALECT, EVERYTHING, NOTHING, halves, token
from tests.support.meilisearch_filters import Reader, normalised

MICROSECOND = timedelta(microseconds=1)
MOMENTS = st.datetimes(timezones=st.just(UTC))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
LOOKALIKES = (
    "Acme",
    "acme",
    "ACME",
    "acme ",
    " acme",
    "ácme",
    "a\u0301cme",
    "\uff41\uff43\uff4d\uff45",
    "acmé",
    "acme\u200b",
    "a.63.me",
)
NUMERIC = ("1e3", "1000", "1000.0", "0x10", "inf", "NaN", "infinity", "-0", "0", "", "١٢", "1_000")


@pytest.mark.parametrize("texts", [LOOKALIKES, NUMERIC])
def test_texts_that_meilisearch_would_take_for_one_have_tokens_of_their_own(texts: tuple[str, ...]) -> None:
    tokens = [token(text) for text in texts]

    assert len({normalised(found) for found in tokens}) == len(texts)


@given(st.text(), st.text())
def test_two_texts_have_two_tokens_and_one_has_one(one: str, other: str) -> None:
    assert (token(one) == token(other)) is (one == other)


@given(st.text(max_size=2_000))
def test_a_token_needs_no_quoting_survives_normalising_and_is_no_number(text: str) -> None:
    found = token(text)

    assert re.fullmatch(r"_[a-z0-9._-]{0,199}", found)
    assert normalised(found) == found
    with pytest.raises(ValueError, match="could not convert"):
        float(found)


def test_long_texts_that_differ_at_their_end_have_tokens_of_their_own() -> None:
    assert token("x" * 1_024) != token("x" * 1_023 + "y")
    assert token("x" * 1_024) == token("x" * 1_024)


def test_a_plain_id_stays_readable() -> None:
    assert token("john_doe-7") == "_john_doe-7"


@given(st.one_of(st.tuples(MOMENTS, MOMENTS), st.tuples(NUMBERS, NUMBERS)))
def test_halves_compare_like_what_they_stand_for(pair: tuple[float, float] | tuple[datetime, datetime]) -> None:
    one, other = pair

    assert (halves(one) < halves(other)) is (one < other)  # type: ignore[operator]
    assert (halves(one) == halves(other)) is (one == other)


@given(st.one_of(MOMENTS, NUMBERS))
def test_halves_are_exact_as_floats(value: float | datetime) -> None:
    assert all(int(float(half)) == half for half in halves(value))


def test_a_microsecond_makes_a_difference_from_the_year_1_to_9999() -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    moments = (first, first + MICROSECOND, last - MICROSECOND, last)

    assert all(halves(one) < halves(other) for one, other in pairwise(moments))


def test_nothing_and_everything_are_written_out() -> None:
    assert DIALECT.all_of([]) == EVERYTHING
    assert DIALECT.any_of([]) == DIALECT.one_of("user", []) == NOTHING
    assert str(DIALECT.negation(DIALECT.any_of([]))) == f"NOT {NOTHING}"


@pytest.mark.parametrize("nested", ["and", "or", "not"])
def test_filters_as_deep_as_they_may_be_are_within_what_meilisearch_reads(nested: str) -> None:
    wire: dict[str, Any] = {"confidence": {"gte": 0.1, "lt": 0.9}, "occurred_at": {"gte": "2026-01-01"}}
    for level in range(MAX_LEVELS - 1):
        kind = nested if nested == "not" or level % 2 else "or"
        wire = {"user": "ann", "importance": 0.5, kind: wire if kind == "not" else [wire, {"tags": "red"}]}
    query = Query("tea", ("tea",), Scope("acme", user="ann"), 10, Filters(where=parse(wire, "filters")))

    expression = query_filter(query, DIALECT, by_session=True)

    Reader(str(DIALECT.all_of([expression, DIALECT.one_of("id", ["x"])]))).read()
