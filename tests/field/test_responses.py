"""The cache of a model's responses, over the real Postgres and a real shard."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

from actors.cache import CacheShardActor
from lamina.caching import response_cache as responses
from lamina.caching.response_cache import ResponseCache
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import Layer, RespondingAgents, ShardQuery
from lamina.core.cache_stats import LayerCounts
from lamina.core.memories import Message, Note, Role
from lamina.core.principals import KeyRole
from lamina.core.scope import Scope
from lamina.errors import InvalidInput, Unavailable
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.policies.caching import cache_keys
from lamina.policies.caching import model_responses as questions
from lamina.policies.caching.model_responses import (
    MAX_MEANING_CHARS,
    LookupState,
    ModelQuestion,
    PutOutcome,
    PutRefusal,
    ResponsePolicy,
)
from lamina.policies.caching.response_budget import ResponseBudget
from lamina.stores.postgres.connection import connect
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.responses import Responses
from lamina.wiring.caches import build_shared_caches, response_policy, shard_limits
from tests.support.application import Application
from tests.support.embedders import Down, Switchable, Uncached

ASKED = {"agent": "ann", "query": "where does the green heron nest"}
REWORDED = {"agent": "ann", "query": "Where does the green heron nest?"}

ASKED_TWICE = (ASKED["query"], REWORDED["query"])
COUNT_NOTES = b"SELECT count(*) AS count FROM notes WHERE tenant = %(tenant)s AND deleted_at IS NULL"


class Moving:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Untouchable:
    """A pool that must not be used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the pool was asked for {name}")


class Unlistable(Responses):
    """Cannot say which agents have responses."""

    async def agents(self, tenant: str, workspace: str, limit: int) -> list[str]:
        raise Unavailable("postgres", "not now")


@dataclass
class Kit:
    """A response cache with all its parts, as one replica has them."""

    application: Application
    cache: ResponseCache
    caches: SharedCaches
    store: Responses
    embedder: Switchable
    clock: Moving

    def question(
        self, text: str = "where does the green heron nest", agent: str = "ann", **fields: Any
    ) -> ModelQuestion:
        return ModelQuestion(Scope(self.application.tenant, "w", agent=agent), text, **fields)

    async def note(self, content: str, agent: str | None = "ann") -> None:
        await self.application.services.recorder.put_notes(
            Scope(self.application.tenant, "w", agent=agent), [Note(content)]
        )

    def counts(self, layer: Layer) -> Any:
        return self.caches.counted()[layer]

    def row(self, sql: str) -> Any:
        return one(self.application, sql)


def one(application: Application, sql: str) -> Any:

    with psycopg.connect(application.url) as connection:
        return connection.execute(sql.encode(), (application.tenant,)).fetchone()


@asynccontextmanager
async def running(
    application: Application,
    shard: CacheShardActor | None = None,
    pool: Any = None,
    kind: type[Responses] = Responses,
    **policy: Any,
) -> AsyncIterator[Kit]:
    settings = application.settings
    caches = build_shared_caches(settings, {"cache-0": shard or CacheShardActor(shard_limits(settings.caches))})
    chosen: ResponsePolicy = replace(response_policy(settings), **policy)
    store, clock = kind(pool or application.pool, chosen, 1), Moving()
    embedder = Switchable(BatchingEmbedder(HashingModel()))
    cache = ResponseCache(
        caches, store, Uncached(embedder), chosen, generation=1, clock=clock, is_same_question=lambda _one, _other: True
    )
    try:
        yield Kit(application, cache, caches, store, embedder, clock)
    finally:
        await cache.close()
        await caches.close()


@pytest.fixture
async def kit(application: Application) -> AsyncIterator[Kit]:
    async with running(application) as made:
        yield made


# Over HTTP: what is the same question, and what ends its response.


async def look_up(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/responses/lookup", json=ASKED | fields)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def put(client: httpx.AsyncClient, response: Any = "in trees", **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/responses", json=ASKED | {"response": response} | fields)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_a_response_is_found_again_by_the_same_words_and_by_their_meaning(application: Application) -> None:
    client = application.client()
    missed = await look_up(client)
    stored = await put(client, epoch=missed["epoch"])

    same, reworded = await look_up(client), await look_up(client, **REWORDED)

    assert missed["state"] == "miss"
    assert stored["stored"]
    assert stored["expires_in_s"] == pytest.approx(3600)
    for found in (same, reworded):
        assert (found["state"], found["response"], found["id"]) == ("hit", "in trees", stored["id"])
        assert found["similarity"] == pytest.approx(1, abs=1e-5)
        assert found["age_s"] >= 0
        assert 3590 < found["expires_in_s"] <= 3600
        assert not found["refresh"]
    assert reworded["layer"] == "semantic"


async def test_an_exact_repeat_is_served_by_the_turn_hash(application: Application) -> None:
    client = application.client()
    await put(client)
    await application.services.caches.flush()

    assert (await look_up(client))["layer"] == "turn_hash"


@pytest.mark.parametrize("layer", ["turn_hash", "semantic"])
@pytest.mark.parametrize(
    "response",
    [
        *(None, 0, -0.5, 10**30, "", [], "x" * 50_000),
        {"b": 1, "a": [None, {"ü": "日本"}]},
        {"e\u0301": 1, "\u00e9": 2},
    ],
)
async def test_a_response_comes_back_as_it_was_put(application: Application, response: Any, layer: str) -> None:
    client = application.client()
    await put(client, response)
    await application.services.caches.flush()

    found = await client.post("/v1/responses/lookup", json=ASKED if layer == "turn_hash" else REWORDED)

    assert (found.json()["state"], found.json()["layer"]) == ("hit", layer)
    assert found.json()["response"] == response
    if isinstance(response, dict):
        assert list(found.json()["response"]) == list(response)


@pytest.mark.parametrize(
    "other",
    [
        {"workspace": "other"},
        {"namespace": "other"},
        {"agent": "bob"},
        {"user": "eve"},
        {"model": "other"},
        {"variant": {"temperature": 1}},
        {"system_prompt": "Be brief."},
        {"query": "where does the grey heron sleep"},
    ],
)
async def test_nothing_answers_under_other_circumstances(application: Application, other: dict[str, Any]) -> None:
    client = application.client()
    await put(client)
    await put(client, "else", **other)

    assert (await look_up(client))["response"] == "in trees"
    assert (await look_up(client, **other))["response"] == "else"
    assert (await look_up(application.for_tenant(f"{application.tenant} 2").client()))["state"] == "miss"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("agent", {"agent": None}),
        ("query", {"query": "  "}),
        ("system_prompt_version", {"system_prompt": "a", "system_prompt_version": "b"}),
        ("wait_s", {"wait_s": 61}),
        ("wait_s", {"wait_s": -1}),
    ],
)
async def test_a_wrong_lookup_is_refused_by_the_name_of_its_field(
    application: Application, field: str, change: dict[str, Any]
) -> None:
    body = {name: value for name, value in (ASKED | change).items() if value is not None}

    answer = await application.client().post("/v1/responses/lookup", json=body)

    assert answer.status_code == 422
    assert field in answer.text


async def test_a_response_that_is_too_large_is_refused(application: Application) -> None:
    answer = await application.client().post("/v1/responses", json=ASKED | {"response": "x" * 1_000_000})

    assert answer.status_code == 422
    assert "1000002 bytes as JSON; at most 1000000" in answer.text


async def test_a_reader_may_look_up_but_not_put(application: Application) -> None:
    await put(application.client())
    reader = application.client(application.new_key(application.tenant, KeyRole.READER))

    assert (await look_up(reader))["state"] == "hit"
    assert (await reader.post("/v1/responses", json=ASKED | {"response": "x"})).status_code == 403


async def posted(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    return dict(answer.json())


WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "note": ("/v1/notes", {"content": "herons moved"}),
    "notes": ("/v1/notes/batch", {"notes": ["herons moved"]}),
    "document": ("/v1/documents", {"content": "Herons moved.", "title": "Herons"}),
    "entities": ("/v1/graph/entities", {"entities": [{"name": "Heron", "type": "thing"}]}),
    "edges": ("/v1/graph/edges", {"edges": [{"subject": "Heron", "type": "eats", "object": "Fish"}]}),
    "procedure": ("/v1/procedures", {"trigger": "a heron comes", "action": "be still"}),
    "turn": ("/v1/turns", {"session": "s", "messages": [{"content": "We decided to use Postgres for billing."}]}),
}


@pytest.mark.parametrize("name", WRITES)
async def test_what_an_agent_learns_ends_its_responses_and_nobody_elses(application: Application, name: str) -> None:
    client = application.client()
    path, body = WRITES[name]
    await put(client)
    await put(client, agent="bob")

    await posted(client, path, body | {"agent": "ann"})

    assert (await look_up(client))["state"] == "miss"
    assert (await look_up(client, agent="bob"))["state"] == "hit"


@pytest.mark.parametrize("name", WRITES)
async def test_what_nobody_in_particular_writes_ends_all_responses_of_its_workspace(
    application: Application, name: str
) -> None:
    client = application.client()
    path, body = WRITES[name]
    await put(client)
    await put(client, workspace="other")

    await posted(client, path, body)

    assert (await look_up(client))["state"] == "miss"
    assert (await look_up(client, workspace="other"))["state"] == "hit"


@pytest.mark.parametrize("act", ["patch", "delete"])
@pytest.mark.parametrize(
    ("path", "fields", "patch"),
    [
        ("/v1/notes", {"content": "a heron"}, {"importance": 0.9}),
        ("/v1/procedures", {"trigger": "a heron", "action": "look"}, {"action": "be still"}),
    ],
)
async def test_a_change_by_id_ends_all_responses(
    application: Application, act: str, path: str, fields: dict[str, Any], patch: dict[str, Any]
) -> None:
    client = application.client()
    id_ = (await posted(client, path, fields))["id"]
    await put(client)

    arguments = {"json": patch} if act == "patch" else {}
    answer = await client.request(act, f"{path}/{id_}", **arguments)

    assert answer.is_success
    assert (await look_up(client))["state"] == "miss"


async def test_a_patched_profile_ends_responses_if_it_changes_something(application: Application) -> None:
    client = application.client()
    body = {"agent": "ann", "user": "eve", "patch": {"likes": "herons"}}
    await client.patch("/v1/profile", json=body)
    await put(client)

    await client.patch("/v1/profile", json=body)
    unchanged = await look_up(client)
    await client.patch("/v1/profile", json=body | {"patch": {"likes": "egrets"}})

    assert unchanged["state"] == "hit"
    assert (await look_up(client))["state"] == "miss"


@pytest.mark.parametrize("has_others", [False, True])
@pytest.mark.parametrize("has_profile", [False, True])
async def test_a_response_from_an_older_profile_of_the_tenant_is_not_stored(
    application: Application, *, has_others: bool, has_profile: bool
) -> None:
    client, user = application.client(), {"user": "eve"}
    asked = {**ASKED, **user}
    if has_profile:
        await client.patch("/v1/users/profile", json={**user, "patch": {"likes": "herons"}})
    if has_others:
        await client.post("/v1/responses", json={**asked, "query": "who are you", "response": "a guide"})
    looked = (await client.post("/v1/responses/lookup", json=asked)).json()

    changed = await client.patch("/v1/users/profile", json={**user, "patch": {"likes": "egrets"}})
    assert changed.is_success, changed.text
    stored = await client.post("/v1/responses", json={**asked, "response": "herons", "epoch": looked["epoch"]})

    assert looked["state"] == "miss"
    assert stored.json()["id"] is None, stored.text
    assert (await client.post("/v1/responses/lookup", json=asked)).json()["state"] == "miss"


async def test_a_change_of_the_tenants_profile_ends_the_responses_to_its_user_alone(application: Application) -> None:
    client = application.client()
    for name in ("eve", "tom"):
        await client.post("/v1/responses", json={**ASKED, "user": name, "response": f"for {name}"})

    async def state(name: str, query: str) -> str:
        sent = {**ASKED, "user": name, "query": query}
        return str((await client.post("/v1/responses/lookup", json=sent)).json()["state"])

    before = [await state(name, query) for name in ("eve", "tom") for query in ASKED_TWICE]
    await client.patch("/v1/users/profile", json={"user": "eve", "patch": {"likes": "egrets"}})
    after = [await state(name, query) for name in ("eve", "tom") for query in ASKED_TWICE]

    assert before == ["hit"] * 4
    assert after == ["miss", "miss", "hit", "hit"]


async def test_what_teaches_nothing_ends_nothing(application: Application) -> None:
    client = application.client()
    note, agent = {"content": "a heron"}, {"agent": "ann"}
    await posted(client, "/v1/notes", note | agent)
    procedure = await posted(client, "/v1/procedures", {"trigger": "a heron", "action": "look"} | agent)
    await put(client)

    await posted(client, "/v1/notes", note | agent)
    await posted(client, f"/v1/procedures/{procedure['id']}/outcomes", {"succeeded": True} | agent)
    turn = {"session": "s", "messages": [{"content": "and then?"}, {"role": "assistant", "content": "well"}]}
    taught = await posted(client, "/v1/turns", turn | agent)

    assert not taught["notes"]
    assert (await look_up(client))["state"] == "hit"


@pytest.mark.parametrize("is_known", [False, True])
async def test_a_response_made_before_a_memory_write_is_not_stored(application: Application, is_known: bool) -> None:
    client = application.client()
    if is_known:
        await put(client, query="something else")
    epoch = (await look_up(client))["epoch"]
    await posted(client, "/v1/notes", {"content": "herons moved", "agent": "ann"})

    refused = await put(client, epoch=epoch)

    assert (refused["stored"], refused["reason"], refused["id"]) == (False, "memory_changed", None)
    assert (await look_up(client))["state"] == "miss"
    assert (await put(client, epoch=(await look_up(client))["epoch"]))["stored"]


async def test_a_response_under_another_system_prompt_ends_all_of_the_agent_and_a_lookup_none(
    application: Application,
) -> None:
    client = application.client()
    reader = application.client(application.new_key(application.tenant, KeyRole.READER))
    await put(client, system_prompt="Be kind.")
    await put(client, agent="bob", system_prompt="Be kind.")
    without, brief = await look_up(client), await look_up(reader, system_prompt="Be brief.")
    still = await look_up(reader, system_prompt="Be kind.")

    await put(client, system_prompt="Be brief.", epoch=brief["epoch"])
    back = [await look_up(client, system_prompt="Be kind.") for _ in range(2)]

    assert (without["state"], brief["state"], still["state"]) == ("miss", "miss", "hit")
    assert [found["state"] for found in back] == ["miss", "miss"]
    assert (await look_up(client, system_prompt="Be brief."))["state"] == "hit"
    assert (await look_up(client, agent="bob", system_prompt="Be kind."))["state"] == "hit"


async def test_a_response_under_another_system_prompt_ends_those_before_it(application: Application) -> None:
    client = application.client()
    await put(client, system_prompt_version="1")
    await put(client, system_prompt_version="2")
    await put(client, "again", system_prompt_version="1", query="something else")

    assert (await look_up(client, system_prompt_version="1"))["state"] == "miss"
    assert (await look_up(client, system_prompt_version="1", query="something else"))["state"] == "hit"


async def test_many_puts_of_one_request_leave_one_row_and_right_counts(application: Application) -> None:
    client = application.client()

    stored = await asyncio.gather(*(put(client, f"response {number}") for number in range(20)))

    entries, held, counted = one(
        application,
        "SELECT count(*), sum(r.size_bytes), max(a.bytes) FROM responses r "
        "JOIN response_agents a ON a.tenant = r.tenant AND a.agent = '' WHERE r.tenant = %s",
    )
    assert entries == 1
    assert held == counted
    assert (await look_up(client))["id"] in {item["id"] for item in stored}


async def test_writes_and_puts_at_the_same_time_do_not_block_each_other_for_good(application: Application) -> None:
    client = application.client()

    async def busy(number: int) -> None:
        agent = f"agent {number % 4}"
        await put(client, agent=agent, query=f"question {number}")
        body = {"content": f"note {number}"} | ({"agent": agent} if number % 3 else {})
        await posted(client, "/v1/notes", body | {"namespace": f"n{number % 2}"})
        await look_up(client, agent=agent, system_prompt_version=str(number % 2))

    await asyncio.gather(*(busy(number) for number in range(24)))


async def test_a_lookup_waits_for_the_response_that_another_one_makes(application: Application) -> None:
    client = application.client()
    first = await look_up(client, wait_s=60)
    second = asyncio.create_task(look_up(client, wait_s=60))
    await asyncio.sleep(0.1)
    is_waiting = not second.done()

    await put(client, epoch=first["epoch"])

    assert first["state"] == "miss"
    assert is_waiting
    found = await second
    assert (found["state"], found["response"]) == ("hit", "in trees")


async def test_a_waiter_is_told_where_the_agent_stands_when_the_other_one_failed(kit: Kit) -> None:
    await kit.cache.put(kit.question("something else"), "x")
    first = await kit.cache.lookup(kit.question(), wait_s=60)
    waiting = asyncio.create_task(kit.cache.lookup(kit.question(), wait_s=60))
    await asyncio.sleep(0.1)
    await kit.note("herons moved")

    refused = await kit.cache.put(kit.question(), "in trees", first.epoch)
    second = await waiting

    assert refused.refusal is PutRefusal.CHANGED
    assert second.state is LookupState.MISS
    assert (await kit.cache.put(kit.question(), "in reeds", second.epoch)).id is not None


async def test_a_hit_after_a_wait_counts_as_one_lookup(kit: Kit) -> None:
    await kit.cache.put(kit.question("something else"), "x")
    await kit.cache.lookup(kit.question(), wait_s=60)
    waiting = asyncio.create_task(kit.cache.lookup(kit.question(), wait_s=60))
    await asyncio.sleep(0.1)

    await kit.cache.put(kit.question(), "in trees")
    found = await waiting
    await kit.cache.flush()

    assert found.state is LookupState.HIT
    assert kit.counts(Layer.SEMANTIC).hits == 1
    assert kit.row("SELECT lookups, hits FROM response_agents WHERE tenant = %s AND agent = 'ann'") == (2, 1)
    assert kit.row("SELECT max(hits) FROM responses WHERE tenant = %s") == (1,)


async def test_where_many_wait_the_next_one_does_not(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "MAX_WAITING", 1)
    await kit.cache.lookup(kit.question(), wait_s=60)
    waiting = asyncio.create_task(kit.cache.lookup(kit.question(), wait_s=60))
    while not kit.cache._waiting:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.01)

    crowded = await kit.cache.lookup(kit.question(), wait_s=60)
    is_waiting = not waiting.done()
    await kit.cache.put(kit.question(), "in trees")
    await waiting
    later = [kit.cache.lookup(kit.question("how old does it grow"), wait_s=wait_s) for wait_s in (60, 0.2)]

    assert crowded.state is LookupState.MISS
    assert is_waiting
    assert await patience(later[0]) < 30
    assert await patience(later[1]) >= 0.2, "there is room again"


async def patience(lookup: Coroutine[Any, Any, Any]) -> float:
    began = time.monotonic()
    await lookup
    return time.monotonic() - began


# As one replica: what it asks, how long a response lives, and what happens when something fails.


async def test_an_agent_without_responses_costs_neither_an_embedding_nor_postgres(application: Application) -> None:
    shard = CacheShardActor(shard_limits(application.settings.caches))
    async with running(application, shard, Untouchable()) as kit:
        kit.embedder.state = "down"
        await kit.caches.tell(RespondingAgents(kit.question().space, ("bob",), is_all=True))

        found = await kit.cache.lookup(kit.question())

        assert found.state is LookupState.MISS
        assert found.epoch < 0
        assert kit.counts(Layer.AGENTS).hits == 1
        assert Layer.SEMANTIC not in kit.caches.counted()


async def test_a_shard_that_does_not_know_learns_all_agents_with_one_lookup(application: Application) -> None:
    async with running(application) as before:
        await before.cache.put(before.question(), "in trees")
    async with running(application) as after:
        first = await after.cache.lookup(after.question(agent="bob"))
        after.embedder.state = "down"
        second = await after.cache.lookup(after.question(agent="bob"))

        assert (first.state, second.state) == (LookupState.MISS, LookupState.MISS)
        assert after.counts(Layer.AGENTS).hits == 1
        assert (await after.cache.lookup(after.question())).state is LookupState.HIT


async def test_an_agent_leaves_the_filter_when_its_last_response_ends(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.policies.caching.shard.RECENT_S", 0.0)
    async with running(application) as kit:
        await kit.cache.lookup(kit.question())  # The shard learns that nobody has any.
        await kit.cache.put(kit.question(), "in trees")
        found = await kit.cache.lookup(kit.question())
        await kit.note("The heron moved to the reeds")
        ended = await kit.cache.lookup(kit.question())
        kit.embedder.state = "down"
        hits = kit.counts(Layer.AGENTS).hits
        spared = await kit.cache.lookup(kit.question(text="where do herons live"))
        spared_hits = kit.counts(Layer.AGENTS).hits - hits
        kit.embedder.state = "up"
        put = await kit.cache.put(kit.question(), "in reeds", spared.epoch)

        assert (found.state, ended.state, spared.state) == (LookupState.HIT, LookupState.MISS, LookupState.MISS)
        assert spared_hits == 1
        assert put.id is not None
        assert (await kit.cache.lookup(kit.question())).response == "in reeds"


async def test_of_a_workspace_those_agents_are_listed_whose_responses_no_write_has_ended(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "in trees")
    await kit.cache.put(kit.question(agent="bob"), "in trees")
    await kit.note("The heron moved to the reeds", agent="ann")

    assert await kit.store.agents(kit.application.tenant, "w", 10) == ["bob"]


@pytest.mark.parametrize("is_on", [True, False])
async def test_what_agents_there_are_is_asked_for_beside_the_answer_and_seldom(
    application: Application, *, is_on: bool
) -> None:
    async with running(application) as before:
        await before.cache.put(before.question(), "in trees")
    async with running(application, kind=Unlistable) as after:
        after.caches._layers = frozenset(Layer) if is_on else frozenset(Layer) - {Layer.AGENTS}

        found = [await after.cache.lookup(after.question()) for _ in range(3)]

        assert [item.state for item in found] == [LookupState.HIT] * 3
        assert after.caches.counted().get(Layer.AGENTS, LayerCounts()).errors == int(is_on)


@pytest.mark.parametrize(("most", "has_bob_any"), [(2, False), (1, None)])
async def test_a_shard_is_not_told_of_more_agents_than_it_takes(
    application: Application, monkeypatch: pytest.MonkeyPatch, most: int, *, has_bob_any: bool | None
) -> None:
    monkeypatch.setattr(responses, "MAX_AGENTS", most)
    async with running(application) as before:
        await before.cache.put(before.question(), "in trees")
        await before.cache.put(before.question(agent="eve"), "in trees")
    async with running(application) as after:
        await after.cache.lookup(after.question())

        known = await after.caches.find(ShardQuery(after.question().space, agent="bob"))

        assert known.has_responses is has_bob_any


async def test_a_request_is_hashed_once(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await kit.cache.put(kit.question(), "in trees")
    hashed: list[tuple[Any, ...]] = []

    def digest(*parts: Any) -> bytes:
        hashed.append(parts)
        return cache_keys.digest(*parts)

    monkeypatch.setattr(questions, "digest", digest)
    await kit.cache.lookup(kit.question(REWORDED["query"]))

    assert len(hashed) == 2, "with the text and without"


async def test_what_a_shard_keeps_is_weighed_in_bytes(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "日" * 1000)

    figures = await kit.caches.figures()

    assert 3000 < figures.totals().holdings[Layer.TURN].size_bytes < 3500


async def test_different_questions_behind_the_same_long_notes_are_told_apart(kit: Kit) -> None:
    notes = "The green heron nests in trees and bushes by the river. " * 110
    await kit.cache.put(kit.question(notes + "How many eggs does it lay?"), "four")

    other = await kit.cache.lookup(kit.question(notes + "Who eats its young?"))
    same = await kit.cache.lookup(kit.question(notes + "How many eggs does it lay?"))

    assert other.state is LookupState.MISS
    assert (same.state, same.response) == (LookupState.HIT, "four")


@pytest.mark.parametrize(
    ("put_chars", "asked_chars", "state"), [(0, 0, LookupState.HIT), (1, 0, LookupState.MISS), (0, 1, LookupState.MISS)]
)
async def test_only_short_questions_are_compared_by_meaning(
    kit: Kit, put_chars: int, asked_chars: int, state: LookupState
) -> None:
    text = "where does the green heron nest ".ljust(MAX_MEANING_CHARS - 1, ".")
    await kit.cache.put(kit.question(text + "?" + "?" * put_chars), "in trees")

    assert (await kit.cache.lookup(kit.question(text + "!" + "!" * asked_chars))).state is state


async def test_a_long_question_needs_no_embedder(kit: Kit) -> None:
    kit.embedder.state = "down"
    await kit.cache.put(kit.question("where does it nest " * 100), "in trees")
    kit.clock.forward(3601)

    assert (await kit.cache.lookup(kit.question("where does it nest " * 100))).state is LookupState.STALE
    assert Layer.EMBEDDINGS not in kit.caches.counted()


async def test_a_put_is_known_to_the_shard_before_it_answers(kit: Kit) -> None:
    await kit.cache.lookup(kit.question())

    await kit.cache.put(kit.question(), "in trees")

    assert (await kit.cache.lookup(kit.question(REWORDED["query"]))).state is LookupState.HIT


async def test_a_busy_workspace_does_not_keep_an_agent_from_its_first_response(kit: Kit) -> None:
    async def answered() -> PutOutcome:
        epoch = (await kit.cache.lookup(kit.question())).epoch
        await kit.note(f"bob learns at {kit.clock.now}", agent="bob")
        return await kit.cache.put(kit.question(), "in trees", epoch)

    first = await answered()
    kit.clock.forward(1)
    second = await answered()

    assert first.refusal is PutRefusal.CHANGED
    assert second.id is not None


async def test_by_workspace_anybodys_writes_end_everybodys_responses(application: Application) -> None:
    async with running(application, by_workspace=True) as kit:
        put_ = await kit.cache.put(kit.question(), "in trees")
        epoch = (await kit.cache.lookup(kit.question())).epoch
        await kit.note("bob learns", agent="bob")

        assert put_.id is not None
        assert (await kit.cache.lookup(kit.question())).state is LookupState.MISS
        assert (await kit.cache.put(kit.question(), "again", epoch)).refusal is PutRefusal.CHANGED


async def test_a_stale_response_is_served_and_one_caller_at_a_time_refreshes_it(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "in trees")
    kit.clock.forward(3601)

    both = await asyncio.gather(*(kit.cache.lookup(kit.question(text)) for text in ASKED_TWICE))
    kit.clock.forward(29)
    early = await kit.cache.lookup(kit.question())
    kit.clock.forward(1)
    late = await kit.cache.lookup(kit.question())

    assert [found.state for found in (*both, early, late)] == [LookupState.STALE] * 4
    assert kit.counts(Layer.SEMANTIC).stale == 4
    assert sorted(found.is_to_refresh for found in both) == [False, True]
    assert not early.is_to_refresh
    assert late.is_to_refresh
    assert (late.response, late.expires_in_s) == ("in trees", pytest.approx(-31, abs=0.01))


async def test_a_put_in_place_of_a_stale_response_is_a_hit_again(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "in trees")
    kit.clock.forward(3700)
    stale = await kit.cache.lookup(kit.question())

    await kit.cache.put(kit.question(), "in reeds", stale.epoch)

    found = await kit.cache.lookup(kit.question())
    assert (found.state, found.response, found.is_to_refresh) == (LookupState.HIT, "in reeds", False)


async def test_a_fresh_response_to_a_near_question_is_given_before_a_stale_one(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "old")
    kit.clock.forward(3601)
    await kit.cache.put(kit.question(REWORDED["query"]), "new")

    assert (await kit.cache.lookup(kit.question())).response == "new"


async def test_after_the_grace_nothing_is_served(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "in trees")
    kit.clock.forward(3600 + 300)

    assert (await kit.cache.lookup(kit.question())).state is LookupState.MISS


async def test_what_the_guard_tells_apart_is_a_miss_unless_the_words_are_the_same(kit: Kit) -> None:
    kit.cache._is_same_question = lambda _one, _other: False
    await kit.cache.put(kit.question(), "in trees")

    assert (await kit.cache.lookup(kit.question(REWORDED["query"]))).state is LookupState.MISS
    assert (await kit.cache.lookup(kit.question())).state is LookupState.HIT


async def test_lives_grow_with_the_hits_of_their_agent(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "in trees")
    for _ in range(100):
        await kit.cache.lookup(kit.question())
    for _ in range(100):
        await kit.cache.lookup(kit.question("nobody knows", agent="bob"))
    await kit.cache.put(kit.question("nobody knows", agent="bob"), "really")
    await kit.cache.flush()

    longer = await kit.cache.put(kit.question("something else"), "x")

    assert longer.expires_in_s == pytest.approx(6660, rel=0.02)
    assert kit.row("SELECT lookups, hits FROM response_agents WHERE tenant = %s AND agent = 'ann'") == (100, 100)
    assert kit.row("SELECT max(hits) FROM responses WHERE tenant = %s") == (100,)


async def test_counts_are_halved_so_that_they_follow_the_present(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "in trees")
    for _ in range(1002):
        await kit.cache.lookup(kit.question())

    await kit.cache.flush()

    lookups, hits = kit.row("SELECT lookups, hits FROM response_agents WHERE tenant = %s AND agent = 'ann'")
    assert 500 <= lookups < 1000
    assert hits == lookups


async def test_the_least_recently_used_quarter_goes_when_the_budget_is_spent(application: Application) -> None:
    async with running(application, budget=ResponseBudget(8 * 3_100, 0.25)) as kit:
        for number in range(8):
            await kit.cache.put(kit.question(f"question number {number}"), "x" * 1000)
            kit.clock.forward(1)
        await kit.cache.lookup(kit.question("question number 0"))
        await kit.cache.flush()

        put_ = await kit.cache.put(kit.question("one more"), "x" * 1000)

        states = [(await kit.cache.lookup(kit.question(f"question number {number}"))).state for number in range(8)]
        assert put_.evicted == 2
        assert states == [LookupState.HIT, LookupState.MISS, LookupState.MISS, *[LookupState.HIT] * 5]
        assert kit.row("SELECT sum(bytes) FROM response_agents WHERE tenant = %s") == kit.row(
            "SELECT sum(size_bytes) FROM responses WHERE tenant = %s"
        )


async def test_what_is_over_goes_before_what_is_used(application: Application) -> None:
    async with running(application, budget=ResponseBudget(8 * 3_100, 0.25)) as kit:
        for number in range(4):
            await kit.cache.put(kit.question(f"question number {number}"), "x" * 1000)
        for number in range(4):
            await kit.cache.put(kit.question(f"question number {number}", agent="bob"), "x" * 1000)
        await kit.note("bob learns", agent="bob")

        put_ = await kit.cache.put(kit.question("one more"), "x" * 1000)

        assert put_.evicted == 4
        assert (await kit.cache.lookup(kit.question("question number 0"))).state is LookupState.HIT


async def test_a_response_larger_than_the_budget_is_not_stored(application: Application) -> None:
    async with running(application, budget=ResponseBudget(2_000, 0.25)) as kit:
        assert (await kit.cache.put(kit.question(), "x" * 1000)).refusal is PutRefusal.TOO_LARGE


@pytest.mark.parametrize("state", ["down", "hanging"])
async def test_without_the_embedder_the_same_words_are_found_and_others_are_a_miss(
    application: Application, state: str
) -> None:
    async with running(application) as kit:
        await kit.cache.put(kit.question(), "in trees")
        kit.embedder.state = state
        kit.cache._policy = replace(kit.cache._policy, embed_deadline_s=1)

        same = await kit.cache.lookup(kit.question())
        other = await kit.cache.lookup(kit.question(REWORDED["query"]))

        assert (same.state, other.state) == (LookupState.HIT, LookupState.MISS)
        assert kit.counts(Layer.SEMANTIC).errors == 1
        with pytest.raises(Unavailable, match="embedder"):
            await kit.cache.put(kit.question("something else"), "x")


async def test_without_the_embedder_a_stale_response_still_answers(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "in trees")
    kit.clock.forward(3601)
    kit.embedder.state = "down"

    found = await kit.cache.lookup(kit.question())

    assert (found.state, found.is_to_refresh) == (LookupState.STALE, True)


async def test_without_postgres_a_lookup_is_a_miss_and_a_put_is_refused(application: Application) -> None:
    from lamina.settings.stores import PoolSettings
    from lamina.stores.postgres.connection import new_pool

    pool = new_pool("postgresql://nobody@127.0.0.1:1/none", PoolSettings(min_size=0, timeout_s=0.2))
    async with running(application, None, pool) as kit:
        found = await kit.cache.lookup(kit.question())

        assert found.state is LookupState.MISS
        assert kit.counts(Layer.SEMANTIC).errors == 1
        with pytest.raises(Unavailable, match="postgres"):
            await kit.cache.put(kit.question(), "x")
    await pool.close()


class Broken:
    """A shard that fails in every way."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"the shard is asked to {name}")


async def test_without_a_shard_everything_is_answered_from_postgres(application: Application) -> None:
    async with running(application, Broken()) as kit:  # type: ignore[arg-type]
        missed = await kit.cache.lookup(kit.question(), wait_s=1)
        await kit.cache.put(kit.question(), "in trees", missed.epoch)

        found = await kit.cache.lookup(kit.question())

        assert (found.state, found.layer) == (LookupState.HIT, Layer.SEMANTIC)
        assert kit.counts(Layer.TURN).errors


async def test_what_a_shard_kept_is_not_given_once_it_was_replaced_elsewhere(application: Application) -> None:
    async with running(application) as here, running(application) as there:
        await here.cache.put(here.question(), "old")
        await here.caches.flush()
        await there.cache.put(there.question(), "new")

        found = await here.cache.lookup(here.question())

        assert (found.response, found.layer) == ("new", Layer.SEMANTIC)


async def test_a_wait_is_bounded(kit: Kit) -> None:
    with pytest.raises(InvalidInput, match=r"wait_s: is 60\.5; expected 0 to 60 seconds"):
        await kit.cache.lookup(kit.question(), wait_s=60.5)


async def test_purging_what_is_over_keeps_what_answers_and_corrects_the_bytes(kit: Kit) -> None:
    tenant = kit.application.tenant
    await kit.cache.put(kit.question("over"), "x")
    kit.clock.forward(3700)
    await kit.cache.put(kit.question("stale"), "x")
    await kit.cache.put(kit.question("ended", agent="bob"), "x")
    await kit.note("bob learns", agent="bob")
    kit.clock.forward(3700)
    await kit.cache.put(kit.question("live"), "x")
    before = await kit.store.figures(tenant, "w", kit.clock.now)

    purged = await kit.store.purge_expired(kit.clock.now, tenant)

    after = await kit.store.figures(tenant, None, kit.clock.now)
    assert (before.entries, before.live, before.stale, before.expired) == (4, 1, 1, 2)
    assert purged == 2
    assert (after.entries, after.live, after.stale, after.expired) == (2, 1, 1, 0)
    assert (after.size_bytes,) == kit.row("SELECT sum(bytes)::bigint FROM response_agents WHERE tenant = %s")
    assert await kit.store.agents(tenant, "w", 10) == ["ann"], "an agent without responses is forgotten after an hour"


@pytest.mark.parametrize(
    ("place", "left"),
    [(("w", "ann"), [("v", "ann"), ("w", "bob")]), (("w", None), [("v", "ann")]), ((None, None), [])],
)
async def test_purging_an_agent_a_workspace_or_a_tenant_takes_no_more(
    kit: Kit, place: tuple[str | None, str | None], left: list[tuple[str, str]]
) -> None:
    tenant = kit.application.tenant
    places = [("v", "ann"), ("w", "ann"), ("w", "bob")]
    questions = {item: ModelQuestion(Scope(tenant, item[0], agent=item[1]), "q") for item in places}
    epochs = {}
    for item, question in questions.items():
        await kit.cache.put(question, "x")
        epochs[item] = (await kit.cache.lookup(question)).epoch

    purged = await kit.store.purge(tenant, *place)

    assert purged == 3 - len(left)
    found = [
        item for item, question in questions.items() if (await kit.cache.lookup(question)).state is LookupState.HIT
    ]
    assert found == left
    for item, question in questions.items():
        made = await kit.cache.put(question, "made before", epochs[item])
        assert (made.refusal is None) == (item in left)


async def test_a_turn_without_anything_new_leaves_the_response_and_a_fact_ends_it(kit: Kit) -> None:
    recorder = kit.application.services.recorder
    scope = Scope(kit.application.tenant, "w", agent="ann", session="s")
    await kit.cache.put(kit.question(), "in trees")

    await recorder.record_turn(scope, [Message(Role.USER, "hm")])
    quiet = await kit.cache.lookup(kit.question())
    await recorder.record_turn(scope, [Message(Role.USER, "We decided to move to Oslo.")])

    assert quiet.state is LookupState.HIT
    assert (await kit.cache.lookup(kit.question())).state is LookupState.MISS


async def test_what_was_looked_up_before_an_agent_was_forgotten_is_not_stored_later(kit: Kit) -> None:
    await kit.cache.put(kit.question(), "in trees")
    epoch = (await kit.cache.lookup(kit.question())).epoch
    kit.clock.forward(4 * 3600)
    await kit.store.purge_expired(kit.clock.now, kit.application.tenant)
    await kit.cache.put(kit.question("something else"), "x")

    assert (await kit.cache.put(kit.question(), "in reeds", epoch)).refusal is PutRefusal.CHANGED


async def test_an_agents_first_response_waits_for_whoever_is_teaching(kit: Kit) -> None:
    scope = Scope(kit.application.tenant, "w", "never written before", agent="ann")
    await kit.caches.tell(RespondingAgents(kit.question().space, (), is_all=True))
    epoch = (await kit.cache.lookup(kit.question())).epoch
    async with connect(kit.application.pool) as connection, connection.transaction():
        await bump_epoch(connection, scope, teaches=True)
        putting = asyncio.create_task(kit.cache.put(kit.question(), "in trees", epoch))
        await asyncio.sleep(0.1)
        has_waited = not putting.done()

    assert epoch < 0
    assert has_waited
    assert (await putting).refusal is PutRefusal.CHANGED


@pytest.mark.parametrize("by_workspace", [False, True])
async def test_no_response_is_older_than_the_memory_it_was_made_from(
    application: Application, *, by_workspace: bool
) -> None:
    """One agent learns while three of its sessions ask; each response says how many notes it was made from."""
    rng = random.Random(0)  # noqa: S311 - no secret
    wrong: list[tuple[int, int]] = []
    states: Counter[LookupState] = Counter()
    async with running(application, by_workspace=by_workspace) as kit:
        await kit.cache.put(kit.question("where does it sleep"), "there")

        async def notes() -> int:
            async with connect(application.pool) as connection:
                cursor = await connection.execute(COUNT_NOTES, {"tenant": application.tenant})
                row = await cursor.fetchone()
            return int(row["count"]) if row else 0

        async def session(learning: asyncio.Task[None]) -> None:
            while not learning.done():
                before = await notes()
                found = await kit.cache.lookup(kit.question())
                states[found.state] += 1
                if found.state is LookupState.HIT and found.response < before:
                    wrong.append((found.response, before))
                if found.state is LookupState.MISS:
                    read = await notes()
                    await asyncio.sleep(rng.random() / 200)
                    await kit.cache.put(kit.question(), read, found.epoch)

        async def learn() -> None:
            for number in range(60):
                await kit.note(f"fact number {number} about {rng.random()}")
                await asyncio.sleep(rng.random() / 100)

        learning = asyncio.create_task(learn())
        await asyncio.gather(*(session(learning) for _ in range(3)))

    assert wrong == []
    assert states[LookupState.HIT] > 0
    assert states[LookupState.MISS] > 0


@pytest.mark.parametrize("change", ["revoke a share", "change the profile", "clear the caches"])
async def test_a_response_that_was_begun_before_its_memory_changed_is_not_stored(
    application: Application, change: str
) -> None:
    admin = application.admin()
    question = {"workspace": "w", "agent": "a", "query": "where is the key?"}
    share = {"workspace": "far", "to_workspace": "w", "segment": "notes"}
    id_ = (await admin.post("/v1/shares", json=share)).json()["id"]
    looked_up = (await admin.post("/v1/responses/lookup", json=question)).json()
    match change:
        case "revoke a share":
            changed = await admin.delete(f"/v1/shares/{id_}")
        case "change the profile":
            changed = await admin.put("/v1/memory-profile", json={"workspace": "w", "agent": "a", "prompt_suffix": "x"})
        case _:
            changed = await admin.delete("/cache", params={"workspace": "w"})
    put = await admin.post("/v1/responses", json={**question, "response": "old", "epoch": looked_up["epoch"]})

    assert changed.is_success
    assert (put.json()["stored"], put.json()["reason"]) == (False, "memory_changed")


@pytest.mark.parametrize("agent", [None, "writer", "a"])
async def test_the_first_response_of_an_agent_is_stored_right_after_much_was(
    application: Application, agent: str | None
) -> None:
    client, place = application.client(), {"workspace": "w"}
    by = {} if agent is None else {"agent": agent}
    for number in range(12):
        note = {"content": f"pier {number} is {number * 7} m long", "namespace": f"n{number % 3}"}
        await posted(client, "/v1/notes", note | place | by)

    for number in range(3):
        question = {**place, "agent": f"a{number or ''}", "query": "where is the key?"}
        found = await posted(client, "/v1/responses/lookup", question)
        await posted(client, "/v1/search", {**place, **by, "query": "which pier is long?"})
        stored = await posted(client, "/v1/responses", {**question, "response": "here", "epoch": found["epoch"]})

        assert (stored["stored"], stored["reason"]) == (True, None)


@pytest.mark.parametrize("namespace", ["n0", "new"])
async def test_the_first_response_of_an_agent_is_refused_if_anything_was_learnt_since_its_lookup(
    application: Application, namespace: str
) -> None:
    client, place = application.client(), {"workspace": "w"}
    for number in range(2):
        await posted(client, "/v1/notes", {"content": "the pier is long", "namespace": f"n{number}", **place})
    question = {**place, "agent": "a", "query": "where is the key?"}

    found = await posted(client, "/v1/responses/lookup", question)
    await posted(client, "/v1/notes", {"content": "the key is in the pot", "namespace": namespace, **place})
    stored = await posted(client, "/v1/responses", {**question, "response": "here", "epoch": found["epoch"]})

    assert (stored["stored"], stored["reason"]) == (False, "memory_changed")


async def test_a_put_that_is_refused_wakes_those_who_wait_for_it(application: Application) -> None:
    client = application.client()
    question = {"agent": "waited for", "query": "how long is the pier?"}
    first = (await client.post("/v1/responses/lookup", json={**question, "wait_s": 1})).json()
    waiting = asyncio.create_task(client.post("/v1/responses/lookup", json={**question, "wait_s": 60}))
    await asyncio.sleep(0.2)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(application.services.caches.responses, "_embedder", Uncached(Down()))
        refused = await client.post("/v1/responses", json={**question, "response": "x", "epoch": first["epoch"]})

    async with asyncio.timeout(45):
        assert (await waiting).json()["state"] == "miss"
    assert refused.status_code == 503
