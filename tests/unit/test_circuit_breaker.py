"""Calls that fail or hang: soon answered by an error, and soon not made at all."""

import asyncio
import logging

import pytest

from lamina.aio import circuit_breaker
from lamina.aio.circuit_breaker import BreakerPolicy, CircuitBreaker
from lamina.errors import Overloaded, Unavailable
from tests.support.virtual_time import in_virtual_time

GUARD = BreakerPolicy(deadline_s=10, failures=2, pause_s=60)


class Part:
    """Works, fails or hangs, as the test says."""

    def __init__(self) -> None:
        self.state = "up"
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.state == "failing":
            raise ConnectionError("it is gone")
        if self.state == "hanging":
            await asyncio.sleep(60)
        return "answer"


@pytest.mark.parametrize(("state", "error"), [("failing", ConnectionError), ("hanging", Unavailable)])
@in_virtual_time
async def test_a_part_that_fails_is_open_and_asked_again_later(
    state: str, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    part, guarded = Part(), CircuitBreaker("part", GUARD)
    part.state = state
    for _ in range(2):
        with pytest.raises(error):
            await guarded.call(part)

    with pytest.raises(Overloaded):
        await guarded.call(part)
    assert (part.calls, guarded.is_open) == (2, True)

    part.state = "up"
    await asyncio.sleep(61)
    assert await guarded.call(part) == "answer"
    assert not guarded.is_open
    mine = [record for record in caplog.records if record.name == circuit_breaker.__name__]
    assert [record.message for record in mine if record.levelno == logging.WARNING] == [
        "part fails and is left alone for a while"
    ]


@in_virtual_time
async def test_a_single_failure_changes_nothing_and_a_call_may_have_a_deadline_of_its_own() -> None:
    part, guarded = Part(), CircuitBreaker("part", GUARD)
    part.state = "failing"
    with pytest.raises(ConnectionError):
        await guarded.call(part)
    part.state = "up"

    async def slow() -> str:
        await asyncio.sleep(20)
        return await part()

    assert await guarded.call(slow, deadline_s=30) == "answer"
    with pytest.raises(Unavailable, match="no answer within 10 s"):
        await guarded.call(slow)
