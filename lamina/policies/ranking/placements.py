"""Put the sources' placements of each memory side by side; every fusion starts from them."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from lamina.core.queries import Candidate, Memory, Placement, RankedHit, Ranking
from lamina.core.tiers import SOURCES, TIER_OF, Source, Tier

Key = tuple[Tier, UUID]


@dataclass(frozen=True, slots=True)
class PlacedMemory:
    """A memory and where each source placed it."""

    memory: Memory | Candidate
    placements: Mapping[Source, Placement]


def place_memories(rankings: Mapping[Source, Ranking]) -> list[PlacedMemory]:
    """Return each memory once, with the excerpt of the source that ranks it highest."""
    placements = _placements(rankings)
    ranked = [(rank, source, hit) for source in rankings for rank, hit in enumerate(rankings[source])]
    ranked.sort(key=lambda entry: entry[:2], reverse=True)  # The best comes last, and stays.
    memories = {(hit.memory.tier, hit.memory.id): hit.memory for _, _, hit in ranked}
    return [PlacedMemory(memory, placements[key]) for key, memory in memories.items()]


def home_sources(memory: Memory | Candidate, answered: Collection[Source]) -> tuple[Source, ...]:
    """Return the sources of the memory's tier that answered and can hold it, in the order of their names."""
    return _homes(memory.tier, memory.temperature, frozenset(answered))


@lru_cache(maxsize=4096)
def _homes(tier: Tier, temperature: str, answered: frozenset[Source]) -> tuple[Source, ...]:
    own = (source for source in sorted(answered) if TIER_OF[source] is tier)
    return tuple(source for source in own if SOURCES[source].lacks != temperature)


def raised_by_graph(own: float, bonus: float, by_graph: float, weights: tuple[float, float]) -> float:
    """Score a memory by its own tier and by the graph, 0..1 or above; above 1 the score is only an order.

    A path through the graph adds to a memory, and its absence takes nothing away. A memory that the graph
    alone found is judged as the facts of the graph are.

    Args:
        own: By the sources of its tier, 0..1; 0 if none of them placed it.
        bonus: By the graph, in the scale of ``own``; 0 if it did not place it.
        by_graph: By the graph alone, 0..1; 0 if it did not place it.
        weights: Of the memory's tier, and of the graph's.
    """
    of_tier, of_graph = weights
    return max(of_tier * (own + bonus), of_graph * by_graph)


def best_first(found: Iterable[PlacedMemory], score: Callable[[PlacedMemory], float]) -> tuple[RankedHit, ...]:
    """Return the memories by falling score, ties by tier and id; shown scores are at most 1."""
    scored = [(score(item), item) for item in found]
    scored.sort(key=lambda entry: (-entry[0], entry[1].memory.tier, entry[1].memory.id))
    return tuple(RankedHit(item.memory, min(1.0, figure), item.placements) for figure, item in scored)


def _placements(rankings: Mapping[Source, Ranking]) -> dict[Key, dict[Source, Placement]]:
    placements: defaultdict[Key, dict[Source, Placement]] = defaultdict(dict)
    # By name, so that an explanation lists the sources in the same order whichever answered first.
    for source in sorted(rankings):
        for rank, hit in enumerate(rankings[source], start=1):
            placements[hit.memory.tier, hit.memory.id][source] = Placement(rank, hit.score, hit.raw)
    return placements
