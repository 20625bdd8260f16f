import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.queries import Hit, RankedHit, Ranking
from lamina.core.tiers import TIER_OF, Source, Tier
from lamina.policies.ranking.reciprocal_rank import fuse_by_reciprocal_rank
from tests.unit.builders import POLICY, memory, ranking

Rankings = dict[Source, Ranking]

IDS = st.lists(st.integers(1, 8), unique=True, max_size=6)
# Sources that can hold a warm memory; tests of their own look at cold ones.
WARM = [source for source in Source if source is not Source.NOTES_COLD]
RANKINGS = st.dictionaries(st.sampled_from(WARM), IDS, max_size=4).map(
    lambda drawn: {source: ranking(source, *ids) for source, ids in drawn.items()}
)
# The graph leads to notes as well.
LED_TO = st.lists(st.integers(1, 8), unique=True, max_size=6).map(lambda ids: of_notes(Source.GRAPH, ids))
OFFSETS = st.integers(1, 1000)


def fuse(rankings: Mapping[Source, Ranking], *, rrf_k: int = 60, depth: int = 100) -> tuple[RankedHit, ...]:
    return fuse_by_reciprocal_rank(rankings, rrf_k=rrf_k, depth=depth)


def of_notes(source: Source, ids: Sequence[int], *, temperature: str = "warm") -> Ranking:
    """A source's ranking of notes, whatever tier the source answers for."""
    hits = ranking(source, *ids)
    return tuple(
        replace(hit, memory=replace(hit.memory, tier=Tier.NOTES, kind="note", temperature=temperature)) for hit in hits
    )


def scores_of(fused: Sequence[RankedHit]) -> dict[int, float]:
    return {hit.memory.id.int: hit.score for hit in fused}


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


@given(RANKINGS, LED_TO, st.integers(1, 8))
def test_being_led_to_by_the_graph_lowers_nothing(rankings: Rankings, led_to: Ranking, depth: int) -> None:
    without = {source: found for source, found in rankings.items() if source is not Source.GRAPH}

    before = fuse(without, depth=depth)
    after = {
        (hit.memory.tier, hit.memory.id): hit.score for hit in fuse({**without, Source.GRAPH: led_to}, depth=depth)
    }

    assert all(after[hit.memory.tier, hit.memory.id] >= hit.score for hit in before)


@given(IDS, IDS, st.integers(0, 4))
def test_a_better_rank_in_a_source_never_lowers_a_score(first: list[int], second: list[int], place: int) -> None:
    low = {
        Source.NOTES_HYBRID: of_notes(Source.NOTES_HYBRID, [*first, 9]),
        Source.GRAPH: of_notes(Source.GRAPH, second),
    }
    high = {**low, Source.NOTES_HYBRID: of_notes(Source.NOTES_HYBRID, [*first[:place], 9, *first[place:]])}

    assert scores_of(fuse(high, depth=3))[9] >= scores_of(fuse(low, depth=3))[9]


def test_the_graph_raises_a_note_by_its_weight() -> None:
    hybrid = of_notes(Source.NOTES_HYBRID, [1, 2])
    weights = {Source.GRAPH: 0.1}

    fused = fuse_by_reciprocal_rank(
        {Source.NOTES_HYBRID: hybrid, Source.GRAPH: of_notes(Source.GRAPH, [2])}, rrf_k=60, depth=10, weights=weights
    )

    assert [hit.memory.id.int for hit in fused] == [2, 1]
    assert [hit.score for hit in fused] == [1.0, 1.0]


def test_what_the_graph_alone_led_to_counts_as_its_facts_do() -> None:
    fact = ranking(Source.GRAPH, 7)
    rankings = {
        Source.NOTES_HYBRID: of_notes(Source.NOTES_HYBRID, [1]),
        Source.GRAPH: (*fact, *of_notes(Source.GRAPH, [2])),
    }

    fused = fuse_by_reciprocal_rank(
        rankings, rrf_k=60, depth=10, weights={Source.GRAPH: 0.1}, tier_weights={Tier.GRAPH: 0.6}
    )

    assert scores_of(fused) == pytest.approx({1: 1.0, 7: 0.6, 2: 0.6 * 61 / 62})


def test_a_memory_whose_own_tier_was_not_asked_is_found_by_the_graph() -> None:
    fused = fuse_by_reciprocal_rank(
        {Source.GRAPH: of_notes(Source.GRAPH, [2])}, rrf_k=60, depth=10, tier_weights={Tier.GRAPH: 0.6}
    )

    assert scores_of(fused) == {2: 0.6}


def test_a_cold_note_is_not_lowered_by_the_index_of_warm_ones_nor_a_warm_one_by_the_cold() -> None:
    rankings = {
        Source.NOTES_HYBRID: of_notes(Source.NOTES_HYBRID, [1]),
        Source.NOTES_COLD: of_notes(Source.NOTES_COLD, [2], temperature="cold"),
    }

    assert scores_of(fuse(rankings)) == {1: 1.0, 2: 1.0}


def test_a_note_that_just_changed_its_temperature_is_found_and_within_the_scale() -> None:
    moving = of_notes(Source.NOTES_COLD, [1])

    assert scores_of(fuse({Source.NOTES_COLD: moving})) == {1: 1.0}
    assert scores_of(fuse({Source.NOTES_COLD: moving, Source.NOTES_HYBRID: moving})) == {1: 1.0}


@given(RANKINGS)
def test_a_tiers_weight_multiplies_its_scores(rankings: Rankings) -> None:
    halved = fuse_by_reciprocal_rank(rankings, rrf_k=60, depth=100, tier_weights={Tier.DOCUMENTS: 0.5})

    plain = {(hit.memory.tier, hit.memory.id): hit.score for hit in fuse(rankings)}
    expected = {key: score * (0.5 if key[0] is Tier.DOCUMENTS else 1) for key, score in plain.items()}
    assert {(hit.memory.tier, hit.memory.id): hit.score for hit in halved} == expected


def test_with_unequal_weights_too_no_deep_rank_beats_one_within_the_depth() -> None:
    weights = {Source.SESSION_WORDS: 0.05}
    rankings = {
        Source.SESSION_WORDS: ranking(Source.SESSION_WORDS, 1, 2),
        Source.SESSION_CONTEXT: ranking(Source.SESSION_CONTEXT, 3, 4, 9),
    }

    fused = fuse_by_reciprocal_rank(rankings, rrf_k=60, depth=2, weights=weights)

    assert [hit.memory.id.int for hit in fused] == [3, 4, 1, 2, 9]


def test_the_order_of_messages_is_the_one_that_was_measured_on_locomo() -> None:
    """Whoever changes this order runs `python -m benchmarks locomo` again."""
    rankings = {
        Source.SESSION_VECTORS: ranking(Source.SESSION_VECTORS, 7, 3, 12, 5, 9, 1, 14, 8, 2, 10),
        Source.SESSION_WORDS: ranking(Source.SESSION_WORDS, 3, 11, 7, 4, 13, 6, 5, 15, 9, 16),
        Source.SESSION_CONTEXT: ranking(Source.SESSION_CONTEXT, 3, 4, 7, 12, 5, 17, 1, 11, 8, 9),
    }

    fused = fuse_by_reciprocal_rank(
        rankings, rrf_k=POLICY.rrf_k, depth=10, weights=POLICY.rrf_weights, tier_weights=POLICY.tier_weights
    )

    assert [hit.memory.id.int for hit in fused] == [3, 7, 5, 4, 9, 12, 1, 11, 8, 17, 13, 6, 14, 15, 2, 10, 16]
    assert fused[0].score == pytest.approx(0.9987, abs=1e-4)
    assert POLICY.rrf_weights[Source.SESSION_VECTORS] == POLICY.rrf_weights[Source.SESSION_WORDS] == 0.1


def _is_first_everywhere(tier: Tier, id_: UUID, rankings: Mapping[Source, Ranking]) -> bool:
    of_tier = [found for source, found in rankings.items() if TIER_OF[source] is tier]
    return all(found and found[0].memory.id == id_ for found in of_tier)
