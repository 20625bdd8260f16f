"""The shapes of what the caches tell."""

from typing import Literal, Self

from pydantic import BaseModel, Field

from lamina.api.providers import HitRatesOut
from lamina.core.cache_stats import Counts, Holding


class LayerOut(BaseModel):
    """What one layer did for all tenants, and holds."""

    hits: int = Field(description="Askings that were answered; of agent_filter, lookups that it spared.")
    misses: int = Field(description="Askings that were not.")
    stale: int = Field(description="Answers that were over and served while somebody refreshes them.")
    errors: int = Field(description="Askings that failed; each was a miss.")
    hit_rate: float | None = Field(description="Share of the askings that were answered; null before the first.")
    mean_ms: float | None = Field(description="Mean time of the timed askings, in milliseconds.")
    entries: int | None = Field(description="What it holds now; null where only the database knows.")
    bytes: int | None = Field(description="About how much memory that takes.")
    evictions: int = Field(description="Entries given up for want of room.")

    @classmethod
    def from_counts(cls, counts: Counts, holding: Holding | None) -> Self:
        """Return a layer as the API shows it."""
        asked, timed = counts.hits + counts.misses + counts.stale + counts.errors, sum(counts.buckets)
        return cls(
            hits=counts.hits,
            misses=counts.misses,
            stale=counts.stale,
            errors=counts.errors,
            hit_rate=(counts.hits + counts.stale) / asked if asked else None,
            mean_ms=1000 * counts.seconds / timed if timed else None,
            entries=None if holding is None else holding.entries,
            bytes=None if holding is None else holding.size_bytes,
            evictions=0 if holding is None else holding.evictions,
        )


class CacheHealthOut(BaseModel):
    """The caches without their tables."""

    layers: dict[str, LayerOut] = Field(description="By layer; front holds this replica's copies.")
    counted: Literal["everywhere", "here"] = Field(
        description="Whose counts these are: all replicas', or this one's because a shard does not answer."
    )
    shards: dict[str, bool] = Field(description="Whether each shard answers; what it had is lost with it, no more.")


class ResponsesOut(BaseModel):
    """The responses of the semantic cache."""

    entries: int = Field(description="All of them.")
    size_bytes: int = Field(description="Their size.")
    live: int = Field(description="Those that answer.")
    stale: int = Field(description="Those that answer until somebody refreshes them, or the grace is over.")
    expired: int = Field(description="Those that answer no more.")
    lookups: int = Field(description="Lookups of late.")
    hits: int = Field(description="Those of them that a response answered.")


class EmbeddingsOut(BaseModel):
    """The embeddings of all the tenant's questions."""

    entries: int = Field(description="How many.")
    size_bytes: int = Field(description="Their rows' size.")


class TablesOut(BaseModel):
    """The tables behind the caches."""

    responses: ResponsesOut = Field(description="Of the tenant, or the workspace that was named.")
    embeddings: EmbeddingsOut = Field(description="Of the tenant.")


class CacheStatsOut(CacheHealthOut):
    """The caches with the tenant's tables and its providers' hit rates."""

    tables: TablesOut = Field(description="What the caches' tables hold of the tenant.")
    providers: list[HitRatesOut] = Field(description="Hit rates of the model providers' own caches, of seven days.")


class ExpiredOut(BaseModel):
    """What was removed because it had expired."""

    responses: int = Field(description="Responses of the semantic cache.")
    embeddings: int = Field(description="Embeddings of texts that nobody asked for in a while.")
    provider_metrics: int = Field(description="Old reports of providers' hit rates.")


class ClearedOut(BaseModel):
    """What was cleared, step by step."""

    cleared: dict[str, int] = Field(
        description="Entries by step, in their order: graph, swarm, prefetch (whole requests), semantic (responses), "
        "embeddings; for an agent semantic alone."
    )
