"""Caches that never lie: what users of other memory systems saw go stale, grow without end, or take a service down."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from actors.cache import CacheShardActor
from deployments.metrics.caches import cache_families
from lamina.caching.shared_caches import CacheFigures
from lamina.core.cache_layers import CacheEntry, CacheKey, Layer, RespondingAgents, ShardAnswer, ShardQuery, Space
from lamina.core.cache_stats import ShardStats, ShardUpdate
from lamina.core.ports import CacheShard
from lamina.core.principals import KeyRole
from lamina.models.hashing import HashingModel
from lamina.policies.caching.cache_keys import digest
from lamina.settings.loading import Settings
from lamina.stores.postgres.outbox import enqueue_all
from lamina.wiring.caches import shard_limits
from tests.support.application import Application, another_router, running, settings_for

SCOPES, REQUESTS = 5_000, 50_000


@dataclass
class Replicas:
    """Two router replicas over one database and one shard."""

    one: Application
    other: Application
    shard: CacheShard

    def clients(self) -> tuple[httpx.AsyncClient, httpx.AsyncClient]:
        return self.one.client(), self.other.client(self.one.key)

    async def settled(self) -> None:
        await self.one.indexed()
        for application in (self.one, self.other):
            await application.services.caches.flush()


async def replicas_over(
    shard: CacheShard, database: str, folder: Path, stack: AsyncExitStack, **caches: Any
) -> Replicas:
    settings = settings_for(database, folder, caches=caches)
    shards = {"cache-0": shard}
    one = await stack.enter_async_context(running(settings, database, HashingModel(), follow=False, shards=shards))
    # The other one's tiers read the same indexes: an embedded one opens in one process, and once.
    other = await stack.enter_async_context(another_router(one, shards))
    return Replicas(one, other, shard)


@pytest.fixture
async def replicas(database: str, tmp_path: Path) -> AsyncIterator[Replicas]:
    async with AsyncExitStack() as stack:
        shard = CacheShardActor(shard_limits(Settings(data_dir=tmp_path).caches))
        yield await replicas_over(shard, database, tmp_path, stack)


async def searched(client: httpx.AsyncClient, query: str, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/search", json={"query": query, **fields})
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


async def added(client: httpx.AsyncClient, content: str, **fields: Any) -> str:
    answer = await client.post("/v1/notes", json={"content": content, **fields})
    answer.raise_for_status()
    return str(answer.json()["id"])


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in answer["results"]]


async def test_what_one_replica_found_the_other_has_until_it_is_deleted(replicas: Replicas) -> None:
    one, other = replicas.clients()
    id_ = await added(one, "the key hangs behind the barometer")
    await replicas.settled()
    first = await searched(one, "where is the key?")
    await replicas.settled()
    second = await searched(other, "where is the key?")
    await one.delete(f"/v1/notes/{id_}")
    gone = await searched(other, "where is the key?")

    assert (ids(first), first["cache"]) == ([id_], [])
    assert (ids(second), second["cache"]) == ([id_], ["turn_hash"])
    assert ids(gone) == []


async def test_every_kind_of_write_is_seen_by_the_next_read_on_any_replica(replicas: Replicas) -> None:
    one, other = replicas.clients()
    admin = replicas.one.client(replicas.one.new_key("acme", KeyRole.ADMIN))
    scope = {"workspace": "w", "user": "ann", "agent": "coder"}

    async def block() -> str:
        answer = await other.post("/v1/context", json={**scope, "query": "What about tea?", "min_score": 0})
        return str(answer.json()["text"])

    async def after(write: Any) -> tuple[str, str]:
        await replicas.settled()
        before = [await block(), await block()]
        assert before[0] == before[1]
        (await write()).raise_for_status()
        return before[1], await block()

    note = {"workspace": "w", "content": "Ann decided to buy green tea"}
    writes = [
        lambda: one.post("/v1/notes", json=note),
        lambda: one.patch("/v1/profile", json={"workspace": "w", "user": "ann", "patch": {"tea": "oolong"}}),
        lambda: one.put("/v1/memory-profile", json={"workspace": "w", "agent": "coder", "prompt_suffix": "Be brief."}),
        lambda: one.post("/v1/procedures", json={"workspace": "w", "trigger": "tea", "action": "boil water"}),
        lambda: one.post("/v1/turns", json={**scope, "session": "s", "messages": [{"content": "I love jasmine tea"}]}),
        lambda: one.post("/v1/notes", json={**note, "workspace": "far", "content": "The far workspace has black tea"}),
        lambda: admin.post("/v1/shares", json={"workspace": "far", "to_workspace": "w", "segment": "notes"}),
        lambda: admin.put("/v1/workspaces/w/settings", json={"budget_tokens": 40}),
        lambda: admin.put("/v1/workspaces/w/settings", json={}),
        lambda: one.post(
            "/v1/notes", json={**note, "workspace": "far", "content": "The far workspace also has white tea"}
        ),
    ]
    for number, write in enumerate(writes):
        before, now = await after(write)
        is_far_and_not_shared_yet = number == 5
        assert (before == now) is is_far_and_not_shared_yet, number


async def test_two_clients_that_write_and_read_by_turns_see_every_write(replicas: Replicas) -> None:
    one, other = replicas.clients()
    for turn in range(100):
        writer, reader = (one, other) if turn % 2 else (other, one)
        (await writer.patch("/v1/profile", json={"user": "ann", "patch": {"turn": turn}})).raise_for_status()
        for client in (reader, writer, reader):
            text = (await client.post("/v1/context", json={"query": "which turn?", "user": "ann"})).json()["text"]
            assert f'"turn": {turn}' in text


async def test_hits_of_cached_answers_count(replicas: Replicas) -> None:
    one, _ = replicas.clients()
    id_ = await added(one, "the key hangs behind the barometer")
    await replicas.settled()
    for _ in range(4):
        await searched(one, "where is the key?")
    await replicas.one.counted()

    with psycopg.connect(replicas.one.url) as connection:
        row = connection.execute("SELECT hits FROM notes WHERE id = %s", (id_,)).fetchone()
    assert row == (5,)


async def test_a_lagging_projection_is_never_cached(replicas: Replicas) -> None:
    one, _ = replicas.clients()
    await added(one, "the key hangs behind the barometer")

    lagging = []
    for _ in range(2):
        lagging.append(await searched(one, "where is the key?"))
        await replicas.one.services.caches.flush()
    await replicas.settled()
    full = [await searched(one, "where is the key?") for _ in range(2)]

    assert [answer["cache"] for answer in lagging] == [[], ["embeddings"]]
    assert "notes_hybrid" not in {source for source, count in lagging[1]["sources"].items() if count}
    assert [answer["cache"] for answer in full] == [["embeddings"], ["turn_hash"]]
    assert full[1]["sources"]["notes_hybrid"] == 1


async def test_a_caller_may_do_without_caches(replicas: Replicas) -> None:
    one, _ = replicas.clients()
    await added(one, "the key hangs behind the barometer")
    await replicas.settled()

    answers = [await searched(one, "where is the key?", cache=False) for _ in range(2)]
    with_cache = await searched(one, "where is the key?")

    assert [answer["cache"] for answer in (*answers, with_cache)] == [[], [], []] or with_cache["cache"] == [
        "embeddings"
    ]


async def test_a_rebuilt_projection_ends_what_was_computed_from_the_old_one(replicas: Replicas) -> None:
    one, _ = replicas.clients()
    await added(one, "the key hangs behind the barometer")
    await replicas.settled()
    await searched(one, "where is the key?")
    await replicas.one.services.caches.flush()
    enqueue_all(replicas.one.url, "notes")

    assert (await searched(one, "where is the key?"))["cache"] == ["embeddings"]
    assert (await searched(one, "where is the key?"))["cache"] == ["embeddings"]


class Broken:
    """A shard whose every method raises, or never returns."""

    def __init__(self, *, hangs: bool) -> None:
        self._hangs = hangs

    async def find(self, probes: Sequence[ShardQuery]) -> Sequence[ShardAnswer]:
        return await self._fail()

    async def keep(self, news: ShardUpdate) -> None:
        await self._fail()

    async def purge(self, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        return int(await self._fail())

    async def stats(self, tenant: str | None = None) -> ShardStats:
        answer: ShardStats = await self._fail()
        return answer

    async def claim(self, space: Space, digest: bytes, lease_s: float, wait_s: float) -> bool:
        return bool(await self._fail())

    async def settle(self, space: Space, digest: bytes) -> None:
        await self._fail()

    async def _fail(self) -> Any:
        if self._hangs:
            await asyncio.sleep(3600)
        raise ConnectionError("the shard is gone")


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_shard_that_fails_makes_nothing_fail(database: str, tmp_path: Path, *, hangs: bool) -> None:
    async with AsyncExitStack() as stack:
        replicas = await replicas_over(
            Broken(hangs=hangs), database, tmp_path, stack, front={"enabled": False}, deadline_s=0.2
        )
        client = replicas.one.client(replicas.one.new_key("acme", KeyRole.ADMIN))
        id_ = await added(client, "the key hangs behind the barometer")
        await replicas.settled()
        found = [await searched(client, "where is the key?", agent="a", swarm="s") for _ in range(3)]
        response = {"agent": "a", "query": "where is the key?"}
        put = await client.post("/v1/responses", json={**response, "response": "behind the barometer"})
        looked_up = await client.post("/v1/responses/lookup", json=response)
        cleared = await client.delete("/cache", params={"workspace": "default"})
        health = await client.get("/cache/health")
        metrics = await client.get("/metrics")

    assert [ids(answer) for answer in found] == [[id_]] * 3
    assert put.json()["stored"]
    assert looked_up.json()["response"] == "behind the barometer"
    assert cleared.status_code == metrics.status_code == 200
    assert health.json()["shards"] == {"cache-0": False}
    errors = {name: layer["errors"] for name, layer in health.json()["layers"].items()}
    assert errors["turn_hash"] >= 3
    assert errors["swarm_l1"] >= 3
    assert "lamina_cache_shards_unreachable 1.0" in metrics.text


async def test_clearing_goes_from_the_inside_out_and_tells_what_it_removed(replicas: Replicas) -> None:
    one, other = replicas.clients()
    admin = replicas.one.client(replicas.one.new_key("acme", KeyRole.ADMIN))
    await added(one, "the key hangs behind the barometer")
    await replicas.settled()
    for client in (one, other):
        await searched(client, "where is the key?", agent="a", swarm="s")
        await replicas.settled()
    await one.post("/v1/responses", json={"agent": "a", "query": "where?", "response": "here"})

    cleared = (await admin.delete("/cache", params={"workspace": "default"})).json()["cleared"]
    after = await searched(other, "where is the key?", agent="a", swarm="s")
    looked_up = (await other.post("/v1/responses/lookup", json={"agent": "a", "query": "where?"})).json()

    assert list(cleared) == ["graph", "swarm", "prefetch", "semantic", "embeddings"]
    assert (cleared["swarm"], cleared["semantic"]) == (1, 1)
    assert cleared["prefetch"] >= 1
    assert after["cache"] == []
    assert looked_up["state"] == "miss"


async def test_clearing_one_tenant_or_agent_leaves_the_others_alone(replicas: Replicas) -> None:
    one, _ = replicas.clients()
    elsewhere = replicas.one.for_tenant("globex").client()
    admin = replicas.one.client(replicas.one.new_key("acme", KeyRole.ADMIN))
    for client in (one, elsewhere):
        await added(client, "the key hangs behind the barometer")
        await client.post("/v1/responses", json={"agent": "a", "query": "where?", "response": "here"})
        await client.post("/v1/responses", json={"agent": "b", "query": "where?", "response": "there"})
    await replicas.settled()
    await searched(elsewhere, "where is the key?")

    by_agent = (await admin.delete("/cache", params={"workspace": "default", "agent": "a"})).json()["cleared"]
    states = [
        (await one.post("/v1/responses/lookup", json={"agent": agent, "query": "where?"})).json()["state"]
        for agent in "ab"
    ]
    by_tenant = (await admin.delete("/cache", params={"everything": True})).json()["cleared"]

    assert by_agent == {"semantic": 1}
    assert states == ["miss", "hit"]
    assert by_tenant["semantic"] == 1
    assert (await searched(elsewhere, "where is the key?"))["cache"] == ["turn_hash"]
    assert (await elsewhere.post("/v1/responses/lookup", json={"agent": "b", "query": "where?"})).json()[
        "state"
    ] == "hit"


@pytest.mark.parametrize(("path", "method"), [("/cache", "DELETE"), ("/cache/stats/expired", "DELETE")])
async def test_only_an_admin_clears(replicas: Replicas, path: str, method: str) -> None:
    assert (await replicas.one.client().request(method, path)).status_code == 403


async def test_an_agent_is_cleared_in_a_workspace_only(replicas: Replicas) -> None:
    admin = replicas.one.client(replicas.one.new_key("acme", KeyRole.ADMIN))

    refused = await admin.delete("/cache", params={"agent": "a"})

    assert refused.status_code == 422
    assert "workspace" in refused.json()["detail"]


async def test_stats_need_a_key_and_health_does_not_and_asks_no_database(replicas: Replicas) -> None:
    open_client = httpx.AsyncClient(transport=httpx.ASGITransport(replicas.one.api), base_url="http://lamina")
    one, _ = replicas.clients()
    await added(one, "the key hangs behind the barometer")
    await replicas.settled()
    for _ in range(3):
        await searched(one, "where is the key?", agent="a", swarm="s")
    await one.post("/v1/responses", json={"agent": "a", "query": "where?", "response": "here"})

    await replicas.settled()

    stats = (await one.get("/cache/stats")).json()
    refused = await open_client.get("/cache/stats")
    await replicas.one.pool.close()
    await replicas.one.services.caches.stamps.close()
    health = (await open_client.get("/cache/health")).json()
    metrics = (await open_client.get("/metrics")).text
    await open_client.aclose()

    assert refused.status_code == 401
    assert set(stats["layers"]) == set(health["layers"]) == {layer.value for layer in Layer}
    turn = health["layers"]["turn_hash"]
    assert (turn["hits"], turn["misses"], turn["errors"], turn["entries"]) == (2, 1, 0, 2)
    assert turn["bytes"] > 0
    assert stats["tables"]["responses"]["entries"] == stats["layers"]["semantic"]["entries"] == 1
    assert health["layers"]["semantic"]["entries"] is None
    assert stats["tables"]["embeddings"]["entries"] >= 1
    assert stats["providers"] == []
    assert 'lamina_cache_requests_total{layer="turn_hash",outcome="hits"} 2.0' in metrics
    assert 'lamina_cache_seconds_bucket{layer="turn_hash",le="+Inf"}' in metrics


async def test_many_scopes_and_requests_take_bounded_memory_and_always_as_many_series(tmp_path: Path) -> None:
    shard = CacheShardActor(shard_limits(Settings(data_dir=tmp_path).caches))

    async def ask(number: int) -> None:
        space = ("acme", f"workspace {number % SCOPES}")
        key = CacheKey(Layer.SWARM, digest(number), f"swarm {number % 7}")
        whole = CacheKey(Layer.TURN, digest("turn", number))
        await shard.find([ShardQuery(space, (whole, key), agent=f"agent {number % 11}")])
        entries = [CacheEntry(space, name, bytes(1000), 1256) for name in (whole, key)]
        await shard.keep(
            ShardUpdate(entries=entries, agents=[RespondingAgents(space, (f"agent {number % 11}",), is_all=True)])
        )

    async def lines_after(numbers: range) -> tuple[int, int]:
        for number in numbers:
            await ask(number)
        stats = await shard.stats()
        figures = CacheFigures({}, {"cache-0": stats})
        return sum(len(family.samples) for family in cache_families(figures)), sum(
            item.size_bytes for item in stats.holdings.values()
        )

    half = await lines_after(range(REQUESTS // 2))
    tracemalloc.start()
    full = await lines_after(range(REQUESTS // 2, REQUESTS))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    stats = await shard.stats()
    assert full[0] == half[0] < 200
    assert stats.holdings[Layer.TURN].entries == 10_000
    assert full[1] <= half[1] * 1.5
    assert grown < 64e6


async def test_a_walk_through_the_graph_is_kept_until_the_workspace_is_written(
    application: Application, falkordb: object
) -> None:
    client = application.client()
    edge = {"subject": "Ann", "type": "visits", "object": "Initech"}
    await client.post("/v1/graph/edges", json={"edges": [edge]})
    await application.indexed()

    async def walk(**options: Any) -> dict[str, Any]:
        answer = await client.post("/v1/graph/traverse", json={"names": ["Ann"], **options})
        answer.raise_for_status()
        await application.services.caches.flush()
        found: dict[str, Any] = answer.json()
        return found

    first, second, anew = await walk(), await walk(), await walk(cache=False)
    await client.post("/v1/graph/edges", json={"edges": [{**edge, "object": "Hooli"}]})
    await application.indexed()
    later = await walk()

    assert [answer["cache"] for answer in (first, second, anew, later)] == [[], ["graph"], [], []]
    assert first["nodes"] == second["nodes"] == anew["nodes"]
    assert len(later["nodes"]) == len(first["nodes"]) + 1


async def test_a_purge_is_the_tenants_own(replicas: Replicas) -> None:
    response = {"agent": "a", "query": "where?", "response": "here"}
    for tenant in ("acme", "globex"):
        await replicas.one.for_tenant(tenant).client().post("/v1/responses", json=response)
    with psycopg.connect(replicas.one.url) as connection:
        connection.execute("UPDATE responses SET expires_at = now() - interval '1 day'")
    admin = replicas.one.client(replicas.one.new_key("acme", KeyRole.ADMIN))

    purged = (await admin.delete("/cache/stats/expired")).json()

    assert purged["responses"] == 1
    with psycopg.connect(replicas.one.url) as connection:
        assert connection.execute("SELECT tenant FROM responses").fetchall() == [("globex",)]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"workspace": "default", "everything": "true"},
        {"workspce": "w"},
        {"workspace": "w", "Agent": "a"},
        {"workspace": " "},
    ],
)
async def test_a_misspelt_clearing_clears_nothing(replicas: Replicas, params: dict[str, str]) -> None:
    admin = replicas.one.client(replicas.one.new_key("acme", KeyRole.ADMIN))
    await replicas.one.client().post("/v1/responses", json={"agent": "a", "query": "where?", "response": "here"})

    refused = await admin.delete("/cache", params=params)

    assert refused.status_code == 422
    with psycopg.connect(replicas.one.url) as connection:
        assert connection.execute("SELECT count(*) FROM responses").fetchone() == (1,)


async def test_more_connections_than_stamps_need_hinder_nobody(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, pool={"min_size": 4, "max_size": 8, "timeout_s": 5})
    async with running(settings, database, HashingModel()) as application:
        assert (await searched(application.client(), "anything?"))["results"] == []
