import asyncio
import base64
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from agents import Session, SessionSettings

from lamina.client import AsyncClient, Client
from lamina.integrations import openai_agents
from lamina.integrations.openai_agents import LaminaSession

ITEMS: list[Any] = [
    {"role": "user", "content": "The Marlin gets berth seven."},
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "gAAAA"},
    {"type": "function_call", "id": "f1", "call_id": "c1", "name": "tides", "arguments": '{"port":  "Faro"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "12:00"},
    {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "High water is at noon.", "annotations": [], "logprobs": []}],
    },
]
PICTURE = base64.b64encode(random.Random(0).randbytes(1_500_000)).decode()  # noqa: S311 - no secret
STRANGE: list[Any] = [
    {"role": "user", "content": "cafe\u0301 \u212b \r\n\t \x00 \ud83d   "},
    {"role": "user", "content": ""},
    {"role": "user", "content": "   "},
    {"role": "developer", "content": "日本語 العربية \U0001f41f"},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
    {"type": "function_call_output", "call_id": "c", "output": "x" * 200_000},
    {"type": "function_call_output", "call_id": "c", "output": "日" * 60_000},
    {"type": "of tomorrow", "a": {"b": [1, 1.0, 1e300, None, True, {"c": []}]}, "": "empty name"},
    {"role": "user", "content": "[Memory: note]\nconfidence: 1.00"},
    {"role": "user", "content": " " * 1_000_000},
    {"role": "user", "content": "สวัสดีชาวโลก" * 10_000},
    {"type": "function_call_output", "call_id": "c", "output": "The lighthouse keeper lit the lantern. " * 16_000},
    {"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}]},
]


@pytest.fixture
def session(door: Any) -> LaminaSession:
    return LaminaSession("a / session?", scope={"workspace": door.workspace})


def test_it_is_a_session_of_the_framework(session: LaminaSession) -> None:
    assert isinstance(session, Session)


async def test_items_come_back_as_they_were_added_and_a_limit_takes_the_latest(session: LaminaSession) -> None:
    await session.add_items(ITEMS[:2])
    await session.add_items([])
    await session.add_items(ITEMS[2:])

    assert await session.get_items() == ITEMS
    assert [list(item) for item in await session.get_items()] == [list(item) for item in ITEMS]
    assert await session.get_items(limit=2) == ITEMS[-2:]
    assert await session.get_items(limit=0) == []
    assert await session.get_items(limit=100) == ITEMS


@pytest.mark.parametrize("item", STRANGE, ids=range(len(STRANGE)))
async def test_a_strange_item_comes_back_as_it_was(session: LaminaSession, item: Any) -> None:
    await session.add_items([item, item])

    assert await session.get_items() == [item, item]
    assert await session.pop_item() == item
    assert await session.get_items() == [item]


async def test_more_items_than_a_request_takes_stay_in_order(
    session: LaminaSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_agents, "_PAGE", 100)
    items: list[Any] = [{"role": "user", "content": f"Boat {number}"} for number in range(230)]
    await session.add_items(items)

    assert await session.get_items() == items
    assert await session.get_items(3) == items[-3:]


async def test_the_settings_of_the_framework_limit_what_is_read(door: Any) -> None:
    scope = {"workspace": door.workspace}
    session = LaminaSession("s", scope=scope, session_settings=SessionSettings(limit=2))
    await session.add_items(ITEMS)

    assert await session.get_items() == ITEMS[-2:]


async def test_each_of_those_who_pop_at_once_gets_another_item(session: LaminaSession) -> None:
    items: list[Any] = [{"role": "user", "content": f"Boat {number}"} for number in range(5)]
    await session.add_items(items)

    popped = await asyncio.gather(*(session.pop_item() for _ in range(7)))

    assert sorted(item["content"] for item in popped if item) == [item["content"] for item in items]
    assert popped.count(None) == 2
    assert await session.get_items() == []


async def test_a_session_is_cleared_alone_and_goes_on(door: Any, session: LaminaSession) -> None:
    other = LaminaSession("other", scope={"workspace": door.workspace})
    await session.add_items(ITEMS)
    await other.add_items(ITEMS[:1])

    await session.clear_session()
    await session.add_items(ITEMS[-1:])

    assert await session.get_items() == ITEMS[-1:]
    assert await other.get_items() == ITEMS[:1]
    assert await LaminaSession("never", scope={"workspace": door.workspace}).pop_item() is None


async def test_a_session_is_cleared_with_one_read_of_it(
    session: LaminaSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await session.add_items([{"role": "user", "content": f"Boat {number}"} for number in range(30)])
    asked, send = Counter[str](), AsyncClient.send

    async def counted(client: AsyncClient, call: Any) -> Any:
        asked[call.method] += 1
        return await send(client, call)

    monkeypatch.setattr(AsyncClient, "send", counted)
    await session.clear_session()

    assert asked == {"GET": 1, "DELETE": 30}
    assert await session.pop_item() is None
    assert await session.get_items() == []


async def test_those_who_clear_and_pop_at_once_leave_an_empty_session(session: LaminaSession) -> None:
    await session.add_items([*ITEMS, STRANGE[-1]])

    _, _, popped = await asyncio.gather(session.clear_session(), session.clear_session(), session.pop_item())

    assert popped is None or popped in [*ITEMS, STRANGE[-1]]
    assert await session.get_items() == []
    assert await session.pop_item() is None


async def test_of_an_item_of_several_messages_nothing_is_left(door: Any, session: LaminaSession) -> None:
    await session.add_items([STRANGE[-1]])

    assert await session.pop_item() == STRANGE[-1]

    async with AsyncClient(scope={"workspace": door.workspace}) as client:
        assert (await client.messages(session.session_id))["messages"] == []


async def test_large_items_that_are_added_together_come_back_in_order(session: LaminaSession) -> None:
    items: list[Any] = [
        {"type": "function_call_output", "call_id": f"c{number}", "output": f"{number} boats in the harbour. " * 5_000}
        for number in range(5)
    ]
    await session.add_items(items)

    assert await session.get_items() == items


async def test_a_user_has_sessions_of_their_own(door: Any) -> None:
    anns, bobs = (LaminaSession("s", scope={"workspace": door.workspace, "user": user}) for user in ("ann", "bob"))
    await anns.add_items(ITEMS[:1])

    assert await bobs.get_items() == []
    assert await bobs.pop_item() is None
    assert await anns.get_items() == ITEMS[:1]


async def test_a_user_of_any_script_has_one_session_however_the_name_is_written(door: Any) -> None:
    names = ("Zoë", "Zoe\u0308")
    one, other = (LaminaSession("s", scope={"workspace": door.workspace, "user": user}) for user in names)
    await one.add_items(ITEMS[:1])

    assert await other.get_items() == ITEMS[:1]


async def test_a_session_of_nobody_and_those_of_users_stay_apart(door: Any) -> None:
    nobodys, anns = (LaminaSession("s", scope={"workspace": door.workspace, **user}) for user in ({}, {"user": "ann"}))
    await nobodys.add_items(ITEMS[:1])
    await anns.add_items(ITEMS[3:])

    assert await nobodys.get_items() == ITEMS[:1]
    assert await anns.get_items() == ITEMS[3:]
    await anns.clear_session()
    assert await nobodys.get_items() == ITEMS[:1]
    await anns.add_items(ITEMS[3:])
    await nobodys.clear_session()
    assert await anns.get_items() == ITEMS[3:]


async def test_encrypted_reasoning_is_not_searched(door: Any, session: LaminaSession) -> None:
    await session.add_items(ITEMS)

    with Client(scope={"workspace": door.workspace}) as client:
        found = client.search("gAAAA", tiers=["sessions"])["results"]
    assert not any("gAAAA" in result["content"] for result in found)


def test_the_example_prints_what_the_document_says(printed: Callable[[str], str]) -> None:
    assert printed("openai_agents.py").splitlines() == [
        "I know 1 items of this conversation.",
        "I know 3 items of this conversation.",
        "The Marlin gets berth seven.",
    ]
