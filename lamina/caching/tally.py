"""Counting what each layer does, so that counts of many replicas add up."""

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

from lamina.caching.layers import Agents, Entry, Layer

LATENCY_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Upper bounds of the latency buckets, in seconds; one more bucket takes what is slower."""


class Outcome(StrEnum):
    """What came of asking a layer."""

    HIT = "hits"
    MISS = "misses"
    STALE = "stale"
    ERROR = "errors"


@dataclass(frozen=True, slots=True)
class Counts:
    """What a layer did.

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
    """Adds up what happens in this process until somebody takes it."""

    def __init__(self) -> None:
        self._counts: dict[Layer, Counts] = {}

    def observe(self, layer: Layer, outcome: Outcome, elapsed_s: float | None = None) -> None:
        """Count one asking of a layer, and how long it took, if that was measured."""
        self.add({layer: _one(outcome, elapsed_s)})

    def add(self, counts: Mapping[Layer, Counts]) -> None:
        """Add counts to those that are there."""
        for layer, more in counts.items():
            self._counts[layer] = self._counts.get(layer, Counts()) + more

    def take(self) -> Mapping[Layer, Counts]:
        """Return the counts and begin anew."""
        taken, self._counts = self._counts, {}
        return taken

    def read(self) -> Mapping[Layer, Counts]:
        """Return the counts so far."""
        return dict(self._counts)


def _one(outcome: Outcome, elapsed_s: float | None) -> Counts:
    counts = Counts(
        hits=int(outcome is Outcome.HIT),
        misses=int(outcome is Outcome.MISS),
        stale=int(outcome is Outcome.STALE),
        errors=int(outcome is Outcome.ERROR),
    )
    if elapsed_s is None:
        return counts
    place = bisect.bisect_left(LATENCY_BOUNDS_S, elapsed_s)
    buckets = tuple(int(number == place) for number in range(len(LATENCY_BOUNDS_S) + 1))
    return replace(counts, buckets=buckets, seconds=elapsed_s)


@dataclass(frozen=True, slots=True)
class News:
    """What a replica tells a shard, all at once.

    Args:
        entries: What to keep.
        agents: Who has responses.
        counts: What its layers did since it told the last time.
    """

    entries: Sequence[Entry] = ()
    agents: Sequence[Agents] = ()
    counts: Mapping[Layer, Counts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Holding:
    """What a layer holds: entries, about how many bytes, and how many it gave up for want of room."""

    entries: int = 0
    size_bytes: int = 0
    evictions: int = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.entries + other.entries, self.size_bytes + other.size_bytes, self.evictions + other.evictions
        )


@dataclass(frozen=True, slots=True)
class ShardStats:
    """What a shard holds, and what the replicas told it of their layers."""

    holdings: Mapping[Layer, Holding]
    counts: Mapping[Layer, Counts]
