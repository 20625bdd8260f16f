from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.memory_profiles import (
    MemoryProfile,
    Purpose,
    SearchDefaults,
    SearchPreferences,
    clean_memory_profile,
    resolve_search,
)
from lamina.core.queries import Filters, clean_filters
from lamina.core.tiers import SEARCHED_TIERS, Tier
from lamina.errors import InvalidInput
from tests.unit.builders import NOON

DEFAULTS = SearchDefaults(SEARCHED_TIERS, 20, 0.5)
PROFILE = MemoryProfile((Tier.NOTES, Tier.GRAPH), 5, 0.7, 30.0, "Prefer the newest.")
MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1))  # noqa: DTZ001 - naive ones come from callers


def test_the_defaults_hold_where_nobody_says_anything() -> None:
    settled = resolve_search(SearchPreferences(), None, DEFAULTS, Purpose.CONTEXT, NOON)

    assert (settled.tiers, settled.limit, settled.min_score) == (SEARCHED_TIERS, 20, 0.5)
    assert (settled.since, settled.suffix) == (None, "")


def test_the_profile_comes_before_the_defaults() -> None:
    settled = resolve_search(SearchPreferences(), PROFILE, DEFAULTS, Purpose.CONTEXT, NOON)

    assert (settled.tiers, settled.limit, settled.min_score) == ((Tier.NOTES, Tier.GRAPH), 5, 0.7)
    assert (settled.since, settled.suffix) == (NOON - timedelta(days=30), "Prefer the newest.")


@pytest.mark.parametrize("profile", [None, PROFILE])
def test_the_request_comes_first(profile: MemoryProfile | None) -> None:
    settled = resolve_search(SearchPreferences((Tier.SESSIONS,), 3, 0.0), profile, DEFAULTS, Purpose.CONTEXT, NOON)

    assert (settled.tiers, settled.limit, settled.min_score) == ((Tier.SESSIONS,), 3, 0.0)


def test_a_search_keeps_its_own_limit() -> None:
    assert resolve_search(SearchPreferences(), PROFILE, DEFAULTS, Purpose.RESULTS, NOON).limit == 20


def test_a_time_to_live_counts_from_the_date_that_is_asked_for() -> None:
    asked = NOON - timedelta(days=100)

    assert resolve_search(
        SearchPreferences(as_of=asked), PROFILE, DEFAULTS, Purpose.RESULTS, NOON
    ).since == asked - timedelta(days=30)


@pytest.mark.parametrize("days", [10, 90])
def test_of_the_time_to_live_and_the_request_the_later_holds(days: int) -> None:
    since = NOON - timedelta(days=days)

    assert resolve_search(
        SearchPreferences(since=since), PROFILE, DEFAULTS, Purpose.RESULTS, NOON
    ).since == NOON - timedelta(days=min(days, 30))


@given(MOMENTS, st.timedeltas(timedelta(seconds=1), timedelta(days=900)), st.booleans())
def test_a_valid_window_stays_valid_with_a_time_to_live(until: datetime, length: timedelta, has_since: bool) -> None:
    wishes = SearchPreferences(since=until - length if has_since else None, until=until)

    since = resolve_search(wishes, PROFILE, DEFAULTS, Purpose.RESULTS, NOON).since

    assert since is not None
    clean_filters(Filters(since=since, until=until))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tiers": ()}, "tiers"),
        ({"max_context_chunks": 0}, "max_context_chunks"),
        ({"max_context_chunks": 1001}, "max_context_chunks"),
        ({"min_relevance": 1.1}, "min_relevance"),
        ({"min_relevance": float("nan")}, "min_relevance"),
        ({"ttl_days": 0.0}, "ttl_days"),
        ({"ttl_days": 1e9}, "ttl_days"),
        ({"ttl_days": float("nan")}, "ttl_days"),
        ({"prompt_suffix": "a\x00b"}, "prompt_suffix"),
        ({"prompt_suffix": "a" * 10_001}, "prompt_suffix"),
    ],
)
def test_a_profile_out_of_range_is_refused_by_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        clean_memory_profile(replace(PROFILE, **change))  # type: ignore[arg-type]

    assert refusal.value.field == field


def test_a_clean_profile_names_each_tier_once() -> None:
    assert clean_memory_profile(replace(PROFILE, tiers=(Tier.NOTES, Tier.GRAPH, Tier.NOTES))) == PROFILE


def test_memories_older_than_time_itself_are_asked_for_without_an_error() -> None:
    wishes = SearchPreferences(as_of=datetime(1, 6, 1))  # noqa: DTZ001 - naive ones come from callers

    settled = resolve_search(wishes, replace(PROFILE, ttl_days=36_500.0), DEFAULTS, Purpose.CONTEXT, NOON)

    assert settled.since == datetime.min.replace(tzinfo=UTC)
