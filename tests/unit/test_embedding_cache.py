"""A text is embedded once, and whatever a cache does, whoever asked gets its vector."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.cache import CacheShardActor
from lamina.aio.circuit_breaker import BreakerPolicy
from lamina.caching.embedding_cache import CachingEmbedder, EmbeddingPolicy, TableCache
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import CacheEntry, Layer, ShardAnswer, ShardQuery
from lamina.core.cache_stats import LayerCounts
from lamina.core.memories import Chunk
from lamina.core.scope import Scope
from lamina.core.stamps import Remembered
from lamina.errors import Unavailable
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.policies.caching.cache_keys import embedding_key
from lamina.policies.caching.shard import LayerLimits, ShardLimits
from lamina.stores.postgres.embedding_cache import CachedEmbedding, TextKey, text_key

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SOON_S = 0.2  # For a part that hangs; whatever answers has PATIENCE_S.
PATIENCE_S = 60.0
NEVER_S = 3600.0
ACME, OTHER = Scope("acme", "atlas"), Scope("other", "atlas")
TEA = "is there any tea?"
LIMITS = ShardLimits({Layer.EMBEDDINGS: LayerLimits(100, 300)})
POLICY = EmbeddingPolicy(
    generation=1,
    dimension=384,
    embed_deadline_s=PATIENCE_S,
    breaker=BreakerPolicy(PATIENCE_S, failures=3, pause_s=NEVER_S),
    window_s=NEVER_S,
    write_deadline_s=PATIENCE_S,
)
HASTY = replace(POLICY, breaker=replace(POLICY.breaker, deadline_s=SOON_S))
MODEL = HashingModel()


def vector(text: str) -> bytes:
    return bytes(MODEL.encode([text])[0].tobytes())


class Counting:
    """Embeds by hashing words, when the gate is open, and counts; or returns what it is told to."""

    def __init__(self) -> None:
        self.inner = BatchingEmbedder(MODEL)
        self.gate = asyncio.Event()
        self.gate.set()
        self.questions: list[str] = []
        self.written: list[list[str]] = []
        self.failures = 0
        self.returns: NDArray[np.float32] | None = None

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.questions += texts
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise Unavailable("embedder", "no replica")
        return await self.inner.embed(texts) if self.returns is None else self.returns

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        self.written.append(list(texts))
        return await self.inner.embed_chunks(texts)


class Table:
    """A table in memory that works, raises or hangs, as the test says."""

    def __init__(self) -> None:
        self.rows: dict[TextKey, CachedEmbedding] = {}
        self.state = "up"
        self.freed = asyncio.Event()
        self.finds: list[int] = []
        self.keeps: list[int] = []

    def put(self, text: str, embedding: bytes, used_at: datetime = NOON, tenant: str = "acme") -> None:
        name = text_key(tenant, text)
        self.rows[name] = CachedEmbedding(name, embedding, used_at)

    async def find(self, texts: Sequence[TextKey]) -> Sequence[CachedEmbedding | None]:
        self.finds.append(len(texts))
        await self._check()
        return [self.rows.get(text) for text in texts]

    async def keep(self, items: Sequence[CachedEmbedding]) -> None:
        self.keeps.append(len(items))
        await self._check()
        self.rows |= {item.text: item for item in items}

    async def _check(self) -> None:
        await asyncio.sleep(0)
        if self.state == "broken":
            raise RuntimeError("the table is broken")
        if self.state == "hanging":
            await asyncio.sleep(NEVER_S)
        while self.state == "stuck" and not self.freed.is_set():
            with suppress(asyncio.CancelledError):
                await self.freed.wait()


class Shard(CacheShardActor):
    """A shard that works, raises or hangs, as the test says, and counts its round trips."""

    def __init__(self) -> None:
        super().__init__(LIMITS)
        self.state = "up"
        self.finds = 0

    async def find(self, probes: Sequence[ShardQuery]) -> Sequence[ShardAnswer]:
        self.finds += 1
        if self.state == "broken":
            raise RuntimeError("the shard is broken")
        if self.state == "hanging":
            await asyncio.sleep(NEVER_S)
        return await super().find(probes)


class Replica:
    """What one router replica has of layer 7."""

    def __init__(
        self,
        *,
        table: Table | None,
        shard: Shard,
        layers: frozenset[Layer],
        policy: EmbeddingPolicy,
        shard_deadline_s: float,
    ) -> None:
        self.model = Counting()
        self.table = table or Table()
        self.shard = shard
        guard = BreakerPolicy(shard_deadline_s, failures=3, pause_s=NEVER_S)
        self.caches = SharedCaches({"cache-0": shard}, layers, guard)
        self._policy = policy
        guarded = None if table is None else TableCache(table, self.caches, policy, lambda: NOON)
        self.embedder = CachingEmbedder(self.model, self.caches, guarded, policy)

    async def ask(self, text: str = TEA, scope: Scope = ACME) -> bytes:
        return await self.embedder.embed_question(scope, text)

    async def write(self, *texts: str, scope: Scope = ACME) -> Sequence[tuple[Chunk, ...]]:
        return await self.embedder.embed_texts(scope, texts)

    async def flush(self) -> None:
        await self.embedder.flush()
        await self.caches.flush()

    async def in_shard(self, text: str = TEA, scope: Scope = ACME) -> Any:
        await self.caches.flush()
        key = embedding_key(self._policy.generation, text)
        return (await self.caches.find(ShardQuery((scope.tenant, scope.workspace), pieces=(key,)))).pieces.get(key)

    def keep_in_shard(self, text: str, value: Any) -> None:
        self.caches.keep(CacheEntry(("acme", "atlas"), embedding_key(1, text), value, 0))

    def counts(self) -> LayerCounts:
        return self.caches.counted().get(Layer.EMBEDDINGS, LayerCounts())


@asynccontextmanager
async def replica_of(
    table: Table | None,
    *,
    shard: Shard | None = None,
    layers: frozenset[Layer] = frozenset(Layer),
    policy: EmbeddingPolicy = POLICY,
    shard_deadline_s: float = PATIENCE_S,
) -> AsyncIterator[Replica]:
    made = Replica(table=table, shard=shard or Shard(), layers=layers, policy=policy, shard_deadline_s=shard_deadline_s)
    yield made
    await made.embedder.close()
    await made.caches.close()


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
async def replica(table: Table) -> AsyncIterator[Replica]:
    async with replica_of(table) as made:
        yield made


async def begun(*calls: Any) -> list["asyncio.Task[Any]"]:
    tasks = [asyncio.create_task(call) for call in calls]
    for _ in range(20):
        await asyncio.sleep(0)
    return tasks


# Questions.


async def test_a_question_is_embedded_and_then_stands_in_the_table_and_in_the_shard(
    replica: Replica, table: Table
) -> None:
    embedding = await replica.ask()
    await replica.flush()

    assert embedding == vector(TEA)
    assert table.rows[text_key("acme", TEA)].embedding == embedding
    assert await replica.in_shard() == embedding


@pytest.mark.parametrize(
    ("remembered", "is_embedded"),
    [
        (Remembered(vector("as it was kept"), NOON), False),
        (Remembered(), True),
        (Remembered(b"\0" * 12, NOON), True),
        (Remembered(np.zeros(384, np.float32).tobytes(), NOON), True),
    ],
)
async def test_what_was_read_with_the_stamp_is_not_read_again_and_counts_as_if_it_were(
    replica: Replica, table: Table, remembered: Remembered, is_embedded: bool
) -> None:
    table.put(TEA, vector("which nobody reads"))

    embedding = await replica.embedder.embed_question(ACME, TEA, remembered)
    counted = replica.counts()
    await replica.flush()

    assert embedding == vector(TEA if is_embedded else "as it was kept")
    assert await replica.in_shard() == embedding
    assert table.finds == []
    assert (counted.hits, counted.misses + counted.errors) == (not is_embedded, int(is_embedded))


async def test_what_stands_in_the_table_is_not_embedded_again_and_goes_into_the_shard(
    replica: Replica, table: Table
) -> None:
    table.put(TEA, vector("as it was kept"))

    embedding = await replica.ask()

    assert embedding == vector("as it was kept")
    assert replica.model.questions == []
    assert await replica.in_shard() == embedding


async def test_a_question_makes_no_round_trip_to_the_shard_for_its_request_made_one_before(replica: Replica) -> None:
    await replica.ask()

    assert replica.shard.finds == 0


async def test_the_same_text_is_another_one_for_another_tenant(replica: Replica, table: Table) -> None:
    table.put(TEA, vector(TEA), tenant="other")

    await replica.ask(TEA, ACME)
    await replica.ask(TEA, OTHER)
    await replica.flush()

    assert replica.model.questions == [TEA]
    assert {name.tenant for name in table.rows} == {"acme", "other"}


async def test_who_asks_the_same_at_the_same_time_shares_one_embedding_of_the_tenant(replica: Replica) -> None:
    replica.model.gate.clear()
    tasks = await begun(*(replica.ask(scope=scope) for scope in [ACME, ACME, Scope("acme", "desk"), OTHER]))
    replica.model.gate.set()

    assert await asyncio.gather(*tasks) == [vector(TEA)] * 4
    assert replica.model.questions == [TEA, TEA]
    assert [await replica.in_shard(scope=scope) for scope in (ACME, Scope("acme", "desk"), OTHER)] == [vector(TEA)] * 3


async def test_a_first_caller_that_gives_up_leaves_the_others_their_answer(replica: Replica, table: Table) -> None:
    replica.model.gate.clear()
    first, second = await begun(replica.ask(), replica.ask())
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    replica.model.gate.set()

    assert await second == vector(TEA)
    assert replica.model.questions == [TEA]


async def test_an_embedding_that_nobody_waits_for_any_more_is_kept_all_the_same(replica: Replica, table: Table) -> None:
    replica.model.gate.clear()
    (only,) = await begun(replica.ask())
    only.cancel()
    await asyncio.gather(only, return_exceptions=True)
    replica.model.gate.set()
    await replica.embedder.close()

    assert text_key("acme", TEA) in table.rows


async def test_those_who_joined_an_embedding_that_fails_try_once_more_together(replica: Replica) -> None:
    replica.model.failures = 1
    replica.model.gate.clear()
    first, *others = await begun(replica.ask(), replica.ask(), replica.ask())
    replica.model.gate.set()

    with pytest.raises(Unavailable, match="no replica"):
        await first
    assert await asyncio.gather(*others) == [vector(TEA)] * 2
    assert replica.model.questions == [TEA, TEA]


async def test_a_model_that_stays_down_is_told_to_everyone_and_the_next_call_asks_it_again(replica: Replica) -> None:
    replica.model.failures = 2
    replica.model.gate.clear()
    tasks = await begun(replica.ask(), replica.ask())
    replica.model.gate.set()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [Unavailable, Unavailable]
    assert await replica.ask() == vector(TEA)


async def test_a_model_that_hangs_is_given_up_so_that_later_calls_do_not_join_it(table: Table) -> None:
    async with replica_of(table, policy=replace(POLICY, embed_deadline_s=SOON_S)) as replica:
        replica.model.gate.clear()
        for asked in range(1, 3):
            with pytest.raises(Unavailable, match="no answer within"):
                await replica.ask()
            assert replica.model.questions == [TEA] * asked
        replica.model.gate.set()


# The table.


async def test_questions_of_one_window_are_written_together(replica: Replica, table: Table) -> None:
    await asyncio.gather(*(replica.ask(f"question {number}") for number in range(20)))
    await replica.embedder.flush()

    assert table.keeps == [20]


async def test_questions_are_written_by_themselves_at_the_end_of_their_window(table: Table) -> None:
    async with replica_of(table, policy=replace(POLICY, window_s=SOON_S)) as replica:
        await asyncio.gather(*(replica.ask(f"question {number}") for number in range(20)))
        async with asyncio.timeout(PATIENCE_S):
            while len(table.rows) < 20:  # noqa: ASYNC110 - a window's end tells nobody
                await asyncio.sleep(SOON_S)

        assert sum(table.keeps) == 20


async def test_questions_that_are_looked_up_at_the_same_time_are_read_together(replica: Replica, table: Table) -> None:
    await asyncio.gather(*(replica.ask(f"question {number}") for number in range(20)))

    assert sum(table.finds) == 20
    assert len(table.finds) <= 3


async def test_hits_and_misses_are_counted_with_their_time(replica: Replica, table: Table) -> None:
    table.put(TEA, vector(TEA))

    await replica.ask()
    await replica.ask("something else")

    counts = replica.counts()
    assert (counts.hits, counts.misses, counts.errors) == (1, 1, 0)
    assert sum(counts.buckets) == 2


@pytest.mark.parametrize("state", ["broken", "hanging"])
async def test_a_table_that_fails_is_a_miss_and_an_error_and_costs_a_moment(table: Table, state: str) -> None:
    table.put(TEA, vector(TEA))
    table.state = state

    async with replica_of(table, policy=HASTY) as replica:
        async with asyncio.timeout(PATIENCE_S):
            assert await replica.ask() == vector(TEA)

        assert replica.model.questions == [TEA]
        assert replica.counts().errors == 1
        assert await replica.in_shard() == vector(TEA)
        table.state = "up"


@pytest.mark.parametrize("state", ["broken", "hanging"])
async def test_a_table_that_keeps_failing_is_open(table: Table, state: str) -> None:
    table.state = state

    async with replica_of(table, policy=HASTY) as replica:
        for number in range(6):
            await replica.ask(f"question {number}")

        assert len(table.finds) == 3
        assert replica.counts().errors == 6
        table.state = "up"


async def test_a_connection_that_cannot_even_be_given_up_holds_nobody_up(table: Table) -> None:
    table.state = "stuck"

    async with replica_of(table, policy=HASTY) as replica:
        async with asyncio.timeout(PATIENCE_S):
            assert await asyncio.gather(*(replica.ask(f"question {number}") for number in range(10)))

        assert replica.counts().errors == 10
        table.freed.set()
        table.state = "up"


async def test_a_write_that_fails_is_counted_and_fails_nobody(replica: Replica, table: Table) -> None:
    await replica.ask()
    table.state = "broken"
    await replica.flush()

    assert table.keeps == [1]
    assert replica.counts().errors == 1


NAN = np.full(384, np.nan, dtype=np.float32).tobytes()
INFINITE = np.full(384, np.inf, dtype=np.float32).tobytes()
HUGE = np.full(384, 3e38, dtype=np.float32).tobytes()
DAMAGED = [b"", vector(TEA)[:-4], vector(TEA)[:-1], vector(TEA) * 2, bytes(1536), NAN, INFINITE, HUGE]


@pytest.mark.parametrize("damaged", DAMAGED)
async def test_a_damaged_row_is_a_miss_and_an_error_and_is_mended(
    replica: Replica, table: Table, damaged: bytes
) -> None:
    table.put(TEA, damaged)

    assert await replica.ask() == vector(TEA)
    await replica.flush()

    assert table.rows[text_key("acme", TEA)].embedding == vector(TEA)
    assert (replica.counts().hits, replica.counts().errors) == (0, 1)


@pytest.mark.parametrize(("hours", "writes"), [(0, []), (23, []), (24, [1]), (24 * 29, [1])])
async def test_a_use_is_noted_at_most_once_a_day(
    replica: Replica, table: Table, hours: int, writes: Sequence[int]
) -> None:
    table.put(TEA, vector(TEA), NOON - timedelta(hours=hours))

    await replica.ask()
    await replica.flush()
    await replica.ask()
    await replica.flush()

    assert table.keeps == writes
    assert table.rows[text_key("acme", TEA)].used_at == (NOON if writes else NOON - timedelta(hours=hours))


async def test_what_a_model_that_is_down_does_not_say_is_not_stored(replica: Replica, table: Table) -> None:
    replica.model.failures = 1

    with pytest.raises(Unavailable):
        await replica.ask()
    await replica.flush()

    assert table.rows == {}
    assert await replica.in_shard() is None


@pytest.mark.parametrize("rows", [np.full((1, 384), np.nan), np.zeros((1, 3)), np.zeros((0, 384)), np.zeros((2, 384))])
async def test_vectors_of_a_degraded_model_are_refused_and_not_stored(
    replica: Replica, table: Table, rows: NDArray[np.float64]
) -> None:
    replica.model.returns = rows.astype(np.float32)

    with pytest.raises(Unavailable, match="it returned"):
        await replica.ask()
    await replica.flush()

    assert table.rows == {}
    assert await replica.in_shard() is None


async def test_a_vector_without_a_direction_is_returned_and_not_stored(replica: Replica, table: Table) -> None:
    replica.model.returns = np.zeros((1, 384), dtype=np.float32)

    assert await replica.ask() == bytes(1536)
    await replica.flush()

    assert table.rows == {}
    assert await replica.in_shard() is None


async def test_without_the_table_the_shard_still_keeps_questions() -> None:
    async with replica_of(None) as replica:
        await replica.ask()

        assert await replica.in_shard() == vector(TEA)


# What is written.


async def test_a_text_that_was_just_asked_is_not_embedded_again_when_it_is_written(replica: Replica) -> None:
    asked = await replica.ask()
    await replica.flush()

    written = await replica.write("Ann drinks tea.", TEA, "Bob does not.")

    plain = await replica.model.inner.embed_chunks(["Ann drinks tea.", TEA, "Bob does not."])
    assert list(written) == list(plain)
    assert written[1] == (Chunk(0, len(TEA), asked),)
    assert replica.model.written == [["Ann drinks tea.", "Bob does not."]]
    assert replica.shard.finds == 1


async def test_what_was_written_pushes_no_question_out(replica: Replica, table: Table) -> None:
    await replica.write(TEA)
    await replica.flush()

    assert await replica.in_shard() is None
    assert (table.finds, table.rows) == ([], {})


async def test_texts_that_are_all_known_ask_no_model(replica: Replica) -> None:
    await replica.ask(TEA)
    await replica.ask("tea")
    await replica.flush()

    await replica.write("tea", TEA, "tea")

    assert replica.model.written == []


async def test_equal_texts_are_embedded_once(replica: Replica) -> None:
    written = await replica.write(TEA, "tea", TEA)

    assert replica.model.written == [[TEA, "tea"]]
    assert written[0] == written[2] != written[1]


async def test_a_long_text_is_never_taken_from_the_shard_which_has_its_mean_alone(replica: Replica) -> None:
    long = "a word of many " * 200
    await replica.ask(long)
    await replica.flush()

    (chunks,) = await replica.write(long)

    assert len(chunks) > 1
    assert replica.model.written == [[long]]


@pytest.mark.parametrize("damaged", [*DAMAGED, "text", None])
async def test_a_damaged_entry_is_embedded_again(replica: Replica, damaged: Any) -> None:
    replica.keep_in_shard(TEA, damaged)
    await replica.caches.flush()

    (chunks,) = await replica.write(TEA)

    assert chunks[0].embedding == vector(TEA)


@pytest.mark.parametrize("state", ["broken", "hanging"])
async def test_a_shard_that_fails_only_costs_the_embedding(table: Table, state: str) -> None:
    async with replica_of(table, shard_deadline_s=SOON_S) as replica:
        replica.shard.state = state

        async with asyncio.timeout(PATIENCE_S):
            (chunks,) = await replica.write(TEA)

        assert chunks == (Chunk(0, len(TEA), vector(TEA)),)
        assert replica.counts().errors == 1


async def test_a_layer_that_is_switched_off_asks_no_shard() -> None:
    async with replica_of(None, layers=frozenset(Layer) - {Layer.EMBEDDINGS}) as replica:
        await replica.write(TEA)
        await replica.write(TEA)

        assert replica.model.written == [[TEA], [TEA]]
        assert replica.shard.finds == 0


async def test_nothing_to_write_asks_nobody(replica: Replica) -> None:
    assert list(await replica.write()) == []
    assert (replica.model.written, replica.shard.finds) == ([], 0)


async def test_another_number_of_results_is_an_error(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    async def one(texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        return await replica.model.inner.embed_chunks(texts[:1])

    monkeypatch.setattr(replica.model, "embed_chunks", one)

    with pytest.raises(Unavailable, match="1 results for 2 texts"):
        await replica.write(TEA, "tea")
