"""Weights that one call gives to words, meaning, links and single sources."""

from collections.abc import Collection, Mapping

from lamina.core.queries import WeightName
from lamina.core.tiers import SOURCES, TIER_OF, Modality, Source, Tier

_MODALITIES = frozenset(modality.value for modality in Modality)
_BOTH = frozenset({Modality.KEYWORD, Modality.VECTOR})


def source_weights(given: Mapping[WeightName, float]) -> dict[Source, float]:
    """Return the weight of each source: its own, times the greatest of those of the ways in which it recognises.

    Args:
        given: Weights, at least 0, by modality or source; 1 where none is given.
    """
    return {source: _weight(source, given) for source in SOURCES}


def searched_tiers(tiers: Collection[Tier], given: Mapping[WeightName, float]) -> tuple[Tier, ...]:
    """Return the tiers that have a source of a weight above 0; the others need not be asked."""
    weights = source_weights(given)
    return tuple(tier for tier in tiers if any(weights[source] for source in SOURCES if TIER_OF[source] is tier))


def weights_by_kind(given: Mapping[WeightName, float]) -> tuple[dict[Modality, float], dict[Source, float]]:
    """Return the weights of words, meaning and links, and those of single sources; the graph's is that of links."""
    of_modalities = {modality: given[modality] for modality in Modality if modality in given}
    own = {source: given[source] for source in SOURCES if source in given and source.value not in _MODALITIES}
    return of_modalities, own


def _weight(source: Source, given: Mapping[WeightName, float]) -> float:
    # Messages in their context are ranked by words and meaning in one: that ranking cannot speak for one alone.
    if source is Source.SESSION_CONTEXT and not all(given.get(modality, 1.0) for modality in _BOTH):
        return 0.0
    modalities = _BOTH if source is Source.SESSION_CONTEXT else SOURCES[source].modalities
    of_modalities = max(given.get(modality, 1.0) for modality in modalities)
    # The graph is a source and a modality of one name.
    return of_modalities if source.value in _MODALITIES else of_modalities * given.get(source, 1.0)
