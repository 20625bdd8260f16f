import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from lamina.aio.circuit_breaker import BreakerPolicy, CircuitBreaker
from lamina.core.queries import FusedHit
from lamina.core.tiers import Source, Tier
from lamina.errors import Unavailable
from lamina.models.reranking import BatchingReranker, read_scores
from lamina.policies.ranking.reranking import probabilities, reorder
from lamina.search.fused_search import Deadlines, Search
from lamina.search.second_stage import SecondStage
from tests.support.embedders import Uncached
from tests.support.virtual_time import in_virtual_time
from tests.unit.builders import NOON, POLICY, Rows, memory, request
from tests.unit.test_fused_search import Answers, Embeds, tier_of

NAN, INFINITY = float("nan"), float("inf")


def hits(*scores: float) -> list[FusedHit]:
    return [FusedHit(memory(number), score, {}) for number, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.1, 0.9, 0.0, 1.0], [0.1, 0.9, 0.0, 1.0]),
        ([-2.0, 0.0, 2.0], [0.119, 0.5, 0.881]),
        ([0.3, 1.5], [0.574, 0.818]),
        ([-1e300, 1e300], [0.0, 1.0]),
        ([], []),
    ],
)
def test_logits_and_probabilities_alike_lie_between_0_and_1(scores: list[float], expected: list[float]) -> None:
    assert probabilities(scores) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("wrong", [NAN, INFINITY, -INFINITY])
def test_a_score_that_is_no_finite_number_is_none_at_all(wrong: float) -> None:
    assert probabilities([0.5, wrong]) is None


def test_the_pool_takes_the_models_order_and_what_is_beyond_keeps_its_own() -> None:
    found = reorder(hits(0.9, 0.8, 0.7, 0.6, 0.1), [-3.0, 2.0, 2.0], [0.05, 0.9, 0.9])

    assert [hit.memory.id.int for hit in found] == [1, 2, 0, 3, 4]
    assert [hit.score for hit in found] == [0.9, 0.9, 0.05, 0.05, 0.05]
    assert all(better.score >= worse.score for better, worse in pairwise(found))
    first, *_, last = found
    assert first.reranked is not None
    assert (first.reranked.rank, first.reranked.raw) == (1, {"raw": 2.0, "fused_rank": 2, "fused_score": 0.8})
    assert last.reranked is None


class Scores:
    """Gives texts scores by a table, and notes what it was asked."""

    def __init__(self, *scores: float, error: Exception | None = None, hangs: bool = False) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self._scores = scores
        self._error = error
        self._hangs = hangs

    async def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        self.asked.append((question, tuple(texts)))
        if self._hangs:
            await asyncio.sleep(3600)
        if self._error:
            raise self._error
        return self._scores


def stage(reranker: Scores, *, pool: int = 3, deadline_s: float = 60, failures: int = 2) -> SecondStage:
    return SecondStage(reranker, pool=pool, breaker=CircuitBreaker("reranker", BreakerPolicy(deadline_s, failures, 60)))


@pytest.mark.parametrize(
    ("reranker", "deadline_s", "said"),
    [
        (Scores(hangs=True), 0.01, "0.01 s"),
        (Scores(error=Unavailable("reranker", "its endpoint answers 500")), 60, "its endpoint answers 500"),
        (Scores(error=ValueError("the text of a tenant")), 60, "ValueError"),
        (Scores(0.5), 60, "no finite score for each of 2 texts"),
        (Scores(0.5, NAN), 60, "no finite score for each of 2 texts"),
    ],
)
@in_virtual_time
async def test_without_the_model_in_time_the_first_order_stands_and_is_said_so(
    reranker: Scores, deadline_s: float, said: str
) -> None:
    found, degraded = await stage(reranker, deadline_s=deadline_s).rerank("q", hits(0.9, 0.8))

    assert list(found) == hits(0.9, 0.8)
    assert said in degraded["reranker"]
    assert "tenant" not in degraded["reranker"]


async def test_a_model_that_fails_again_and_again_is_left_out_for_a_while() -> None:
    reranker = Scores(error=Unavailable("reranker", "down"))
    second = stage(reranker, failures=2)

    outcomes = [await second.rerank("q", hits(0.9)) for _ in range(5)]

    assert all(degraded for _, degraded in outcomes)
    assert len(reranker.asked) == 2


async def test_nothing_found_asks_for_nothing() -> None:
    reranker = Scores()

    assert await stage(reranker).rerank("q", []) == ((), {})
    assert reranker.asked == []


async def test_a_search_reads_the_pool_reranks_it_and_answers_as_many_as_were_asked_for() -> None:
    reranker = Scores(0.1, 0.2, 0.9)
    source = Answers(Source.NOTES_WARM, 1, 2, 3, 4)
    search = Search(
        Uncached(Embeds()),
        {Tier.NOTES: tier_of(source)},
        rows=Rows(),
        generation=1,
        policy=POLICY,
        deadlines=Deadlines(embed_s=60, tier_s=60),
        clock=lambda: NOON,
        second_stage=stage(reranker),
    )

    answer = await search.search(request(limit=2))

    assert [hit.score for hit in answer.hits] == [0.9, 0.2]
    assert [hit.memory.id.int for hit in answer.hits] == [3, 2]
    assert len(reranker.asked[0][1]) == 3
    assert answer.degraded == {}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]}, [0.2, 0.9]),
        ({"data": [{"index": 0, "relevance_score": 1}, {"index": 1, "relevance_score": 0}]}, [1, 0]),
        ([{"index": 1, "score": -4.5, "text": "x"}, {"index": 0, "score": 3}], [3, -4.5]),
        ({"results": [{"index": 0, "relevance_score": 0.2}, {"index": 1, "score": 0.3}]}, [0.2, 0.3]),
    ],
)
def test_each_form_of_an_answer_is_read_in_the_order_of_the_texts(answer: object, expected: list[float]) -> None:
    assert read_scores(answer, 2) == expected


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "the text of a tenant"},
        {"results": [{"index": 0, "relevance_score": 0.2}]},
        {"results": [{"index": 0}, {"index": 1}]},
        {"results": [{"index": 0, "relevance_score": "high"}, {"index": 1, "relevance_score": 1}]},
        {"results": "the text of a tenant"},
        ["the text of a tenant"],
        None,
        7,
    ],
)
def test_an_answer_of_another_form_names_the_fault_and_none_of_its_text(answer: object) -> None:
    with pytest.raises(Unavailable, match="its endpoint's answer is no list of scores") as refusal:
        read_scores(answer, 2)

    assert "tenant" not in str(refusal.value)


class Lengths:
    """Scores a pair by the lengths of both; notes how many pairs came together."""

    def __init__(self) -> None:
        self.passes: list[int] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        self.passes.append(len(pairs))
        return [len(question) * 100 + len(text) for question, text in pairs]


async def test_calls_that_come_together_share_a_pass_and_get_their_own_scores() -> None:
    model = Lengths()
    reranker = BatchingReranker(model)

    found = await asyncio.gather(*(reranker.score("q" * n, ["t" * k for k in range(n)]) for n in range(1, 8)))

    assert found == [[n * 100 + k for k in range(n)] for n in range(1, 8)]
    assert len(model.passes) < 7
    assert await reranker.score("q", []) == []
