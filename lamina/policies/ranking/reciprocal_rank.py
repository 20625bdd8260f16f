"""Fuse the rankings of several sources into one by their ranks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lamina.core.queries import RankedHit, Ranking
from lamina.core.tiers import TIER_OF, Source, Tier
from lamina.policies.ranking.placements import PlacedMemory, best_first, home_sources, place_memories, raised_by_graph


def fuse_by_reciprocal_rank(
    rankings: Mapping[Source, Ranking],
    *,
    rrf_k: int,
    depth: int,
    weights: Mapping[Source, float] | None = None,
    tier_weights: Mapping[Tier, float] | None = None,
) -> tuple[RankedHit, ...]:
    """Fuse rankings by the sum of reciprocal ranks, scaled to 0..1.

    A memory lives in one tier: the sum over that tier's sources is divided by what it would be
    with rank 1 in each of them that answered and can hold it. The order within a tier is that of
    the plain sum, and a threshold means the same in a tier of one source and of three.

    The graph ranks memories of every tier. Its rank adds to the sum without adding to the
    divisor, so that a path through the graph raises a memory and a missing one lowers none; a
    memory that the graph alone found counts as its facts do. Sums above 1 still order, and show as 1.

    A less sure memory counts less: the score is multiplied by its confidence, so that a note that
    rules drew from a message does not displace the messages themselves.

    Args:
        rankings: Hits per source that answered, best first.
        rrf_k: Rank offset; larger flattens the top. 60 in the source.
        depth: Ranks up to this one count in full. Deeper ones only order what no source ranks
            higher: with a large offset, two poor ranks would otherwise beat one excellent one,
            and asking for more hits would make the first ones worse.
        weights: Weight of each source, 1 where none is given.
        tier_weights: What the best place in a tier is worth, 1 where none is given.

    Returns:
        Every memory once, best first, ties by tier and id. In a tier of weight 1, first in each
        of its sources that answered scores 1.

    Source:
        Cormack, Clarke, Büttcher, SIGIR 2009.
    """
    fusion = _ReciprocalRank(rrf_k, depth, weights or {}, tier_weights or {}, tuple(rankings))
    return best_first(place_memories(rankings), lambda item: item.memory.confidence * fusion.score(item))


@dataclass(frozen=True, slots=True)
class _ReciprocalRank:
    rrf_k: int
    depth: int
    weights: Mapping[Source, float]
    tier_weights: Mapping[Tier, float]
    answered: tuple[Source, ...]

    def score(self, item: PlacedMemory) -> float:
        """Score a memory by its ranks."""
        graph = item.placements.get(Source.GRAPH)
        by_graph = self._sum([(graph.rank, 1.0)], [1.0]) if graph else 0.0
        of_graph = self.tier_weights.get(Tier.GRAPH, 1.0)
        if item.memory.tier is Tier.GRAPH:
            return of_graph * by_graph
        own, bonus = self._of_its_tier(item, by_graph)
        weights = (self.tier_weights.get(item.memory.tier, 1.0), of_graph)
        return raised_by_graph(own, bonus, by_graph, weights)

    def _of_its_tier(self, item: PlacedMemory, by_graph: float) -> tuple[float, float]:
        """Return the score by the tier's sources and the graph's bonus, both in the scale of the tier."""
        own = [source for source in item.placements if source is not Source.GRAPH]
        # None of them: they did not answer, or the memory is about to move from one to the other.
        homes = home_sources(item.memory, self.answered) or own
        if not homes:
            return 0.0, 0.0
        possible = [self._weight(source) for source in homes]
        ranks = [(item.placements[source].rank, self._weight(source)) for source in own]
        attainable = math.fsum(possible)
        return self._sum(ranks, possible) / attainable, self._weight(Source.GRAPH) * by_graph / attainable

    def _sum(self, ranks: Sequence[tuple[int, float]], possible: Sequence[float]) -> float:
        """Return the weighted sum in units of a first rank; ranks beyond the depth stay below every other."""
        shares = [(rank, weight * (self.rrf_k + 1) / (self.rrf_k + rank)) for rank, weight in ranks]
        head = math.fsum(share for rank, share in shares if rank <= self.depth)
        # So small that deep ranks in all sources together do not reach a rank within the depth in the lightest one.
        below = min(1 / (len(TIER_OF) + 1), min(possible) / math.fsum(possible))
        return head or below * math.fsum(share for _, share in shares)

    def _weight(self, source: Source) -> float:
        return self.weights.get(source, 1.0)
