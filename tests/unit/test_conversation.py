from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.queries import Candidate, Failure, Hit, Neighbour, Query, Ranking
from lamina.core.scope import Scope
from lamina.core.tiers import Source, Tier
from lamina.errors import Conflict
from lamina.policies.ranking.conversation import MessageFigures, context_scores
from lamina.search.conversation_context import ConversationContext
from lamina.search.tier_sources import SourceOutcome, TierSources

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
FIGURES = st.floats(0, 1)


def said(*cosines: float, session: str = "s") -> dict[UUID, MessageFigures]:
    return {
        UUID(int=place): MessageFigures(session, place, cosine, 0.0) for place, cosine in enumerate(cosines, start=1)
    }


def test_a_message_between_two_good_ones_beats_an_equal_one_alone() -> None:
    scores = context_scores(said(0.5, 0.4, 0.5) | {UUID(int=9): MessageFigures("s", 9, 0.4, 0.0)})

    assert scores[UUID(int=2)] > scores[UUID(int=9)]


def test_a_neighbour_of_another_session_lends_nothing() -> None:
    alone = context_scores(said(0.4))
    beside = context_scores(said(0.4) | {UUID(int=2): MessageFigures("other", 2, 0.9, 0.0)})

    assert beside[UUID(int=1)] == alone[UUID(int=1)]


def test_words_and_meaning_count_four_and_six_tenths() -> None:
    scores = context_scores(
        {UUID(int=1): MessageFigures("s", 1, 0.5, 12.0), UUID(int=2): MessageFigures("s", 5, 1.0, 6.0)}
    )

    assert scores[UUID(int=1)] == pytest.approx(0.4 + 0.3)
    assert scores[UUID(int=2)] == pytest.approx(0.2 + 0.6)


@given(st.lists(FIGURES, min_size=1, max_size=20), st.integers(0, 19))
def test_a_nearer_neighbour_never_lowers_a_score(cosines: list[float], place: int) -> None:
    before = context_scores(said(*cosines))
    nearer = [1.0 if at == place % len(cosines) else cosine for at, cosine in enumerate(cosines)]

    after = context_scores(said(*nearer))

    assert all(after[id_] >= before[id_] for id_ in before)


class OneSource:
    """Answers with a ranking or fails, and notes how many hits it was asked for."""

    def __init__(self, source: Source, answer: SourceOutcome) -> None:
        self.source = source
        self.limit = 0
        self._answer = answer

    async def search(self, query: Query) -> Ranking:
        self.limit = query.limit
        if isinstance(self._answer, Failure):
            raise Conflict(self._answer.reason)
        return self._answer


class Around:
    """A session of messages by position."""

    def __init__(self, *cosines: float) -> None:
        self.neighbours = [
            Neighbour(memory(place), "s", place, cosine) for place, cosine in enumerate(cosines, start=1)
        ]

    async def around(self, query: Query, ids: Sequence[UUID]) -> list[Neighbour]:
        wanted = {id_.int + step for id_ in ids for step in (-1, 0, 1)}
        return [item for item in self.neighbours if item.position in wanted]


class Broken:
    """Reads nothing."""

    async def around(self, query: Query, ids: Sequence[UUID]) -> list[Neighbour]:
        raise OSError("disk on fire")


def memory(place: int) -> Candidate:
    return Candidate(UUID(int=place), Tier.SESSIONS, NOON)


def found(*places: int) -> Ranking:
    return tuple(Hit(memory(place), 0.5, {"cosine": 0.5, "bm25": 1.0}) for place in places)


def tier(around: Around | Broken, **answers: SourceOutcome) -> TierSources:
    sources = [OneSource(Source(name), answer) for name, answer in answers.items()]
    return TierSources(sources, 1.0, ConversationContext(around, candidates=30, min_similarity=0.25))


def query(limit: int = 2) -> Query:
    return Query("q", ("q",), Scope("acme"), limit)


async def test_each_source_offers_more_candidates_than_the_query_wants() -> None:
    vectors = OneSource(Source.SESSION_VECTORS, found(1, 2, 3))
    context = ConversationContext(Around(0.5, 0.5, 0.5), candidates=30, min_similarity=0.25)

    answer = await TierSources([vectors], 1.0, context).search(query(limit=2))

    assert vectors.limit == 30
    assert answer[Source.SESSION_VECTORS] == found(1, 2)


async def test_a_near_neighbour_is_a_hit_and_a_far_one_only_lends() -> None:
    sources = tier(Around(0.3, 0.9, 0.1), session_vectors=found(2))

    ranking = (await sources.search(query(limit=10)))[Source.SESSION_CONTEXT]

    assert not isinstance(ranking, Failure)
    assert [hit.memory.id.int for hit in ranking] == [2, 1]
    assert all(0 <= hit.score <= 1 for hit in ranking)


async def test_one_source_is_enough() -> None:
    sources = tier(Around(0.0, 0.0, 0.0), session_vectors=Failure("gone"), session_words=found(2))

    answer = await sources.search(query())

    assert answer[Source.SESSION_VECTORS] == Failure("gone")
    assert [hit.memory.id.int for hit in answer[Source.SESSION_CONTEXT]] == [2]  # type: ignore[union-attr]


async def test_without_a_source_there_is_no_ranking_in_context() -> None:
    failed: dict[str, SourceOutcome] = {"session_vectors": Failure("gone"), "session_words": Failure("gone")}

    assert await tier(Around(), **failed).search(query()) == failed


async def test_where_the_neighbours_cannot_be_read_the_sources_answer() -> None:
    answer = await tier(Broken(), session_words=found(1)).search(query())

    assert answer[Source.SESSION_WORDS] == found(1)
    assert answer[Source.SESSION_CONTEXT] == Failure("OSError: disk on fire")
