from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.ranking.scores import coverage, hybrid_score, keyword_scores, similarity_score

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
FIGURES = st.dictionaries(st.sampled_from([ONE, TWO, THREE]), st.floats(0, 1e6), max_size=3)
QUERY_WORDS = st.lists(st.sampled_from(["green", "tea", "cup"]), max_size=4)


@pytest.mark.parametrize(
    ("cosine", "score"), [(1, 1), (0.3, 0.3), (0, 0), (-0.2, 0), (-1, 0), (1.0000001, 1), (-1.0000001, 0)]
)
def test_a_cosine_is_a_score_from_0_to_1(cosine: float, score: float) -> None:
    assert similarity_score(cosine) == score


@pytest.mark.parametrize(
    ("query_words", "text", "share"),
    [
        (["green", "tea"], "Green tea!", 1),
        (["green", "tea"], "black TEA", 0.5),
        (["tea", "tea", "cup"], "tea", 0.5),
        (["tea"], "teapot", 0),
        (["しり", "りと", "とり"], "成語しりとり", 1),
        ([], "tea", 0),
        (["tea"], "", 0),
    ],
)
def test_coverage_is_the_share_of_the_distinct_query_words(query_words: list[str], text: str, share: float) -> None:
    assert coverage(query_words, text) == share


def test_the_best_hit_with_every_word_scores_1_and_the_others_by_their_places() -> None:
    scores = keyword_scores({ONE: 8.0, TWO: 2.0, THREE: 2.0}, {ONE: "green tea"}, ["green", "tea"])

    assert scores == {ONE: 1.0, TWO: pytest.approx(0.812, abs=0.001), THREE: scores[TWO]}


def test_a_ranking_whose_best_hit_has_one_of_six_words_does_not_reach_1() -> None:
    asked = ["who", "drinks", "green", "tea", "at", "noon"]

    scores = keyword_scores({ONE: 5.0}, {ONE: "tea for two"}, asked)

    assert scores == {ONE: pytest.approx(1 / 6)}


def test_a_hit_that_the_engine_found_by_a_stem_counts_as_one_word() -> None:
    scores = keyword_scores({ONE: 5.0}, {ONE: "she runs"}, ["running", "shoes"])

    assert scores == {ONE: 0.5}


def test_no_hits_have_no_scores() -> None:
    assert keyword_scores({}, {}, ["tea"]) == {}


@given(FIGURES, QUERY_WORDS)
def test_keyword_scores_lie_in_0_to_1_and_keep_the_order(raw: dict[UUID, float], query_words: list[str]) -> None:
    scores = keyword_scores(raw, dict.fromkeys(raw, "green tea"), query_words)

    assert scores.keys() == raw.keys()
    assert all(0 <= score <= 1 for score in scores.values())
    assert all(scores[one] <= scores[other] for one in raw for other in raw if raw[one] <= raw[other])


@pytest.mark.parametrize(
    ("keyword", "cosine", "score"),
    [(1, 1, 1), (1, 0, 0.3), (0, 1, 0.7), (0, 0, 0), (0.5, 0.5, 0.5), (0, -1, 0), (0.4, None, 0.4), (1, None, 1)],
)
def test_a_hybrid_score_is_three_parts_of_words_and_seven_of_meaning(
    keyword: float, cosine: float | None, score: float
) -> None:
    assert hybrid_score(keyword, cosine) == pytest.approx(score)


@given(st.floats(0, 1), st.floats(-1.001, 1.001) | st.none())
def test_a_hybrid_score_lies_in_0_to_1(keyword: float, cosine: float | None) -> None:
    assert 0 <= hybrid_score(keyword, cosine) <= 1
