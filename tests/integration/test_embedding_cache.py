"""The table of embeddings on a real Postgres: exact, apart by tenant and generation, one statement a batch."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
import pytest

from actors.cache import CacheShardActor
from lamina.aio.circuit_breaker import BreakerPolicy
from lamina.caching.embedding_cache import EmbeddingPolicy, TableCache
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import Layer
from lamina.models.hashing import HashingModel
from lamina.policies.caching.shard import LayerLimits, ShardLimits
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres.connection import Pool, new_pool
from lamina.stores.postgres.embedding_cache import QUERIES, CachedEmbedding, EmbeddingTable, TextKey, text_key
from lamina.stores.postgres.generations import claim_generation

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    claim_generation(database, HashingModel().identity)
    made = new_pool(database, PoolSettings(min_size=0, max_size=8, timeout_s=60))
    yield made
    await made.close()


@pytest.fixture
def table(pool: Pool) -> EmbeddingTable:
    return EmbeddingTable(pool, 1)


def rows_of(database: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def kept(text: str, embedding: bytes = b"vector", used_at: datetime = NOON, tenant: str = "acme") -> CachedEmbedding:
    return CachedEmbedding(text_key(tenant, text), embedding, used_at)


async def found(table: EmbeddingTable, text: str, tenant: str = "acme") -> CachedEmbedding | None:
    return (await table.find([text_key(tenant, text)]))[0]


async def test_every_bit_of_a_vector_comes_back(table: EmbeddingTable) -> None:
    numbers = np.random.default_rng(1).standard_normal(384).astype(np.float32)
    numbers[:6] = [0.0, -0.0, 1e-45, np.finfo(np.float32).max, np.nextafter(np.float32(1), np.float32(2)), np.nan]

    await table.keep([kept("tea", numbers.tobytes())])

    assert await found(table, "tea") == kept("tea", numbers.tobytes())


async def test_texts_are_found_in_the_order_they_are_asked_for_with_gaps_and_twice(table: EmbeddingTable) -> None:
    await table.keep([kept(text, text.encode()) for text in ("one", "two", "three")])

    answers = await table.find([text_key("acme", text) for text in ("three", "four", "one", "three")])

    assert [answer and answer.embedding for answer in answers] == [b"three", None, b"one", b"three"]


async def test_nothing_of_another_tenant_generation_or_text_is_found(pool: Pool, table: EmbeddingTable) -> None:
    await table.keep([kept("tea")])

    assert await found(table, "tea", tenant="other") is None
    assert await found(EmbeddingTable(pool, 2), "tea") is None
    assert await found(table, "tea ") is None
    assert await found(table, "Tea") is None


async def test_the_text_itself_is_not_kept(database: str, table: EmbeddingTable) -> None:
    await table.keep([kept("a secret question")])

    assert all("secret" not in str(row) for row in rows_of(database, "SELECT kept::text FROM embedding_cache kept"))


async def test_of_equal_texts_in_one_batch_the_last_counts(table: EmbeddingTable) -> None:
    await table.keep([kept("tea", b"first"), kept("coffee"), kept("tea", b"last")])

    assert await found(table, "tea") == kept("tea", b"last")


@pytest.mark.parametrize(
    ("embedding", "after", "used_at"),
    [
        (b"vector", timedelta(hours=23), NOON),
        (b"vector", DAY, NOON + DAY),
        (b"mended", timedelta(hours=1), NOON + timedelta(hours=1)),
        (b"mended", -DAY, NOON),
    ],
)
async def test_a_row_is_written_again_only_if_it_differs_or_a_day_has_passed(
    database: str, table: EmbeddingTable, embedding: bytes, after: timedelta, used_at: datetime
) -> None:
    await table.keep([kept("tea")])
    before = rows_of(database, "SELECT xmin::text, created_at FROM embedding_cache")

    await table.keep([kept("tea", embedding, NOON + after)])

    assert await found(table, "tea") == kept("tea", embedding, used_at)
    now = rows_of(database, "SELECT xmin::text, created_at FROM embedding_cache")
    is_rewritten = (embedding, used_at) != (b"vector", NOON)
    assert (now != before) is is_rewritten
    assert now[0][1] == before[0][1]


async def test_batches_that_overlap_in_any_order_are_all_written(table: EmbeddingTable) -> None:
    texts = [f"question {number}" for number in range(200)]
    batches = [[kept(text, bytes([n])) for text in (texts if n % 2 else reversed(texts))] for n in range(12)]

    await asyncio.gather(*(table.keep(batch) for batch in batches))

    assert all(await table.find([text_key("acme", text) for text in texts]))


async def test_what_was_not_used_for_so_many_days_goes_and_nothing_else(table: EmbeddingTable) -> None:
    ages = {"new": timedelta(0), "used": timedelta(days=30) - timedelta(seconds=1), "old": timedelta(days=30)}
    await table.keep([kept(text, used_at=NOON - age) for text, age in ages.items()])

    assert await table.purge_expired(NOON, 30, "acme") == 1
    assert [text for text in ages if await found(table, text)] == ["new", "used"]


async def test_a_purge_takes_a_tenants_embeddings_of_every_generation(
    database: str, pool: Pool, table: EmbeddingTable
) -> None:
    second_generation(database)
    await table.keep([kept("tea"), kept("tea", tenant="other")])
    await EmbeddingTable(pool, 2).keep([kept("tea")])

    assert (await table.stats("acme")).entries == 2
    assert await table.purge("acme") == 2
    assert (await table.stats("acme")).entries == 0
    assert await found(table, "tea", tenant="other")


def second_generation(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE embedding_generations SET is_active = false")
        connection.execute("INSERT INTO embedding_generations (model, dimension, normalised) VALUES ('m', 384, true)")


async def test_stats_count_rows_and_their_bytes(table: EmbeddingTable) -> None:
    assert (await table.stats("acme")).size_bytes == 0

    await table.keep([kept(f"question {number}", bytes(1536)) for number in range(10)])

    stats = await table.stats("acme")
    assert stats.entries == 10
    assert 10 * 1536 < stats.size_bytes < 10 * 1800


@pytest.mark.parametrize("dimension", [384, 1024, 3072])
async def test_vectors_of_any_length_fit(table: EmbeddingTable, dimension: int) -> None:
    embedding = np.random.default_rng(2).standard_normal(dimension).astype(np.float32).tobytes()

    await table.keep([kept("tea", embedding)])

    assert await found(table, "tea") == kept("tea", embedding)


async def test_looking_up_a_batch_walks_the_primary_key(database: str, pool: Pool, table: EmbeddingTable) -> None:
    for start in range(0, 20_000, 5000):
        await table.keep([kept(f"question {number}", bytes(64)) for number in range(start, start + 5000)])
    rows_of_analyze(database)
    texts = [text_key("acme", f"question {number}") for number in range(64)]

    plan = await plan_of(pool, texts)

    assert "embedding_cache_pkey" in plan
    assert "Seq Scan" not in plan


def rows_of_analyze(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ANALYZE embedding_cache")


async def plan_of(pool: Pool, texts: list[TextKey]) -> str:
    parameters = {
        "tenants": [text.tenant for text in texts],
        "text_hashes": [text.digest for text in texts],
        "generation": 1,
    }
    async with pool.connection() as connection:
        cursor = await connection.execute(b"EXPLAIN (FORMAT JSON) " + QUERIES["find_embeddings"], parameters)
        return json.dumps(await cursor.fetchone())


async def test_a_table_that_is_locked_costs_a_moment_and_frees_its_connections(database: str, pool: Pool) -> None:
    limits = ShardLimits({Layer.EMBEDDINGS: LayerLimits(100, 300)})
    caches = SharedCaches(
        {"cache-0": CacheShardActor(limits)}, frozenset(Layer), BreakerPolicy(60, failures=3, pause_s=60)
    )
    policy = EmbeddingPolicy(generation=1, dimension=384, breaker=BreakerPolicy(0.2, failures=100, pause_s=2))
    guarded = TableCache(EmbeddingTable(pool, 1), caches, policy, lambda: NOON)
    unhurried = replace(policy, breaker=replace(policy.breaker, deadline_s=60))
    patient = TableCache(EmbeddingTable(pool, 1), caches, unhurried, lambda: NOON)
    await pool.open()
    with psycopg.connect(database) as connection:
        connection.execute("LOCK TABLE embedding_cache IN ACCESS EXCLUSIVE MODE")
        async with asyncio.timeout(60):
            answers = await asyncio.gather(*(guarded.find(text_key("acme", f"{number}")) for number in range(20)))

    assert answers == [None] * 20
    assert caches.counted()[Layer.EMBEDDINGS].errors == 20
    assert await patient.find(text_key("acme", "0")) is None
    assert caches.counted()[Layer.EMBEDDINGS].misses == 1
    for cache in (guarded, patient):
        await cache.writes.close()
    await caches.close()
