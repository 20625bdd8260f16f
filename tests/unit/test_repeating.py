"""Tests of work that goes on through failures."""

import asyncio
import logging
from itertools import chain

import pytest

from lamina.aio.repeating import repeat
from lamina.errors import Unavailable


async def test_work_goes_on_after_failures_until_a_turn_says_that_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    of_outages = [None, Unavailable("postgres", "no answer"), 0, RuntimeError("row\nof somebody"), 1]
    outcomes = chain(of_outages, [KeyError("seq"), True, None])

    async def turn() -> object:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with caplog.at_level(logging.WARNING):
        await repeat(turn, "letters are not sent", every_s=0.0)

    assert list(outcomes) == [None]
    # What other tests left running may log meanwhile.
    records = [record for record in caplog.records if record.name == "lamina.aio.repeating"]
    assert [record.getMessage() for record in records] == [
        f"letters are not sent: {Unavailable('postgres', 'no answer')}",
        "letters are not sent: RuntimeError: row",
        "letters are not sent: KeyError: 'seq'",
    ]
    assert [bool(record.exc_info) for record in records] == [False, False, True]


async def test_work_ends_when_it_is_cancelled_within_a_turn_or_between_two() -> None:
    for every_s in (0.0, 3600.0):
        begun = asyncio.Event()

        async def turn(begun: asyncio.Event = begun, every_s: float = every_s) -> None:
            begun.set()
            await asyncio.sleep(3600.0 - every_s)

        task = asyncio.create_task(repeat(turn, "", every_s=every_s))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
