"""Turn an engine's own figures into scores that mean the same everywhere: 0..1, higher is better."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from lamina.text.words import index_words

Key = TypeVar("Key")

KEYWORD_WEIGHT = 0.3
VECTOR_WEIGHT = 0.7


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


def hybrid_score(keyword: float, similarity: float | None) -> float:
    """Return 0.3 keyword + 0.7 vector; the keyword score alone where there is no vector.

    Source:
        Open Astra, Tiered Search: vector weight 0.7 against 0.3 for the keyword match.
    """
    if similarity is None:
        return keyword
    return KEYWORD_WEIGHT * keyword + VECTOR_WEIGHT * similarity_score(similarity)


def keyword_part(score: float, similarity: float | None) -> float:
    """Return the keyword score that :func:`hybrid_score` made a score from, 0..1."""
    if similarity is None:
        return score
    return min(1.0, max(0.0, (score - VECTOR_WEIGHT * similarity_score(similarity)) / KEYWORD_WEIGHT))


def widening(limit: int) -> Iterator[int]:
    """Yield how many chunks to ask for until they belong to ``limit`` memories: 3, 12, 48, 192 times as many.

    Chunks of one long memory share its place, and deleted memories fall out after the look-up.
    """
    return (limit * 3 * 4**step for step in range(4))
