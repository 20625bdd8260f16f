"""The cache stack that the settings choose."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lamina import __version__
from lamina.aio.circuit_breaker import BreakerPolicy
from lamina.caching.answer_cache import AnswerCache
from lamina.caching.cache_tables import CacheTables
from lamina.caching.clearing import CacheClearing
from lamina.caching.embedding_cache import CachingEmbedder, EmbeddingPolicy, TableCache
from lamina.caching.response_cache import ResponseCache
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import Layer
from lamina.core.ports import CacheShard, Embedder
from lamina.models.prefixes import prefixes_of
from lamina.policies.caching.adaptive_ttl import TtlPolicy
from lamina.policies.caching.answer_keys import AnswerPolicy
from lamina.policies.caching.cache_keys import digest
from lamina.policies.caching.model_responses import ResponsePolicy
from lamina.policies.caching.response_budget import ResponseBudget
from lamina.policies.caching.shard import LayerLimits, ShardLimits, SwarmLimits
from lamina.settings.caches import CachesSettings
from lamina.settings.loading import Settings, kept_projections
from lamina.stores.postgres.connection import Pool, new_pool
from lamina.stores.postgres.embedding_cache import EmbeddingTable
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.provider_metrics import ProviderMetrics
from lamina.stores.postgres.responses import Responses
from lamina.stores.postgres.stamps import MAX_IN_FLIGHT, Stamps
from lamina.text.paraphrase import is_same_question
from lamina.wiring.stores import database_digest, pooling, postgres_url, utc_now

# A text's embedding never changes; this only drops those that no question needs any more.
EMBEDDING_TTL_S = 86_400.0


def enabled_layers(caches: CachesSettings) -> frozenset[Layer]:
    """Return the layers that are switched on."""
    switches: Mapping[Layer, bool] = {
        Layer.FRONT: caches.front.enabled,
        Layer.AGENTS: caches.agent_filter.enabled,
        Layer.TURN: caches.turn_hash.enabled,
        Layer.SEMANTIC: caches.semantic.enabled,
        Layer.NEGATIVE: caches.negative.enabled,
        Layer.GRAPH: caches.graph.enabled,
        Layer.SWARM: caches.swarm.enabled,
        Layer.EMBEDDINGS: caches.embeddings.enabled,
    }
    return frozenset(layer for layer, is_on in switches.items() if is_on)


def shard_limits(caches: CachesSettings) -> ShardLimits:
    """Return the bounds of a shard."""
    turns, walks, swarms, filtered = caches.turn_hash, caches.graph, caches.swarm, caches.agent_filter
    layers = {
        Layer.AGENTS: LayerLimits(filtered.workspaces, filtered.ttl_s, filtered.max_bytes),
        Layer.TURN: LayerLimits(turns.entries, turns.ttl_s, turns.max_bytes),
        Layer.NEGATIVE: LayerLimits(caches.negative.entries, caches.negative.ttl_s),
        Layer.GRAPH: LayerLimits(walks.entries, walks.ttl_s, walks.max_bytes),
        Layer.EMBEDDINGS: LayerLimits(caches.embeddings.entries, EMBEDDING_TTL_S),
    }
    swarm = SwarmLimits(LayerLimits(swarms.entries, swarms.ttl_s, swarms.max_bytes), swarms.swarms, swarms.max_bytes)
    return ShardLimits(layers, swarm)


def longest_answer(caches: CachesSettings) -> timedelta:
    """Return how long a process may hold an answer under an epoch."""
    layers = (caches.turn_hash, caches.negative, caches.graph, caches.swarm)
    return timedelta(seconds=max(layer.ttl_s for layer in layers))


def shards_namespace(settings: Settings) -> str:
    """Return the namespace that keeps the shards of one database apart on a cluster."""
    return f"lamina-caches-{database_digest(settings)}"


def shards_edition(settings: Settings, generation: Generation) -> str:
    """Return a digest that changes with release, limits and data, so that older shards are not used."""
    limits = settings.caches.model_dump(mode="json")
    return digest(__version__, limits, _began_at(generation)).hex()[:12]


def _began_at(generation: Generation) -> str:
    return (generation.began_at or datetime.min.replace(tzinfo=UTC)).isoformat()


def build_shared_caches(settings: Settings, shards: Mapping[str, CacheShard]) -> SharedCaches:
    """Build a replica's client of the shards."""
    caches = settings.caches
    guard = BreakerPolicy(caches.deadline_s, caches.failures, caches.pause_s)
    return SharedCaches(shards, enabled_layers(caches), guard)


def response_policy(settings: Settings) -> ResponsePolicy:
    """Return the policy of cached responses, by the settings."""
    chosen = settings.caches.semantic
    return ResponsePolicy(
        threshold=chosen.threshold,
        ttl=TtlPolicy(chosen.ttl_s, chosen.ttl_min_s, chosen.ttl_max_s),
        budget=ResponseBudget(chosen.budget_bytes, chosen.evict_share),
        grace_s=chosen.grace_s,
        lease_s=chosen.lease_s,
        by_workspace=chosen.invalidate == "workspace",
        max_response_bytes=chosen.max_response_bytes,
        max_wait_s=chosen.max_wait_s,
        deadline_s=settings.search.source_deadline_s,
        embed_deadline_s=settings.search.embed_deadline_s,
    )


@dataclass(frozen=True, slots=True)
class CacheParts:
    """The cache stack of one replica.

    Args:
        shared: Its client of the shards.
        answers: Serves whole answers.
        embedder: Embeds each question once.
        responses: The semantic cache of models' responses.
        tables: Counts and deletes expired rows of the caches' tables in Postgres.
        clearing: Clears all caches.
        providers: The figures of model providers' own caches.
        stamps: The connections that read the stamps which prove answers fresh.
    """

    shared: SharedCaches
    answers: AnswerCache
    embedder: CachingEmbedder
    responses: ResponseCache
    tables: CacheTables
    clearing: CacheClearing
    providers: ProviderMetrics
    stamps: Pool

    async def flush(self) -> None:
        """Write the waiting counts and entries."""
        await self.responses.flush()
        await self.embedder.flush()
        await self.shared.flush()

    async def close(self) -> None:
        """Flush pending writes, and end."""
        await self.responses.close()
        await self.embedder.close()
        await self.shared.close()
        await self.stamps.close()


def build_cache_tables(settings: Settings, pool: Pool, generation: int) -> CacheTables:
    """Build the upkeep of the caches' tables."""
    return CacheTables(
        pool,
        Responses(pool, response_policy(settings), generation),
        EmbeddingTable(pool, generation),
        ProviderMetrics(pool),
        embedding_days=settings.caches.embeddings.ttl_days,
        provider_days=settings.caches.providers.ttl_days,
        answer_days=settings.write.idempotency_days,
    )


def build_caches(
    settings: Settings, pool: Pool, embedder: Embedder, generation: Generation, shards: Mapping[str, CacheShard]
) -> CacheParts:
    """Build the cache stack of one replica over any shards."""
    shared, stamps = build_shared_caches(settings, shards), build_stamps_pool(settings)
    caching = build_caching_embedder(settings, pool, embedder, generation, shared)
    store = Responses(pool, response_policy(settings), generation.number)
    providers, table = ProviderMetrics(pool), EmbeddingTable(pool, generation.number)
    return CacheParts(
        shared=shared,
        answers=build_answer_cache(settings, stamps, shared, generation),
        embedder=caching,
        responses=build_response_cache(settings, shared, store, caching, generation),
        tables=build_cache_tables(settings, pool, generation.number),
        clearing=CacheClearing(pool, shared, store, table),
        providers=providers,
        stamps=stamps,
    )


def build_response_cache(
    settings: Settings, caches: SharedCaches, store: Responses, embedder: CachingEmbedder, generation: Generation
) -> ResponseCache:
    """Build the semantic cache of models' responses."""
    return ResponseCache(
        caches,
        store,
        embedder,
        response_policy(settings),
        generation=generation.number,
        clock=utc_now,
        # Without the guard the cosine alone decides.
        is_same_question=is_same_question if settings.caches.semantic.guard else lambda _first, _second: True,
    )


def build_caching_embedder(
    settings: Settings, pool: Pool, embedder: Embedder, generation: Generation, caches: SharedCaches
) -> CachingEmbedder:
    """Build the embedder that embeds each question once."""
    chosen, limits, prefixes = settings.caches.embeddings, settings.caches, prefixes_of(settings.embedding)
    policy = EmbeddingPolicy(
        generation=generation.number,
        dimension=generation.identity.dimension,
        embed_deadline_s=settings.search.embed_deadline_s,
        breaker=BreakerPolicy(limits.deadline_s, limits.failures, limits.pause_s),
        window_s=chosen.window_s,
        is_symmetric=prefixes.question == prefixes.written,
    )
    table = None
    if chosen.enabled and chosen.table:
        table = TableCache(EmbeddingTable(pool, generation.number), caches, policy, utc_now)
    return CachingEmbedder(embedder, caches, table, policy)


def build_stamps_pool(settings: Settings) -> Pool:
    """Build the pool that reads stamps, of its own so that no slower query holds one up."""
    sizes = {"min_size": min(settings.pool.min_size, MAX_IN_FLIGHT), "max_size": MAX_IN_FLIGHT}
    limits = settings.pool.model_copy(update=sizes)
    return new_pool(postgres_url(settings), limits, plans="generic", pooling=pooling(settings))


def build_answer_cache(settings: Settings, stamps: Pool, caches: SharedCaches, generation: Generation) -> AnswerCache:
    """Build the cache of whole answers."""
    chosen, front = settings.caches, settings.caches.front
    policy = AnswerPolicy(
        fingerprint=fingerprint(settings, generation),
        generation=generation.number,
        ttl_s={
            Layer.TURN: chosen.turn_hash.ttl_s,
            Layer.NEGATIVE: chosen.negative.ttl_s,
            Layer.SWARM: chosen.swarm.ttl_s,
        },
        front_entries=front.entries if front.enabled else 0,
        front_bytes=front.max_bytes,
        breaker=BreakerPolicy(settings.search.source_deadline_s, chosen.failures, chosen.pause_s),
    )
    reader = Stamps(
        stamps,
        kept_projections(settings),
        deadline_s=settings.search.source_deadline_s / 2,
        generation=generation.number if chosen.embeddings.enabled and chosen.embeddings.table else None,
    )
    return AnswerCache(reader, caches, policy, utc_now)


def fingerprint(settings: Settings, generation: Generation) -> bytes:
    """Return a digest of everything beside the request that an answer depends on."""
    ranks = settings.model_dump(mode="json", include={"search", "context", "procedures", "embedding", "rerank"})
    return digest(__version__, ranks, settings.graph.kind, _began_at(generation))
