"""The OpenAI-compatible gateway, with OpenAI's own client, before an endpoint of the tests' own."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
from openai import APIError, AsyncOpenAI, DefaultAsyncHttpxClient
from starlette.responses import JSONResponse, PlainTextResponse, Response

from deployments import gateway_chains
from deployments.gateway import MOST_HELD_BYTES
from deployments.restarts import AnswerRestarts
from lamina.api.openai.requests import HEADING
from lamina.client.client import AsyncClient
from lamina.core.principals import KeyRole
from lamina.core.scope import Scope
from lamina.embedded import EmbeddedPostgres
from lamina.errors import Unavailable
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.connection import connect
from lamina.stores.postgres.response_chains import KEPT, end_chains
from lamina.wiring.stores import utc_now
from tests.support.application import Application, another_router, running, settings_for
from tests.support.databases import new_database
from tests.support.ingress import uvicorn_of
from tests.support.upstream import Upstream, chunks, completion, upstream, upstreams

PATIENCE_S = 30.0
# Each client would read the certificates of all authorities anew, which takes 40 ms of CPU.
TLS = httpx.create_ssl_context()
BERTHS = "Which berth did we agree on for the Marlin?"


class Gateway(NamedTuple):
    """The gateway of an application before an upstream, and a client of it."""

    app: Application
    upstream: Upstream
    url: str
    clients: list[AsyncOpenAI]

    async def close(self) -> None:
        for client in self.clients:
            await client.close()
        await self.app.close_clients()

    def client(self, **headers: str) -> AsyncOpenAI:
        named = {f"Lamina-{name.title()}": value for name, value in {"workspace": "harbour", **headers}.items()}
        url = f"{self.url}/openai/v1"
        http = DefaultAsyncHttpxClient(verify=TLS)
        client = AsyncOpenAI(base_url=url, api_key=self.app.key, default_headers=named, max_retries=0, http_client=http)
        self.clients.append(client)
        return client

    async def sessions(self, least: int = 1, sessions: Iterable[str] = (), **scope: Any) -> list[dict[str, Any]]:
        """Return the messages that are stored, once there are so many, of sessions that are named or have turns."""
        lamina = self.app.client()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                listed = (await lamina.get("/v1/turns", params={"workspace": "harbour"})).json()["turns"]
                messages: list[dict[str, Any]] = []
                for session in sorted({turn["session"] for turn in listed} | set(sessions)):
                    path = f"/v1/sessions/{session}/messages"
                    read = await lamina.get(path, params={"workspace": "harbour", **scope})
                    messages += read.json()["messages"]
                if len(messages) >= least:
                    return messages
                await asyncio.sleep(0.05)


@asynccontextmanager
async def standing(url: str, folder: Path, upstream_url: str) -> AsyncIterator[tuple[Application, int]]:
    """Run an application whose gateway is before an upstream; gives its port as well."""
    own = {"base_url": upstream_url, "api_key": "sk-upstream", "recall_s": PATIENCE_S, "answer_s": 60}
    settings = settings_for(url, folder, gateway=own)
    async with running(settings, url, HashingModel()) as app:
        async with uvicorn_of(app.api, settings.serve.front_door) as port:
            yield app, port
        await app.api.state.gateway.close()


@pytest.fixture(scope="module")
async def gateways(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Callable[[], Gateway]]:
    """One gateway before one upstream, which starts in two thirds of a second; makes it that of a new tenant."""
    folder = tmp_path_factory.mktemp("gateway")
    with new_database(postgres) as database:
        async with upstreams() as (url, renew), standing(database, folder, url) as (app, port):
            yield lambda: Gateway(app.for_tenant(f"tenant {uuid4()}"), renew(), f"http://127.0.0.1:{port}", [])


@pytest.fixture
async def gateway(gateways: Callable[[], Gateway]) -> AsyncIterator[Gateway]:
    """The gateway for a tenant of this test alone, before an upstream that was asked nothing yet."""
    mine = gateways()
    yield mine
    await mine.close()


@pytest.fixture
async def gateway_alone(database: str, tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway of this test alone."""
    async with upstream() as served, standing(database, tmp_path, served.url) as (app, port):
        mine = Gateway(app, served, f"http://127.0.0.1:{port}", [])
        yield mine
        await mine.close()


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def blocks_in(body: Any, member: str = "messages") -> list[str]:
    return [item["content"] for item in body[member] if str(item.get("content")).startswith(HEADING)]


async def test_an_agent_remembers_by_its_base_url_alone(gateway: Gateway) -> None:
    gateway.upstream.says("Berth seven it is.")
    first, later = gateway.client(session="monday"), gateway.client(session="friday")

    said = await first.chat.completions.create(model="small", messages=[user("The Marlin gets berth seven.")])
    stored = await gateway.sessions(2)
    await gateway.app.indexed()
    asked = await later.chat.completions.with_raw_response.create(model="small", messages=[user(BERTHS)])

    assert said.choices[0].message.content == "Berth seven it is."
    assert [(item["role"], item["content"]) for item in stored] == [
        ("user", "The Marlin gets berth seven."),
        ("assistant", "Berth seven it is."),
    ]
    assert blocks_in(gateway.upstream.bodies[0]) == []
    (block,) = blocks_in(gateway.upstream.bodies[1])
    assert "The Marlin gets berth seven." in block
    assert gateway.upstream.bodies[1]["messages"][-1] == user(BERTHS)
    assert asked.headers["Lamina-Memory"] == "recalled"


async def test_every_byte_around_the_block_goes_on_as_it_came(gateway: Gateway) -> None:
    await gateway.app.client().post("/v1/notes", json={"workspace": "harbour", "content": "The Marlin: berth seven."})
    await gateway.app.indexed()
    gateway.upstream.says("Seven.")
    question = json.dumps(user(BERTHS))
    head = '{ "zeta":1.50,  "messages":[{"role":"system","content":"Sei kn\\u0061pp. \U0001f41f"},\n '
    tail = f'{question} ] ,"new_field":{{"b":1,"a":[1e3,null]}},"temperature":0.10}}'

    async with httpx.AsyncClient(timeout=PATIENCE_S) as plain:
        answered = await plain.post(
            f"{gateway.url}/openai/v1/chat/completions?beta=1",
            content=(head + tail).encode(),
            headers={"Authorization": f"Bearer {gateway.app.key}", "Lamina-Workspace": "harbour", "OpenAI-Beta": "x"},
        )

    path, headers, body = gateway.upstream.asked[0]
    sent = body.decode()
    assert answered.status_code == 200
    assert (path, headers["authorization"], headers["openai-beta"]) == (
        "/v1/chat/completions",
        "Bearer sk-upstream",
        "x",
    )
    assert not [name for name in headers if name.startswith("lamina")]
    assert sent.startswith(head)
    assert sent.endswith(tail)
    item = json.loads(sent[len(head) : -len(tail)].rstrip().rstrip(","))
    assert "berth seven" in item["content"]


async def test_a_stream_is_passed_on_as_it_comes_and_recorded_once_it_is_whole(gateway: Gateway) -> None:
    gateway.upstream.streams(*chunks("Berth ", "seven", "."))
    client = gateway.client(session="s")

    stream = await client.chat.completions.create(model="small", messages=[user(BERTHS)], stream=True)
    texts = [chunk.choices[0].delta.content async for chunk in stream]

    assert [text for text in texts if text] == ["Berth ", "seven", "."]
    assert [item["content"] for item in await gateway.sessions(2)] == [BERTHS, "Berth seven."]


async def test_tools_are_recorded_with_what_they_answered_and_the_block_stays_where_it_was(gateway: Gateway) -> None:
    await gateway.app.client().post("/v1/notes", json={"workspace": "harbour", "content": "The Marlin: berth seven."})
    await gateway.app.indexed()
    call = {"id": "call-1", "type": "function", "function": {"name": "tides", "arguments": '{"port": "Faro"}'}}
    gateway.upstream.says(None, tool_calls=[call])  # type: ignore[arg-type]
    gateway.upstream.says("High water is at noon.")
    client, asked = gateway.client(session="s"), [user(BERTHS)]

    first = await client.chat.completions.create(model="small", messages=asked)  # type: ignore[arg-type]
    assistant = first.choices[0].message.model_dump(exclude_none=True)
    asked += [assistant, {"role": "tool", "tool_call_id": "call-1", "content": "12:00 3.1 m"}]
    await client.chat.completions.create(model="small", messages=asked)  # type: ignore[arg-type]

    stored = await gateway.sessions(3)
    turns = (await gateway.app.client().get("/v1/turns", params={"workspace": "harbour"})).json()["turns"]
    once, again = gateway.upstream.bodies
    assert again["messages"][: len(once["messages"])] == once["messages"]
    assert [item["role"] for item in stored] == ["user", "tool", "assistant"]
    assert "tides" in stored[1]["content"]
    assert "12:00 3.1 m" in stored[1]["content"]
    assert {turn["usage"]["cached_tokens"] for turn in turns} == {32}


async def test_a_request_that_is_sent_again_adds_no_message(gateway: Gateway) -> None:
    gateway.upstream.says("Seven.")
    client = gateway.client(session="s")

    for _ in range(2):
        await client.chat.completions.create(model="small", messages=[user(BERTHS)])
    await client.chat.completions.create(model="small", messages=[user(BERTHS), user("And the Heron?")])

    assert [item["content"] for item in await gateway.sessions(4)] == [BERTHS, "Seven.", "And the Heron?", "Seven."]


def response(id_: str, text: str) -> Response:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}]
    usage = {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
    return JSONResponse({"id": id_, "model": "small", "status": "completed", "output": output, "usage": usage})


async def respond(app: Application, *, session: str | None = None, **body: Any) -> None:
    """Ask for a response as ann; once it is here, its turn is recorded and its chain is kept."""
    headers = {"Lamina-Workspace": "harbour", "Lamina-User": "ann"}
    named = headers if session is None else {**headers, "Lamina-Session": session}
    answered = await app.client().post("/openai/v1/responses", json={"model": "small", **body}, headers=named)
    assert answered.status_code == 200, answered.text


async def count_chains(app: Application) -> int:
    async with connect(app.pool) as connection:
        statement = "SELECT count(*) AS chains FROM response_chains WHERE tenant = %(tenant)s"
        row = await (await connection.execute(statement, {"tenant": app.tenant})).fetchone()
    return int(row["chains"]) if row else 0


async def sessions_of_turns(app: Application) -> list[str]:
    """Return the session of each turn, the first one first."""
    listed = await app.client().get("/v1/turns", params={"workspace": "harbour"})
    return [turn["session"] for turn in reversed(listed.json()["turns"])]


async def test_a_chain_stays_one_session_whichever_router_it_comes_to(gateway: Gateway) -> None:
    answers = ((f"resp-{number}", "Seven.") for number in count(1))
    gateway.upstream.script.append(lambda: response(*next(answers)))

    async with another_router(gateway.app, {}) as other:
        await respond(gateway.app, input=BERTHS, session="monday")
        await respond(other, input="And the Heron?", previous_response_id="resp-1")
        await respond(gateway.app, input="And the Tern?", previous_response_id="resp-2")
        await respond(other, input="And the Gull?", conversation="conv-1", session="friday")
        await respond(gateway.app, input="And the Auk?", conversation={"id": "conv-1"})
        await respond(other, input="And the Swan?", conversation="conv-2")
        await respond(gateway.app, input="And the Loon?", conversation="conv-2")
        await other.api.state.gateway.close()

    three, two, two_more = ["monday"] * 3, ["friday"] * 2, ["chat-conv-2"] * 2
    assert await sessions_of_turns(gateway.app) == three + two + two_more


@pytest.mark.parametrize("begun", ["resp-" + "x" * 300, "resp-\t1"])
async def test_a_chain_whose_id_cannot_be_a_session_is_one_session_all_the_same(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, begun: str
) -> None:
    monkeypatch.setattr(gateway_chains, "WAIT_S", 0.0)
    names = iter(("2", "3"))
    gateway.upstream.script.append(lambda: response(f"{begun}{next(names)}", "Seven."))

    # Begun elsewhere.
    await respond(gateway.app, input=BERTHS, previous_response_id=begun)
    await respond(gateway.app, input="And the Heron?", previous_response_id=f"{begun}2")

    first, second = await sessions_of_turns(gateway.app)
    assert first == second
    assert first.startswith("chat-")


async def test_a_turn_that_is_recorded_while_the_next_is_asked_is_continued_all_the_same(gateway: Gateway) -> None:
    chains = gateway.app.services.reads.chains
    scope = Scope(gateway.app.tenant, "harbour", user="ann", session="monday")
    gateway.upstream.script.append(lambda: response("resp-1", "Seven."))
    await respond(gateway.app, input=BERTHS, session="monday")

    async with another_router(gateway.app, {}) as other:
        asked, find = 0, other.services.reads.chains.find

        async def not_yet(scope: Scope, chain: str, now: datetime) -> str | None:
            nonlocal asked
            asked += 1
            return None if asked == 1 else await find(scope, chain, now)

        other.services.reads.chains.find = not_yet  # type: ignore[method-assign]
        await respond(other, input="And the Heron?", previous_response_id="resp-1")
        await other.api.state.gateway.close()

    assert await sessions_of_turns(gateway.app) == ["monday", "monday"]
    assert await chains.find(scope, "resp-1", utc_now()) == "monday"


@pytest.mark.parametrize("part", ["chain", "cache"])
async def test_a_request_waits_once_for_all_that_memory_looks_up(
    gateway: Gateway, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    async def soon(*_: Any, **__: Any) -> dict[str, Any]:
        for _turn in range(3):
            await asyncio.sleep(0)
        return {"text": "", "results": [], "degraded": {}}

    services, endpoint = gateway.app.services, gateway.app.api.state.gateway.endpoint
    hangs, name = {"chain": (services.reads.chains, "find"), "cache": (services.caches.responses, "lookup")}[part]
    monkeypatch.setattr(hangs, name, never)
    monkeypatch.setattr(AsyncClient, "context", soon)
    hurried = endpoint._settings.model_copy(update={"recall_s": 0.01})
    monkeypatch.setattr(endpoint, "_settings", hurried)
    monkeypatch.setattr(endpoint, "_cache", replace(endpoint._cache, settings=hurried))
    gateway.upstream.script.append(lambda: response("resp-2", "Seven."))
    headers = {"Lamina-Workspace": "harbour", "Lamina-Record": "off", "Lamina-Cache": "on"}
    body = {"model": "small", "input": BERTHS} | ({"previous_response_id": "resp-1"} if part == "chain" else {})

    answered = await gateway.app.client().post("/openai/v1/responses", json=body, headers=headers)

    assert (answered.status_code, answered.headers["Lamina-Memory"]) == (200, "unavailable")
    assert answered.headers["Lamina-Cache"] == ("off" if part == "chain" else "unavailable")


async def test_a_request_that_is_neither_recorded_nor_recalled_looks_for_no_session(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(*sought: Any) -> None:
        found.append(sought)

    found: list[Any] = []
    monkeypatch.setattr(gateway_chains, "WAIT_S", 0.0)
    monkeypatch.setattr(gateway.app.services.reads.chains, "find", find)
    gateway.upstream.script.append(lambda: response("resp-2", "Seven."))
    admin = gateway.app.admin()
    made = await admin.post("/v1/keys", json={"name": "w", "role": "writer", "verbs": ["write"]})
    client = gateway.app.client(made.json()["key"])

    for headers in ({"Lamina-Record": "off"}, {}):
        body = {"model": "small", "input": BERTHS, "previous_response_id": "resp-1"}
        answered = await client.post("/openai/v1/responses", json=body, headers=headers)
        assert (answered.status_code, answered.headers["Lamina-Memory"]) == (200, "off")

    # The second one is recorded.
    assert len(found) == 1


async def test_a_turn_whose_session_cannot_be_looked_up_is_put_into_no_other(gateway: Gateway) -> None:
    gateway.upstream.script.append(lambda: response("resp-1", "Seven."))
    await respond(gateway.app, input=BERTHS, session="monday")

    async with another_router(gateway.app, {}) as other:

        async def away(*_: Any) -> None:
            raise Unavailable("postgres", "gone away")

        other.services.reads.chains.find = away  # type: ignore[assignment, method-assign]
        await respond(other, input="And the Heron?", previous_response_id="resp-1")
        await other.api.state.gateway.close()

    assert await sessions_of_turns(gateway.app) == ["monday"]


async def test_a_turn_waits_for_the_record_of_the_one_that_it_continues(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_chains, "WAIT_S", 4 * PATIENCE_S)
    chains, is_recorded, may_go_on = gateway.app.services.reads.chains, asyncio.Event(), asyncio.Event()
    put = chains.put

    async def late(*row: Any, **fields: Any) -> None:
        is_recorded.set()
        await may_go_on.wait()
        await put(*row, **fields)

    monkeypatch.setattr(chains, "put", late)
    answers = ((f"resp-{number}", "Seven.") for number in count(1))
    gateway.upstream.script.append(lambda: response(*next(answers)))

    async with another_router(gateway.app, {}) as other, asyncio.timeout(4 * PATIENCE_S), asyncio.TaskGroup() as group:
        asked, find = 0, other.services.reads.chains.find

        async def counting(*chain: Any) -> str | None:
            nonlocal asked
            asked += 1
            if asked == 3:  # For the recall, and twice for the record.
                may_go_on.set()
            return await find(*chain)

        other.services.reads.chains.find = counting  # type: ignore[method-assign]
        group.create_task(respond(gateway.app, input=BERTHS, session="monday"))
        await is_recorded.wait()
        await respond(other, input="And the Heron?", previous_response_id="resp-1")
        await respond(other, input="And the Tern?", previous_response_id="resp-2")
        await other.api.state.gateway.close()

    assert await sessions_of_turns(gateway.app) == ["monday"] * 3


async def test_a_session_that_was_guessed_while_the_turn_before_was_recorded_does_not_stay(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_chains, "WAIT_S", 0.0)
    chains, is_recorded, may_go_on = gateway.app.services.reads.chains, asyncio.Event(), asyncio.Event()
    put = chains.put

    async def late(*row: Any, **fields: Any) -> None:
        is_recorded.set()
        await may_go_on.wait()
        await put(*row, **fields)

    monkeypatch.setattr(chains, "put", late)
    answers = ((f"resp-{number}", "Seven.") for number in count(1))
    gateway.upstream.script.append(lambda: response(*next(answers)))

    async with another_router(gateway.app, {}) as other, asyncio.timeout(4 * PATIENCE_S), asyncio.TaskGroup() as group:
        first = group.create_task(respond(gateway.app, input=BERTHS, session="monday"))
        await is_recorded.wait()
        await respond(other, input="And the Heron?", previous_response_id="resp-1")
        may_go_on.set()
        await first
        await respond(other, input="And the Tern?", previous_response_id="resp-1")
        await other.api.state.gateway.close()

    assert await sessions_of_turns(gateway.app) == ["monday", "chat-resp-1", "monday"]


async def test_a_turn_that_was_recorded_is_not_said_to_be_lost_where_its_chain_is_not_kept(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise Unavailable("postgres", "gone away")

    monkeypatch.setattr(gateway.app.services.reads.chains, "put", away)
    gateway.upstream.script.append(lambda: response("resp-1", "Seven."))

    await respond(gateway.app, input=BERTHS, session="monday")

    assert await sessions_of_turns(gateway.app) == ["monday"]
    assert "a turn was recorded, but" in caplog.text
    assert "was not recorded" not in caplog.text


async def test_a_chain_is_of_its_workspace_ends_with_its_user_and_holds_nothing_that_is_not_recorded(
    gateway: Gateway,
) -> None:
    chains, admin = gateway.app.services.reads.chains, gateway.app.new_key(gateway.app.tenant, KeyRole.ADMIN)
    gateway.upstream.script.append(lambda: response("resp-1", "Seven."))

    await respond(gateway.app, input=BERTHS, session="monday", store=False)
    unrecorded = await count_chains(gateway.app)
    await respond(gateway.app, input=BERTHS, session="monday")
    found = [await chains.find(Scope(gateway.app.tenant, place), "resp-1", utc_now()) for place in ("harbour", "quay")]
    erased = await gateway.app.client(admin).delete("/v1/users", params={"user": "ann"})

    assert (unrecorded, found) == (0, ["monday", None])
    assert erased.json()["left"]["response_chains"] == await count_chains(gateway.app) == 0


async def test_a_chain_ends_with_its_session_its_age_and_the_number_of_its_tenant(gateway: Gateway) -> None:
    chains, now = gateway.app.services.reads.chains, utc_now()
    gateway.upstream.script.append(lambda: response("resp-1", "Seven."))
    await respond(gateway.app, input=BERTHS, session="monday")
    scope = Scope(gateway.app.tenant, "harbour", session="monday")
    for age in range(5):
        await chains.put(scope, [f"old-{age}"], now - timedelta(minutes=1) - age * KEPT / 4)

    beyond = await chains.find(scope, "old-4", now)
    ended = [await end_chains(gateway.app.pool, gateway.app.tenant, now, most=most) for most in (100, 3)]
    kept = [await chains.find(scope, f"old-{age}", now) for age in range(5)]
    async with connect(gateway.app.pool) as connection:
        await connection.execute("DELETE FROM sessions WHERE tenant = %(tenant)s", {"tenant": gateway.app.tenant})

    assert (beyond, ended) == (None, [1, 2])
    assert kept == ["monday", "monday", None, None, None]
    assert await count_chains(gateway.app) == 0


async def test_responses_get_their_block_and_a_chain_stays_one_session(gateway: Gateway) -> None:
    await gateway.app.client().post("/v1/notes", json={"workspace": "harbour", "content": "The Marlin: berth seven."})
    await gateway.app.indexed()

    gateway.upstream.script += [lambda: response("resp-1", "Seven."), lambda: response("resp-2", "Eight.")]
    client = gateway.client()

    first = await client.responses.create(model="small", input=BERTHS, user="ann")
    await gateway.sessions(2, user="ann")
    await client.responses.create(
        model="small",
        input=[user("And the Heron?")],
        previous_response_id=first.id,
        user="ann",  # type: ignore[list-item]
    )

    stored = await gateway.sessions(4, user="ann")
    body = gateway.upstream.bodies[0]
    assert first.output_text == "Seven."
    assert body["input"][-1] == user(BERTHS)
    assert len(blocks_in(body, "input")) == 1
    assert [item["content"] for item in stored] == [BERTHS, "Seven.", "And the Heron?", "Eight."]
    assert {item["user"] for item in stored} == {"ann"}


@pytest.mark.parametrize("wish", ["store", "header"])
async def test_who_wants_no_record_gets_none(gateway: Gateway, wish: str) -> None:
    gateway.upstream.says("Seven.")
    unrecorded = gateway.client(session="s", record="off") if wish == "header" else gateway.client(session="s")
    wishes: dict[str, Any] = {"store": False} if wish == "store" else {}

    await unrecorded.chat.completions.create(model="small", messages=[user("My PIN is 1234.")], **wishes)
    await gateway.client(session="s").chat.completions.create(model="small", messages=[user("Good morning.")])

    assert [item["content"] for item in await gateway.sessions(2)] == ["Good morning.", "Seven."]


async def test_nothing_half_is_recorded_as_whole(gateway: Gateway) -> None:
    half = chunks("Berth ")[0]
    gateway.upstream.streams(half, breaks=True)
    gateway.upstream.streams(*chunks("Berth ")[:-1], breaks=True)
    gateway.upstream.streams(half)
    gateway.upstream.streams(half, b"data: {broken\n\n", *chunks()[-2:])
    gateway.upstream.script.append(lambda: Response(b'{"choices": [{"mess', media_type="application/json"))
    gateway.upstream.script.append(lambda: JSONResponse({"error": {"message": "no"}}, 500))
    gateway.upstream.says("Good morning.")
    client = gateway.client(session="s")

    for _ in range(4):
        with pytest.raises((APIError, httpx.HTTPError, ValueError)):  # noqa: PT012 - where it fails depends on the break
            stream = await client.chat.completions.create(model="small", messages=[user("Half?")], stream=True)
            texts = [chunk async for chunk in stream]
            assert len(texts) == 1
            raise ValueError("ended without an end")
    for _ in range(2):
        with pytest.raises((APIError, ValueError)):
            await client.chat.completions.create(model="small", messages=[user("Half?")])
    await client.chat.completions.create(model="small", messages=[user("Hello.")])

    assert [item["content"] for item in await gateway.sessions(2)] == ["Hello.", "Good morning."]


async def test_a_client_that_goes_away_ends_an_endless_answer_and_it_is_not_recorded(gateway: Gateway) -> None:
    gateway.upstream.streams(*chunks("Well, ")[:-1], is_endless=True)
    gateway.upstream.says("Good morning.")
    client = gateway.client(session="s")

    stream = await client.chat.completions.create(model="small", messages=[user("Forever?")], stream=True)
    async for chunk in stream:
        if chunk.choices[0].finish_reason:
            break
    await stream.close()

    async with asyncio.timeout(PATIENCE_S):
        while not gateway.upstream.left:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)
    await client.chat.completions.create(model="small", messages=[user("Hello.")])
    assert [item["content"] for item in await gateway.sessions(2)] == ["Hello.", "Good morning."]


async def test_a_hundred_megabytes_pass_and_are_not_kept(gateway: Gateway) -> None:
    large = json.dumps(completion("x" * 100_000_000)).encode()
    gateway.upstream.script.append(lambda: Response(large, media_type="application/json"))
    gateway.upstream.says("Good morning.")
    url = f"{gateway.url}/openai/v1/chat/completions"
    headers = {"Authorization": f"Bearer {gateway.app.key}", "Lamina-Workspace": "harbour", "Lamina-Session": "s"}

    async with httpx.AsyncClient(timeout=PATIENCE_S, headers=headers) as plain:
        answered = await plain.post(url, json={"model": "small", "messages": [user("Much?")]})
        await plain.post(url, json={"model": "small", "messages": [user("Hello.")]})

    assert answered.content == large
    assert [item["content"] for item in await gateway.sessions(2)] == ["Hello.", "Good morning."]


async def test_an_endpoint_that_is_away_is_told_in_the_form_that_clients_read(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.upstream.script.append(lambda: JSONResponse({}))
    away = gateway.app.services.settings.gateway.model_copy(update={"base_url": "http://127.0.0.1:9/v1"})
    monkeypatch.setattr(gateway.app.api.state.gateway.endpoint, "_settings", away)

    with pytest.raises(APIError, match=r"gateway\.base_url cannot be reached"):
        await gateway.client().chat.completions.create(model="small", messages=[user("Anyone?")])


@pytest.mark.parametrize("body", [b"", b"[]", b'{"messages": 7}', b"\xff\xfe", b"[" * 100_000, b'{"messages": [1]}'])
async def test_what_is_no_request_is_for_the_endpoint_to_refuse(gateway: Gateway, body: bytes) -> None:
    gateway.upstream.script.append(lambda: JSONResponse({"error": {"message": "bad"}}, 400))
    headers = {"Authorization": f"Bearer {gateway.app.key}"}

    async with httpx.AsyncClient(timeout=PATIENCE_S, headers=headers) as plain:
        answered = await plain.post(f"{gateway.url}/openai/v1/chat/completions", content=body)
        other = await plain.get(f"{gateway.url}/openai/v1/files")

    assert (answered.status_code, answered.json()) == (400, {"error": {"message": "bad"}})
    assert gateway.upstream.asked[0][2] == body
    assert (other.status_code, other.json()["error"]["type"]) == (404, "lamina_error")
    assert len(gateway.upstream.asked) == 1


@pytest.mark.parametrize(("status", "text"), [(404, "404 page not found"), (500, "Internal Server Error"), (502, "")])
async def test_an_endpoints_error_in_plain_text_is_no_restart_of_a_part(
    gateway: Gateway, status: int, text: str
) -> None:
    gateway.upstream.script += [lambda: PlainTextResponse(text, status)] * 2
    transport = httpx.ASGITransport(AnswerRestarts(gateway.app.api))
    headers = {"Authorization": f"Bearer {gateway.app.key}"}
    asked = {"model": "small", "messages": [user("Anyone?")]}

    async with httpx.AsyncClient(transport=transport, base_url="http://lamina", headers=headers) as client:
        answers = [
            await client.post("/openai/v1/chat/completions", json=asked, timeout=PATIENCE_S),
            await client.get("/openai/v1/models", timeout=PATIENCE_S),
        ]

    assert [(answer.status_code, answer.text) for answer in answers] == [(status, text)] * 2


async def test_nobody_comes_in_without_a_key_and_nobody_recalls_beyond_its_bounds(gateway: Gateway) -> None:
    lamina = gateway.app.client()
    note = {"workspace": "harbour", "user": "bob", "content": "Bob's berth for the Marlin is nine."}
    assert (await lamina.post("/v1/notes", json=note)).status_code < 300
    await gateway.app.indexed()
    gateway.upstream.says("Seven.")

    await gateway.client(user="ann").chat.completions.create(model="small", messages=[user(BERTHS)])
    await gateway.client(user="bob").chat.completions.create(model="small", messages=[user(BERTHS)])
    async with httpx.AsyncClient(timeout=PATIENCE_S) as plain:
        refused = await plain.post(f"{gateway.url}/openai/v1/chat/completions", json={"messages": []})

    anns, bobs = gateway.upstream.bodies
    assert refused.status_code == 401
    assert not any("nine" in block for block in blocks_in(anns))
    assert any("nine" in block for block in blocks_in(bobs))


async def test_a_question_that_is_asked_again_finds_what_was_learnt_and_not_what_was_deleted(gateway: Gateway) -> None:
    lamina = gateway.app.client()
    gateway.upstream.says("Seven.")
    client = gateway.client(session="s")
    contents = ("The Marlin: berth seven.", "The Marlin: berth nine.")
    for content in contents:
        note = (await lamina.post("/v1/notes", json={"workspace": "harbour", "content": content})).json()
        await gateway.app.indexed()
        await client.chat.completions.create(model="small", messages=[user(BERTHS)])
        await lamina.delete(f"/v1/notes/{note['id']}")
        await gateway.app.indexed()

    blocks = [blocks_in(body) for body in gateway.upstream.bodies]
    assert [[content in block for content in contents] for (block,) in blocks] == [[True, False], [False, True]]


async def test_a_router_keeps_blocks_without_their_long_questions(gateway: Gateway) -> None:
    gateway.upstream.says("Seven.")
    blocks = gateway.app.api.state.gateway.endpoint._blocks
    of_others = set(blocks)

    await gateway.client().chat.completions.create(model="small", messages=[user("x y" * 100_000)])

    kept = str({key: block for key, block in blocks.items() if key not in of_others})
    assert "chat-" in kept
    assert len(kept) < 10_000


async def test_a_block_is_for_a_key_of_the_same_bounds_alone(gateway: Gateway) -> None:
    lamina = gateway.app.client()
    admin = gateway.app.admin()
    note = {"workspace": "harbour", "content": "The Marlin: berth seven."}
    await lamina.post("/v1/notes", json=note)
    await gateway.app.indexed()
    gateway.upstream.says("Seven.")
    call = {"id": "c", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
    items = [
        user(BERTHS),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "noon"},
    ]

    # Neither names a workspace: each key has its own.
    async with httpx.AsyncClient(timeout=PATIENCE_S) as plain:
        for workspace in ("harbour", "quay"):
            made = await admin.post("/v1/keys", json={"name": workspace, "role": "writer", "workspaces": [workspace]})
            named = {"Authorization": f"Bearer {made.json()['key']}"}
            answered = await plain.post(
                f"{gateway.url}/openai/v1/chat/completions", json={"messages": items}, headers=named
            )
            assert answered.status_code == 200, answered.text

    assert [len(blocks_in(body)) for body in gateway.upstream.bodies] == [1, 0]


@pytest.mark.parametrize(
    ("headers", "status", "told"),
    [
        ({"Lamina-Workspace": "harbour"}, 403, "quay"),
        ({"Lamina-Worksapce": "quay"}, 422, "lamina-worksapce"),
        ({"Lamina-User": "x" * 300}, 422, "user"),
        ({"Lamina-Session": "x" * 300}, 422, "session"),
    ],
)
async def test_a_scope_that_the_key_does_not_reach_or_that_is_none_is_told_and_nothing_goes_on(
    gateway: Gateway, headers: dict[str, str], status: int, told: str
) -> None:
    gateway.upstream.says("Seven.")
    admin = gateway.app.admin()
    key = (await admin.post("/v1/keys", json={"name": "b", "role": "writer", "workspaces": ["quay"]})).json()["key"]

    async with httpx.AsyncClient(timeout=PATIENCE_S, headers={"Authorization": f"Bearer {key}", **headers}) as plain:
        refused = await plain.post(f"{gateway.url}/openai/v1/chat/completions", json={"messages": [user(BERTHS)]})

    assert (refused.status_code, gateway.upstream.asked) == (status, [])
    assert told in refused.json()["error"]["message"]


async def test_a_wrong_key_is_told_as_clients_of_openai_read_it(gateway: Gateway) -> None:
    async with AsyncOpenAI(base_url=f"{gateway.url}/openai/v1", api_key="wrong", max_retries=0) as client:
        with pytest.raises(APIError, match="no valid API key"):
            await client.models.list()


async def test_blanks_are_no_question_and_are_not_recorded(gateway: Gateway) -> None:
    gateway.upstream.says("Seven.")
    client = gateway.client(session="s", cache="on")

    for text in (" " * 100_000, "\0", "\u200b", "\u00ad ", BERTHS):
        answered = await client.chat.completions.with_raw_response.create(model="small", messages=[user(text)])
        assert answered.headers["Lamina-Memory"] == ("empty" if text is BERTHS else "off")

    stored = await gateway.sessions(6)
    assert [item["content"] for item in stored if item["role"] == "user"] == [BERTHS]


async def test_an_answer_that_shows_nothing_leaves_the_question_in_the_record(gateway: Gateway) -> None:
    gateway.upstream.says("\u200b")
    client = gateway.client(session="s")

    await client.chat.completions.create(model="small", messages=[user(BERTHS)])

    assert [item["content"] for item in await gateway.sessions(1)] == [BERTHS]


async def test_a_question_that_is_longer_once_it_is_composed_goes_on_without_memory(gateway: Gateway) -> None:
    gateway.upstream.says("Seven.")
    client = gateway.client(session="s", cache="on")

    # One character, which the composed form writes with two.
    for text in ("\u0958" * 99_990, "\u0958" * 200_000):
        answered = await client.chat.completions.with_raw_response.create(model="small", messages=[user(text)])
        assert answered.headers["Lamina-Memory"] == "unavailable"

    assert len(gateway.upstream.asked) == 2


async def test_names_and_arguments_that_memory_cannot_hold_lose_no_turn(gateway: Gateway) -> None:
    written = "\x01" * 200_000 + " end"
    call = {
        "id": "call-1__thought__" + "x" * 900,
        "type": "function",
        "function": {"name": "t" * 200, "arguments": written},
    }
    gateway.upstream.says("Noon.")
    client = gateway.client(session="s")
    asked = [
        {**user(BERTHS), "name": "n" * 200},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "12:00 3.1 m"},
    ]

    for _ in range(2):  # Sent again, they are the same call.
        await client.chat.completions.create(model="m" * 200, messages=asked)  # type: ignore[arg-type]
    await client.chat.completions.create(model="small", messages=[{**user("Thanks."), "name": "n" * 200}])  # type: ignore[list-item, misc]

    written, *others = await gateway.sessions(4)
    assert written["content"].startswith("tool(\x01\x01")
    assert written["content"].endswith("\x01\x01 end)\n12:00 3.1 m")
    assert [item["content"] for item in others] == ["Noon.", "Thanks.", "Noon."]


async def test_a_turn_that_is_too_much_for_one_request_is_recorded_in_parts(gateway: Gateway) -> None:
    gateway.upstream.says("It is long.")
    report = "The tide at Faro was 3.1 m at 12:00, 1.2 m at 18:00. " * 9_000
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": f'{{"page": {number}}}'}}
        for number in range(300)
    ]
    question = {"type": "text", "text": f"Read it. {'สวัสดีชาวโลก ' * 20_000} Sum it up, please."}
    asked = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": call["id"], "content": f"{call['id']} is blank"} for call in calls[:-1]),
        {"role": "tool", "tool_call_id": calls[-1]["id"], "content": report},
        {"role": "user", "content": [{"type": "\ud83d" * 200}, question]},
    ]
    headers = {"Authorization": f"Bearer {gateway.app.key}", "Lamina-Workspace": "harbour", "Lamina-Session": "s"}

    async with httpx.AsyncClient(timeout=PATIENCE_S, headers=headers) as plain:
        body = json.dumps({"model": "small", "messages": asked})
        answered = await plain.post(f"{gateway.url}/openai/v1/chat/completions", content=body)
        said: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(said) < 302:
                params: dict[str, Any] = {"workspace": "harbour", "limit": 1_000}
                said = (await plain.get(f"{gateway.url}/v1/sessions/s/messages", params=params)).json()["messages"]

    assert answered.status_code == 200
    assert [item["role"] for item in said] == ["user", *["tool"] * 300, "assistant"]
    assert said[0]["content"].startswith("Read it. สวัสดี")
    assert said[0]["content"].endswith("Sum it up, please.")
    assert [item["content"] for item in said[1:3]] == [f'read({{"page": {n}}})\nc{n} is blank' for n in range(2)]
    assert said[300]["content"].startswith('read({"page": 299})\nThe tide at Faro')
    assert said[300]["content"].endswith("at 18:00.")
    assert said[301]["content"] == "It is long."


async def test_a_half_of_a_character_stops_neither_the_call_nor_its_record(gateway: Gateway) -> None:
    half = json.dumps(completion("half \ud83d")).encode()
    gateway.upstream.script.append(lambda: Response(half, media_type="application/json"))
    headers = {"Authorization": f"Bearer {gateway.app.key}", "Lamina-Workspace": "harbour", "Lamina-Session": "s"}

    async with httpx.AsyncClient(timeout=PATIENCE_S, headers=headers) as plain:
        body = json.dumps({"messages": [user("hi \ud83d")]})
        answered = await plain.post(f"{gateway.url}/openai/v1/chat/completions", content=body)

    assert answered.status_code == 200
    assert gateway.upstream.asked[0][2].decode() == body
    assert [item["content"] for item in await gateway.sessions(2)] == ["hi \ufffd", "half \ufffd"]


async def test_large_requests_wait_outside_when_too_much_is_held(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.upstream.says("Seven.")
    monkeypatch.setattr(gateway.app.api.state.gateway.endpoint, "_held_bytes", MOST_HELD_BYTES)
    headers = {"Authorization": f"Bearer {gateway.app.key}"}

    async with httpx.AsyncClient(timeout=PATIENCE_S, headers=headers) as plain:
        url = f"{gateway.url}/openai/v1/chat/completions"
        large = await plain.post(url, json={"messages": [user("x" * 100_000)]})
        small = await plain.post(url, json={"messages": [user("x")]})

    assert (large.status_code, small.status_code) == (503, 200)
    assert large.headers["Retry-After"]


async def test_without_the_stores_a_call_goes_on_without_memory(gateway_alone: Gateway) -> None:
    gateway_alone.upstream.says("Seven.")
    client = gateway_alone.client(session="s")
    await client.chat.completions.create(model="small", messages=[user("Hello.")])
    await gateway_alone.sessions(2)
    await gateway_alone.app.pool.close()

    answered = await client.chat.completions.with_raw_response.create(model="small", messages=[user(BERTHS)])

    assert answered.headers["Lamina-Memory"] == "unavailable"
    assert answered.parse().choices[0].message.content == "Seven."


async def ask(client: AsyncOpenAI, *items: Any, **fields: Any) -> tuple[str, str]:
    """Return whether the answer came from the cache, and its text."""
    wishes = {"model": "small", "messages": list(items), **fields}
    answered = await client.chat.completions.with_raw_response.create(**wishes)
    return answered.headers["Lamina-Cache"], answered.parse().choices[0].message.content or ""


async def cached(gateway: Gateway, client: AsyncOpenAI, *items: Any, **fields: Any) -> tuple[str, str]:
    """Ask, and wait until the answer is kept; the client has it before."""
    gateway.upstream.says("Seven.")
    said = await ask(client, *items, **fields)
    async with asyncio.timeout(PATIENCE_S):
        while (await ask(client, *items, **fields))[0] != "hit":  # noqa: ASYNC110 - it is kept after it was sent
            await asyncio.sleep(0.05)
    gateway.upstream.script[:] = []
    gateway.upstream.says("Eight.")
    return said


async def test_the_same_question_is_answered_from_the_cache_when_told(gateway: Gateway) -> None:
    client = gateway.client(session="s", cache="on")

    assert await cached(gateway, client, user(BERTHS)) == ("miss", "Seven.")
    asked = len(gateway.upstream.asked)
    again = await ask(client, user(BERTHS))
    other = await ask(client, user("Which berth did we agree on for the Heron?"))
    unasked = await ask(gateway.client(session="s"), user(BERTHS))

    assert (again, other, unasked) == (("hit", "Seven."), ("miss", "Eight."), ("off", "Eight."))
    assert len(gateway.upstream.asked) == asked + 2


@pytest.mark.parametrize(
    ("headers", "fields", "before"),
    [
        ({"user": "bob"}, {}, []),
        ({"agent": "helmsman"}, {}, []),
        ({"namespace": "private"}, {}, []),
        ({"workspace": "quay"}, {}, []),
        ({"upstream-key": "sk-other"}, {}, []),
        ({}, {"user": "bob"}, []),
        ({}, {"model": "large"}, []),
        ({}, {"temperature": 0.5}, []),
        ({}, {"extra_query": {"beta": "1"}}, []),
        ({}, {"extra_headers": {"OpenAI-Beta": "x"}}, []),
        ({}, {}, [{"role": "system", "content": "You are a parrot."}]),
        ({}, {}, [user("I mean the boat of my aunt."), {"role": "assistant", "content": "Yes?"}]),
    ],
)
async def test_a_kept_answer_is_for_the_same_scope_and_circumstances_alone(
    gateway: Gateway, headers: dict[str, str], fields: dict[str, Any], before: list[Any]
) -> None:
    base = {"user": "ann"} if "user" not in fields else {}
    await cached(gateway, gateway.client(session="s", cache="on", **base), user(BERTHS))

    other = gateway.client(**{"session": "s", "cache": "on", **base, **headers})

    assert await ask(other, *before, user(BERTHS), **fields) == ("miss", "Eight.")


async def test_a_kept_stream_comes_again_byte_by_byte_and_is_not_given_to_who_wants_none(gateway: Gateway) -> None:
    events = [b": begun\r\n\r\n", *chunks("Berth ", "seven", ".")]
    gateway.upstream.streams(*events)
    url = f"{gateway.url}/openai/v1/chat/completions"
    headers = {"Authorization": f"Bearer {gateway.app.key}", "Lamina-Workspace": "harbour", "Lamina-Cache": "on"}
    body = {"model": "small", "messages": [user(BERTHS)], "stream": True}

    async with httpx.AsyncClient(timeout=PATIENCE_S, headers=headers) as plain:
        async with asyncio.timeout(PATIENCE_S):
            while (again := await plain.post(url, json=body)).headers["Lamina-Cache"] != "hit":
                gateway.upstream.streams(*events)
        gateway.upstream.script[:] = []
        gateway.upstream.says("Eight.")
        whole = await plain.post(url, json={**body, "stream": False})

    assert again.content == b"".join(events)
    assert again.headers["content-type"].startswith("text/event-stream")
    assert (whole.headers["Lamina-Cache"], whole.json()["choices"][0]["message"]["content"]) == ("miss", "Eight.")


async def test_requests_with_tools_are_cached_where_that_is_asked_for(gateway: Gateway) -> None:
    tools = [{"type": "function", "function": {"name": "tides", "parameters": {"type": "object", "properties": {}}}}]
    gateway.upstream.says("Seven.")
    call = {"id": "c", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
    asked = [user(BERTHS), {"role": "assistant", "content": None, "tool_calls": [call]}]
    asked += [{"role": "tool", "tool_call_id": "c", "content": "noon"}]
    client = gateway.client(session="s", cache="on")

    for _ in range(2):
        assert (await ask(client, user(BERTHS), tools=tools))[0] == "off"
        assert (await ask(client, *asked))[0] == "off"
        assert (await ask(client, user(BERTHS), store=False))[0] == "off"
    assert await cached(gateway, gateway.client(session="s", cache="tools"), *asked, tools=tools) == ("miss", "Seven.")


async def test_an_answer_from_the_block_of_a_question_is_not_kept_once_the_memory_changed(gateway: Gateway) -> None:
    tools = [{"type": "function", "function": {"name": "tides", "parameters": {"type": "object", "properties": {}}}}]
    call = {"id": "c", "type": "function", "function": {"name": "tides", "arguments": "{}"}}
    notes = gateway.app.client()
    await notes.post("/v1/notes", json={"workspace": "harbour", "content": "The Marlin: berth seven."})
    await gateway.app.indexed()
    gateway.upstream.says(None, tool_calls=[call])  # type: ignore[arg-type]
    gateway.upstream.says("Seven.")
    client, asked = gateway.client(session="s", cache="tools"), [user(BERTHS)]

    await ask(client, *asked, tools=tools)
    await notes.post("/v1/notes", json={"workspace": "harbour", "content": "The Marlin: now berth nine."})
    await gateway.app.indexed()
    asked += [{"role": "assistant", "content": None, "tool_calls": [call]}]  # type: ignore[dict-item]
    asked += [{"role": "tool", "tool_call_id": "c", "content": "noon"}]
    first = await ask(client, *asked, tools=tools)
    await gateway.sessions(3)  # It is recorded with a note about the tool, which ends what was kept before.
    answers = {first, *[await ask(client, *asked, tools=tools) for _ in range(10)]}

    assert not [body for body in gateway.upstream.bodies if "nine" in str(body)]
    assert answers == {("miss", "Seven.")}


async def test_an_answer_from_the_cache_is_a_turn_without_a_call_of_a_model(gateway: Gateway) -> None:
    await cached(gateway, gateway.client(session="monday", cache="on"), user(BERTHS))
    await ask(gateway.client(session="friday", cache="on"), user(BERTHS))

    stored = await gateway.sessions(4, sessions={"monday", "friday"})
    turns = (await gateway.app.client().get("/v1/turns", params={"workspace": "harbour"})).json()["turns"]
    assert [item["content"] for item in stored] == [BERTHS, "Seven."] * 2
    assert {turn["session"] for turn in turns} == {"monday"}


async def test_a_response_from_the_cache_stays_in_the_session_that_made_it(gateway: Gateway) -> None:
    chains, app = gateway.app.services.reads.chains, gateway.app
    scope = Scope(app.tenant, "harbour", user="ann")
    asked = {"model": "small", "input": BERTHS}
    gateway.upstream.script.append(lambda: response("resp-1", "Seven."))

    async def ask_in(session: str) -> str:
        headers = {"Lamina-Workspace": "harbour", "Lamina-Session": session, "Lamina-Cache": "on"}
        return (await app.client().post("/openai/v1/responses", json=asked, headers=headers)).headers["Lamina-Cache"]

    states = [await ask_in("monday"), await ask_in("friday")]

    assert states == ["miss", "hit"]
    assert await sessions_of_turns(app) == ["monday"]
    assert await chains.find(scope, "resp-1", utc_now()) == "monday"


async def test_what_is_learnt_ends_a_kept_answer(gateway: Gateway) -> None:
    client = gateway.client(session="s", cache="on")
    await cached(gateway, client, user(BERTHS))

    await gateway.app.client().post("/v1/notes", json={"workspace": "harbour", "content": "The Marlin: berth nine."})

    assert await ask(client, user(BERTHS)) == ("miss", "Eight.")


async def test_a_stale_answer_comes_at_once_and_is_renewed_behind_it(gateway: Gateway) -> None:
    client = gateway.client(session="s", cache="on")
    await cached(gateway, client, user(BERTHS))
    first = ("hit", "Seven.")
    async with asyncio.timeout(PATIENCE_S):
        while first == ("hit", "Seven."):  # Of several that missed, one may be kept only now.
            async with connect(gateway.app.pool) as connection:
                ended = "UPDATE responses SET expires_at = now() - interval '1 second' WHERE tenant = %(tenant)s"
                await connection.execute(ended, {"tenant": gateway.app.tenant})
            first = await ask(client, user(BERTHS))

    assert first == ("stale", "Seven.")
    async with asyncio.timeout(PATIENCE_S):
        while await ask(client, user(BERTHS)) != ("hit", "Eight."):  # noqa: ASYNC110 - it is renewed after it was sent
            await asyncio.sleep(0.05)


async def test_an_unknown_wish_for_the_cache_is_told(gateway: Gateway) -> None:
    gateway.upstream.says("Seven.")

    with pytest.raises(APIError, match="lamina-cache: is always"):
        await ask(gateway.client(cache="always"), user(BERTHS))
    assert gateway.upstream.asked == []
