from datetime import UTC, datetime, timedelta, timezone

import pytest

from lamina.core.queries import MAX_LIMIT, Filters, clean_filters
from lamina.core.tiers import TIER_OF, Source
from lamina.errors import InvalidInput
from lamina.text.hygiene import MAX_QUERY_CHARS
from tests.unit.builders import ACME, request

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


def test_a_request_becomes_a_query_with_clean_text_and_words() -> None:
    asked = request("Cafe\u0301 成語").query()

    assert asked.text == "Caf\u00e9 成語"
    assert asked.words == ("caf\u00e9", "成語")
    assert asked.scope == ACME
    assert asked.embedding is None


@pytest.mark.parametrize(("limit", "asked"), [(1, 10), (10, 10), (11, 11), (MAX_LIMIT, MAX_LIMIT)])
def test_a_source_contributes_its_share_or_the_limit_if_that_is_more(limit: int, asked: int) -> None:
    assert request(limit=limit).query().limit == asked


@pytest.mark.parametrize("limit", [0, -1, MAX_LIMIT + 1])
def test_a_limit_out_of_range_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        request(limit=limit).query()

    assert refused.value.field == "limit"


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "a\x00b", "\ud800", "x" * (MAX_QUERY_CHARS + 1)])
def test_a_query_that_cannot_be_asked_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        request(text).query()

    assert refused.value.field == "query"


def test_filters_are_cleaned_and_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    since, until = datetime(2026, 1, 15, 21, tzinfo=tokyo), datetime(2026, 1, 15, 13)  # noqa: DTZ001 - naive is a case

    cleaned = clean_filters(Filters(("e\u0301",), since, until, 0.7))

    assert cleaned == Filters(("\u00e9",), NOON, NOON + timedelta(hours=1), 0.7)


@pytest.mark.parametrize("until", [NOON, NOON - timedelta(seconds=1)])
def test_a_window_that_ends_before_it_starts_is_refused(until: datetime) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_filters(Filters(since=NOON, until=until))

    assert refused.value.field == "until"


@pytest.mark.parametrize("filters", [Filters(since=NOON), Filters(until=NOON), Filters()])
def test_a_window_may_be_open(filters: Filters) -> None:
    assert clean_filters(filters) == filters


def test_an_unclean_tag_is_refused_naming_its_place() -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_filters(Filters(tags=("ok", "a\x00")))

    assert refused.value.field == "tags.1"


def test_every_source_belongs_to_a_tier() -> None:
    assert TIER_OF.keys() == set(Source)
