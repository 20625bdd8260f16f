"""Case 40: the embedding model changes, the query does not. It is embedded again; old vectors are not mixed in."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from actors.cache import CacheShardActor
from lamina.aio.circuit_breaker import BreakerPolicy
from lamina.caching.embedding_cache import CachingEmbedder, EmbeddingPolicy, TableCache
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import Layer, ShardQuery
from lamina.core.memories import Chunk
from lamina.core.ports import Model, ModelIdentity
from lamina.core.scope import Scope
from lamina.errors import Misconfigured
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.policies.caching.cache_keys import embedding_key
from lamina.policies.caching.shard import LayerLimits, ShardLimits
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres.connection import new_pool
from lamina.stores.postgres.embedding_cache import EmbeddingTable
from lamina.stores.postgres.generations import claim_generation
from lamina.wiring.stores import utc_now

QUERY = "where does Ann keep her tea?"
ANN = Scope("acme", "atlas", agent="ann")


class OtherModel(HashingModel):
    """As large as the first model, and no vector of it means the same."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = ModelIdentity(model="hashing-other", dimension=384)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().encode([hashlib.sha256(text.encode()).hexdigest() for text in texts])


@dataclass
class Replica:
    """A router replica with the model and the generation that were active when it began."""

    generation: int
    embedder: CachingEmbedder
    caches: SharedCaches
    asked: list[str]

    async def ask(self) -> bytes:
        """Embed the query as a request does: from the shard, or else by the embedder."""
        key = embedding_key(self.generation, QUERY)
        await self.caches.flush()
        found = await self.caches.find(ShardQuery((ANN.tenant, ANN.workspace), pieces=(key,)))
        embedding: bytes = found.pieces.get(key) or await self.embedder.embed_question(ANN, QUERY)
        await self.embedder.flush()
        return embedding


class Asked:
    """An embedder that remembers what it was asked."""

    def __init__(self, model: Model) -> None:
        self.inner = BatchingEmbedder(model)
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return await self.inner.embed(texts)

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        self.texts += texts
        return await self.inner.embed_chunks(texts)


@asynccontextmanager
async def replica(url: str, model: Model, shard: CacheShardActor) -> AsyncIterator[Replica]:
    generation = claim_generation(url, model.identity).number
    pool = new_pool(url, PoolSettings(min_size=0, max_size=4, timeout_s=60))
    await pool.open()
    breaker = BreakerPolicy(60, failures=3, pause_s=60)
    caches = SharedCaches({"cache-0": shard}, frozenset(Layer), breaker)
    policy = EmbeddingPolicy(generation=generation, dimension=model.identity.dimension, breaker=breaker)
    asked = Asked(model)
    table = TableCache(EmbeddingTable(pool, generation), caches, policy, utc_now)
    made = Replica(generation, CachingEmbedder(asked, caches, table, policy), caches, asked.texts)
    yield made
    await made.embedder.close()
    await caches.close()
    await pool.close()


def new_shard() -> CacheShardActor:
    return CacheShardActor(ShardLimits({Layer.EMBEDDINGS: LayerLimits(100, 300)}))


def retire_generation(url: str) -> None:
    """End the active generation, as a change of the model over the same memories does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE embedding_generations SET is_active = false")


async def test_another_model_embeds_the_same_query_anew_and_never_sees_an_old_vector(database: str) -> None:
    shard, old, new = new_shard(), HashingModel(), OtherModel()
    async with replica(database, old, shard) as before:
        first = await before.ask()
        retire_generation(database)
        async with replica(database, new, shard) as after:
            second = await after.ask()

            assert (before.generation, after.generation) == (1, 2)
            assert (before.asked, after.asked) == ([QUERY], [QUERY])
            assert first == old.encode([QUERY])[0].tobytes()
            assert second == new.encode([QUERY])[0].tobytes()
            # Both go on side by side until the last old replica ends, each with its own vectors.
            assert (await before.ask(), await after.ask()) == (first, second)

    async with replica(database, new, new_shard()) as later:
        assert await later.ask() == second
        assert later.asked == []


async def test_what_was_embedded_survives_a_crash_of_the_shard_and_of_the_replica(database: str) -> None:
    async with replica(database, HashingModel(), new_shard()) as before:
        embedding = await before.ask()

    async with replica(database, HashingModel(), new_shard()) as after:
        assert await after.ask() == embedding
        assert after.asked == []


async def test_another_model_over_the_same_generation_is_refused(database: str) -> None:
    async with replica(database, HashingModel(), new_shard()) as before:
        await before.ask()

    with pytest.raises(Misconfigured, match="they cannot be compared"):
        claim_generation(database, OtherModel().identity)
