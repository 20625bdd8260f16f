"""The record of a turn by the frameworks' doors, with all that an agent may say and call."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from lamina.client import AsyncClient
from lamina.errors import InvalidInput
from lamina.integrations._turns import TurnMemory
from lamina.text.turn_parts import fitting_id
from tests.support.application import Application


class InProcess(TurnMemory):
    """Speaks to a service of this process."""

    def __init__(self, application: Application) -> None:
        super().__init__({"workspace": "atlas"}, timeout_s=60)
        self._application = application
        self.patience_s: list[float] = []

    def client(self, ids: Mapping[str, str] | None = None, *, timeout_s: float | None = None) -> AsyncClient:
        self.patience_s.append(timeout_s or 0)
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


async def test_whatever_a_user_says_is_recorded(application: Application) -> None:
    strange = [
        "สวัสดีชาวโลก " * 20_000,
        "7 " * 150_000,
        f"{' ' * 600_000}here{' ' * 600_000}",
        "🦊" * 130_000,
        "\0\ud83d",
    ]
    said = [{"role": "user", "content": text, "ref": f"{place}"} for place, text in enumerate(["Before.", *strange])]

    found = await recorded(application, [*said, {"role": "assistant", "content": "After.", "ref": "a"}])

    texts = [item["content"] for item in found]
    assert [texts[0], texts[-1]] == ["Before.", "After."]
    assert [text[:6] for text in texts[1:-1]] == ["สวัสดี", "7 7 7 ", "here", "🦊" * 6, "\ufffd"]


async def test_a_record_waits_as_long_as_its_texts_take(application: Application) -> None:
    memory = InProcess(application)
    memory._timeout_s = 0.5
    said = [{"role": "user", "content": f"{number}. " + "สวัสดี" * 4_000, "ref": f"{number}"} for number in range(2)]

    await memory.record(said, session="s")

    assert [round(seconds) for seconds in memory.patience_s] == [34, 34]


async def test_a_part_that_is_refused_does_not_stop_the_others_and_is_told(application: Application) -> None:
    memory = InProcess(application)
    long = "สวัสดี" * 6_000
    said = [
        {"role": "user", "content": f"1 {long}", "ref": "1"},
        {"role": "nobody", "content": f"2 {long}", "ref": "2"},
        {"role": "user", "content": f"3 {long}", "ref": "3"},
    ]

    with pytest.raises(InvalidInput, match="role"):
        await memory.store(said, session="s")

    async with memory.client() as client:
        assert [item["content"][0] async for item in client.messages.each("s")] == ["1", "3"]
