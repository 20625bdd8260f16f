"""How good a ranking is: pure functions over ids."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

RECALL_DEPTHS = (5, 10, 20)


@dataclass(frozen=True, slots=True)
class JudgedRanking:
    """A ranking and the ids that belong in it.

    Args:
        ranking: Distinct ids, best first.
        relevant: The ids that belong in it; at least one.
    """

    ranking: tuple[str, ...]
    relevant: frozenset[str]


def distinct(ids: Iterable[str]) -> tuple[str, ...]:
    """Return every id once, at its best rank."""
    return tuple(dict.fromkeys(ids))


def recall_at(k: int, judged: JudgedRanking) -> float:
    """Return the share of the relevant ids among the first ``k``."""
    return len(judged.relevant.intersection(judged.ranking[:k])) / len(judged.relevant)


def ndcg_at(k: int, judged: JudgedRanking) -> float:
    """Return the discounted cumulative gain of the first ``k``, as a share of the best possible one.

    Source:
        Järvelin, Kekäläinen, TOIS 2002, with binary gains.
    """
    gain = sum(1 / math.log2(place + 2) for place, id_ in enumerate(judged.ranking[:k]) if id_ in judged.relevant)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(k, len(judged.relevant))))


def mean_recalls(questions: Sequence[JudgedRanking]) -> dict[str, float]:
    """Return recall at 5, 10 and 20, averaged over the questions; 0 where there are none."""
    return {
        f"recall_at_{k}": sum(recall_at(k, judged) for judged in questions) / max(1, len(questions))
        for k in RECALL_DEPTHS
    }
