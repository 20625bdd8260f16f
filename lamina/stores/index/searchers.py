"""Sources of search over any index of chunks; the memories of the chunks are read from Postgres."""

import asyncio
import math
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from lamina.aio.deadline import time_limit
from lamina.core.conversations import JointAnswer
from lamina.core.queries import Failure, Hit, Place, Query, Ranking, best_hits
from lamina.core.tiers import TIERS, Source
from lamina.errors import describe_error
from lamina.policies.ranking.scores import HYBRID, HybridWeights, hybrid_score, keyword_scores, similarity_score
from lamina.stores.index.ports import (
    ChunkHit,
    HybridIndex,
    Lookup,
    MessageReader,
    NoteReader,
    VectorIndex,
    Visible,
    WordIndex,
)

Found = TypeVar("Found")
# Of the time for a source, for an index whose answer a statement waits for.
INDEX_SHARE = 0.6


class Hybrid:
    """Memories by words and by meaning at once.

    Over the abstracts of SciFact this formula finds better (nDCG@10 0.733) than reciprocal rank
    fusion of the two rankings (0.720), words alone (0.679) or vectors alone (0.675).

    Args:
        source: Name of the ranking: of notes, or of passages of documents.
        index: Their index.
        lookup: Reads the memories of the chunks.
        min_similarity: One that shares no word is a hit only from this cosine on.
        weights: Of words and meaning.
    """

    def __init__(
        self,
        source: Source,
        index: HybridIndex,
        lookup: Lookup,
        *,
        min_similarity: float,
        weights: HybridWeights = HYBRID,
    ) -> None:
        self.source = source
        self._index = index
        self._lookup = lookup
        self._min_similarity = min_similarity
        self._weights = weights

    async def search(self, query: Query) -> Ranking:
        """Return memories by the weighted mean of the words and the cosine of their best chunk."""
        found = _near_or_by_words(*await self._index.by_both(query), self._min_similarity)
        return _rank(query, await self._lookup.fetch(query, _best_words_first(found)), found, self._weights)


class SessionsTogether:
    """Messages by their words, on an index of words, and by their vectors, which Postgres compares.

    Args:
        index: The messages' index.
        reader: Reads the messages of the chunks and the nearest ones.
        index_deadline_s: Seconds for which the index is waited for at least; the vectors answer without it.
    """

    sources: tuple[Source, ...] = (Source.SESSION_VECTORS, Source.SESSION_WORDS)

    def __init__(self, index: WordIndex, reader: MessageReader, *, index_deadline_s: float) -> None:
        self._index = index
        self._reader = reader
        self._index_deadline_s = index_deadline_s

    async def search(self, query: Query) -> JointAnswer:
        """Return messages by BM25 of their best chunk, and the nearest; none where the query asks for tags."""
        if query.filters.tags:
            return JointAnswer(dict.fromkeys(self.sources, ()))
        by_words = await _in_time(self._index.by_words(query), query.wait_s(self._index_deadline_s, INDEX_SHARE))
        if isinstance(by_words, Failure):
            messages = await self._reader.find(query, ())
            failed: dict[Source, Ranking | Failure] = {
                Source.SESSION_VECTORS: messages.nearest,
                Source.SESSION_WORDS: by_words,
            }
            return JointAnswer(failed, messages.placed)
        found = {item.place: item for item in sorted(by_words, key=_falling_bm25)}
        places, count = list(found), _enough(list(found.values()), query.limit)
        messages = await self._reader.find(query, places[:count])
        # Seldom: the index gives more than are ranked, in the place of those that the query does not see any more.
        if count < len(places) and len({memory for memory, _ in messages.visible.memories}) < query.limit:
            messages = await self._reader.find(query, places)
        words = _rank(query, messages.visible, found, HYBRID)
        return JointAnswer({Source.SESSION_VECTORS: messages.nearest, Source.SESSION_WORDS: words}, messages.placed)


class NotesTogether:
    """Warm notes by words and meaning and by literal recall, and cold ones by meaning alone.

    Args:
        index: The index of warm notes.
        cold: The index of cold ones.
        reader: Reads the notes of the chunks, and those that have all words of a query.
        min_similarity: A note that shares no word is a hit only from this cosine on.
        index_deadline_s: Seconds for which an index is waited for at least; the others answer without it.
        weights: Of words and meaning in the index of warm notes.
    """

    sources = tuple(TIERS["notes"].sources)

    def __init__(
        self,
        index: HybridIndex,
        cold: VectorIndex,
        reader: NoteReader,
        *,
        min_similarity: float,
        index_deadline_s: float,
        weights: HybridWeights = HYBRID,
    ) -> None:
        self._index = index
        self._cold = cold
        self._reader = reader
        self._min_similarity = min_similarity
        self._index_deadline_s = index_deadline_s
        self._weights = weights

    async def search(self, query: Query) -> JointAnswer:
        """Return the ranking of each source; where every row is scored, that ranking alone."""
        if query.row_scoring is not None and query.embedding is not None:
            least = self._min_similarity
            scored = await self._reader.score_all(query, query.row_scoring, min_similarity=least)
            return JointAnswer({**dict.fromkeys(self.sources, ()), Source.NOTES_HYBRID: scored})
        index_deadline_s = query.wait_s(self._index_deadline_s, INDEX_SHARE)
        by_both, by_vector = await asyncio.gather(
            _in_time(self._index.by_both(query), index_deadline_s),
            _in_time(self._cold.by_vector(query), index_deadline_s),
        )
        found = {} if isinstance(by_both, Failure) else _near_or_by_words(*by_both, self._min_similarity)
        near = {} if isinstance(by_vector, Failure) else _near_or_by_words((), by_vector, self._min_similarity)
        warm, cold, literal = await self._reader.find(query, _best_words_first(found), list(near))
        outcomes = (
            by_both if isinstance(by_both, Failure) else _rank(query, warm, found, self._weights),
            literal,
            by_vector if isinstance(by_vector, Failure) else _rank_by_vector(query, cold, near),
        )
        return JointAnswer(dict(zip(self.sources, outcomes, strict=True)))


def _enough(best_first: Sequence[ChunkHit], limit: int) -> int:
    """Return how many of the hits are of the best so many memories, and of those that match as well as the last."""
    memories: set[UUID] = set()
    for count, item in enumerate(best_first):
        if len(memories) >= limit and item.bm25 != best_first[count - 1].bm25:
            return count
        memories.add(item.place[0])
    return len(best_first)


async def _in_time(asked: Awaitable[Found], deadline_s: float) -> Found | Failure:
    try:
        async with time_limit(deadline_s):
            return await asked
    except Exception as error:  # noqa: BLE001 - a source may fail, the others may not
        return Failure(describe_error(error))


def _near_or_by_words(
    by_words: Sequence[ChunkHit], by_vector: Sequence[ChunkHit], min_similarity: float
) -> dict[Place, ChunkHit]:
    near = [item for item in by_vector if item.cosine is not None and item.cosine >= min_similarity]
    return {item.place: item for item in (*near, *by_words)}


def _rank_by_vector(query: Query, visible: Visible, found: Mapping[Place, ChunkHit]) -> Ranking:
    near = {place: found[place].cosine or 0.0 for place in visible.memories}
    hits = [
        Hit(visible.memories[place], similarity_score(cosine), {"cosine": cosine}) for place, cosine in near.items()
    ]
    return best_hits(hits, query.limit)


def _best_words_first(found: Mapping[Place, ChunkHit]) -> list[Place]:
    return [item.place for item in sorted(found.values(), key=_falling_bm25)]


def _falling_bm25(item: ChunkHit) -> float:
    # Whatever is not found by words comes last, also where an engine's figures are below 0.
    return math.inf if item.bm25 is None else -item.bm25


def _rank(query: Query, visible: Visible, found: Mapping[Place, ChunkHit], configured: HybridWeights) -> Ranking:
    weights = configured.overridden(query.keyword_weight, query.vector_weight)
    best_first = sorted(found.values(), key=_falling_bm25)
    seen = [(item, memory) for item in best_first if (memory := visible.memories.get(item.place)) is not None]
    bm25 = {rank: item.bm25 for rank, (item, _) in enumerate(seen) if item.bm25 is not None}
    keyword = keyword_scores(bm25, {0: visible.first_text}, query.words)
    hits = []
    for rank, (item, memory) in enumerate(seen):
        score = hybrid_score(keyword.get(rank, 0.0), item.cosine, weights)
        # What only a part of weight 0 found is no hit.
        if score > 0 or (weights.keyword and weights.vector):
            hits.append(Hit(memory, score, item.figures()))
    return best_hits(hits, query.limit)
