"""Points of Qdrant, embedded or a server: the weights of their words, and the hits that they become."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_edge import Bm25, Bm25Config

from lamina.core.queries import Place, Query
from lamina.stores.index.ports import ChunkHit, chunk_place, cosine_of
from lamina.text.words import index_words

DENSE, WORDS = "dense", "words"
_BM25: Any = Bm25(Bm25Config())
# A point that a search of either engine found, with its ``payload``, ``score`` and, if asked for, ``vector``.
FoundPoint = Any


@dataclass(frozen=True, slots=True)
class WordWeights:
    """A sparse vector: the numbers of words and their weights by BM25, before it is known how rare each word is."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


def weights_of_text(text: str) -> WordWeights:
    """Return the weights of the words of a text that is indexed."""
    return _weights(_BM25.embed_document(" ".join(index_words(text))))


def weights_of_question(asked: Sequence[str]) -> WordWeights:
    """Return the weights of a question's words; none where the question has no word that is indexed."""
    return _weights(_BM25.embed_query(" ".join(asked)))


def _weights(sparse: Any) -> WordWeights:
    return WordWeights(tuple(sparse.indices), tuple(sparse.values))


def word_hits(query: Query, points: Sequence[FoundPoint], cosines: Mapping[Any, float] | None = None) -> list[ChunkHit]:
    """Return the hits by words, best first, with their cosines.

    Args:
        query: The query.
        points: What was found.
        cosines: By the ids of the points; if not given, those of the points that have vectors.
    """

    def cosine(point: FoundPoint) -> float | None:
        return cosine_of(query, point.vector, DENSE) if cosines is None else cosines.get(point.id)

    return [ChunkHit(place, bm25=float(point.score), cosine=cosine(point)) for place, point in _best_first(points)]


def vector_hits(points: Sequence[FoundPoint]) -> list[ChunkHit]:
    """Return the hits by vectors, nearest first."""
    return [ChunkHit(place, cosine=float(point.score)) for place, point in _best_first(points)]


def _best_first(points: Sequence[FoundPoint]) -> list[tuple[Place, FoundPoint]]:
    """Return the points with their places, equals ordered by these, for the engines return those in any order."""
    # The embedded engine makes a new payload of each look at one.
    placed = [(chunk_place(point.payload), point) for point in points]
    return sorted(placed, key=lambda item: (-item[1].score, item[0]))


def are_enough(query: Query, points: Sequence[FoundPoint], limit: int) -> bool:
    """Report whether the points are of as many memories as the query asks for, or all that there are."""
    return len(points) < limit or len({point.payload["memory"] for point in points}) >= query.limit
