"""Turn an engine's own figures into scores that mean the same everywhere: 0..1, higher is better."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lamina.text.words import index_words

Key = TypeVar("Key")
FALL = 0.3
"""Exponent by which keyword scores fall with the place: 0.81 at 2, 0.5 at 10, 0.25 at 100.

Measured: BM25 over that of the best hit is 0.78, 0.47 and 0.28 there on the mean of the questions of 2Wiki, 0.78, 0.52
and 0.28 of the claims of SciFact, 0.81 and 0.53 of LoCoMo's, which have no 100 hits.
"""


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
    """Score the keyword hits of one ranking by their places, 0..1.

    BM25, ts_rank_cd and what other engines sum up have no scale in common, so that a figure tells the order alone: the
    score falls with the place as BM25 does on the average (:data:`FALL`), and hits of one figure share a place. The
    share of the query that the best hit contains keeps the scale absolute: a ranking whose best hit has one of six
    words does not reach 1.

    Args:
        raw: The engine's figure of each hit, higher is better.
        texts: The text of the best hit; of the first of several best.
        query_words: The words of the query.
    """
    if not raw:
        return {}
    best = max(raw, key=lambda key: raw[key])
    reach = max(coverage(query_words, texts[best]), 1 / max(1, len(set(query_words))))
    places = {figure: place for place, figure in reversed(list(enumerate(sorted(raw.values(), reverse=True), start=1)))}
    return {key: reach * places[figure] ** -FALL for key, figure in raw.items()}


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
