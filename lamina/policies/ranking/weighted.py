"""Fuse by the engines' own figures: words, meaning and links, weighted."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lamina.core.queries import Placement, RankedHit, Ranking
from lamina.core.tiers import SOURCES, Modality, Source, Tier
from lamina.policies.ranking.placements import PlacedMemory, best_first, home_sources, place_memories, raised_by_graph
from lamina.policies.ranking.scores import HYBRID, HybridWeights, keyword_part, similarity_score

# A cosine is comparable across sources and paths come from one; words count by each index's own statistics.
_Group = tuple[Modality, Source | None]
_Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class WeightedPolicy:
    """The numbers of the weighted fusion.

    Args:
        weights: Of each modality.
        vector_floor: A lower cosine counts as none.
        full_figure: A figure from which on the best of a ranking may count as 1, 0..1.
        tier_weights: What the best place in a tier is worth, 1 where none is given.
        hybrid: Shares of words and meaning in the scores of a source of both, the default ones where none is given.
        sources: Factor of a source's figures, 1 where none is given.
    """

    weights: Mapping[Modality, float]
    vector_floor: float
    full_figure: float
    tier_weights: Mapping[Tier, float]
    hybrid: Mapping[Source, HybridWeights] = field(default_factory=dict)
    sources: Mapping[Source, float] = field(default_factory=dict)

    def overridden(self, by_modality: Mapping[Modality, float], by_source: Mapping[Source, float]) -> "WeightedPolicy":
        """Return the policy with the weights that a call gave."""
        given = by_modality.get(Modality.KEYWORD), by_modality.get(Modality.VECTOR)
        shares = {source: self.hybrid.get(source, HYBRID).overridden(*given) for source in SOURCES}
        return replace(self, weights={**self.weights, **by_modality}, hybrid=shares, sources=by_source)


def fuse_by_min_max(
    rankings: Mapping[Source, Ranking], policy: WeightedPolicy, *, has_vector: bool
) -> tuple[RankedHit, ...]:
    """Fuse by weighted figures, each scaled between the worst and the best that was found.

    Two guards keep a bad hit from becoming 1. The best figure reaches 1 only if it is at least
    ``full_figure``; a worse one reaches its share of the way there. Where all figures of a
    ranking are equal, a lone hit's above all, there is no worst to compare with, and the scale
    begins at the floor (for a cosine) or at 0.

    Args:
        rankings: Hits per source that answered, best first.
        policy: Weights and bounds.
        has_vector: Whether the query had a vector; without one, meaning did not answer.

    Source:
        NovaMem, Hybrid fusion: min-max to 0..1, then keyword 0.3, vector 0.6, graph 0.1.
    """
    found = place_memories(rankings)
    scales = {
        group: _between(values, policy.vector_floor if group[0] is Modality.VECTOR else 0.0, policy.full_figure)
        for group, values in _by_group(found, policy.hybrid).items()
    }
    return _fused(found, rankings, policy, scales.__getitem__, has_vector=has_vector)


def fuse_by_figures(
    rankings: Mapping[Source, Ranking], policy: WeightedPolicy, *, has_vector: bool
) -> tuple[RankedHit, ...]:
    """Fuse by weighted figures as they are, so that a score depends on no other hit.

    Meaning counts by its cosine, and as 0 below the floor; words by their source's score of
    0..1; links by the strength of their path.
    """

    def scale_of(group: _Group) -> _Scale:
        # Only a cosine has a floor; no other figure is below 0.
        floor = policy.vector_floor if group[0] is Modality.VECTOR else 0.0
        return lambda value: value if value >= floor else 0.0

    return _fused(place_memories(rankings), rankings, policy, scale_of, has_vector=has_vector)


def _fused(
    found: Sequence[PlacedMemory],
    answered: Collection[Source],
    policy: WeightedPolicy,
    scale_of: Callable[[_Group], _Scale],
    *,
    has_vector: bool,
) -> tuple[RankedHit, ...]:
    def score(item: PlacedMemory) -> float:
        scaled = _best_of_each(item, policy, scale_of)
        # Taken out: for a memory of another tier a path is a bonus, and a missing one no reason to count less.
        by_graph = scaled.pop(Modality.GRAPH, 0.0)
        of_graph = policy.tier_weights.get(Tier.GRAPH, 1.0)
        if item.memory.tier is Tier.GRAPH:
            return of_graph * by_graph
        possible = _modalities(item, answered, has_vector=has_vector)
        attainable = math.fsum(policy.weights[modality] for modality in possible)
        if not attainable:  # All modalities that could have recognised it have weight 0.
            return of_graph * by_graph
        own = math.fsum(policy.weights[modality] * scaled.get(modality, 0.0) for modality in possible) / attainable
        bonus = policy.weights[Modality.GRAPH] * by_graph / attainable
        weights = (policy.tier_weights.get(item.memory.tier, 1.0), of_graph)
        return raised_by_graph(own, bonus, by_graph, weights)

    return best_first(found, score)


def _modalities(item: PlacedMemory, answered: Collection[Source], *, has_vector: bool) -> set[Modality]:
    """Return the modalities by which the sources of its tier could have recognised the memory."""
    own = [source for source in item.placements if source is not Source.GRAPH]
    possible = {mode for source in home_sources(item.memory, answered) or own for mode in SOURCES[source].modalities}
    return possible if has_vector else possible - {Modality.VECTOR}


def _figures(item: PlacedMemory, hybrid: Mapping[Source, HybridWeights]) -> Iterator[tuple[Source, _Group, float]]:
    """Yield each source's figures of the memory, 0..1 before any scaling."""
    for source, place in item.placements.items():
        cosine = place.raw.get("cosine")
        if cosine is not None:
            yield source, (Modality.VECTOR, None), similarity_score(cosine)
        if source is Source.GRAPH:
            yield source, (Modality.GRAPH, None), place.raw.get("path", place.score)
        elif _is_by_words(source, place):
            yield source, (Modality.KEYWORD, source), keyword_part(place.score, cosine, hybrid.get(source, HYBRID))


def _is_by_words(source: Source, place: Placement) -> bool:
    if Modality.KEYWORD not in SOURCES[source].modalities:
        return False
    return "bm25" in place.raw or "ts_rank_cd" in place.raw or "cosine" not in place.raw


def _by_group(found: Sequence[PlacedMemory], hybrid: Mapping[Source, HybridWeights]) -> dict[_Group, list[float]]:
    groups: defaultdict[_Group, list[float]] = defaultdict(list)
    for item in found:
        for _, group, figure in _figures(item, hybrid):
            groups[group].append(figure)
    return groups


def _best_of_each(
    item: PlacedMemory, policy: WeightedPolicy, scale_of: Callable[[_Group], _Scale]
) -> dict[Modality, float]:
    best: dict[Modality, float] = {}
    for source, group, figure in _figures(item, policy.hybrid):
        counted = policy.sources.get(source, 1.0) * scale_of(group)(figure)
        best[group[0]] = max(best.get(group[0], 0.0), counted)
    return best


def _between(values: Sequence[float], floor: float, full_figure: float) -> _Scale:
    worst, best = min(values), max(values)
    low = worst if worst < best else floor
    # The last keeps the divisor above 0 where all figures equal the floor and full_figure is no higher.
    high = max(best, full_figure, low + math.ulp(low))
    return lambda value: min(1.0, max(0.0, (value - low) / (high - low)))
