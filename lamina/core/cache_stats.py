"""Counts of each layer that add up over many replicas."""

import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from lamina.core.cache_layers import CacheEntry, Layer, RespondingAgents

# Upper bounds of the latency buckets, in seconds; one more bucket takes slower ones.
LATENCY_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class LayerOutcome(StrEnum):
    """Outcome of asking a layer."""

    HIT = "hits"
    MISS = "misses"
    STALE = "stale"
    ERROR = "errors"


@dataclass(frozen=True, slots=True)
class LayerCounts:
    """Counts of one layer.

    Args:
        buckets: How many of the timed askings took how long, by :data:`LATENCY_BOUNDS_S`; not cumulative.
        seconds: Their sum.
    """

    hits: int = 0
    misses: int = 0
    stale: int = 0
    errors: int = 0
    buckets: tuple[int, ...] = (0,) * (len(LATENCY_BOUNDS_S) + 1)
    seconds: float = 0.0

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.hits + other.hits,
            self.misses + other.misses,
            self.stale + other.stale,
            self.errors + other.errors,
            tuple(one + more for one, more in zip(self.buckets, other.buckets, strict=True)),
            self.seconds + other.seconds,
        )


class Tally:
    """Add up the counts of this process until they are taken."""

    def __init__(self) -> None:
        self._counts: dict[Layer, LayerCounts] = {}
        self._seen: defaultdict[Layer, _LayerTally] = defaultdict(_LayerTally)

    def observe(self, layer: Layer, outcome: LayerOutcome, elapsed_s: float | None = None) -> None:
        """Count one asking of a layer, and how long it took, if that was measured."""
        self._seen[layer].observe(outcome, elapsed_s)

    def add(self, counts: Mapping[Layer, LayerCounts]) -> None:
        """Add counts to those that are there."""
        for layer, more in counts.items():
            self._counts[layer] = self._counts.get(layer, LayerCounts()) + more

    def take(self) -> Mapping[Layer, LayerCounts]:
        """Return the counts and reset them."""
        taken = self.read()
        self._counts = {}
        return taken

    def read(self) -> Mapping[Layer, LayerCounts]:
        """Return the counts so far."""
        seen, self._seen = self._seen, defaultdict(_LayerTally)
        self.add({layer: one.counts() for layer, one in seen.items()})
        return dict(self._counts)


class TenantTallies:
    """Add up the counts of each tenant; of the least recently seen beyond a number, nothing is known any more.

    Args:
        most: So many tenants.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._tallies: dict[str, Tally] = {}  # The least recently seen first.

    def of(self, tenant: str) -> Tally:
        """Return the counts of a tenant, to be added to."""
        tally = self._tallies.pop(tenant, None) or Tally()
        self._tallies[tenant] = tally
        if len(self._tallies) > self._most:
            del self._tallies[next(iter(self._tallies))]
        return tally

    def add(self, counts: Mapping[str, Mapping[Layer, LayerCounts]]) -> None:
        """Add counts of tenants."""
        for tenant, more in counts.items():
            self.of(tenant).add(more)

    def take(self) -> Mapping[str, Mapping[Layer, LayerCounts]]:
        """Return all counts and reset them."""
        taken = {tenant: tally.read() for tenant, tally in self._tallies.items()}
        self._tallies.clear()
        return taken


class _LayerTally:
    """Counts of one layer since they were last read; mutable, since it lies on the hot path."""

    def __init__(self) -> None:
        self._outcomes = dict.fromkeys(LayerOutcome, 0)
        self._buckets = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self._seconds = 0.0

    def observe(self, outcome: LayerOutcome, elapsed_s: float | None) -> None:
        self._outcomes[outcome] += 1
        if elapsed_s is not None:
            self._buckets[bisect.bisect_left(LATENCY_BOUNDS_S, elapsed_s)] += 1
            self._seconds += elapsed_s

    def counts(self) -> LayerCounts:
        counts = {outcome.value: count for outcome, count in self._outcomes.items()}
        return LayerCounts(**counts, buckets=tuple(self._buckets), seconds=self._seconds)


@dataclass(frozen=True, slots=True)
class ShardUpdate:
    """Everything that a replica reports to a shard in one call.

    Args:
        entries: What to keep.
        agents: Who has responses.
        counts: Of its layers since its last report.
        of_tenants: The part of these that requests of each tenant made.
    """

    entries: Sequence[CacheEntry] = ()
    agents: Sequence[RespondingAgents] = ()
    counts: Mapping[Layer, LayerCounts] = field(default_factory=dict)
    of_tenants: Mapping[str, Mapping[Layer, LayerCounts]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Holding:
    """Content of a layer: entries, their approximate bytes, and evictions."""

    entries: int = 0
    size_bytes: int = 0
    evictions: int = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.entries + other.entries, self.size_bytes + other.size_bytes, self.evictions + other.evictions
        )


@dataclass(frozen=True, slots=True)
class ShardStats:
    """Content of a shard, and the counts that replicas reported to it."""

    holdings: Mapping[Layer, Holding]
    counts: Mapping[Layer, LayerCounts]
