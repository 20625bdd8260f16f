from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from lamina.core.queries import FusionMethod, Hit, Normalisation, Ranking, WeightName
from lamina.core.tiers import SOURCES, Modality, Source, Tier
from lamina.policies.ranking.call_weights import searched_tiers, source_weights
from lamina.policies.ranking.fusion import FusionOptions, fuse
from lamina.policies.ranking.scores import HybridWeights, hybrid_score, keyword_part
from tests.unit.builders import POLICY, memory, ranking

OPTIONS = FusionOptions(
    FusionMethod.RRF, Normalisation.ABSOLUTE, 100, datetime(2026, 1, 1, tzinfo=UTC), has_vector=True
)
EVEN = replace(POLICY, rrf_weights={}, tier_weights={}, rrf_covered={})


def order(rankings: dict[Source, Ranking], method: FusionMethod, weights: dict[WeightName, float]) -> list[int]:
    options = replace(OPTIONS, method=method, weights=weights)
    return [hit.memory.id.int for hit in fuse(rankings, options, EVEN)]


def test_every_source_counts_once_where_a_call_gives_no_weights() -> None:
    assert source_weights({}) == dict.fromkeys(SOURCES, 1.0)


def test_a_source_counts_by_the_best_of_its_modalities_and_by_its_own_weight() -> None:
    weights = source_weights({Modality.KEYWORD: 0.5, Modality.VECTOR: 2.0, Source.DOCUMENTS: 3.0, Modality.GRAPH: 0.25})

    assert weights[Source.SESSION_WORDS] == 0.5
    assert weights[Source.NOTES_COLD] == 2.0
    assert weights[Source.NOTES_HYBRID] == 2.0
    assert weights[Source.DOCUMENTS] == 6.0
    assert weights[Source.GRAPH] == 0.25  # One name for the modality and its source: it counts once.


@pytest.mark.parametrize("left_out", [Modality.KEYWORD, Modality.VECTOR])
def test_without_words_or_without_meaning_the_ranking_of_both_in_context_is_left_out(left_out: Modality) -> None:
    assert source_weights({left_out: 0.0})[Source.SESSION_CONTEXT] == 0.0


def test_a_tier_whose_sources_all_have_weight_0_is_not_asked() -> None:
    assert searched_tiers(tuple(Tier), {Modality.GRAPH: 0.0, Source.DOCUMENTS: 0.0}) == (
        Tier.SESSIONS,
        Tier.NOTES,
        Tier.PROCEDURES,
    )
    assert searched_tiers([Tier.GRAPH], {Modality.GRAPH: 0.0}) == ()


def test_a_weight_divides_the_rank_in_reciprocal_rank_fusion() -> None:
    rankings = {Source.DOCUMENTS: ranking(Source.DOCUMENTS, 1), Source.PROCEDURES: ranking(Source.PROCEDURES, 2)}
    options = replace(OPTIONS, weights={Source.DOCUMENTS: 0.5})

    scores = {hit.memory.id.int: hit.score for hit in fuse(rankings, options, EVEN)}

    assert scores == {2: 1.0, 1: pytest.approx((60 + 1) / (60 + 1 / 0.5))}


@pytest.mark.parametrize("method", FusionMethod)
def test_a_source_of_weight_0_is_as_one_that_was_not_asked(method: FusionMethod) -> None:
    words = tuple(Hit(memory(number), 1 / number, {"bm25": 9.0 / number, "cosine": 0.5}) for number in (1, 2))
    links = (Hit(memory(3), 0.9, {"path": 0.9}), Hit(memory(2), 0.8, {"path": 0.8}))

    with_links = {Source.NOTES_HYBRID: words, Source.GRAPH: links}

    assert order(with_links, method, {Modality.GRAPH: 0.0}) == order({Source.NOTES_HYBRID: words}, method, {})


def test_plain_reciprocal_rank_fusion_is_the_sum_over_all_sources_alike() -> None:
    # Two tiers, three sources, a memory of low confidence: none of that counts.
    unsure = tuple(replace(hit, memory=replace(hit.memory, confidence=0.1)) for hit in ranking(Source.NOTES_WARM, 1))
    rankings = {
        Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 2, 1),
        Source.NOTES_WARM: unsure,
        Source.DOCUMENTS: ranking(Source.DOCUMENTS, 7),
    }

    fused = fuse(rankings, replace(OPTIONS, method=FusionMethod.PLAIN_RRF), EVEN)

    most = 3 / 61
    assert [(hit.memory.id, hit.score) for hit in fused] == [
        (UUID(int=1), pytest.approx((1 / 62 + 1 / 61) / most)),
        (UUID(int=2), pytest.approx(1 / 61 / most)),
        (UUID(int=7), pytest.approx(1 / 61 / most)),
    ]


def test_what_is_in_the_first_ten_of_three_sources_beats_the_first_of_one_across_tiers() -> None:
    rankings = {
        Source.SESSION_WORDS: ranking(Source.SESSION_WORDS, *range(1, 11)),
        Source.SESSION_VECTORS: ranking(Source.SESSION_VECTORS, *range(20, 29), 10),
        Source.SESSION_CONTEXT: ranking(Source.SESSION_CONTEXT, *range(40, 49), 10),
        Source.DOCUMENTS: ranking(Source.DOCUMENTS, 99),
    }

    assert order(rankings, FusionMethod.PLAIN_RRF, {})[0] == 10


@pytest.mark.parametrize(
    ("given", "score"),
    [((1, 0), 0.4), ((0, 1), 0.8), ((1, 1), 0.6), ((2, None), (2 * 0.4 + 0.7 * 0.8) / 2.7), ((None, None), 0.68)],
)
def test_a_call_weighs_words_and_meaning_where_a_source_ranks_by_both(
    given: tuple[float | None, float | None], score: float
) -> None:
    weights = HybridWeights().overridden(*given)

    assert hybrid_score(0.4, 0.8, weights) == pytest.approx(score)
    assert keyword_part(score, 0.8, weights) == pytest.approx(0.4 if weights.keyword else 0.0)


def test_words_alone_are_worth_nothing_where_words_do_not_count() -> None:
    assert hybrid_score(0.9, None, HybridWeights(0.0, 1.0)) == 0.0


def test_the_weighted_fusion_takes_the_weights_of_the_call() -> None:
    by_words = Hit(memory(1), 0.3 * 1.0 + 0.7 * 0.3, {"bm25": 9.0, "cosine": 0.3})
    by_meaning = Hit(memory(2), 0.7 * 0.9, {"cosine": 0.9})
    rankings = {Source.NOTES_HYBRID: (by_meaning, by_words)}

    assert order(rankings, FusionMethod.WEIGHTED, {}) == [2, 1]
    assert order(rankings, FusionMethod.WEIGHTED, {Modality.KEYWORD: 0.9, Modality.VECTOR: 0.1}) == [1, 2]


def test_the_composite_relevance_takes_the_numbers_of_the_call() -> None:
    near = Hit(replace(memory(1), importance=0.1), 0.9, {"cosine": 0.9})
    weighty = Hit(replace(memory(2), importance=1.0), 0.5, {"cosine": 0.5})
    rankings = {Source.NOTES_HYBRID: (near, weighty)}
    options = replace(OPTIONS, method=FusionMethod.COMPOSITE)

    by_nearness = fuse(rankings, replace(options, relevance={"importance": 0.0, "recency": 0.0}), EVEN)
    by_importance = fuse(rankings, replace(options, relevance={"importance": 5.0}), EVEN)

    assert [hit.memory.id.int for hit in by_nearness] == [1, 2]
    assert [hit.memory.id.int for hit in by_importance] == [2, 1]
