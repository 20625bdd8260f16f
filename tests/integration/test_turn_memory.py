"""The record of a turn by the frameworks' doors, with all that an agent may say and call."""

from collections.abc import Mapping
from typing import Any

import httpx

from lamina.client import AsyncClient
from lamina.integrations._turns import TurnMemory, _parts, fitting_id
from tests.support.application import Application


class InProcess(TurnMemory):
    """Speaks to a service of this process."""

    def __init__(self, application: Application) -> None:
        super().__init__({"workspace": "atlas"}, timeout_s=60)
        self._application = application

    def client(self, ids: Mapping[str, str] | None = None) -> AsyncClient:
        transport = httpx.ASGITransport(self._application.api)
        scope = {**(ids or {}), **self._scope}
        return AsyncClient("http://lamina", self._application.key, scope=scope, transport=transport)


async def recorded(application: Application, messages: list[dict[str, Any]], **work: Any) -> list[Any]:
    """Record a turn of a session whose name is too long for one, and return the messages of the session."""
    memory, session = InProcess(application), "s" * 200
    await memory.record(messages, session=session, **work)
    async with memory.client() as client:
        return [item async for item in client.messages.each(fitting_id(session), limit=1000)]


async def test_a_turn_is_recorded_whatever_its_tools_were_told_and_answered(application: Application) -> None:
    calls = [
        {"name": "read", "arguments": {"path": "a\0b\ud83d"}, "result": "\0\x01ELF\udc00", "id": "c" * 500},
        {"name": "write", "arguments": {"content": "x" * 100_000, "mode": float("nan")}, "result": "done"},
        {"name": "many", "arguments": {"numbers": list(range(9_000))}, "result": "r" * 2_000_000},
        {"name": "n" * 300, "arguments": {"when": object()}, "result": None},
    ]
    said = [
        {"role": "user", "content": "Read the file, please.", "ref": "u" * 300},
        {"role": "assistant", "content": "\u200b\n", "ref": "blank"},
        {"role": "assistant", "content": "It is a program.", "ref": "a1"},
    ]

    found = await recorded(application, said, tool_calls=calls, usage={"model": "m" * 200, "input_tokens": 3})

    texts = [item["content"] for item in found]
    assert texts[0] == "Read the file, please."
    assert texts[-1] == "It is a program."
    assert [text.split("(")[0] for text in texts[1:4]] == ["read", "write", "many"]
    assert len(texts) == 6


async def test_a_run_of_more_steps_than_one_request_takes_is_recorded_in_order(application: Application) -> None:
    said = [{"role": "user", "content": f"step {place}", "ref": str(place)} for place in range(150)]
    calls = [{"name": "count", "arguments": {"place": place}, "id": f"c{place}"} for place in range(150)]
    last = {"role": "assistant", "content": "That was all.", "ref": "last"}

    found = await recorded(application, [*said, last], tool_calls=calls)

    assert [item["content"] for item in found[:150]] == [item["content"] for item in said]
    assert [item["role"] for item in found[150:300]] == ["tool"] * 150
    assert found[300]["content"] == "That was all."


def test_texts_that_are_too_many_for_one_request_go_in_several() -> None:
    texts = [{"role": "user", "content": f"{place}. " + "我们决定在星期五发布。" * 3_500} for place in range(5)]

    parts = list(_parts(texts, []))

    assert [len(part["messages"]) for part in parts] == [2, 2, 1]
    assert [message for part in parts for message in part["messages"]] == texts
