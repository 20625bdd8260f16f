"""The second stage: the best fused hits in the order of a model that reads question and text together."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, isfinite

from lamina.core.queries import FusedHit, Placement

SURE = 40.0
"""A logit beyond it is a probability of 0 or 1 to the last digit."""


def probabilities(scores: Sequence[float]) -> list[float] | None:
    """Return the scores in 0..1: probabilities as they are, logits by the logistic function.

    Scores of one call are of one kind: one of them outside of 0..1 makes all of them logits. ``None`` if one is no
    finite number.
    """
    if not all(isfinite(score) for score in scores):
        return None
    if all(0 <= score <= 1 for score in scores):
        return list(scores)
    return [1 / (1 + exp(-max(-SURE, min(SURE, score)))) for score in scores]


def reorder(hits: Sequence[FusedHit], raw: Sequence[float], scores: Sequence[float]) -> tuple[FusedHit, ...]:
    """Put the first hits in the order of their scores, equal ones as they were; those beyond keep their places.

    Args:
        hits: In fused order.
        raw: What the model says of the first of them.
        scores: The same in 0..1, which becomes their score. A hit beyond has none above the least of these.
    """
    pool, beyond = hits[: len(scores)], hits[len(scores) :]
    order = sorted(range(len(pool)), key=lambda place: -scores[place])
    first = [
        replace(
            pool[place],
            score=scores[place],
            reranked=Placement(
                rank, scores[place], {"raw": raw[place], "fused_rank": place + 1, "fused_score": pool[place].score}
            ),
        )
        for rank, place in enumerate(order, start=1)
    ]
    least = min(scores, default=1.0)
    return (*first, *(replace(hit, score=min(hit.score, least)) for hit in beyond))
