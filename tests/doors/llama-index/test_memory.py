from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.memory import Memory

from lamina.client import Client
from lamina.client.calls import Call
from lamina.integrations._turns import HEADING
from lamina.integrations.llama_index import LaminaMemoryBlock, LaminaRetriever

FACT = "The spare key hangs behind the barometer"
QUESTION = "Where does the spare key hang?"


@pytest.fixture
def client(door: Any) -> Iterator[Client]:
    with Client(scope={"workspace": door.workspace}) as client:
        yield client


@pytest.fixture
def block(door: Any) -> LaminaMemoryBlock:
    return LaminaMemoryBlock(scope={"workspace": door.workspace})


def said(client: Client, session: str) -> list[tuple[str, str]]:
    answer = client.send(Call("GET", f"/v1/sessions/{session}/messages", params=client._scope))
    return [(message["role"], message["content"]) for message in answer["messages"]]


async def test_a_memory_gets_what_its_last_message_needs(client: Client, block: LaminaMemoryBlock) -> None:
    client.add(FACT)
    memory = Memory.from_defaults("s", memory_blocks=[block])
    await memory.aput(ChatMessage(QUESTION, role="user"))

    shown = "\n".join(message.content or "" for message in await memory.aget())

    assert FACT in shown
    assert QUESTION in shown


async def test_what_leaves_the_short_term_memory_is_recorded_in_its_session(
    client: Client, block: LaminaMemoryBlock
) -> None:
    messages = [
        ChatMessage("Hello", role="user"),
        ChatMessage(blocks=[TextBlock(text="Look"), ImageBlock(url="http://127.0.0.1/x.png")], role="assistant"),
        ChatMessage("", role="assistant"),
        ChatMessage("It weighs 3 kg", role="tool"),
        ChatMessage("It weighs 3 kg", role="tool"),
    ]

    await block.aput(messages, from_short_term_memory=True, session_id="s1")
    await block.aput([ChatMessage("Elsewhere", role="user")], session_id="s2")
    await block.aput([])

    assert said(client, "s1") == [("user", "Hello"), ("assistant", "Look"), *[("tool", "It weighs 3 kg")] * 2]
    assert said(client, "s2") == [("user", "Elsewhere")]


async def test_what_is_no_question_finds_nothing_and_stops_nobody(door: Any) -> None:
    retriever = LaminaRetriever(scope={"workspace": door.workspace})

    assert [await retriever.aretrieve(text) for text in (" \u200b", "\0")] == [[], []]
    for text in ("key \ud83d \0", "สวัสดี" * 30_000):
        assert isinstance(retriever.retrieve(text), list)


async def test_a_block_without_a_question_is_empty(block: LaminaMemoryBlock) -> None:
    assert await block.aget() == ""
    assert await block.aget([ChatMessage("  ", role="user")]) == ""


async def test_the_question_is_the_user_s_and_a_long_or_unstorable_output_of_a_tool_stops_nothing(
    client: Client, block: LaminaMemoryBlock
) -> None:
    client.add(FACT)
    asked = ChatMessage(QUESTION, role="user")

    after_a_tool = await block.aget([asked, ChatMessage("x" * 150_000, role="tool")])
    alone = [await block.aget([ChatMessage(text, role="tool")]) for text in ("\u200b", "a\0\ud83d", "x " * 75_000)]

    assert after_a_tool == await block.aget([asked])
    assert after_a_tool.startswith(HEADING)
    assert FACT in after_a_tool
    assert alone[0] == ""


async def test_an_agent_runs_without_memory_where_lamina_is_away(caplog: pytest.LogCaptureFixture) -> None:
    block = LaminaMemoryBlock(url="http://127.0.0.1:9", key="k")

    assert await block.aget([ChatMessage(QUESTION, role="user")]) == ""
    await block.aput([ChatMessage("Hello", role="user")], session_id="s1")

    assert len(caplog.records) == 2


async def test_what_the_model_and_functions_say_is_not_the_user_s(client: Client, block: LaminaMemoryBlock) -> None:
    roles = ["model", "chatbot", "function"]

    await block.aput([ChatMessage(f"I am a {role}", role=role) for role in roles], session_id="s1")

    assert [role for role, _ in said(client, "s1")] == ["assistant", "assistant", "tool"]


async def test_under_pressure_the_memories_that_matter_least_go(client: Client, block: LaminaMemoryBlock) -> None:
    client.add_many([FACT, "The key of the boathouse is with the harbour master", "The key to the cellar is of brass"])
    whole = await block.aget([ChatMessage(QUESTION, role="user")])

    cut = await block.atruncate(whole, 10)

    assert cut is not None
    assert whole.startswith(cut)
    assert len(cut) <= len(whole) - 40
    assert FACT in cut
    assert await block.atruncate(whole, 10_000) is None


async def test_memories_of_any_script_make_way_by_their_tokens(block: LaminaMemoryBlock) -> None:
    memories = [f"[Memory: note]\n{letter * 100}" for letter in "กขค"]
    whole = HEADING + "\n\n".join(memories)

    assert await block.atruncate(whole, 80) == HEADING + "\n\n".join(memories[:2])
    assert await block.atruncate(whole, 150) == HEADING + memories[0]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_a_retriever_finds_in_all_tiers(door: Any, client: Client, is_async: bool) -> None:
    client.add_many([FACT, "The key of the boathouse is with the harbour master"])
    retriever = LaminaRetriever(1, {"workspace": door.workspace})

    (found,) = await retriever.aretrieve(QUESTION) if is_async else retriever.retrieve(QUESTION)

    assert found.node.get_content() == FACT
    assert found.node.metadata["tier"] == "notes"
    assert found.score is not None
    none = LaminaRetriever(1, {"workspace": door.workspace}, search={"tiers": ["documents"]})
    assert none.retrieve(QUESTION) == []


def test_a_memory_remembers_by_the_example(printed: Callable[[str], str]) -> None:
    assert printed("llama_index_memory.py") == "Behind the barometer.\n"
