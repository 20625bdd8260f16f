"""Measured ports: wrappers that record how what they wrap does, and behave as it does."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

import numpy as np
import ray
from numpy.typing import NDArray

from actors.instruments import RayMeter
from lamina.core.memories import Chunk
from lamina.core.metrics import (
    APPLIED,
    APPLY_FAILURES,
    APPLY_SECONDS,
    EMBEDDER_BATCH,
    EMBEDDER_CALLS,
    EMBEDDER_FAILURES,
    EMBEDDER_SECONDS,
    EMBEDDER_TEXTS,
    EMBEDDER_TOKENS,
    TIER_FAILURES,
    TIER_SECONDS,
    UNMEASURED,
    WRITE_SECONDS,
    WRITES,
    WRITTEN,
    Instrument,
    Meter,
    Outcome,
)
from lamina.core.ports import Change, Embedder, Model, Projection, Rebuildable, TierSearcher
from lamina.core.queries import Failure, Query, Ranking
from lamina.core.tiers import Source, Tier
from lamina.errors import LaminaError, Unavailable

CHARS_PER_TOKEN = 4


def replica_meter() -> Meter:
    """Return what measures a replica; in Serve's local testing mode, where Ray does not run, nothing is measured."""
    return _of_replica() if ray.is_initialized() else UNMEASURED


@cache
def _of_replica() -> Meter:
    from ray.serve import metrics  # noqa: PLC0415 - reads the replica's context when it is used

    return RayMeter(metrics)


@contextmanager
def timed(meter: Meter, seconds: Instrument, failures: Instrument, **labels: str) -> Iterator[None]:
    """Record how long the block takes, and whether it fails or is given up."""
    began = time.monotonic()
    try:
        yield
    except BaseException:
        meter.record(failures, 1.0, **labels)
        raise
    finally:
        meter.record(seconds, time.monotonic() - began, **labels)


class MeasuredTier:
    """A TierSearcher that is measured.

    Args:
        tier: Which one.
        searcher: The tier.
        meter: Takes the figures.
    """

    def __init__(self, tier: Tier, searcher: TierSearcher, meter: Meter) -> None:
        self._tier = tier.name.lower()
        self._searcher = searcher
        self._meter = meter

    async def search(self, query: Query) -> Mapping[Source, Ranking | Failure]:
        """Return every source's ranking or its failure."""
        with timed(self._meter, TIER_SECONDS, TIER_FAILURES, tier=self._tier):
            return await self._searcher.search(query)


def measured_tiers(tiers: Mapping[Tier, TierSearcher], meter: Meter) -> dict[Tier, TierSearcher]:
    """Return the same tiers, measured."""
    return {tier: MeasuredTier(tier, searcher, meter) for tier, searcher in tiers.items()}


class MeasuredProjection:
    """A Projection that is measured.

    Args:
        name: Which one.
        projection: Takes the changes.
        meter: Takes the figures.
    """

    def __init__(self, name: str, projection: Projection[Any], meter: Meter) -> None:
        self._name = name
        self._projection = projection
        self._meter = meter

    async def apply(self, changes: Sequence[Change[Any]]) -> None:
        """Take over the given states and return when they are visible."""
        with timed(self._meter, APPLY_SECONDS, APPLY_FAILURES, projection=self._name):
            await self._projection.apply(changes)
        self._meter.record(APPLIED, len(changes), projection=self._name)

    async def flush(self) -> None:
        """Return when everything applied so far survives a loss of power."""
        await self._projection.flush()


class RebuildableProjection(Projection[Any], Rebuildable[Any], Protocol):
    """A projection that takes changes and can be built anew."""


class MeasuredRebuildable(MeasuredProjection):
    """The same, of a projection that can be built anew beside itself; what is built is measured under its name.

    Args:
        name: Which one.
        projection: Takes the changes.
        meter: Takes the figures.
    """

    def __init__(self, name: str, projection: RebuildableProjection, meter: Meter) -> None:
        super().__init__(name, projection, meter)
        self._rebuildable = projection

    def beside(self, build: int) -> MeasuredProjection:
        """Return the store of a build, which nobody searches yet."""
        return MeasuredProjection(self._name, self._rebuildable.beside(build), self._meter)

    async def switch(self, build: int) -> None:
        """Have searches use the store of the build from now on."""
        await self._rebuildable.switch(build)


class MeasuredModel:
    """A Model that is measured, a batch at a time.

    Args:
        model: Embeds.
        meter: Takes the figures; from the threads in which the model works.
    """

    def __init__(self, model: Model, meter: Meter) -> None:
        self.identity = model.identity
        self._model = model
        self._meter = meter

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text: float32, shape (n, d)."""
        with timed(self._meter, EMBEDDER_SECONDS, EMBEDDER_FAILURES):
            rows = self._model.encode(texts)
        self._meter.record(EMBEDDER_BATCH, len(texts))
        self._meter.record(EMBEDDER_TEXTS, len(texts))
        self._meter.record(EMBEDDER_TOKENS, sum(1 + len(text) // CHARS_PER_TOKEN for text in texts))
        return rows

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the (start, end) of the chunks of a text that fit the model."""
        return self._model.spans(text)


class MeasuredEmbedder:
    """An Embedder that tells how many calls it has in hand.

    Args:
        embedder: Embeds.
        meter: Takes the figures.
    """

    def __init__(self, embedder: Embedder, meter: Meter) -> None:
        self._embedder = embedder
        self._meter = meter
        self._calls = 0

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text: float32, shape (n, d)."""
        with self._counted():
            return await self._embedder.embed(texts)

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text."""
        with self._counted():
            return await self._embedder.embed_chunks(texts)

    def tell(self) -> None:
        """Record again how many calls it has in hand: Ray forgets a gauge that nobody sets for a while."""
        self._meter.record(EMBEDDER_CALLS, self._calls)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    def _change(self, more: int) -> None:
        self._calls += more
        self.tell()


@contextmanager
def measured_write(meter: Meter, tier: Tier, count: int = 1) -> Iterator[None]:
    """Record a write of so many memories; one that is refused for its content is no failure, and not counted.

    Args:
        meter: Takes the figures.
        tier: What the memories belong to.
        count: How many there are.
    """
    name, began = tier.name.lower(), time.monotonic()
    try:
        yield
    except Exception as error:
        if not isinstance(error, LaminaError) or isinstance(error, Unavailable):
            meter.record(WRITES, tier=name, outcome=Outcome.FAILED)
        raise
    meter.record(WRITES, tier=name, outcome=Outcome.OK)
    meter.record(WRITE_SECONDS, time.monotonic() - began, tier=name)
    meter.record(WRITTEN, count, tier=name)
