import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import litellm
import pytest

from lamina.client import AsyncClient
from lamina.integrations._turns import HEADING
from lamina.integrations.litellm import LaminaMemory

# LiteLLM's own types warn when they are first used.
pytestmark = pytest.mark.filterwarnings("default")

BERTH = "The Marlin gets berth seven."
QUESTION = "Which berth does the Marlin have?"
PATIENCE_S = 30.0
USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 7,
    "total_tokens": 57,
    "prompt_tokens_details": {"cached_tokens": 32},
}


def event(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [choice]}
    return b"data: " + json.dumps(chunk | fields).encode() + b"\n\n"


class Endpoint(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint that says that berth seven is agreed on."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        if self.path.endswith("/responses"):
            said = [{"type": "output_text", "text": "Berth seven.", "annotations": []}]
            output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": said}]
            usage = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
            answer = {"id": "r", "object": "response", "created_at": 1, "model": "small", "status": "completed"}
            self.answer(json.dumps(answer | {"output": output, "usage": usage}).encode())
        elif body.get("stream"):
            texts = [event({"role": "assistant", "content": text}) for text in ("Berth ", "seven.")]
            self.answer(b"".join([*texts, event({}, "stop"), b"data: [DONE]\n\n"]), "text/event-stream")
        elif self.path.endswith("/embeddings"):
            vector = [{"object": "embedding", "index": 0, "embedding": [0.5]}]
            self.answer(json.dumps({"object": "list", "model": "small", "data": vector, "usage": USAGE}).encode())
        else:
            message = {"role": "assistant", "content": "Berth seven."}
            answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "small", "usage": USAGE}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            self.answer(json.dumps(answer | {"choices": choices}).encode())

    def answer(self, body: bytes, media_type: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What the endpoint was asked; LiteLLM calls it by the names of OpenAI."""
    seen: list[dict[str, Any]] = []
    handler = type("Handler", (Endpoint,), {"asked": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OPENAI_API_BASE", f"http://127.0.0.1:{server.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        yield seen
        server.shutdown()


@pytest.fixture
def memory(door: Any, monkeypatch: pytest.MonkeyPatch) -> LaminaMemory:
    litellm.logging_callback_manager._reset_all_callbacks()  # Of a class it keeps the first.
    made = LaminaMemory({"workspace": door.workspace}, timeout_s=PATIENCE_S)
    monkeypatch.setattr(litellm, "callbacks", [made])
    return made


async def messages(memory: LaminaMemory, session: str, least: int = 2, **ids: str) -> list[dict[str, Any]]:
    async with memory.memory.client(ids) as client, asyncio.timeout(PATIENCE_S):
        while len(found := (await client.messages(session))["messages"]) < least:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)
        return found


async def ask(*said: Any, **fields: Any) -> Any:
    named = {f"lamina_{name}": fields.pop(name) for name in ("session", "record", "user") if name in fields}
    items = [{"role": "user", "content": text} if isinstance(text, str) else text for text in said]
    return await litellm.acompletion(model="openai/small", messages=items, metadata=named, **fields)


def blocks(body: dict[str, Any], member: str = "messages") -> list[str]:
    return [item["content"] for item in body[member] if str(item.get("content")).startswith(HEADING)]


async def test_a_model_is_told_before_the_question_and_the_turn_is_recorded(
    memory: LaminaMemory, asked: list[dict[str, Any]]
) -> None:
    system = {"role": "system", "content": "You are the harbour master."}

    await ask(system, BERTH, session="monday")
    stored = await messages(memory, "monday")
    answered = await ask(system, QUESTION, session="friday")
    friday = await messages(memory, "friday")

    assert answered.choices[0].message.content == "Berth seven."
    assert blocks(asked[0]) == []
    (block,) = blocks(asked[1])
    assert BERTH in block
    assert [asked[1]["messages"][0], asked[1]["messages"][-1]] == [system, {"role": "user", "content": QUESTION}]
    assert [item["content"] for item in stored] == [BERTH, "Berth seven."]
    assert [item["content"] for item in friday] == [QUESTION, "Berth seven."]
    async with memory.memory.client() as client:
        turns = (await client.turns())["turns"]
    assert {(turn["usage"]["model"], turn["usage"]["cached_tokens"]) for turn in turns} == {("small", 32)}


async def test_a_stream_is_recorded_once_it_is_whole(memory: LaminaMemory, asked: list[dict[str, Any]]) -> None:
    stream = await ask(BERTH, session="s", stream=True)
    texts = [chunk.choices[0].delta.content async for chunk in stream]

    assert "".join(text or "" for text in texts) == "Berth seven."
    assert [item["content"] for item in await messages(memory, "s")] == [BERTH, "Berth seven."]


async def test_responses_are_told_and_recorded_too(memory: LaminaMemory, asked: list[dict[str, Any]]) -> None:
    async with memory.memory.client() as client:
        await client.add(BERTH)

    await litellm.aresponses(input=QUESTION, model="openai/small", litellm_metadata={"lamina_session": "s"}, user="ann")

    assert len(blocks(asked[0], "input")) == 1
    async with memory.memory.client({"user": "ann"}) as client, asyncio.timeout(PATIENCE_S):
        while not (found := (await client.search(QUESTION, tiers=["sessions"]))["results"]):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)
    assert {item["content"] for item in found} <= {QUESTION, "Berth seven."}


async def test_the_same_request_again_adds_no_message_and_a_block_is_put_in_once(
    memory: LaminaMemory, asked: list[dict[str, Any]]
) -> None:
    async with memory.memory.client() as client:
        await client.add(BERTH)
    for _ in range(2):
        await ask(QUESTION, session="s")
    told = {"messages": asked[0]["messages"]}
    await ask(QUESTION, {"role": "assistant", "content": "Berth seven."}, "And the Heron?", session="s")
    stored = await messages(memory, "s", 4)

    assert [item["content"] for item in stored] == [QUESTION, "Berth seven.", "And the Heron?", "Berth seven."]
    assert await memory.async_pre_call_deployment_hook(told, "acompletion") is None


async def test_two_chats_that_begin_with_the_same_greeting_tell_each_other_and_share_no_session(
    memory: LaminaMemory, asked: list[dict[str, Any]]
) -> None:
    greeted, answered = "Hi", {"role": "assistant", "content": "Hi, I am the harbour master."}
    other = {"role": "assistant", "content": "Good morning."}
    await ask(greeted, answered, BERTH)
    async with memory.memory.client() as client, asyncio.timeout(PATIENCE_S):
        while not (await client.search(BERTH, tiers=["sessions"]))["results"]:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)

        await ask(greeted, other, QUESTION)

        (block,) = blocks(asked[1])
        assert BERTH in block
        while len(sessions := (await client.sessions())["sessions"]) < 2:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
    assert len(sessions) == 2


async def test_a_chat_whose_session_nobody_named_stays_in_one(
    memory: LaminaMemory, asked: list[dict[str, Any]]
) -> None:
    first = [{"role": "system", "content": "It is noon."}, {"role": "user", "content": "Hi"}]
    said = {"role": "assistant", "content": "Berth seven."}
    await ask(*first)
    await ask({"role": "system", "content": "It is one."}, first[1], said, QUESTION)

    async with memory.memory.client() as client, asyncio.timeout(PATIENCE_S):
        while not (sessions := (await client.sessions())["sessions"]):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)
    stored = await messages(memory, sessions[0]["session"], 4)
    assert [item["content"] for item in stored] == ["Hi", "Berth seven.", QUESTION, "Berth seven."]


@pytest.mark.parametrize("wish", [{"record": "off"}, {"store": False}])
async def test_who_wants_no_record_gets_none(
    memory: LaminaMemory, asked: list[dict[str, Any]], wish: dict[str, Any]
) -> None:
    await ask("My PIN is 1234.", session="s", **wish)
    await ask("Good morning.", session="s")

    assert [item["content"] for item in await messages(memory, "s")] == ["Good morning.", "Berth seven."]


async def test_a_users_memories_are_for_that_user_and_a_call_does_not_leave_the_scope_that_is_set(
    door: Any, monkeypatch: pytest.MonkeyPatch, asked: list[dict[str, Any]]
) -> None:
    free = LaminaMemory({"workspace": door.workspace}, timeout_s=PATIENCE_S)
    bobs = LaminaMemory({"workspace": door.workspace, "user": "bob"}, timeout_s=PATIENCE_S)
    async with AsyncClient(scope={"workspace": door.workspace, "user": "ann"}) as client:
        await client.add("Ann's berth for the Marlin is seven.")

    for memory in (free, bobs):
        monkeypatch.setattr(litellm, "callbacks", [memory])
        await ask(QUESTION, user="ann", record="off")

    assert [len(blocks(body)) for body in asked] == [1, 0]


@pytest.mark.parametrize(
    ("call_type", "kwargs"),
    [
        ("aembedding", {"input": [QUESTION]}),
        ("acompletion", {}),
        ("acompletion", {"messages": []}),
        ("acompletion", {"messages": 7}),
        ("acompletion", {"messages": [{"role": "system", "content": QUESTION}]}),
        ("acompletion", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}),
        ("aresponses", {"input": [7]}),
        ("of tomorrow", {"messages": [{"role": "user", "content": QUESTION}]}),
        (None, {}),
    ],
)
async def test_a_form_that_is_not_known_passes_as_it_is(
    memory: LaminaMemory, call_type: str | None, kwargs: dict[str, Any]
) -> None:
    assert await memory.async_pre_call_deployment_hook(kwargs, call_type) is None


async def test_embeddings_pass_and_are_not_recorded(memory: LaminaMemory, asked: list[dict[str, Any]]) -> None:
    await litellm.aembedding("openai/small", [BERTH])

    assert asked[0]["input"] == [BERTH]


async def test_a_service_that_is_away_does_not_stop_the_call(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm, "callbacks", [LaminaMemory(url="http://127.0.0.1:9")])

    assert (await ask(QUESTION)).choices[0].message.content == "Berth seven."


def test_the_example_prints_what_the_document_says(
    printed: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm, "callbacks", [])
    lines = printed("litellm.py").splitlines()

    assert lines[0] == "Berth seven."
    assert lines[4] == BERTH
