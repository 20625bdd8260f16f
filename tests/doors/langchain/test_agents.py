"""The middleware and the history, in agents whose models are scripted."""

import asyncio
import base64
import logging
import random
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, message_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from lamina.client import Client
from lamina.client.calls import Call
from lamina.integrations._turns import TurnMemory
from lamina.integrations.langchain import LaminaChatMessageHistory, LaminaMiddleware

FACT = "The spare key hangs behind the barometer"
QUESTION = "Where does the spare key hang?"
PATIENCE_S = 30.0


class Scripted(BaseChatModel):
    """Says its lines and keeps what it was sent."""

    lines: list[AIMessage]
    requests: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.requests.append(messages)
        line = self.lines[(len(self.requests) - 1) % len(self.lines)]
        return ChatResult(generations=[ChatGeneration(message=line.model_copy())])


def weigh(parcel: str) -> str:
    """Weigh a parcel."""
    return f"{parcel} weighs 3 kg"


def weighing(id_: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "weigh", "args": {"parcel": "B7"}, "id": id_, "type": "tool_call"}])


@pytest.fixture
def client(door: Any) -> Iterator[Client]:
    with Client(scope={"workspace": door.workspace}) as client:
        yield client


@pytest.fixture
async def agent_of(door: Any) -> AsyncIterator[Callable[..., tuple[Any, Scripted]]]:
    """Make an agent with the middleware, and the model that it asks."""
    made = []

    def make(*lines: AIMessage, memory: Any = None, **options: Any) -> tuple[Any, Scripted]:
        model = Scripted(lines=list(lines), requests=[])
        made.append(LaminaMiddleware({"workspace": door.workspace}, **(memory or {})))
        return create_agent(model, middleware=[made[-1]], **options), model

    yield make
    for middleware in made:
        middleware.close()
        await middleware.aclose()


@pytest.fixture
def history_of(door: Any) -> Iterator[Callable[[str], LaminaChatMessageHistory]]:
    """Make the history of a session."""
    with ExitStack() as stack:
        yield lambda session: stack.enter_context(
            closing(LaminaChatMessageHistory(session, {"workspace": door.workspace}))
        )


def session_of(client: Client, session: str) -> list[Any]:
    found: list[Any] = client.send(Call("GET", f"/v1/sessions/{session}/messages", params=client._scope))["messages"]
    return found


async def until_found(client: Client, text: str) -> None:
    """Wait until a search finds a message: the index hears of it some milliseconds later."""
    async with asyncio.timeout(PATIENCE_S):
        while not client.search(text, tiers=["sessions"])["results"]:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_the_block_is_before_the_question_and_nowhere_else(agent_of: Any, client: Client, is_async: bool) -> None:
    client.add(FACT)
    agent, model = agent_of(AIMessage("Behind the barometer."), system_prompt="You are brief.")
    asked = {"messages": [("human", "Hello"), ("ai", "Hello."), ("human", QUESTION)]}

    state = await agent.ainvoke(asked) if is_async else agent.invoke(asked)

    (request,) = model.requests
    assert [message.type for message in request] == ["system", "human", "ai", "human", "human"]
    assert request[0].text == "You are brief."
    assert FACT in request[3].text
    assert request[4].text == QUESTION
    assert [message.text for message in state["messages"]] == ["Hello", "Hello.", QUESTION, "Behind the barometer."]
    assert "lamina_block" not in state


async def test_a_run_is_recorded_in_the_session_of_its_thread(agent_of: Any, client: Client) -> None:
    first, second = weighing("call-1"), weighing("call-2")
    said = AIMessage("It weighs 3 kg.")
    agent, model = agent_of(first, said, second, said, tools=[weigh], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "thread-1"}}

    agent.invoke({"messages": [("human", "How much does parcel B7 weigh?")]}, thread)
    agent.invoke({"messages": [("human", "And once more, please?")]}, thread)

    recorded = session_of(client, "thread-1")
    assert [item["role"] for item in recorded] == ["user", "tool", "assistant"] * 2
    assert recorded[0]["content"] == "How much does parcel B7 weigh?"
    assert "B7 weighs 3 kg" in recorded[1]["content"]
    assert not any("<memory>" in item["content"] for item in recorded)
    assert len(model.requests) == 4


async def test_both_calls_of_a_run_get_the_same_block(agent_of: Any, client: Client) -> None:
    client.add(FACT)
    agent, model = agent_of(weighing("call-1"), AIMessage("Behind the barometer."), tools=[weigh])

    await agent.ainvoke({"messages": [("human", QUESTION)]})

    first, second = model.requests
    assert [message.type for message in second] == ["human", "human", "ai", "tool"]
    assert first == second[:2]
    assert FACT in first[0].text


def test_nothing_is_recorded_where_that_is_off(agent_of: Any, client: Client) -> None:
    agent, _ = agent_of(AIMessage("Noted."), memory={"records": False})

    agent.invoke({"messages": [("human", FACT)]}, {"configurable": {"thread_id": "silent"}})

    assert session_of(client, "silent") == []


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_agent_runs_without_memory_where_lamina_is_away(
    door: Any, agent_of: Any, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    agent, model = agent_of(AIMessage("Hello."), memory={"url": door.url, "key": "lamina_wrong"})

    with caplog.at_level(logging.WARNING):
        asked = {"messages": [("human", QUESTION)]}, {"configurable": {"thread_id": "s"}}
        state = await agent.ainvoke(*asked) if is_async else agent.invoke(*asked)

    assert state["messages"][-1].text == "Hello."
    assert [message.text for message in model.requests[0]] == [QUESTION]
    assert [record.message.partition(":")[0] for record in caplog.records if "lamina" in record.name] == [
        "a call goes on without memories",
        "a turn of session s was not recorded",
    ]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_agent_does_not_wait_longer_than_it_may(
    agent_of: Any, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        memory = {"url": f"http://127.0.0.1:{silent.getsockname()[1]}", "timeout_s": 0.2, "records": False}
        agent, model = agent_of(AIMessage("Hello."), memory=memory)

        asked = {"messages": [("human", QUESTION)]}
        await agent.ainvoke(asked) if is_async else agent.invoke(asked)

    assert [message.text for message in model.requests[0]] == [QUESTION]
    assert "without memories" in caplog.text


async def test_pauses_and_further_tries_count_as_waiting(caplog: pytest.LogCaptureFixture) -> None:
    refused = b"HTTP/1.1 503 x\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
    body = b'{"fields": {"part": "turn"}}'
    asked = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(refused + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = await TurnMemory(url=f"http://127.0.0.1:{port}", timeout_s=1.6).recall(QUESTION)

    assert found == ("", [])
    assert len(asked) <= 2
    assert "no answer in time" in caplog.text


async def test_a_thread_is_told_what_others_said_and_not_its_own_messages(agent_of: Any, client: Client) -> None:
    agent, model = agent_of(AIMessage("Noted."), checkpointer=InMemorySaver())
    said, thread = f"{FACT}, says Ann", {"configurable": {"thread_id": "thread-1"}}
    await agent.ainvoke({"messages": [("human", said)]}, thread)
    await until_found(client, FACT)

    await agent.ainvoke({"messages": [("human", QUESTION)]}, thread)
    await agent.ainvoke({"messages": [("human", QUESTION)]}, {"configurable": {"thread_id": "thread-2"}})

    own, others = model.requests[1:]
    assert not any("<memory>" in message.text and said in message.text for message in own)
    assert said in others[0].text


async def test_a_thread_that_nobody_kept_is_told_its_own_messages(agent_of: Any, client: Client) -> None:
    agent, model = agent_of(AIMessage("Noted."))
    client.record([{"content": FACT}], session="thread-1")
    await until_found(client, FACT)

    await agent.ainvoke({"messages": [("human", QUESTION)]}, {"configurable": {"thread_id": "thread-1"}})

    assert FACT in model.requests[0][0].text


PICTURE = base64.b64encode(random.Random(0).randbytes(900_000)).decode()  # noqa: S311 - no secret
HISTORY: list[BaseMessage] = [
    SystemMessage("You are brief."),
    HumanMessage("  Where is it?\r\n", name="ann", id="m1"),
    HumanMessage([{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]),
    weighing("call-1"),
    ToolMessage("3 kg", tool_call_id="call-1"),
    ToolMessage("done", tool_call_id="call-2"),
    ToolMessage("done", tool_call_id="call-3"),
    AIMessage("Three. 👩‍🌾", usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}),
    HumanMessage(""),
    HumanMessage("word " * 20_000),
    HumanMessage("สวัสดีชาวโลก" * 2_500),
    HumanMessage("half a character \ud83d, a \0"),
    HumanMessage(" " * 1_000_000),
    HumanMessage([{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}]),
    AIMessage("", tool_calls=[{"name": "write", "args": {"text": "日" * 40_000}, "id": "c", "type": "tool_call"}]),
    ToolMessage("done", tool_call_id="c", artifact={"at": ["a", 1]}),
]


def test_messages_come_back_as_they_were_added(history_of: Any) -> None:
    history = history_of("s/1")
    other = history_of("s/2")
    history.add_messages(HISTORY)
    other.add_user_message("Another session")

    assert history.messages == HISTORY
    history.add_ai_message("Once more")
    assert [message.text for message in history.messages][-1] == "Once more"

    history.clear()
    assert history.messages == []
    assert [message.text for message in other.messages] == ["Another session"]


def test_the_histories_of_users_and_of_nobody_stay_apart(door: Any) -> None:
    scopes = ({}, {"user": "ann"}, {"user": "bob"})
    with ExitStack() as stack:
        nobodys, anns, bobs = (
            stack.enter_context(closing(LaminaChatMessageHistory("s", {"workspace": door.workspace, **scope})))
            for scope in scopes
        )
        nobodys.add_user_message("Hello, all")
        anns.add_user_message("Hello, Ann")

        assert [[message.text for message in one.messages] for one in (nobodys, anns, bobs)] == [
            ["Hello, all"],
            ["Hello, Ann"],
            [],
        ]
        anns.clear()
        assert [message.text for message in nobodys.messages] == ["Hello, all"]


async def test_a_history_has_asynchronous_methods(history_of: Any) -> None:
    history = history_of("s")

    await history.aadd_messages([HumanMessage(f"Message {number}") for number in range(230)])

    assert [message.text for message in await history.aget_messages()] == [f"Message {n}" for n in range(230)]
    await history.aclear()
    assert await history.aget_messages() == []


def test_a_history_that_is_cleared_by_two_at_once_is_empty(history_of: Any) -> None:
    histories = [history_of("s") for _ in range(2)]
    histories[0].add_messages([HumanMessage(f"Message {number}") for number in range(20)])

    with ThreadPoolExecutor() as executor:
        list(executor.map(lambda history: history.clear(), histories))

    assert histories[0].messages == []


def test_messages_as_they_were_kept_at_first_are_read(history_of: Any, client: Client) -> None:
    short, long = HumanMessage("  Hello\r\n", name="ann"), HumanMessage("word " * 9_000)
    whole, without = message_to_dict(short), message_to_dict(long)
    del without["data"]["content"]
    client.record(
        [
            {"content": "Hello", "ref": "1", "metadata": {"langchain": whole, "lamina_user": None}},
            {"content": long.content, "ref": "2", "metadata": {"langchain": without, "lamina_user": None}},
        ],
        session="old",
    )

    assert history_of("old").messages == [short, long]


def test_messages_of_another_door_are_read(history_of: Any, client: Client) -> None:
    client.record([{"content": "Hello"}, {"role": "assistant", "content": "Hi"}], session="mixed")

    messages = history_of("mixed").messages

    assert [(message.type, message.text) for message in messages] == [("human", "Hello"), ("ai", "Hi")]


def test_an_agent_remembers_by_the_example(printed: Callable[[str], str]) -> None:
    assert printed("langchain_agent.py") == "Behind the barometer.\n2 messages: the block is not among them\n"


async def test_one_middleware_serves_many_runs_at_once(agent_of: Any, client: Client) -> None:
    client.add(FACT)
    agent, model = agent_of(AIMessage("Behind the barometer."))

    await asyncio.gather(*(agent.ainvoke({"messages": [("human", f"{QUESTION} {n}")]}) for n in range(8)))

    assert all(FACT in request[0].text for request in model.requests)
    assert {request[1].text for request in model.requests} == {f"{QUESTION} {n}" for n in range(8)}
