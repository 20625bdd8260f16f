"""The shapes of what the caches tell."""

from typing import Any, Self

from pydantic import BaseModel, Field

from deployments.routes.provider_models import HitRatesOut
from lamina.caching.layers import Layer
from lamina.caching.shard import totals
from lamina.caching.tally import Counts, Holding
from lamina.reuse.shards import CacheFigures
from lamina.reuse.upkeep import TableFigures


class LayerOut(BaseModel):
    """What one layer did, in all replicas, and holds."""

    hits: int = Field(description="Askings that were answered.")
    misses: int = Field(description="Askings that were not.")
    stale: int = Field(description="Answers that were over and served while somebody refreshes them.")
    errors: int = Field(description="Askings that failed; each was a miss.")
    hit_rate: float | None = Field(description="Share of the askings that were answered; null before the first.")
    mean_ms: float | None = Field(description="Mean time of the timed askings, in milliseconds.")
    entries: int = Field(description="What it holds now.")
    bytes: int = Field(description="About how much memory that takes.")
    evictions: int = Field(description="Entries given up for want of room.")

    @classmethod
    def of(cls, counts: Counts, holding: Holding) -> Self:
        """Return a layer as the API shows it."""
        asked, timed = counts.hits + counts.misses + counts.stale + counts.errors, sum(counts.buckets)
        return cls(
            hits=counts.hits,
            misses=counts.misses,
            stale=counts.stale,
            errors=counts.errors,
            hit_rate=(counts.hits + counts.stale) / asked if asked else None,
            mean_ms=1000 * counts.seconds / timed if timed else None,
            entries=holding.entries,
            bytes=holding.size_bytes,
            evictions=holding.evictions,
        )


class CacheHealthOut(BaseModel):
    """The caches without their tables."""

    layers: dict[str, LayerOut] = Field(description="By layer, over all replicas; front holds this replica's copies.")
    shards: dict[str, bool] = Field(description="Whether each shard answers; what it had is lost with it, no more.")

    @classmethod
    def of(cls, figures: CacheFigures, front: Holding) -> Self:
        """Return the figures as the API shows them."""
        stats = totals([item for item in figures.shards.values() if item is not None])
        counts = stats.counts or figures.here
        holdings = {**stats.holdings, Layer.FRONT: front}
        return cls(
            layers={
                layer.value: LayerOut.of(counts.get(layer, Counts()), holdings.get(layer, Holding())) for layer in Layer
            },
            shards={name: item is not None for name, item in figures.shards.items()},
        )


class CacheStatsOut(CacheHealthOut):
    """The caches with the tenant's tables and its providers' hit rates."""

    tables: dict[str, dict[str, Any]] = Field(description="Entries, bytes and counts of each table of a cache.")
    providers: list[HitRatesOut] = Field(description="Hit rates of the model providers' own caches, of seven days.")

    @classmethod
    def with_tables(cls, health: CacheHealthOut, figures: TableFigures) -> Self:
        """Return the figures with those of the tables."""
        tables = {name: dict(table) for name, table in figures.tables.items()}
        providers = [HitRatesOut.of(rates) for rates in figures.providers]
        return cls(layers=health.layers, shards=health.shards, tables=tables, providers=providers)


class ExpiredOut(BaseModel):
    """What was removed because it had expired."""

    responses: int = Field(description="Responses of the semantic cache.")
    embeddings: int = Field(description="Embeddings of texts that nobody asked for in a while.")
    provider_metrics: int = Field(description="Old reports of providers' hit rates.")


class ClearedOut(BaseModel):
    """What was cleared, step by step."""

    cleared: dict[str, int] = Field(description="Entries by step, in the order in which they were cleared.")
