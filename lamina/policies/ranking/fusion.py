"""Fuse rankings by the method that a call asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never

from lamina.core.queries import FusionMethod, Normalisation, RankedHit, Ranking, WeightName
from lamina.core.tiers import Modality, Source, Tier
from lamina.policies.ranking.call_weights import source_weights, weights_by_kind
from lamina.policies.ranking.composite import CompositePolicy, fuse_by_composite
from lamina.policies.ranking.diversity import DiversityPolicy
from lamina.policies.ranking.reciprocal_rank import fuse_by_plain_reciprocal_rank, fuse_by_reciprocal_rank
from lamina.policies.ranking.weighted import WeightedPolicy, fuse_by_figures, fuse_by_min_max
from lamina.policies.retention.decay import note_weight


@dataclass(frozen=True, slots=True)
class RankingPolicy:
    """Every number that ranks, from the settings.

    Args:
        rrf_k: Rank offset of reciprocal rank fusion.
        rrf_weights: Weight of a source in it, 1 where none is given.
        rrf_covered: Sources that it leaves out where a source answered that has ranked their hits already.
        tier_weights: What the best place in a tier is worth, 1 where none is given.
        weighted: The numbers of the weighted fusion.
        composite: The numbers of the composite relevance.
        diversity: When hits are alike.
        present_order: Whether statements that compete are ordered for questions about the present.
        note_decay: Share of its score that a note loses once its weight has decayed to nothing.
    """

    rrf_k: int
    rrf_weights: Mapping[Source, float]
    tier_weights: Mapping[Tier, float]
    weighted: WeightedPolicy
    composite: CompositePolicy
    diversity: DiversityPolicy
    present_order: bool = True
    rrf_covered: Mapping[Source, frozenset[Source]] = field(default_factory=dict)
    note_decay: float = 0.0


@dataclass(frozen=True, slots=True)
class FusionOptions:
    """The choices of one call about the fusion of its rankings.

    Args:
        method: Which fusion.
        normalise: How the weighted fusion scales.
        depth: Ranks up to this one count in full in reciprocal rank fusion.
        now: The moment from which ages are counted, in UTC.
        has_vector: Whether the query had a vector.
        weights: Of words, meaning, links and single sources, in place of the configured ones.
        relevance: Numbers of the composite relevance by name, in place of the configured ones.
    """

    method: FusionMethod
    normalise: Normalisation
    depth: int
    now: datetime
    has_vector: bool
    weights: Mapping[WeightName, float] = field(default_factory=dict)
    relevance: Mapping[str, float] = field(default_factory=dict)


def fuse(rankings: Mapping[Source, Ranking], options: FusionOptions, policy: RankingPolicy) -> tuple[RankedHit, ...]:
    """Return every memory once, best first, scored 0..1; a source of weight 0 counts as one that was not asked."""
    hits = _fuse(rankings, options, policy)
    return _lower_idle_notes(hits, policy.note_decay, options.now) if policy.note_decay else hits


def composite_policy(policy: RankingPolicy, relevance: Mapping[str, float]) -> CompositePolicy:
    """Return the numbers of the composite relevance, with those of a call in their place."""
    given: dict[str, Any] = {**relevance}
    return replace(policy.composite, **given)


def _lower_idle_notes(hits: Sequence[RankedHit], share: float, now: datetime) -> tuple[RankedHit, ...]:
    """Return the hits in the order of scores from which notes have lost a share by their idle days.

    Args:
        hits: Best first.
        share: Share of its score that a note of weight 0 loses.
        now: The moment from which days are counted, in UTC.
    """

    def lowered(hit: RankedHit) -> RankedHit:
        last = hit.memory.last_hit_at
        if hit.memory.tier is not Tier.NOTES or last is None:
            return hit
        return replace(hit, score=hit.score * (1 - share * (1 - note_weight(now - last))))

    return tuple(sorted(map(lowered, hits), key=lambda hit: -hit.score))


def _fuse(rankings: Mapping[Source, Ranking], options: FusionOptions, policy: RankingPolicy) -> tuple[RankedHit, ...]:
    weights = source_weights(options.weights)
    rankings = {source: ranking for source, ranking in rankings.items() if weights[source]}
    match options.method:
        case FusionMethod.RRF:
            return fuse_by_reciprocal_rank(
                rankings,
                rrf_k=policy.rrf_k,
                depth=options.depth,
                weights=policy.rrf_weights,
                tier_weights=policy.tier_weights,
                covered=policy.rrf_covered,
                call_weights=weights,
            )
        case FusionMethod.PLAIN_RRF:
            return fuse_by_plain_reciprocal_rank(rankings, rrf_k=policy.rrf_k, weights=weights)
        case FusionMethod.WEIGHTED:
            is_absolute = options.normalise is Normalisation.ABSOLUTE
            weigh = fuse_by_figures if is_absolute else fuse_by_min_max
            weighted = policy.weighted.overridden(*weights_by_kind(options.weights))
            return weigh(rankings, weighted, has_vector=options.has_vector)
        case FusionMethod.COMPOSITE:
            composite = composite_policy(policy, options.relevance)
            by_meaning = options.has_vector and options.weights.get(Modality.VECTOR, 1.0) > 0
            return fuse_by_composite(rankings, composite, now=options.now, by_meaning=by_meaning)
        case _ as other:
            assert_never(other)
