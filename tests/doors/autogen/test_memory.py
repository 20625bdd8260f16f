from collections.abc import Callable
from typing import Any

import pytest
from autogen_core import Image
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import AssistantMessage, SystemMessage, UserMessage
from PIL import Image as Picture

from lamina.client import AsyncClient
from lamina.integrations.autogen import LaminaMemory

BERTH = "The Marlin gets berth seven."


@pytest.fixture
def memory(door: Any) -> LaminaMemory:
    return LaminaMemory({"workspace": door.workspace})


def note(content: Any, **metadata: Any) -> MemoryContent:
    return MemoryContent(content=content, mime_type=MemoryMimeType.TEXT, metadata=metadata or None)


async def test_what_was_added_is_found_with_its_metadata(memory: LaminaMemory) -> None:
    await memory.add(note(BERTH, kind="berth"))
    await memory.add(note({"boat": "Heron", "länge": 7}))

    found = (await memory.query(note("Which berth does the Marlin have?"), limit=1)).results
    heron = (await memory.query("Heron", limit=1)).results

    assert [(item.content, item.metadata["metadata"]) for item in found] == [(BERTH, {"kind": "berth"})]
    assert heron[0].content == '{"boat": "Heron", "länge": 7}'
    assert isinstance(memory, Memory)


async def test_a_context_gets_what_fits_its_last_question_and_nothing_where_there_is_none(memory: LaminaMemory) -> None:
    empty = UnboundedChatCompletionContext()
    assert (await memory.update_context(empty)).memories.results == []
    await memory.add(note(BERTH))
    asked = UnboundedChatCompletionContext()
    await asked.add_message(UserMessage(content="Which berth does the Marlin have?", source="ann"))
    await asked.add_message(AssistantMessage(content="Let me see.", source="agent"))

    told = await memory.update_context(asked)

    assert [item.content for item in told.memories.results] == [BERTH]
    (*_, last) = await asked.get_messages()
    assert isinstance(last, SystemMessage)
    assert BERTH in last.content
    assert await empty.get_messages() == []


async def test_whatever_a_tool_says_is_added_and_asked_for(door: Any, memory: LaminaMemory) -> None:
    for text in (" \u200b", "\0", "tea \0\ud83d", "ชา" * 70_000):
        await memory.add(note(text))
        await memory.query(text)

    async with AsyncClient(scope={"workspace": door.workspace}) as client:
        assert sorted(len(item["content"]) for item in (await client.notes())["notes"]) == [5, 109_999]


async def test_a_scope_is_cleared_alone(door: Any, memory: LaminaMemory) -> None:
    other = LaminaMemory({"workspace": f"{door.workspace} 2"})
    for number in range(3):
        await memory.add(note(f"Boat {number} is {number + 7} m long"))
    await other.add(note(BERTH))

    await memory.clear()

    assert (await memory.query("boat")).results == []
    assert [item.content for item in (await other.query("berth")).results] == [BERTH]
    await memory.close()


async def test_shared_notes_are_cleared_and_not_those_of_users(door: Any, memory: LaminaMemory) -> None:
    anns = LaminaMemory({"workspace": door.workspace, "user": "Zoe\u0308"})
    await memory.add(note(BERTH))
    await anns.add(note("Zoë sails the Heron."))

    await memory.clear()

    async with AsyncClient(scope={"workspace": door.workspace}) as client:
        assert [left["content"] for left in (await client.notes())["notes"]] == ["Zoë sails the Heron."]
        await anns.clear()
        assert (await client.notes())["notes"] == []


async def test_a_user_s_notes_are_cleared_and_not_those_that_are_shared(door: Any, memory: LaminaMemory) -> None:
    anns = LaminaMemory({"workspace": door.workspace, "user": "ann"})
    await memory.add(note(BERTH))
    await anns.add(note("Ann sails the Heron."))

    await anns.clear()

    async with AsyncClient(scope={"workspace": door.workspace}) as client:
        assert [left["content"] for left in (await client.notes())["notes"]] == [BERTH]


async def test_an_image_is_refused(memory: LaminaMemory) -> None:
    with pytest.raises(ValueError, match="Image is neither"):
        await memory.add(note(Image(Picture.new("RGB", (1, 1)))))


async def test_it_is_made_again_from_its_component_without_the_key(memory: LaminaMemory) -> None:
    await memory.add(note(BERTH))
    component = memory.dump_component()

    again = LaminaMemory.load_component(component)

    assert "key" not in component.config
    assert [item.content for item in (await again.query("berth")).results] == [BERTH]


async def test_a_service_that_is_away_does_not_stop_the_agent(door: Any) -> None:
    context = UnboundedChatCompletionContext(initial_messages=[UserMessage(content=BERTH, source="ann")])

    told = await LaminaMemory(url="http://127.0.0.1:9").update_context(context)

    assert told.memories.results == []
    assert len(await context.get_messages()) == 1


def test_the_example_prints_what_the_document_says(printed: Callable[[str], str]) -> None:
    lines = printed("autogen.py").splitlines()

    assert lines[0] == "Berth seven."
    assert lines[4] == "The Marlin gets berth seven."
