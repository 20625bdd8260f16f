from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.retention.decay import (
    LEAST_CONFIDENCE_SHARE,
    LEAST_STRENGTH,
    LEAST_WEIGHT,
    edge_strength_share,
    entity_confidence_share,
    note_weight,
)

IDLE = st.timedeltas(timedelta(days=-30), timedelta(days=3000))
SOURCES = st.integers(1, 1000)


def days(count: float) -> timedelta:
    return timedelta(days=count)


@pytest.mark.parametrize(("idle", "weight"), [(-1, 1), (0, 1), (7, 1), (8, 0.88), (13, 0.28), (14, 0.16), (400, 0)])
def test_an_entry_keeps_its_weight_for_a_week_and_then_loses_some_every_day(idle: float, weight: float) -> None:
    assert note_weight(days(idle)) == pytest.approx(weight)


def test_an_entry_leaves_contexts_in_its_second_week() -> None:
    assert note_weight(days(13.6)) > LEAST_WEIGHT > note_weight(days(13.7))


@pytest.mark.parametrize(
    ("idle", "standing"), [(-1, 1), (0, 1), (6.6, 1), (6.7, 0.9), (30, 0.75), (90, 0.5), (180, 0.25), (5000, 0)]
)
def test_an_edge_halves_every_90_days_in_steps(idle: float, standing: float) -> None:
    assert edge_strength_share(days(idle)) == standing


def test_an_edge_of_full_strength_is_left_out_after_299_days_and_not_before() -> None:
    assert edge_strength_share(days(298)) >= LEAST_STRENGTH > edge_strength_share(days(299))


def test_a_daily_run_rewrites_an_edge_at_most_about_once_a_week() -> None:
    standings = [edge_strength_share(days(day)) for day in range(365)]
    changes = [day for day in range(1, 365) if standings[day] != standings[day - 1]]

    assert 15 < len(changes) < 21
    assert min(later - earlier for earlier, later in pairwise(changes)) >= 6


@given(IDLE)
def test_a_standing_is_never_above_the_exact_one_but_for_young_edges(idle: timedelta) -> None:
    exact = 0.5 ** (max(0, idle / days(1)) / 90)

    assert exact - 0.05 < edge_strength_share(idle) <= exact + 1e-9 or (exact > 0.95 and edge_strength_share(idle) == 1)


@given(IDLE, IDLE, SOURCES)
def test_nothing_gains_by_waiting(idle: timedelta, more: timedelta, sources: int) -> None:
    sooner, later = sorted((idle, more))

    assert note_weight(later) <= note_weight(sooner) <= 1
    assert edge_strength_share(later) <= edge_strength_share(sooner) <= 1
    assert (
        LEAST_CONFIDENCE_SHARE
        <= entity_confidence_share(later, sources)
        <= entity_confidence_share(sooner, sources)
        <= 1
    )


@pytest.mark.parametrize(
    ("idle", "sources", "standing"),
    [(30, 1, 1), (210, 1, 0.5), (210, 2, 0.7), (390, 2, 0.5), (210, 4, 0.75), (210, 0, 0.5), (9000, 1, 0.1)],
)
def test_an_entity_that_many_told_of_is_forgotten_more_slowly(idle: float, sources: int, standing: float) -> None:
    assert entity_confidence_share(days(idle), sources) == standing
