import math
from collections.abc import Mapping
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.queries import TIER_OF, FusedHit, Hit, Ranking, Source, Tier
from lamina.ranking.fusion import fuse_by_reciprocal_rank
from tests.unit.builders import memory, ranking

Rankings = dict[Source, Ranking]

IDS = st.lists(st.integers(1, 8), unique=True, max_size=6)
RANKINGS = st.dictionaries(st.sampled_from(list(Source)), IDS, max_size=4).map(
    lambda drawn: {source: ranking(source, *ids) for source, ids in drawn.items()}
)
OFFSETS = st.integers(1, 1000)


def fuse(rankings: Mapping[Source, Ranking], *, rrf_k: int = 60, depth: int = 100) -> tuple[FusedHit, ...]:
    return fuse_by_reciprocal_rank(rankings, rrf_k=rrf_k, depth=depth)


def test_a_memory_that_two_sources_found_goes_before_one_that_one_source_found() -> None:
    rankings = {
        Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 1, 2),
        Source.NOTES_WARM: ranking(Source.NOTES_WARM, 3, 2),
    }

    fused = fuse(rankings)

    assert [hit.memory.id.int for hit in fused] == [2, 1, 3]


def test_the_score_is_the_reciprocal_sum_over_its_attainable_maximum() -> None:
    rankings = {
        Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 9, 5),
        Source.NOTES_WARM: ranking(Source.NOTES_WARM, 8, 7, 5),
    }

    scores = {hit.memory.id.int: hit.score for hit in fuse(rankings)}

    assert scores[5] == pytest.approx((1 / 62 + 1 / 63) / (2 / 61))
    assert scores[9] == pytest.approx(1 / 2)


def test_a_tier_that_one_source_answers_for_is_not_put_behind_one_of_two() -> None:
    rankings = {
        Source.SESSION_VECTORS: ranking(Source.SESSION_VECTORS, 1),
        Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 2),
        Source.NOTES_WARM: ranking(Source.NOTES_WARM, 2),
    }

    fused = fuse(rankings)

    assert [(hit.memory.tier, hit.score) for hit in fused] == [(Tier.SESSIONS, 1.0), (Tier.NOTES, 1.0)]


def test_a_source_that_answered_without_hits_counts_and_one_that_did_not_answer_does_not() -> None:
    alone = {Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 1)}

    (with_empty,) = fuse({**alone, Source.NOTES_WARM: ()})
    (without,) = fuse(alone)

    assert with_empty.score == 0.5
    assert without.score == 1.0


def test_every_placement_is_told_with_its_rank_and_figures() -> None:
    rankings = {
        Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 1, 2),
        Source.NOTES_WARM: ranking(Source.NOTES_WARM, 2),
    }

    placements = {hit.memory.id.int: hit.placements for hit in fuse(rankings)}

    assert placements[1].keys() == {Source.NOTES_HYBRID}
    assert {source: place.rank for source, place in placements[2].items()} == {
        Source.NOTES_HYBRID: 2,
        Source.NOTES_WARM: 1,
    }
    assert placements[2][Source.NOTES_HYBRID].score == 0.5
    assert placements[2][Source.NOTES_HYBRID].raw == {"cosine": 0.5}


def test_the_same_id_in_two_tiers_is_two_memories() -> None:
    rankings = {
        Source.SESSION_WORDS: ranking(Source.SESSION_WORDS, 1),
        Source.NOTES_WARM: ranking(Source.NOTES_WARM, 1),
    }

    assert [hit.memory.tier for hit in fuse(rankings)] == [Tier.SESSIONS, Tier.NOTES]


def test_ties_go_by_tier_and_id() -> None:
    rankings = {
        Source.NOTES_WARM: ranking(Source.NOTES_WARM, 4),
        Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 3),
        Source.SESSION_WORDS: ranking(Source.SESSION_WORDS, 8),
        Source.SESSION_VECTORS: ranking(Source.SESSION_VECTORS, 9),
    }

    fused = fuse(rankings)

    assert [hit.memory.id.int for hit in fused] == [8, 9, 3, 4]


def test_nothing_fuses_to_nothing() -> None:
    assert fuse({}) == ()
    assert fuse({Source.NOTES_WARM: ()}) == ()


def test_the_excerpt_shown_does_not_depend_on_the_order_of_the_sources() -> None:
    first = {Source.NOTES_HYBRID: (Hit(memory(1, content="one stretch"), 1.0, {}),)}
    second = {Source.NOTES_WARM: (Hit(memory(1, content="another stretch"), 1.0, {}),)}

    one = fuse(first | second)
    other = fuse(second | first)

    assert one == other


def test_the_excerpt_shown_is_that_of_the_source_that_ranks_it_highest() -> None:
    low, high = memory(1, content="a stretch that hardly matches"), memory(1, content="the stretch that matches")
    rankings = {
        Source.NOTES_WARM: (*ranking(Source.NOTES_WARM, 2, 3), Hit(low, 0.2, {})),
        Source.NOTES_HYBRID: (Hit(high, 1.0, {}),),
    }

    shown = {hit.memory.id.int: hit.memory.content for hit in fuse(rankings)}

    assert shown[1] == "the stretch that matches"


@given(RANKINGS, OFFSETS, st.randoms(use_true_random=False))
def test_fusion_does_not_depend_on_the_order_of_the_sources(rankings: Rankings, rrf_k: int, random: Random) -> None:
    shuffled = list(rankings.items())
    random.shuffle(shuffled)

    assert fuse(dict(shuffled), rrf_k=rrf_k) == fuse(rankings, rrf_k=rrf_k)


@given(RANKINGS, OFFSETS)
def test_every_memory_comes_once_best_first_with_a_score_above_0_and_up_to_1(rankings: Rankings, rrf_k: int) -> None:
    fused = fuse(rankings, rrf_k=rrf_k)
    keys = [(hit.memory.tier, hit.memory.id) for hit in fused]
    scores = [hit.score for hit in fused]

    assert sorted(keys) == sorted({(hit.memory.tier, hit.memory.id) for found in rankings.values() for hit in found})
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@given(RANKINGS, OFFSETS)
def test_a_score_of_1_means_first_in_every_source_of_its_tier_that_answered(rankings: Rankings, rrf_k: int) -> None:
    fused = fuse(rankings, rrf_k=rrf_k)

    for hit in fused:
        assert (hit.score == 1.0) == _is_first_everywhere(hit.memory.tier, hit.memory.id, rankings)


@given(IDS, st.integers(1, 100))
def test_one_ranking_keeps_its_order(ids: list[int], rrf_k: int) -> None:
    fused = fuse({Source.NOTES_WARM: ranking(Source.NOTES_WARM, *ids)}, rrf_k=rrf_k)

    assert [hit.memory.id.int for hit in fused] == ids


@given(st.integers(1, 50), OFFSETS)
def test_a_larger_offset_flattens_the_top(place: int, rrf_k: int) -> None:
    hits = {Source.NOTES_WARM: ranking(Source.NOTES_WARM, *range(1, place + 2))}

    steep = fuse(hits, rrf_k=rrf_k)[place].score
    flat = fuse(hits, rrf_k=rrf_k + 1)[place].score

    assert flat > steep
    assert math.isclose(steep, (rrf_k + 1) / (rrf_k + place + 1))


def test_two_ranks_below_the_depth_do_not_beat_one_above_it() -> None:
    rankings = {
        Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 1, 2, 3, 9),
        Source.NOTES_WARM: ranking(Source.NOTES_WARM, 4, 5, 6, 9),
    }

    by_depth = {depth: [hit.memory.id.int for hit in fuse(rankings, depth=depth)] for depth in (3, 4)}

    assert by_depth[3][-1] == 9
    assert by_depth[4][0] == 9


@given(RANKINGS, OFFSETS, st.integers(1, 5))
def test_what_ranks_below_the_depth_does_not_change_the_order_above_it(
    rankings: Rankings, rrf_k: int, depth: int
) -> None:
    heads = {source: found[:depth] for source, found in rankings.items()}

    above = [hit.memory for hit in fuse(heads, rrf_k=rrf_k, depth=depth)]
    whole = [hit.memory for hit in fuse(rankings, rrf_k=rrf_k, depth=depth)]

    assert whole[: len(above)] == above


def _is_first_everywhere(tier: Tier, id_: UUID, rankings: Mapping[Source, Ranking]) -> bool:
    of_tier = [found for source, found in rankings.items() if TIER_OF[source] is tier]
    return all(found and found[0].memory.id == id_ for found in of_tier)
