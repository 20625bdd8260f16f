import asyncio
from collections.abc import AsyncIterator

import pytest

from lamina.aio.single_flight import SingleFlight


class Work:
    """Counts its runs, and ends each when the gate is open: with its number, or with an error."""

    def __init__(self) -> None:
        self.runs = 0
        self.failures = 0
        self.gate = asyncio.Event()

    async def __call__(self) -> int:
        self.runs += 1
        number = self.runs
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise ValueError(f"run {number}")
        return number


@pytest.fixture
async def work() -> AsyncIterator[Work]:
    made = Work()
    yield made
    made.gate.set()


async def started(flight: SingleFlight[str, int], work: Work, *names: str) -> list["asyncio.Task[int]"]:
    tasks = [asyncio.create_task(flight.run(name, work)) for name in names]
    await asyncio.sleep(0.01)
    return tasks


async def test_callers_of_one_name_share_a_run_and_those_of_another_do_not(work: Work) -> None:
    flight = SingleFlight[str, int]()
    tasks = await started(flight, work, "a", "a", "b", "a")
    work.gate.set()

    assert await asyncio.gather(*tasks) == [1, 1, 2, 1]


async def test_a_caller_after_the_end_starts_anew(work: Work) -> None:
    flight = SingleFlight[str, int]()
    work.gate.set()

    assert [await flight.run("a", work), await flight.run("a", work)] == [1, 2]


async def test_a_run_survives_every_caller_that_gives_up(work: Work) -> None:
    flight = SingleFlight[str, int]()
    first, second = await started(flight, work, "a", "a")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    work.gate.set()

    assert await second == 1


async def test_callers_that_joined_a_failing_run_try_once_more_together(work: Work) -> None:
    flight = SingleFlight[str, int]()
    work.failures = 1
    tasks = await started(flight, work, "a", "a", "a")
    work.gate.set()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(outcomes[0], ValueError)
    assert outcomes[1:] == [2, 2]


async def test_a_second_failure_reaches_everyone(work: Work) -> None:
    flight = SingleFlight[str, int]()
    work.failures = 2
    tasks = await started(flight, work, "a", "a", "a")
    work.gate.set()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert [str(outcome) for outcome in outcomes] == ["run 1", "run 2", "run 2"]


async def test_nobody_joins_a_run_that_is_not_joinable(work: Work) -> None:
    flight = SingleFlight[str, int]()
    alone = asyncio.create_task(flight.run("a", work, is_joinable=False))
    await asyncio.sleep(0.01)
    (later,) = await started(flight, work, "a")
    work.gate.set()

    assert [await alone, await later] == [1, 2]


async def test_closing_waits_for_a_while_and_cancels_the_rest(work: Work) -> None:
    flight = SingleFlight[str, int]()
    (task,) = await started(flight, work, "a")

    await flight.close(0.01)

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_closing_lets_a_run_end_in_time(work: Work) -> None:
    flight = SingleFlight[str, int]()
    (task,) = await started(flight, work, "a")
    asyncio.get_running_loop().call_later(0.01, work.gate.set)

    await flight.close(5)

    assert await task == 1
    await flight.close()
