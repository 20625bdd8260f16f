"""The weight of votes: each counts a little, and all of them together no more than a tenth of a score."""

from collections.abc import Sequence
from dataclasses import replace

from lamina.core.queries import FusedHit

MOST_SHARE = 0.1
"""Of its score, which a hit gains or loses at most: it stays beside what was found about as well."""
UNDECIDED = 2
"""Votes that stand for neither side before the first one: a single one moves a third of the most."""


def balance(useful: int, wrong: int) -> float:
    """Return how far votes lean to one side, -1..1; never quite to an end, and 0 without votes."""
    return (useful - wrong) / (useful + wrong + UNDECIDED)


def order_by_votes(hits: Sequence[FusedHit]) -> tuple[FusedHit, ...]:
    """Move hits with votes past those whose score theirs passes now; the others keep their order.

    An order that is not that of the scores, as where repetitions stand last, stays so.
    """
    ordered = list(hits)
    for hit in hits:
        if not any(hit.memory.votes):
            continue
        place, share = ordered.index(hit), MOST_SHARE * balance(*hit.memory.votes)
        moved = replace(hit, score=min(1.0, hit.score * (1 + share)))
        del ordered[place]
        while share > 0 and place > 0 and ordered[place - 1].score < moved.score:
            place -= 1
        while share < 0 and place < len(ordered) and ordered[place].score > moved.score:
            place += 1
        ordered.insert(place, moved)
    return tuple(ordered)
