"""Rank messages together with the messages around them."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from lamina.core.conversations import NOWHERE, PlacedMessages
from lamina.core.ports import Neighbourhood
from lamina.core.queries import Candidate, Hit, Memory, Neighbour, Query, Ranking
from lamina.core.tiers import Source
from lamina.policies.ranking.conversation import MessageFigures, context_scores


class ConversationContext:
    """Ranks the messages that sources found, and near neighbours of them, in the flow of their conversation.

    Args:
        neighbourhood: Reads the messages around others.
        candidates: Least hits of each source, also where the query's limit is lower.
        min_similarity: A neighbour that no source found is a hit itself only from this cosine on.
    """

    source = Source.SESSION_CONTEXT

    def __init__(self, neighbourhood: Neighbourhood, *, candidates: int, min_similarity: float) -> None:
        self.candidates = candidates
        self._neighbourhood = neighbourhood
        self._min_similarity = min_similarity

    async def rank(
        self,
        query: Query,
        rankings: Mapping[Source, Ranking],
        placed: PlacedMessages = NOWHERE,  # noqa: ARG002 - it reads chunks, too
    ) -> Ranking:
        """Return the messages by their scores in context, best first, ties by id."""
        # A neighbour that was not found by words has no score.
        by_words = {hit.memory.id: hit.score for hit in rankings.get(Source.SESSION_WORDS, ())}
        found = {hit.memory.id: hit.memory for ranking in rankings.values() for hit in ranking}
        if not found:
            return ()
        near = await self._neighbourhood.around(query, list(found))
        figures = {
            item.memory.id: MessageFigures(item.session, item.position, item.cosine, by_words.get(item.memory.id, 0.0))
            for item in near
        }
        hits = [item for item in near if item.memory.id in found or item.cosine >= self._min_similarity]
        return _ranking(hits, found, figures)[: query.limit]


def _ranking(
    hits: Sequence[Neighbour], found: Mapping[UUID, Memory | Candidate], figures: Mapping[UUID, MessageFigures]
) -> Ranking:
    scores = context_scores(figures)
    ordered = sorted((item.memory for item in hits), key=lambda memory: (-scores[memory.id], memory.id))
    return tuple(
        # A source's memory shows the excerpt that matched; a neighbour's, its best chunk.
        Hit(
            found.get(memory.id, memory),
            min(1.0, scores[memory.id]),
            {
                "words": figures[memory.id].words,
                "cosine": figures[memory.id].cosine,
                "in_context": scores[memory.id],
            },
        )
        for memory in ordered
    )
