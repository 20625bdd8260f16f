"""Tier 1 as one searcher: by meaning, by words, and by both in the flow of the conversation."""

import time
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from lamina.aio.deadline import time_limit
from lamina.core.metrics import UNMEASURED, Meter
from lamina.core.ports import Neighbourhood, TierSearcher
from lamina.core.queries import Failure, Hit, Memory, Neighbour, Query, Ranking
from lamina.core.tiers import Source
from lamina.policies.ranking.conversation import Said, context_scores
from lamina.search.fused_search import Outcome, describe, measured, record_source


class ConversationSearcher:
    """Searches messages, and ranks them once more together with their neighbours.

    Args:
        legs: The sources that find candidates.
        neighbourhood: Reads what stands next to them.
        candidates: How many candidates each leg finds, whatever the query's limit.
        min_similarity: A neighbour that no leg found is a hit itself only from this cosine on.
        deadline_s: Seconds after which the ranking in context counts as failed.
        meter: Takes how long that ranking took, and whether it failed.
    """

    def __init__(
        self,
        legs: TierSearcher,
        neighbourhood: Neighbourhood,
        *,
        candidates: int,
        min_similarity: float,
        deadline_s: float,
        meter: Meter = UNMEASURED,
    ) -> None:
        self._legs = legs
        self._neighbourhood = neighbourhood
        self._candidates = candidates
        self._min_similarity = min_similarity
        self._deadline_s = deadline_s
        self._meter = meter

    def measured_by(self, meter: Meter) -> "ConversationSearcher":
        """Return the same searcher, measured."""
        return ConversationSearcher(
            measured(self._legs, meter),
            self._neighbourhood,
            candidates=self._candidates,
            min_similarity=self._min_similarity,
            deadline_s=self._deadline_s,
            meter=meter,
        )

    async def search(self, query: Query) -> Mapping[Source, Outcome]:
        """Return the legs' rankings, and the one in context; it lives as long as one leg does."""
        wide = replace(query, limit=max(query.limit, self._candidates))
        found = await self._legs.search(wide)
        rankings = {source: ranking for source, ranking in found.items() if not isinstance(ranking, Failure)}
        if not rankings:
            return found
        cut = {source: ranking[: query.limit] for source, ranking in rankings.items()}
        return {**found, **cut, Source.SESSION_CONTEXT: await self._in_context(query, rankings)}

    async def _in_context(self, query: Query, rankings: Mapping[Source, Ranking]) -> Outcome:
        began = time.monotonic()
        outcome = await self._outcome(query, rankings)
        record_source(self._meter, Source.SESSION_CONTEXT, time.monotonic() - began, outcome)
        return outcome

    async def _outcome(self, query: Query, rankings: Mapping[Source, Ranking]) -> Outcome:
        try:
            async with time_limit(self._deadline_s):
                return await self._rank(query, rankings)
        except Exception as error:  # noqa: BLE001 - a source may fail, the answer may not
            return Failure(describe(error))

    async def _rank(self, query: Query, rankings: Mapping[Source, Ranking]) -> Ranking:
        figures = {hit.memory.id: hit for hit in rankings.get(Source.SESSION_WORDS, ())}
        excerpts = {hit.memory.id: hit.memory for ranking in rankings.values() for hit in ranking}
        if not excerpts:
            return ()
        near = await self._neighbourhood.around(query, list(excerpts))
        said = {item.memory.id: _said(item, figures.get(item.memory.id)) for item in near}
        scores = context_scores(said)
        own = [item for item in near if item.memory.id in excerpts or item.cosine >= self._min_similarity]
        own.sort(key=lambda item: (-scores[item.memory.id], item.memory.id))
        return tuple(_hit(item, excerpts, said, scores) for item in own[: query.limit])


def _said(item: Neighbour, by_words: Hit | None) -> Said:
    bm25 = by_words.raw["bm25"] if by_words else 0.0
    return Said(item.memory.session or "", item.position, item.cosine, bm25)


def _hit(
    item: Neighbour, excerpts: Mapping[UUID, Memory], said: Mapping[UUID, Said], scores: Mapping[UUID, float]
) -> Hit:
    id_ = item.memory.id
    figures = {"bm25": said[id_].bm25, "cosine": said[id_].cosine, "in_context": scores[id_]}
    return Hit(excerpts.get(id_, item.memory), min(1.0, scores[id_]), figures)
