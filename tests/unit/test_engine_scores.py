"""Engines score on scales of their own: what is found, and its order, is the same on every one of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from uuid import UUID

import numpy as np
import pytest

from lamina.core.conversations import NOWHERE
from lamina.core.queries import (
    Candidate,
    FusionMethod,
    Hit,
    Neighbour,
    Normalisation,
    Place,
    Query,
    Ranking,
    RowScoring,
)
from lamina.core.scope import Scope
from lamina.core.tiers import Source, Tier
from lamina.policies.ranking.fusion import FusionOptions, fuse
from lamina.policies.ranking.scores import keyword_scores
from lamina.search.conversation_context import ConversationContext
from lamina.settings.search import SearchSettings
from lamina.stores.index.ports import ChunkHit, FoundMessages, Visible
from lamina.stores.index.searchers import Hybrid, NotesTogether, SessionsTogether
from lamina.wiring.services import ranking_policy

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
QUERY = Query("boats of oak", ("boats", "oak"), Scope("acme"), 10, embedding=b"some")
POLICY = ranking_policy(SearchSettings())
Scale = Callable[[float], float]
SCALES: Mapping[str, Scale] = {
    "a thousand times": lambda figure: figure * 1000,
    "a thousandth": lambda figure: figure / 1000,
    "squashed to 0..1": lambda figure: figure / (1 + figure),
    "squashed hard": lambda figure: 1 - math.exp(-figure),
    "negative": lambda figure: figure - 100,
    "as costs": lambda figure: -1 / (1 + figure),
    "logarithms": math.log,
    "steep": lambda figure: figure**6,
}
FUSIONS = [*product(FusionMethod, Normalisation, (True, False))]
# By the words and by the vectors of an engine: some memories by both, some alike, one in two chunks.
FOUND = (
    *(
        ChunkHit((UUID(int=at), 0), bm25, cosine)
        for at, bm25, cosine in [(1, 14.0, 0.41), (2, 9.5, 0.52), (3, 9.5, 0.3)]
    ),
    ChunkHit((UUID(int=4), 0), 6.1, 0.78),
    ChunkHit((UUID(int=4), 1), 5.9, 0.2),
    *(ChunkHit((UUID(int=at), 0), 5.0 - 0.4 * at / 5, 0.9 - at / 20) for at in range(5, 14)),
)


class Index:
    """An engine that has found these chunks, with figures of its scale."""

    def __init__(self, scale: Scale) -> None:
        self.by = [item._replace(bm25=scale(item.bm25)) for item in FOUND if item.bm25 is not None]

    async def by_words(self, query: Query) -> list[ChunkHit]:
        return [item._replace(cosine=None) for item in self.by]

    async def by_vector(self, query: Query) -> list[ChunkHit]:
        near = [item._replace(bm25=None, place=(UUID(int=item.place[0].int + 7), 0)) for item in self.by]
        return sorted(near, key=lambda item: -(item.cosine or 0.0))

    async def by_both(self, query: Query) -> tuple[list[ChunkHit], list[ChunkHit]]:
        return self.by, await self.by_vector(query)


class Rows:
    """Memories as Postgres has them: those of an even number are cold notes."""

    def __init__(self, tier: Tier, scale: Scale) -> None:
        self.tier, self.scale = tier, scale

    async def fetch(self, query: Query, places: Sequence[Place]) -> Visible:
        return self._visible(places)

    async def around(self, query: Query, ids: Sequence[UUID]) -> list[Neighbour]:
        return [Neighbour(self._memory((id_, 0)), "s", id_.int, 0.3 + id_.int / 40) for id_ in ids]

    def _visible(self, places: Sequence[Place]) -> Visible:
        return Visible({place: self._memory(place) for place in places}, "boats" if places else "")

    def _memory(self, place: Place) -> Candidate:
        return Candidate(place[0], self.tier, NOON)


class Notes(Rows):
    async def find(
        self, query: Query, warm: Sequence[Place], cold: Sequence[Place]
    ) -> tuple[Visible, Visible, Ranking]:
        # The full text of Postgres is an engine with a scale of its own, too.
        raw = {UUID(int=at): self.scale(figure) for at, figure in [(7, 0.9), (2, 0.4), (1, 0.4), (11, 0.05)]}
        scores = keyword_scores(raw, {UUID(int=7): "boats of oak"}, query.words)
        literal = tuple(Hit(self._memory((id_, 0)), scores[id_], {"ts_rank_cd": raw[id_]}) for id_ in raw)
        return self._visible(warm), self._visible(cold), literal

    async def score_all(self, query: Query, scoring: RowScoring, *, min_similarity: float) -> Ranking:
        raise NotImplementedError


class Messages(Rows):
    async def find(self, query: Query, places: Sequence[Place]) -> FoundMessages:
        nearest = tuple(Hit(self._memory((UUID(int=at), 0)), at / 20, {"cosine": at / 20}) for at in (12, 9, 3, 1))
        return FoundMessages(self._visible(places), nearest, NOWHERE)


async def rankings_of(scale: Scale) -> dict[Source, Ranking]:
    index, notes = Index(scale), Notes(Tier.NOTES, scale)
    together = NotesTogether(index, index, notes, min_similarity=0.25, index_deadline_s=5)
    sessions = SessionsTogether(index, Messages(Tier.SESSIONS, scale), index_deadline_s=5)
    documents = Hybrid(Source.DOCUMENTS, index, Rows(Tier.DOCUMENTS, scale), min_similarity=0.25)
    context = ConversationContext(Rows(Tier.SESSIONS, scale), candidates=10, min_similarity=0.25)
    answers = [await together.search(QUERY), await sessions.search(QUERY)]
    found = {source: ranking for answer in answers for source, ranking in answer.outcomes.items()}
    rankings = {source: ranking for source, ranking in found.items() if isinstance(ranking, tuple)}
    assert rankings.keys() == found.keys()
    of_sessions = {source: rankings[source] for source in sessions.sources}
    return {
        **rankings,
        Source.DOCUMENTS: await documents.search(QUERY),
        Source.SESSION_CONTEXT: await context.rank(QUERY, of_sessions),
    }


def shown(
    rankings: Mapping[Source, Ranking], method: FusionMethod, normalise: Normalisation, has_vector: bool
) -> list[tuple[Tier, UUID, float]]:
    options = FusionOptions(method, normalise, 5, NOON, has_vector)
    return [(hit.memory.tier, hit.memory.id, hit.score) for hit in fuse(rankings, options, POLICY)]


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
async def test_figures_of_another_scale_change_neither_the_hits_nor_their_scores(scale: Scale) -> None:
    before, after = await rankings_of(lambda figure: figure), await rankings_of(scale)

    for source, ranking in before.items():
        assert [(hit.memory.id, hit.score) for hit in after[source]] == [(hit.memory.id, hit.score) for hit in ranking]
    assert all(len(ranking) > 3 for ranking in before.values())
    for fusion in FUSIONS:
        assert shown(after, *fusion) == shown(before, *fusion)
        # Each source alone, too: another one that ranks the same would hide a change of its own.
        for source in before:
            assert shown({source: after[source]}, *fusion) == shown({source: before[source]}, *fusion)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_equals_stay_equals_on_every_scale(scale: Scale) -> None:
    raw = dict(enumerate(np.linspace(20, 0.6, 40).round().tolist()))

    before = keyword_scores(raw, {0: "boats of oak"}, QUERY.words)
    after = keyword_scores({key: scale(figure) for key, figure in raw.items()}, {0: "boats of oak"}, QUERY.words)

    assert after == before
    assert len(set(after.values())) == len(set(raw.values()))
