"""Fuse the rankings of several sources into one by their ranks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from lamina.core.queries import RankedHit, Ranking
from lamina.core.tiers import TIER_OF, Source, Tier
from lamina.policies.ranking.placements import PlacedMemory, best_first, home_sources, place_memories, raised_by_graph

DRAWN = 0.7
"""Factor of the score of a note that was drawn from a message: it says less than the message."""

LEAST_RELEVANCE = 0.6
"""By what the score of a memory is multiplied that the ranking which judges it finds not relevant at all."""


def fuse_by_reciprocal_rank(
    rankings: Mapping[Source, Ranking],
    *,
    rrf_k: int,
    depth: int,
    weights: Mapping[Source, float] | None = None,
    tier_weights: Mapping[Tier, float] | None = None,
    covered: Mapping[Source, frozenset[Source]] | None = None,
    call_weights: Mapping[Source, float] | None = None,
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
        covered: Sources that count no more where a source answered that has ranked their hits already. All ranks of
            that one count in full: it is no list of one engine, whose depth says little. Its hits are ordered by rank,
            and show a lower score the less relevant it finds them, so that a threshold leaves them out.
        call_weights: Weights of the call, above 0, 1 where none is given: a rank counts as that rank divided by it.

    Returns:
        Every memory once, best first, ties by tier and id. In a tier of weight 1, first in each
        of its sources that answered scores 1. Scores never rise from one hit to the next.

    Source:
        Cormack, Clarke, Büttcher, SIGIR 2009.
    """
    covering = {source: others for source, others in (covered or {}).items() if source in rankings}
    left_out = frozenset[Source]().union(*covering.values())
    fusion = _ReciprocalRank(
        rrf_k,
        depth,
        weights or {},
        tier_weights or {},
        tuple(rankings.keys() - left_out),
        frozenset(covering),
        left_out,
        call_weights or {},
    )

    def score(item: PlacedMemory) -> float:
        confidence = item.memory.confidence
        is_drawn = bool(covering) and item.memory.tier is Tier.NOTES and confidence < 1
        return (DRAWN if is_drawn else 1.0) * confidence * fusion.score(item)

    ranked = best_first(place_memories(rankings), score)
    return _with_relevance(ranked, {source: rankings[source] for source in covering}) if covering else ranked


def fuse_by_plain_reciprocal_rank(
    rankings: Mapping[Source, Ranking], *, rrf_k: int, weights: Mapping[Source, float]
) -> tuple[RankedHit, ...]:
    """Fuse by Σ 1 / (k + rank / weight) over all sources alike, without tiers and confidence.

    Scores are shares of the sum that the first rank in every source that answered has, so that 1 is the most.

    Args:
        rankings: Hits per source that answered, best first.
        rrf_k: Rank offset.
        weights: Weight of each source, above 0, 1 where none is given.

    Source:
        Open Astra, Tiered Search: RRF(d) = Σ 1 / (k + rank).
    """

    def part(source: Source, rank: int) -> float:
        return 1 / (rrf_k + rank / weights.get(source, 1.0))

    most = math.fsum(part(source, 1) for source in rankings)
    return best_first(
        place_memories(rankings),
        lambda item: math.fsum(part(source, place.rank) for source, place in item.placements.items()) / most,
    )


def _with_relevance(ranked: Sequence[RankedHit], judging: Mapping[Source, Ranking]) -> tuple[RankedHit, ...]:
    """Lower the scores of hits that are less relevant than the best one, as far as no later hit has a higher score."""
    most = {source: ranking[0].score for source, ranking in judging.items() if ranking and ranking[0].score > 0}

    def relevance(hit: RankedHit) -> float:
        shares = [hit.placements[source].score / best for source, best in most.items() if source in hit.placements]
        return LEAST_RELEVANCE + (1 - LEAST_RELEVANCE) * min(1.0, max(shares)) if shares else 1.0

    from_last = accumulate((hit.score * relevance(hit) for hit in reversed(ranked)), max)
    return tuple(
        RankedHit(hit.memory, score, hit.placements)
        for hit, score in zip(ranked, reversed(list(from_last)), strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Share:
    """A rank as the call weighs it, the weight of its source, and whether it counts in full."""

    rank: float
    weight: float
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _ReciprocalRank:
    rrf_k: int
    depth: int
    weights: Mapping[Source, float]
    tier_weights: Mapping[Tier, float]
    answered: tuple[Source, ...]
    in_full: frozenset[Source]
    left_out: frozenset[Source]
    call_weights: Mapping[Source, float]

    def score(self, item: PlacedMemory) -> float:
        """Score a memory by its ranks."""
        graph = item.placements.get(Source.GRAPH)
        weighed = graph.rank / self.call_weights.get(Source.GRAPH, 1.0) if graph else 0.0
        by_graph = self._sum([_Share(weighed, 1.0, graph.rank <= self.depth)], [1.0]) if graph else 0.0
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
        attainable = math.fsum(possible)
        return self._sum([self._share(source, item) for source in own], possible) / attainable, self._weight(
            Source.GRAPH
        ) * by_graph / attainable

    def _share(self, source: Source, item: PlacedMemory) -> _Share:
        rank = item.placements[source].rank
        is_whole = source in self.in_full or (rank <= self.depth and source not in self.left_out)
        return _Share(rank / self.call_weights.get(source, 1.0), self._weight(source), is_whole)

    def _sum(self, ranks: Sequence[_Share], possible: Sequence[float]) -> float:
        """Return the weighted sum in units of a first rank; ranks beyond the depth stay below every other."""
        shares = [(item.is_whole, item.weight * (self.rrf_k + 1) / (self.rrf_k + item.rank)) for item in ranks]
        head = math.fsum(share for is_whole, share in shares if is_whole)
        # So small that deep ranks in all sources together do not reach a rank within the depth in the lightest one.
        below = min(1 / (len(TIER_OF) + 1), min(possible) / math.fsum(possible))
        return head or below * math.fsum(share for _, share in shares)

    def _weight(self, source: Source) -> float:
        return self.weights.get(source, 1.0)
