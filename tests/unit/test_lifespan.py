from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.retention.lifespan import is_promoted, is_warm, lifespan

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
HITS = st.integers(1, 1_000_000)
IDLE = st.timedeltas(timedelta(0), timedelta(days=400))
MOMENT = timedelta(microseconds=1)
DAYS = 7.0


@pytest.mark.parametrize(("hits", "days"), [(1, 7), (3, 14), (7, 21), (31, 35)])
def test_each_doubling_of_the_hits_adds_a_week(hits: int, days: int) -> None:
    assert lifespan(hits, DAYS) == timedelta(days=days)


@pytest.mark.parametrize(("hits", "days"), [(1, 1.5), (3, 3), (7, 4.5)])
def test_the_days_of_a_doubling_can_be_others(hits: int, days: float) -> None:
    assert lifespan(hits, 1.5) == timedelta(days=days)


@given(HITS)
def test_the_lifespan_grows_with_every_hit(hits: int) -> None:
    assert lifespan(hits + 1, DAYS) > lifespan(hits, DAYS)


@pytest.mark.parametrize("hits", [1, 3, 31])
def test_a_note_is_warm_until_its_lifespan_is_over_and_not_a_moment_longer(hits: int) -> None:
    assert is_warm(hits, NOW - lifespan(hits, DAYS) + MOMENT, NOW, DAYS)
    assert not is_warm(hits, NOW - lifespan(hits, DAYS), NOW, DAYS)


@given(HITS, IDLE, IDLE)
def test_a_cold_note_does_not_get_warm_by_waiting(hits: int, idle: timedelta, longer: timedelta) -> None:
    if not is_warm(hits, NOW - idle, NOW, DAYS):
        assert not is_warm(hits, NOW - idle - longer, NOW, DAYS)


@given(HITS, IDLE)
def test_a_note_that_is_still_warm_would_be_promoted_too(hits: int, idle: timedelta) -> None:
    if is_warm(hits, NOW - idle, NOW, DAYS):
        assert is_promoted(hits, NOW - idle, NOW, DAYS)


@given(HITS, IDLE)
def test_a_note_that_a_hit_promotes_is_not_demoted_at_once(hits: int, idle: timedelta) -> None:
    if is_promoted(hits, NOW - idle, NOW, DAYS):
        assert is_warm(hits + 1, NOW, NOW, DAYS)


@given(HITS, IDLE)
def test_a_hit_right_after_a_hit_promotes(hits: int, idle: timedelta) -> None:
    assert is_promoted(hits + 1, NOW, NOW, DAYS)


def test_one_hit_brings_back_a_young_note_and_not_a_forgotten_one() -> None:
    assert is_promoted(1, NOW - timedelta(days=11), NOW, DAYS)
    assert not is_promoted(1, NOW - timedelta(days=12), NOW, DAYS)
