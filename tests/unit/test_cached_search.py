"""Whole answers: from a cache if they are proven fresh, else searched, whatever the caches do."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from actors.cache import CacheShardActor
from lamina.aio.circuit_breaker import BreakerPolicy
from lamina.caching.answer_cache import AnswerCache, RenderedAnswer, SentAnswer
from lamina.caching.cached_search import CacheableRequest, CachedSearch, CachedTraversal
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import Layer, ShardAnswer, ShardQuery
from lamina.core.cache_stats import LayerCounts, LayerOutcome, ShardUpdate
from lamina.core.memory_profiles import MemoryProfile
from lamina.core.quotas import counted_spending
from lamina.core.scope import Scope
from lamina.core.sharing import Share
from lamina.core.stamps import SharedEpoch, Stamp
from lamina.core.tiers import Segment, Source, Tier
from lamina.errors import Unavailable
from lamina.policies.caching.answer_keys import AnswerPolicy, RequestIdentity
from lamina.policies.caching.shard import LayerLimits, ShardLimits, SwarmLimits
from lamina.search.fused_search import SearchHints
from tests.support.virtual_time import in_virtual_time

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
PATIENCE_S = 60.0
NEVER_S = 3600.0
GUARD = BreakerPolicy(PATIENCE_S, failures=3, pause_s=NEVER_S)
ALL = frozenset(Layer)
STAMP = Stamp(namespace=3, workspace=1, is_settled=True)
WHOLE = {Layer.TURN: 300.0, Layer.NEGATIVE: 30.0, Layer.SWARM: 300.0}
POLICY = AnswerPolicy(b"release", 1, WHOLE, front_entries=10, front_bytes=10_000, breaker=GUARD)
LIMITS = ShardLimits(
    {layer: LayerLimits(100, 300) for layer in (Layer.TURN, Layer.NEGATIVE, Layer.GRAPH, Layer.EMBEDDINGS)},
    SwarmLimits(LayerLimits(10, 300), swarms=10, max_bytes=100_000),
)
ANN, BOB = (Scope("acme", "atlas", agent=name, swarm="s") for name in ("ann", "bob"))


class Stamps:
    """Says what a test wants."""

    def __init__(self, stamp: Stamp | Exception | None = STAMP) -> None:
        self.stamp = stamp

    async def read(self, scope: Scope, question: str | None = None) -> Stamp:
        if isinstance(self.stamp, Exception):
            raise self.stamp
        if self.stamp is None:
            await asyncio.sleep(NEVER_S)
        assert isinstance(self.stamp, Stamp)
        return self.stamp


class Broken(CacheShardActor):
    """A shard that raises, or never answers."""

    def __init__(self, *, hangs: bool = False) -> None:
        super().__init__(LIMITS)
        self.calls = 0
        self._hangs = hangs

    async def find(self, probes: Sequence[ShardQuery]) -> Sequence[ShardAnswer]:
        return await self._fail()

    async def keep(self, news: ShardUpdate) -> None:
        await self._fail()

    async def _fail(self) -> Any:
        self.calls += 1
        if self._hangs:
            await asyncio.sleep(NEVER_S)
        raise RuntimeError("the shard is broken")


class Counting(CacheShardActor):
    """A shard that counts its round trips."""

    def __init__(self) -> None:
        super().__init__(LIMITS)
        self.found = 0

    async def find(self, probes: Sequence[ShardQuery]) -> Sequence[ShardAnswer]:
        self.found += 1
        return await super().find(probes)


class Replica:
    """What one router replica has of the cache stack, and how often it had to search."""

    def __init__(
        self,
        shard: CacheShardActor,
        *,
        stamps: Stamps | None = None,
        policy: AnswerPolicy = POLICY,
        layers: frozenset[Layer] = ALL,
        guard: BreakerPolicy = GUARD,
    ) -> None:
        self.caches = SharedCaches({"cache-0": shard}, layers, guard)
        self.stamps = stamps or Stamps()
        self.searched = 0
        self.hints: list[SearchHints] = []
        self.gate: asyncio.Event | None = None
        self._answers = AnswerCache(self.stamps, self.caches, policy, lambda: NOON)
        self._search = CachedSearch(self, lambda request, found: found, self._answers)
        self._traversal = CachedTraversal(self, lambda request, found: found, self._answers)

    async def search(self, request: Callable[[], RenderedAnswer], hints: SearchHints) -> RenderedAnswer:
        self.searched += 1
        self.hints.append(hints)
        await asyncio.sleep(0)
        answer = request()
        if self.gate is not None:
            await self.gate.wait()
        return answer

    async def traverse(self, request: Callable[[], RenderedAnswer]) -> RenderedAnswer:
        self.searched += 1
        return request()

    async def ask(
        self,
        scope: Scope = ANN,
        query: str = "tea?",
        *,
        answer: Callable[[], RenderedAnswer] | None = None,
        stamp: Stamp | None = None,
        **sent: Any,
    ) -> SentAnswer:
        stamp = stamp or await self.stamp(scope)
        assert stamp is not None
        identity = RequestIdentity("search", scope, {"query": query, **sent}, query, walk=query)
        found = await self._search.search(CacheableRequest(identity, answer or self._numbered, stamp))
        await self.caches.flush()
        return found

    async def walk(self, scope: Scope = ANN, body: bytes = b'{"n":0}') -> SentAnswer:
        identity = RequestIdentity("traverse", scope, {"names": ["Ann"]})
        request = CacheableRequest(identity, lambda: RenderedAnswer(body), await self.stamp(scope))
        found = await self._traversal.traverse(request)
        await self.caches.flush()
        return found

    async def stamp(self, scope: Scope = ANN) -> Stamp | None:
        return await self._answers.read_stamp(scope)

    def _numbered(self) -> RenderedAnswer:
        return RenderedAnswer(b'{"n":%d}' % self.searched)


@pytest.fixture
async def replica() -> AsyncIterator[Replica]:
    made = Replica(CacheShardActor(LIMITS))
    yield made
    await made.caches.close()


async def test_the_same_request_is_computed_once_and_names_the_layer_that_answered(replica: Replica) -> None:
    first, second = await replica.ask(), await replica.ask()

    assert first.body() == b'{"n":1,"cache":[]}'
    assert second.body() == b'{"n":1,"cache":["turn_hash"]}'
    assert replica.searched == 1


async def test_another_replica_finds_it_in_the_shard_in_one_round_trip_and_then_in_its_own_copies() -> None:
    shard = Counting()
    one, other = Replica(shard), Replica(shard)

    await one.ask()
    asked_before = shard.found
    found, again = await other.ask(), await other.ask()

    assert (found.layers, again.layers) == ((Layer.TURN,), (Layer.TURN,))
    assert shard.found == asked_before + 1
    assert other.searched == 0


async def test_sub_agents_of_a_swarm_share_answers_and_other_swarms_and_users_do_not(replica: Replica) -> None:
    await replica.ask(ANN)
    shared = await replica.ask(BOB)

    assert shared.layers == (Layer.SWARM,)
    for scope in (
        replace(BOB, swarm="t"),
        replace(BOB, user="eve"),
        replace(BOB, session="other"),
        replace(BOB, namespace="other"),
        replace(BOB, workspace="other"),
        replace(BOB, tenant="other"),
        Scope("acme", "atlas", agent="eve"),
    ):
        before = replica.searched
        await replica.ask(scope)
        assert replica.searched == before + 1, scope


PROFILE = MemoryProfile((Tier.NOTES,), 3, 0.1)
OTHER_VALUES: dict[str, object] = {
    "tiers": (Tier.NOTES, Tier.GRAPH),
    "max_context_chunks": 4,
    "min_relevance": 0.2,
    "ttl_days": 30.0,
    "prompt_suffix": "Be brief.",
    "is_verified": True,
    "shows_profile": False,
}


@pytest.mark.parametrize("field", [field.name for field in fields(MemoryProfile) if field.name != "updated_at"])
async def test_sub_agents_with_different_memory_profiles_do_not_share(replica: Replica, field: str) -> None:
    replica.stamps.stamp = replace(STAMP, profile=PROFILE)
    await replica.ask(ANN)
    replica.stamps.stamp = replace(STAMP, profile=replace(PROFILE, **{field: OTHER_VALUES[field]}))

    assert (await replica.ask(BOB)).layers == ()
    assert replica.searched == 2


@pytest.mark.parametrize(("suffix", "is_shared"), [("", True), ("Be brief.", False)])
async def test_sub_agents_with_equal_memory_profiles_share_what_does_not_name_them(
    replica: Replica, suffix: str, *, is_shared: bool
) -> None:
    replica.stamps.stamp = replace(STAMP, profile=replace(PROFILE, prompt_suffix=suffix))
    await replica.ask(ANN)
    replica.stamps.stamp = replace(STAMP, profile=replace(PROFILE, prompt_suffix=suffix, updated_at=NOON))

    assert (await replica.ask(BOB)).layers == ((Layer.SWARM,) if is_shared else ())


@pytest.mark.parametrize(
    "later",
    [
        replace(STAMP, namespace=4),
        replace(STAMP, workspace=2),
        replace(
            STAMP,
            shared=(SharedEpoch(Share(UUID(int=1), "x", "default", "atlas", Segment.NOTES, (), "", NOON), 1),),
        ),
    ],
)
async def test_a_write_of_anything_it_depends_on_ends_an_answer_everywhere(replica: Replica, later: Stamp) -> None:
    await replica.ask()
    replica.stamps.stamp = later

    assert (await replica.ask()).layers == ()
    assert replica.searched == 2


async def test_an_expired_share_and_a_write_to_what_is_shared_end_an_answer(replica: Replica) -> None:
    share = Share(UUID(int=1), "x", "default", "atlas", Segment.NOTES, (), "", NOON, NOON + timedelta(hours=1))
    stamps = [
        replace(STAMP, shared=(SharedEpoch(share, 1),)),
        replace(STAMP, shared=(SharedEpoch(share, 2),)),
        replace(STAMP, shared=(SharedEpoch(replace(share, expires_at=NOON), 2),)),
    ]
    for stamp in stamps:
        replica.stamps.stamp = stamp
        await replica.ask()

    assert replica.searched == 3


async def test_nothing_is_kept_while_a_projection_lags(replica: Replica) -> None:
    replica.stamps.stamp = replace(STAMP, is_settled=False)

    await replica.ask()
    await replica.ask()

    assert replica.searched == 2


async def test_a_degraded_answer_is_not_kept(replica: Replica) -> None:
    for _ in range(2):
        await replica.ask(answer=lambda: RenderedAnswer(b'{"n":0}', is_whole=False))

    assert replica.searched == 2


async def test_what_found_nothing_is_kept_by_the_negative_layer_alone(replica: Replica) -> None:
    await replica.ask(answer=lambda: RenderedAnswer(b'{"n":0}', is_empty=True))
    again = await replica.ask(replace(BOB, swarm=None))

    assert again.layers == (Layer.NEGATIVE,)
    holdings = (await replica.caches.figures()).shards["cache-0"]
    assert holdings is not None
    assert (holdings.holdings[Layer.TURN].entries, holdings.holdings[Layer.NEGATIVE].entries) == (0, 1)


async def test_the_graphs_part_is_found_again_where_the_rest_differs(replica: Replica) -> None:
    await replica.ask(answer=lambda: RenderedAnswer(b'{"n":0}', graph={Source.GRAPH: ()}))
    other = await replica.ask(fusion="weighted")

    assert other.layers == (Layer.GRAPH,)
    assert replica.hints[1].graph == {Source.GRAPH: ()}


@pytest.mark.parametrize(
    "other", [replace(ANN, user="eve"), replace(ANN, session="other"), replace(ANN, namespace="other")]
)
async def test_what_one_may_see_of_the_graph_is_not_shown_to_another(replica: Replica, other: Scope) -> None:
    await replica.ask(ANN, answer=lambda: RenderedAnswer(b'{"n":0}', graph={Source.GRAPH: ()}))
    await replica.ask(other, fusion="weighted")
    await replica.walk(ANN)
    walked = await replica.walk(other)

    assert replica.hints[1].graph is None
    assert walked.layers == ()


async def test_a_walk_is_found_again_until_its_workspace_is_written_and_not_kept_while_the_graph_lags(
    replica: Replica,
) -> None:
    replica.stamps.stamp = replace(STAMP, is_settled=False)
    lagging = [(await replica.walk()).layers for _ in range(2)]
    replica.stamps.stamp = STAMP
    settled = [(await replica.walk()).layers for _ in range(2)]
    replica.stamps.stamp = replace(STAMP, namespace=4)

    assert (lagging, settled) == ([(), ()], [(), (Layer.GRAPH,)])
    assert (await replica.walk()).layers == ()


async def test_a_walk_that_was_found_is_not_kept_anew(replica: Replica) -> None:
    await replica.ask(answer=lambda: RenderedAnswer(b'{"n":0}', graph={Source.GRAPH: ()}))
    kept: list[object] = []
    keep = replica.caches.keep
    replica.caches.keep = lambda entry: (kept.append(entry.key.layer), keep(entry))[1]  # type: ignore[method-assign]

    await replica.ask(fusion="weighted", answer=lambda: RenderedAnswer(b'{"n":0}', graph={Source.GRAPH: ()}))

    assert kept == [Layer.TURN, Layer.SWARM]


async def test_another_release_or_configuration_shares_nothing() -> None:
    shard = CacheShardActor(LIMITS)
    one, other = Replica(shard), Replica(shard, policy=replace(POLICY, fingerprint=b"another release"))

    await one.ask()
    await one.walk()

    assert (await other.ask()).layers == ()
    assert (await other.walk()).layers == ()


@in_virtual_time
async def test_nobody_joins_a_search_that_began_while_an_index_lagged() -> None:
    replica = Replica(CacheShardActor(LIMITS))
    replica.gate, bodies = asyncio.Event(), iter([b'{"seen":"before"}', b'{"seen":"after"}'])

    def answer() -> RenderedAnswer:
        return RenderedAnswer(next(bodies))

    first = asyncio.create_task(replica.ask(answer=answer, stamp=replace(STAMP, is_settled=False)))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(replica.ask(answer=answer))
    await asyncio.sleep(0.01)
    replica.gate.set()

    assert b"before" in (await first).body()
    assert b"after" in (await second).body()
    await replica.caches.close()


@in_virtual_time
async def test_stamps_that_fail_are_soon_not_waited_for() -> None:
    stamps = Stamps(None)
    replica = Replica(
        CacheShardActor(LIMITS), stamps=stamps, policy=replace(POLICY, breaker=replace(GUARD, failures=2))
    )

    async with asyncio.timeout(3 * PATIENCE_S):
        assert [await replica.stamp() for _ in range(50)] == [None] * 50
    await replica.caches.close()


@in_virtual_time
async def test_one_search_serves_all_that_ask_meanwhile_and_survives_the_first_caller() -> None:
    replica = Replica(CacheShardActor(LIMITS))
    replica.gate = asyncio.Event()

    tasks = [asyncio.create_task(replica.ask()) for _ in range(5)]
    await asyncio.sleep(0.01)
    tasks[0].cancel()
    replica.gate.set()
    sent = await asyncio.gather(*tasks, return_exceptions=True)

    assert replica.searched == 1
    assert isinstance(sent[0], asyncio.CancelledError)
    assert all(isinstance(item, SentAnswer) and item.body().startswith(b'{"n":1,') for item in sent[1:])
    await replica.caches.close()


async def test_an_error_reaches_the_caller_and_is_not_kept(replica: Replica) -> None:
    def fails() -> RenderedAnswer:
        raise Unavailable("search", "everything is down")

    with pytest.raises(Unavailable):
        await replica.ask(answer=fails)
    assert (await replica.ask()).layers == ()


@pytest.mark.parametrize("hangs", [False, True])
@in_virtual_time
async def test_a_shard_that_raises_or_hangs_costs_misses_and_errors_and_soon_no_time(hangs: bool) -> None:
    shard = Broken(hangs=hangs)
    replica = Replica(shard, policy=replace(POLICY, front_entries=0), guard=replace(GUARD, deadline_s=0.2))

    served = [await replica.ask(query=str(number)) for number in range(10)]

    assert [item.body() for item in served] == [b'{"n":%d,"cache":[]}' % (n + 1) for n in range(10)]
    errors = replica.caches.counted()
    assert errors[Layer.EMBEDDINGS].errors == 10
    assert errors[Layer.TURN].errors == errors[Layer.SWARM].errors == 11  # Ten were asked for, one was to be kept.
    assert shard.calls <= 4
    await replica.caches.close()


@pytest.mark.parametrize("stamp", [Unavailable("postgres", "it is down"), None])
@in_virtual_time
async def test_without_a_stamp_in_time_there_is_none(stamp: Exception | None) -> None:
    replica = Replica(CacheShardActor(LIMITS), stamps=Stamps(stamp))

    assert await replica.stamp() is None
    assert replica.caches.counted()[Layer.FRONT].errors == 1
    await replica.caches.close()


@pytest.mark.parametrize("layer", [Layer.TURN, Layer.SWARM, Layer.NEGATIVE, Layer.GRAPH, Layer.EMBEDDINGS])
async def test_a_layer_that_is_switched_off_is_neither_asked_nor_fed(layer: Layer) -> None:
    replica = Replica(CacheShardActor(LIMITS), layers=ALL - {layer})

    for query in ("tea?", "nothing"):
        answer = RenderedAnswer(b'{"n":0}', is_empty=query == "nothing", graph={Source.GRAPH: ()})
        for scope in (ANN, BOB):
            for fusion in ("rrf", "weighted"):
                await replica.ask(scope, query, answer=lambda: answer, fusion=fusion)  # noqa: B023 - asked at once

    assert layer not in replica.caches.counted()
    stats = (await replica.caches.figures()).shards["cache-0"]
    assert stats is not None
    assert stats.holdings[layer].entries == 0
    await replica.caches.close()


async def test_counts_reach_the_shard_once(replica: Replica) -> None:
    await replica.ask()
    await replica.ask()

    stats = (await replica.caches.figures()).shards["cache-0"]

    assert stats is not None
    turn = stats.counts[Layer.TURN]
    assert (turn.hits, turn.misses, turn.errors) == (1, 1, 0)
    assert stats.counts[Layer.FRONT].hits == 1
    assert stats.counts == replica.caches.counted()


async def test_the_counts_of_a_tenant_are_those_of_its_requests(replica: Replica) -> None:
    for tenant, times in (("acme", 2), ("globex", 1)):
        with counted_spending(tenant):
            for _ in range(times):
                replica.caches.observe(Layer.TURN, LayerOutcome.HIT)
    replica.caches.observe(Layer.TURN, LayerOutcome.MISS)

    found = {tenant: await replica.caches.figures_of(tenant) for tenant in ("acme", "globex", "nobody")}

    assert {tenant: item.totals().counts.get(Layer.TURN) for tenant, item in found.items()} == {
        "acme": LayerCounts(hits=2),
        "globex": LayerCounts(hits=1),
        "nobody": None,
    }
    assert found["acme"].here[Layer.TURN].hits == 2
    assert (await replica.caches.figures()).totals().counts[Layer.TURN] == LayerCounts(hits=3, misses=1)


async def test_counts_that_the_shard_does_not_take_are_told_later() -> None:
    shard = CacheShardActor(LIMITS)
    keep, shard.keep = shard.keep, Broken().keep  # type: ignore[method-assign]
    caches = SharedCaches({"cache-0": shard}, ALL, BreakerPolicy(PATIENCE_S, failures=3, pause_s=0.01))

    caches.observe(Layer.TURN, LayerOutcome.HIT)
    await caches.flush()
    shard.keep = keep  # type: ignore[method-assign]
    caches.observe(Layer.TURN, LayerOutcome.MISS)
    await caches.flush()

    stats = await shard.stats()
    assert stats.counts[Layer.TURN] == LayerCounts(hits=1, misses=1)
    await caches.close()
