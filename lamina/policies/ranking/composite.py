"""Fuse by nearness, importance and recency."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamina.core.queries import Candidate, Memory, RankedHit, Ranking, RowScoring
from lamina.core.tiers import Source, Tier
from lamina.policies.ranking.placements import PlacedMemory, best_first, place_memories
from lamina.policies.ranking.scores import similarity_score

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class CompositePolicy:
    """The numbers of the composite relevance.

    Args:
        similarity: Weight of the cosine.
        importance: Weight of the memory's importance.
        recency: Weight of how lately it was used.
        decay_per_day: How fast recency falls: ``exp(−decay · days)``.
        min_similarity: Least cosine of a memory that counts as found by nearest neighbour.
        tier_weights: What a tier's scores are multiplied by, 1 where none is given.
        scores_every_row: Whether every note of the scope is a candidate, and not the nearest alone.
    """

    similarity: float
    importance: float
    recency: float
    decay_per_day: float
    min_similarity: float
    tier_weights: Mapping[Tier, float]
    scores_every_row: bool = False

    def row_scoring(self) -> RowScoring | None:
        """Return the numbers by which each row is scored; ``None`` where the nearest alone are candidates."""
        numbers = self.similarity, self.importance, self.recency, self.decay_per_day
        return numbers if self.scores_every_row else None


def fuse_by_composite(
    rankings: Mapping[Source, Ranking], policy: CompositePolicy, *, now: datetime, by_meaning: bool
) -> tuple[RankedHit, ...]:
    """Fuse by 0.5 · cosine + 0.3 · importance + 0.2 · recency, divided by the sum of these weights.

    Candidates are the memories that sources found by nearest neighbour, not those found by words or links
    alone. Where meaning does not count every memory is a candidate, and its best score in a source stands in
    the cosine's place.

    Args:
        rankings: Hits per source that answered, best first.
        policy: Weights and decay.
        now: The moment from which days are counted, in UTC.
        by_meaning: Whether the query had a vector, and the call gives meaning a weight.

    Source:
        Siestai, Composite scoring.
    """
    placed = place_memories(rankings)
    if by_meaning:
        near = [item for item in placed if _cosine(item) >= policy.min_similarity]
        return best_first(near, lambda item: _score(item, _cosine(item), policy, now))
    return best_first(
        placed, lambda item: _score(item, max(place.score for place in item.placements.values()), policy, now)
    )


def recency(memory: Memory | Candidate, now: datetime, decay_per_day: float) -> float:
    """Return ``exp(−decay · days since the last access)``, 0..1; without a hit, that is when it happened."""
    idle = max(timedelta(0), now - (memory.last_hit_at or memory.occurred_at))
    return math.exp(-decay_per_day * (idle / _DAY))


def _score(item: PlacedMemory, nearness: float, policy: CompositePolicy, now: datetime) -> float:
    memory = item.memory
    total = math.fsum(
        (
            policy.similarity * similarity_score(nearness),
            policy.importance * memory.importance,
            policy.recency * recency(memory, now, policy.decay_per_day),
        )
    )
    weights = policy.similarity + policy.importance + policy.recency
    return policy.tier_weights.get(memory.tier, 1.0) * total / weights


def _cosine(item: PlacedMemory) -> float:
    return max((place.raw.get("cosine", 0.0) for place in item.placements.values()), default=0.0)
