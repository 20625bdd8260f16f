"""Fuse the rankings of several sources into one."""

import math
from collections import defaultdict
from collections.abc import Mapping
from uuid import UUID

from lamina.queries import TIER_OF, FusedHit, Hit, Memory, Placement, Ranking, Source, Tier

Key = tuple[Tier, UUID]


def fuse_by_reciprocal_rank(
    rankings: Mapping[Source, Ranking], *, rrf_k: int, depth: int, weights: Mapping[Source, float] | None = None
) -> tuple[FusedHit, ...]:
    """Fuse rankings by the sum of reciprocal ranks, scaled to 0..1.

    A memory lives in one tier, so only that tier's sources can rank it: the sum is divided by
    what it would be with rank 1 in each of them that answered. The order within a tier is that
    of the plain sum, and a threshold means the same in a tier of one source and of three.

    Args:
        rankings: Hits per source that answered, best first.
        rrf_k: Rank offset; larger flattens the top. 60 in the source.
        depth: Ranks up to this one count in full. Deeper ones only order what no source ranks
            higher: with a large offset, two poor ranks would otherwise beat one excellent one,
            and asking for more hits would make the first ones worse.
        weights: Weight of each source, 1 where none is given.

    Returns:
        Every memory once, best first, ties by tier and id. A score of 1 means first in every
        source of its tier that answered.

    Source:
        Cormack, Clarke, Büttcher, SIGIR 2009.
    """
    placements = _placements(rankings)
    weighed = {source: (weights or {}).get(source, 1.0) for source in rankings}
    attainable = _attainable(weighed)
    fused = [
        FusedHit(
            memory=memory,
            score=_reciprocal_sum(placements[key], weighed, rrf_k, depth) / attainable[memory.tier],
            placements=placements[key],
        )
        for key, memory in _memories(rankings).items()
    ]
    return tuple(sorted(fused, key=_best_first))


def _key(hit: Hit) -> Key:
    return hit.memory.tier, hit.memory.id


def _memories(rankings: Mapping[Source, Ranking]) -> dict[Key, Memory]:
    """Return each memory once, with the excerpt of the source that ranks it highest."""
    ranked = [(rank, source, hit) for source in rankings for rank, hit in enumerate(rankings[source])]
    return {_key(hit): hit.memory for _, _, hit in sorted(ranked, key=lambda entry: entry[:2], reverse=True)}


def _placements(rankings: Mapping[Source, Ranking]) -> dict[Key, dict[Source, Placement]]:
    placements: defaultdict[Key, dict[Source, Placement]] = defaultdict(dict)
    for source in sorted(rankings):
        for rank, hit in enumerate(rankings[source], start=1):
            placements[_key(hit)][source] = Placement(rank, hit.score, hit.raw)
    return placements


def _attainable(weights: Mapping[Source, float]) -> dict[Tier, float]:
    """Return what a memory of each tier has with rank 1 in each of its sources."""
    return {
        tier: math.fsum(weight for source, weight in weights.items() if TIER_OF[source] is tier)
        for tier in {TIER_OF[source] for source in weights}
    }


def _reciprocal_sum(
    placements: Mapping[Source, Placement], weights: Mapping[Source, float], rrf_k: int, depth: int
) -> float:
    """Return the weighted sum in units of a first rank."""
    shares = [
        (place.rank, weights[source] * (rrf_k + 1) / (rrf_k + place.rank)) for source, place in placements.items()
    ]
    head = math.fsum(share for rank, share in shares if rank <= depth)
    return head or math.fsum(share for _, share in shares) / (len(TIER_OF) + 1)


def _best_first(hit: FusedHit) -> tuple[float, int, UUID]:
    return -hit.score, hit.memory.tier, hit.memory.id
