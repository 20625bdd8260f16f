"""Counts and sizes of the caches, and the answers to clearing them."""

from typing import Literal, Self

from pydantic import BaseModel, Field

from lamina.api.fields import Output
from lamina.api.providers import HitRatesOut
from lamina.core.cache_stats import Holding, LayerCounts


class LayerOut(BaseModel):
    """Counts of one layer, of the tenant in `/cache/stats` and of all in `/cache/health`; its size over all tenants."""

    hits: int = Field(description="Lookups that were answered; of agent_filter, lookups that it spared.")
    misses: int = Field(description="Lookups that were not.")
    stale: int = Field(description="Expired answers that were served while somebody refreshes them.")
    errors: int = Field(description="Lookups that failed; each was a miss.")
    hit_rate: float | None = Field(description="Share of the lookups that were answered; null before the first.")
    mean_ms: float | None = Field(description="Mean time of the timed lookups, in milliseconds.")
    entries: int | None = Field(description="Entries that it holds now; null where only the database knows.")
    bytes: int | None = Field(description="About how much memory that takes.")
    evictions: int = Field(description="Entries removed to make room.")

    @classmethod
    def from_counts(cls, counts: LayerCounts, holding: Holding | None) -> Self:
        """Show a layer; ``holding`` is ``None`` where only the database knows its entries."""
        lookups, timed = counts.hits + counts.misses + counts.stale + counts.errors, sum(counts.buckets)
        return cls(
            hits=counts.hits,
            misses=counts.misses,
            stale=counts.stale,
            errors=counts.errors,
            hit_rate=(counts.hits + counts.stale) / lookups if lookups else None,
            mean_ms=1000 * counts.seconds / timed if timed else None,
            entries=None if holding is None else holding.entries,
            bytes=None if holding is None else holding.size_bytes,
            evictions=0 if holding is None else holding.evictions,
        )


class CacheHealthOut(Output):
    """The caches without their tables."""

    layers: dict[str, LayerOut] = Field(description="By layer; front holds this replica's copies.")
    counted: Literal["everywhere", "here"] = Field(
        description="Whose counts these are: all replicas', or this one's because a shard does not answer."
    )
    shards: dict[str, bool] = Field(
        description="Whether each shard answers; with one that does not, its entries are lost."
    )


class ResponsesOut(Output):
    """The responses of the semantic cache."""

    entries: int = Field(description="All of them.")
    size_bytes: int = Field(description="Their size.")
    live: int = Field(description="Those that answer.")
    stale: int = Field(description="Those that answer until somebody refreshes them, or their grace period ends.")
    expired: int = Field(description="Those that no longer answer.")
    lookups: int = Field(description="Recent lookups.")
    hits: int = Field(description="Those of them that a response answered.")


class EmbeddingsOut(Output):
    """The embeddings of all the tenant's questions."""

    entries: int = Field(description="How many.")
    size_bytes: int = Field(description="Their rows' size.")


class TablesOut(Output):
    """The tables behind the caches."""

    responses: ResponsesOut = Field(description="Of the tenant, or the workspace and agent that were named.")
    embeddings: EmbeddingsOut | None = Field(description="Of the tenant; null for a key that is bound to a part of it.")


class CacheStatsOut(CacheHealthOut):
    """The caches with the tenant's tables and its providers' hit rates."""

    tables: TablesOut = Field(description="What the caches' tables hold of the tenant.")
    providers: list[HitRatesOut] = Field(description="Hit rates of the model providers' own caches, of seven days.")


class ExpiredOut(BaseModel):
    """Expired entries that were removed."""

    responses: int = Field(description="Responses of the semantic cache.")
    embeddings: int = Field(description="Embeddings of texts that nobody looked up in a while.")
    provider_metrics: int = Field(description="Old reports of providers' hit rates.")
    idempotency_keys: int = Field(description="Answers under an `Idempotency-Key` whose time is over.")


class ClearedOut(BaseModel):
    """Entries that were cleared, step by step."""

    cleared: dict[str, int] = Field(
        description="Entries by step, in their order: graph, swarm, prefetch (whole requests), semantic (responses), "
        "embeddings; for an agent semantic alone."
    )
