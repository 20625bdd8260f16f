from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.queries import Hit, RankedHit, Ranking
from lamina.core.tiers import SOURCES, TIER_OF, Modality, Source, Tier
from lamina.policies.ranking.weighted import fuse_by_figures, fuse_by_min_max
from tests.unit.builders import POLICY, memory

WEIGHTED = POLICY.weighted
FIGURE = st.floats(0, 1)
COSINES = st.dictionaries(st.integers(1, 6), FIGURE, max_size=5)
Rankings = dict[Source, Ranking]


def vectors(cosines: Mapping[int, float], source: Source = Source.NOTES_COLD, tier: Tier | None = None) -> Ranking:
    """Hits with these cosines, best first."""
    ordered = sorted(cosines, key=lambda number: -cosines[number])
    temperature = "cold" if source is Source.NOTES_COLD else "warm"
    return tuple(
        Hit(
            replace(memory(number, tier=tier or TIER_OF[source]), temperature=temperature),
            cosines[number],
            {"cosine": cosines[number]},
        )
        for number in ordered
    )


def hybrid(*hits: tuple[int, float, float | None]) -> Ranking:
    """Notes with a cosine and a keyword score each, ``None`` if no word matched."""
    return tuple(
        Hit(
            memory(number),
            0.3 * (word or 0) + 0.7 * cosine,
            {"cosine": cosine} | ({} if word is None else {"bm25": 9.0 * word}),
        )
        for number, cosine, word in hits
    )


def paths(strengths: Mapping[int, float], tier: Tier = Tier.GRAPH) -> Ranking:
    return tuple(
        Hit(memory(number, tier=tier), strengths[number], {"path": strengths[number]}) for number in sorted(strengths)
    )


RANKINGS = st.fixed_dictionaries(
    {},
    optional={
        Source.NOTES_HYBRID: st.lists(st.tuples(st.integers(1, 6), FIGURE, st.none() | FIGURE), max_size=4).map(
            lambda hits: hybrid(*{hit[0]: hit for hit in hits}.values())
        ),
        Source.SESSION_VECTORS: COSINES.map(lambda drawn: vectors(drawn, Source.SESSION_VECTORS)),
        Source.GRAPH: COSINES.map(paths),
        Source.DOCUMENTS: COSINES.map(lambda drawn: vectors(drawn, Source.DOCUMENTS)),
    },
)


def scores_of(fused: Sequence[RankedHit]) -> dict[int, float]:
    return {hit.memory.id.int: hit.score for hit in fused}


def min_max(rankings: Mapping[Source, Ranking], *, has_vector: bool = True) -> dict[int, float]:
    return scores_of(fuse_by_min_max(rankings, WEIGHTED, has_vector=has_vector))


def absolute(rankings: Mapping[Source, Ranking], *, has_vector: bool = True) -> dict[int, float]:
    return scores_of(fuse_by_figures(rankings, WEIGHTED, has_vector=has_vector))


def test_every_source_has_a_modality() -> None:
    assert SOURCES.keys() == set(Source)
    assert WEIGHTED.weights == {Modality.KEYWORD: 0.3, Modality.VECTOR: 0.6, Modality.GRAPH: 0.1}


def test_min_max_runs_from_the_worst_figure_to_the_best() -> None:
    assert min_max({Source.NOTES_COLD: vectors({1: 0.9, 2: 0.6, 3: 0.5})}) == pytest.approx({1: 1, 2: 0.25, 3: 0})


def test_the_weights_count_over_what_answered() -> None:
    rankings = {Source.NOTES_HYBRID: hybrid((1, 0.9, None), (2, 0.5, 1.0), (3, 0.5, 0.5))}

    assert min_max(rankings) == pytest.approx({1: 0.6 / 0.9, 2: 0.3 / 0.9, 3: 0})
    assert absolute(rankings) == pytest.approx(
        {1: 0.6 * 0.9 / 0.9, 2: (0.3 + 0.6 * 0.5) / 0.9, 3: (0.15 + 0.6 * 0.5) / 0.9}
    )


def test_without_a_vector_words_alone_make_the_whole() -> None:
    words = (Hit(memory(1), 0.8, {"bm25": 7.0}),)

    assert absolute({Source.NOTES_HYBRID: words}, has_vector=False) == pytest.approx({1: 0.8})


@pytest.mark.parametrize(("cosine", "score"), [(0.26, 0.04), (0.3, 0.2), (0.45, 0.8), (0.5, 1.0), (1.0, 1.0)])
def test_a_lone_hit_is_1_only_if_it_is_good(cosine: float, score: float) -> None:
    assert min_max({Source.NOTES_COLD: vectors({1: cosine})}) == pytest.approx({1: score})


def test_several_bad_hits_do_not_make_one_good() -> None:
    assert max(min_max({Source.NOTES_COLD: vectors({1: 0.29, 2: 0.27, 3: 0.26})}).values()) < 0.2


def test_absolute_scores_are_the_cosines_and_below_the_floor_nothing() -> None:
    assert absolute({Source.NOTES_COLD: vectors({1: 0.9, 2: 0.25, 3: 0.24})}) == pytest.approx({1: 0.9, 2: 0.25, 3: 0})


def test_an_absolute_score_does_not_depend_on_other_hits() -> None:
    alone = absolute({Source.NOTES_COLD: vectors({1: 0.4})})
    among = absolute({Source.NOTES_COLD: vectors({1: 0.4, 2: 0.9}), Source.GRAPH: paths({7: 0.5})})

    assert among[1] == alone[1] == pytest.approx(0.4)


def test_words_count_within_their_own_index() -> None:
    warm = tuple(Hit(memory(number), score, {"ts_rank_cd": score}) for number, score in ((1, 0.8), (2, 0.4)))
    words = tuple(
        Hit(memory(number, tier=Tier.SESSIONS), score, {"bm25": 20 * score}) for number, score in ((5, 0.6), (6, 0.2))
    )

    scores = min_max({Source.NOTES_WARM: warm, Source.SESSION_WORDS: words})

    assert scores == pytest.approx({1: 1, 5: 1, 2: 0, 6: 0})


def test_facts_count_by_their_path_and_their_tier() -> None:
    assert absolute({Source.GRAPH: paths({1: 0.9, 2: 0.5})}) == pytest.approx({1: 0.54, 2: 0.3})


def test_a_match_without_figures_counts_by_its_score_as_words() -> None:
    prefix = (Hit(memory(1, tier=Tier.PROCEDURES), 1.0, {}),)

    assert absolute({Source.PROCEDURES: prefix}) == pytest.approx({1: 0.9 * 0.3 / 0.9})


@given(RANKINGS, COSINES)
def test_being_led_to_by_the_graph_lowers_nothing(rankings: Rankings, strengths: dict[int, float]) -> None:
    without = {source: found for source, found in rankings.items() if source is not Source.GRAPH}
    led_to = {**without, Source.GRAPH: paths(strengths, Tier.NOTES)}

    before = fuse_by_figures(without, WEIGHTED, has_vector=True)
    after = {(hit.memory.tier, hit.memory.id): hit.score for hit in fuse_by_figures(led_to, WEIGHTED, has_vector=True)}

    assert all(after[hit.memory.tier, hit.memory.id] >= hit.score for hit in before)


@given(RANKINGS, st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_every_memory_comes_once_best_first_from_0_to_1_in_whatever_order_the_sources_answer(
    rankings: Rankings, has_vector: bool, is_absolute: bool, random: Random
) -> None:
    weigh = fuse_by_figures if is_absolute else fuse_by_min_max
    shuffled = list(rankings.items())
    random.shuffle(shuffled)

    fused = weigh(rankings, WEIGHTED, has_vector=has_vector)

    keys = [(hit.memory.tier, hit.memory.id) for hit in fused]
    scores = [hit.score for hit in fused]
    assert sorted(keys) == sorted({(hit.memory.tier, hit.memory.id) for found in rankings.values() for hit in found})
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert weigh(dict(shuffled), WEIGHTED, has_vector=has_vector) == fused


@given(COSINES, st.integers(1, 6), FIGURE)
def test_a_better_figure_never_lowers_an_absolute_score(cosines: dict[int, float], number: int, more: float) -> None:
    before = absolute({Source.NOTES_COLD: vectors({**cosines, number: more / 2})})
    after = absolute({Source.NOTES_COLD: vectors({**cosines, number: more})})

    assert after[number] >= before[number]
