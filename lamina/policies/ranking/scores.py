"""Turn an engine's own figures into scores that mean the same everywhere: 0..1, higher is better."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lamina.text.words import index_words

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class HybridWeights:
    """The shares of words and meaning in a score of both; at least one is above 0.

    Source:
        Open Astra, Tiered Search: vector weight 0.7 against 0.3 for the keyword match.
    """

    keyword: float = 0.3
    vector: float = 0.7

    def overridden(self, keyword: float | None, vector: float | None) -> "HybridWeights":
        """Return the weights with those that a call gave; both 0 leave them as they are."""
        changed = HybridWeights(self.keyword if keyword is None else keyword, self.vector if vector is None else vector)
        return changed if changed.keyword or changed.vector else self


HYBRID = HybridWeights()


def similarity_score(similarity: float) -> float:
    """Return a cosine (−1..1) as a score: opposed and unrelated texts are 0, identical ones 1."""
    return min(1.0, max(0.0, similarity))


def coverage(query_words: Collection[str], text: str) -> float:
    """Return the share of the distinct query words that the text contains, 0..1."""
    wanted = set(query_words)
    return len(wanted.intersection(index_words(text))) / len(wanted) if wanted else 0.0


def keyword_scores(raw: Mapping[Key, float], texts: Mapping[Key, str], query_words: Sequence[str]) -> dict[Key, float]:
    """Scale the keyword figures of one ranking to 0..1.

    BM25 and ts_rank_cd have no upper end. Dividing by the best of the ranking orders the hits;
    multiplying by the share of the query that this best hit contains keeps the scale absolute:
    a ranking whose best hit has one of six words does not reach 1.

    Args:
        raw: The engine's figure of each hit, higher is better, at least one above 0.
        texts: The text of each hit.
        query_words: The words of the query.
    """
    if not raw:
        return {}
    best = max(raw, key=lambda key: raw[key])
    if raw[best] <= 0:
        return dict.fromkeys(raw, 0.0)
    reach = max(coverage(query_words, texts[best]), 1 / max(1, len(set(query_words))))
    return {key: reach * max(0.0, value) / raw[best] for key, value in raw.items()}


def hybrid_score(keyword: float, similarity: float | None, weights: HybridWeights = HYBRID) -> float:
    """Return the weighted mean of both scores; where there is no vector, that of words alone if words count."""
    if similarity is None:
        return keyword if weights.keyword else 0.0
    by_both = weights.keyword * keyword + weights.vector * similarity_score(similarity)
    return by_both / (weights.keyword + weights.vector)


def keyword_part(score: float, similarity: float | None, weights: HybridWeights = HYBRID) -> float:
    """Return the keyword score that :func:`hybrid_score` made a score from, 0..1; 0 where words did not count."""
    if similarity is None or not weights.keyword:
        return score if similarity is None else 0.0
    whole = score * (weights.keyword + weights.vector)
    return min(1.0, max(0.0, (whole - weights.vector * similarity_score(similarity)) / weights.keyword))


def widening(limit: int) -> Iterator[int]:
    """Yield how many chunks to ask for until they belong to ``limit`` memories: 3, 12, 48, 192 times as many.

    Chunks of one long memory share its place, and deleted memories fall out after the look-up.
    """
    return (limit * 3 * 4**step for step in range(4))
