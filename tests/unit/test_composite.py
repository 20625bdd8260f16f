import math
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.queries import Hit, Ranking
from lamina.core.tiers import Source, Tier
from lamina.policies.ranking.composite import fuse_by_composite, recency
from tests.unit.builders import NOON, POLICY, memory

COMPOSITE = POLICY.composite
DAYS = st.floats(-400, 4000)
FIGURE = st.floats(0, 1)


def hit(
    number: int, cosine: float | None, *, importance: float = 0.5, days: float = 0, hit_days: float | None = None
) -> Hit:
    last_hit_at = None if hit_days is None else NOON - timedelta(days=hit_days)
    found = replace(
        memory(number), importance=importance, occurred_at=NOON - timedelta(days=days), last_hit_at=last_hit_at
    )
    return Hit(found, cosine or 0.0, {} if cosine is None else {"cosine": cosine})


def composite(*hits: Hit, by_meaning: bool = True) -> dict[int, float]:
    rankings: dict[Source, Ranking] = {Source.NOTES_HYBRID: hits}
    fused = fuse_by_composite(rankings, COMPOSITE, now=NOON, by_meaning=by_meaning)
    return {item.memory.id.int: item.score for item in fused}


def test_the_score_is_half_nearness_three_tenths_importance_two_tenths_recency() -> None:
    assert composite(hit(1, 0.8, importance=0.9, days=60)) == pytest.approx(
        {1: 0.5 * 0.8 + 0.3 * 0.9 + 0.2 * math.exp(-0.05 * 60)}
    )


@pytest.mark.parametrize(("days", "expected"), [(0, 1.0), (1, 0.951), (7, 0.705), (14, 0.497), (30, 0.223), (60, 0.05)])
def test_recency_falls_as_published(days: int, expected: float) -> None:
    found = replace(memory(1), occurred_at=NOON - timedelta(days=days))

    assert recency(found, NOON, 0.05) == pytest.approx(expected, abs=5e-4)


def test_days_are_counted_from_the_last_hit_and_without_one_from_the_event() -> None:
    scores = composite(hit(1, 0.5, days=60), hit(2, 0.5, days=60, hit_days=1))

    assert scores[2] - scores[1] == pytest.approx(0.2 * (math.exp(-0.05) - math.exp(-3)))


def test_a_last_hit_after_the_moment_that_counts_as_now_is_no_bonus() -> None:
    assert composite(hit(1, 0.5, days=-30)) == composite(hit(1, 0.5, days=0))


def test_only_what_is_near_is_a_candidate() -> None:
    assert composite(hit(1, 0.6), hit(2, None, importance=1), hit(3, 0.1, importance=1)).keys() == {1}


def test_without_a_vector_importance_and_recency_rank_what_was_found() -> None:
    assert list(composite(hit(1, None, days=90), hit(2, None, importance=0.9), by_meaning=False)) == [2, 1]


def test_without_a_vector_the_best_score_of_a_source_stands_in_the_cosines_place() -> None:
    by_words = replace(hit(1, None), score=0.8)

    assert composite(by_words, by_meaning=False) == pytest.approx({1: 0.5 * 0.8 + 0.3 * 0.5 + 0.2})


def test_the_graphs_own_entries_count_less() -> None:
    fact = replace(hit(1, 0.8), memory=replace(memory(1, tier=Tier.GRAPH), importance=0.5))
    fused = fuse_by_composite({Source.GRAPH: (fact,)}, COMPOSITE, now=NOON, by_meaning=True)

    assert fused[0].score == pytest.approx(0.6 * (0.4 + 0.15 + 0.2))


@given(st.lists(st.tuples(FIGURE, FIGURE, DAYS), max_size=6))
def test_scores_lie_from_0_to_1_and_fall(drawn: list[tuple[float, float, float]]) -> None:
    hits = [hit(number, cosine, importance=weight, days=days) for number, (cosine, weight, days) in enumerate(drawn, 1)]

    scores = list(composite(*hits).values())

    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@given(FIGURE, FIGURE, DAYS, st.floats(0, 400))
def test_older_less_important_and_farther_is_never_better(
    cosine: float, importance: float, days: float, more: float
) -> None:
    best = composite(hit(1, 1.0, importance=1, days=days))[1]
    given_ = composite(hit(1, 0.25 + 0.75 * cosine, importance=importance, days=days + more))[1]

    assert given_ <= best
