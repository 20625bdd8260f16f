from collections.abc import Callable
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from lamina.client import AsyncClient
from lamina.errors import NotFound
from lamina.integrations.google_adk import LaminaMemoryService

BERTH = "The Marlin gets berth seven."
ANNS = {"app_name": "harbour", "user_id": "ann"}


@pytest.fixture
def memory(door: Any) -> LaminaMemoryService:
    return LaminaMemoryService({"workspace": door.workspace})


def content(text: str | None, role: str = "user", **part: Any) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text, **part)])


def event(id_: str, text: str | None, author: str = "user", **fields: Any) -> Event:
    return Event(id=id_, author=author, timestamp=1_750_000_000.5, content=content(text), **fields)


async def stored(door: Any, session: str = "monday") -> list[str]:
    async with AsyncClient(scope={"workspace": door.workspace, "user": "ann", "agent": "harbour"}) as client:
        return [item["content"] for item in (await client.messages(session, limit=1000))["messages"]]


async def test_a_session_is_added_many_times_and_stored_once(door: Any, memory: LaminaMemoryService) -> None:
    events = [event("e1", BERTH), event("e2", "Noted.", "harbour_master"), event("e3", BERTH)]
    for most in (1, 2, 3, 3):
        await memory.add_session_to_memory(
            Session(id="monday", app_name="harbour", user_id="ann", events=events[:most])
        )
    await memory.add_events_to_memory(**ANNS, events=events[1:], session_id="monday")

    assert await stored(door) == [BERTH, "Noted.", BERTH]


async def test_what_is_no_text_is_left_out(door: Any, memory: LaminaMemoryService) -> None:
    call = types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(name="tides", args={}))])
    events = [
        event("e1", None),
        event("e2", "  "),
        event("e3", "half", partial=True),
        Event(id="e4", author="m", content=call),
        Event(id="e5", author="m"),
        Event(id="e6", author="m", content=content("I wonder.", "model", thought=True)),
        event("e7", "caf\u00e9 \x00 \ud83d"),
    ]

    await memory.add_events_to_memory(**ANNS, events=events, session_id="monday", custom_metadata={"ttl": 5})

    assert await stored(door) == ["caf\u00e9  \ufffd"]


async def test_more_events_than_a_request_takes_stay_in_order(door: Any, memory: LaminaMemoryService) -> None:
    events = [event(f"e{number}", f"Boat {number}") for number in range(210)]

    await memory.add_events_to_memory(**ANNS, events=events, session_id="monday")

    assert await stored(door) == [f"Boat {number}" for number in range(210)]


async def test_a_long_text_is_stored_with_both_its_ends_and_strange_questions_stop_nobody(
    door: Any, memory: LaminaMemoryService
) -> None:
    long = f"First. {'สวัสดีชาวโลก ' * 12_000} Last."
    await memory.add_events_to_memory(**ANNS, events=[event("e" * 200, long)], session_id="monday")

    (text,) = await stored(door)
    assert (text[:6], text[-5:], len(text)) == ("First.", "Last.", 109_999)
    assert (await memory.search_memory(**ANNS, query=" \u200b\0")).memories == []
    long_question = f"{'x' * 200_000} \ud83d First"
    assert isinstance((await memory.search_memory(**ANNS, query=long_question)).memories, list)
    entries = [MemoryEntry(content=content(text)) for text in ("\0 \u200b", "\0 tea")]
    await memory.add_memory(**ANNS, memories=entries)
    async with AsyncClient(scope={"workspace": door.workspace, "user": "ann", "agent": "harbour"}) as client:
        assert [item["content"].strip() for item in (await client.notes())["notes"]] == ["tea"]


async def test_a_user_of_an_application_finds_their_own(memory: LaminaMemoryService) -> None:
    await memory.add_events_to_memory(**ANNS, events=[event("e1", BERTH)], session_id="monday")

    found = (await memory.search_memory(**ANNS, query="Which berth does the Marlin have?")).memories
    bobs = await memory.search_memory(app_name="harbour", user_id="bob", query="Which berth does the Marlin have?")

    assert [entry.content.parts[0].text for entry in found if entry.content.parts] == [BERTH]
    assert (found[0].author, found[0].content.role, found[0].timestamp) == (
        "user",
        "user",
        "2025-06-15T15:06:40.500000Z",
    )
    assert bobs.memories == []


async def test_memories_are_stored_found_and_deleted_by_their_ids(memory: LaminaMemoryService) -> None:
    entries = [MemoryEntry(content=content(BERTH), custom_metadata={"boat": "Marlin"})]
    for _ in range(2):
        await memory.add_memory(**ANNS, memories=entries, custom_metadata={"kind": "berth"})
    await memory.add_events_to_memory(**ANNS, events=[event("e1", "The berth of the Marlin is free.")], session_id="m")

    found = (await memory.search_memory(**ANNS, query="berth of the Marlin")).memories
    assert sorted(entry.custom_metadata.get("boat", "") for entry in found) == ["", "Marlin"]
    for entry in found:
        await memory.delete_memory(**ANNS, memory_id=entry.id)

    assert (await memory.search_memory(**ANNS, query="berth of the Marlin")).memories == []
    with pytest.raises(ValueError, match="memory_id"):
        await memory.delete_memory(**ANNS)


@pytest.mark.parametrize("other", [{"user_id": "bob"}, {"app_name": "another"}])
async def test_a_memory_is_deleted_for_its_user_in_its_application_alone(
    memory: LaminaMemoryService, other: dict[str, str]
) -> None:
    await memory.add_memory(**ANNS, memories=[MemoryEntry(content=content(BERTH))])
    [entry] = (await memory.search_memory(**ANNS, query="berth of the Marlin")).memories

    with pytest.raises(NotFound):
        await memory.delete_memory(**{**ANNS, **other}, memory_id=entry.id)

    assert (await memory.search_memory(**ANNS, query="berth of the Marlin")).memories == [entry]


def test_the_example_prints_what_the_document_says(printed: Callable[[str], str]) -> None:
    assert printed("google_adk.py").splitlines() == ["Noted.", "The Marlin gets berth seven."]
