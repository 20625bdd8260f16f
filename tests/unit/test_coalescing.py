import asyncio
from collections.abc import Callable, Sequence

import pytest

from lamina.coalescing import Coalescer
from lamina.errors import Overloaded, Unavailable

PART = "embedder"


class Gate:
    """A call that notes what it is given and answers when the test lets it through."""

    def __init__(self, answer: Callable[[Sequence[str]], Sequence[str]] | None = None) -> None:
        self.batches: list[list[str]] = []
        self._permits = asyncio.Semaphore(0)
        self._answer = answer or (lambda items: [item.upper() for item in items])

    async def __call__(self, items: Sequence[str]) -> Sequence[str]:
        self.batches.append(list(items))
        await self._permits.acquire()
        return self._answer(items)

    def let_through(self, batches: int = 100) -> None:
        for _ in range(batches):
            self._permits.release()


async def settled() -> None:
    """Let every task get as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def submitted(coalescer: Coalescer[str, str], *items: str) -> list[asyncio.Task[str]]:
    """Submit each item from a task of its own and let them all get as far as they can."""
    tasks = [asyncio.create_task(coalescer.submit(item)) for item in items]
    await settled()
    return tasks


async def test_a_lone_call_goes_at_once() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART)

    (task,) = await submitted(coalescer, "a")

    assert gate.batches == [["a"]]
    gate.let_through()
    assert await task == "A"


async def test_what_queues_during_a_call_travels_together_in_its_order() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)

    tasks = await submitted(coalescer, "a", "b", "c", "d")
    gate.let_through()

    assert await asyncio.gather(*tasks) == ["A", "B", "C", "D"]
    assert gate.batches == [["a"], ["b", "c", "d"]]


async def test_no_more_calls_are_in_flight_than_allowed() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=2)

    tasks = await submitted(coalescer, "a", "b", "c", "d")

    assert gate.batches == [["a"], ["b"]]
    gate.let_through()
    await asyncio.gather(*tasks)
    assert gate.batches == [["a"], ["b"], ["c", "d"]]


async def test_a_call_carries_no_more_items_than_allowed() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1, max_items=2)

    tasks = await submitted(coalescer, *"abcdef")
    gate.let_through()
    await asyncio.gather(*tasks)

    assert gate.batches == [["a"], ["b", "c"], ["d", "e"], ["f"]]


async def test_items_are_weighed_and_one_that_is_too_heavy_goes_alone() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1, max_items=4, weigh=len)

    tasks = await submitted(coalescer, "first", "aa", "bb", "c", "much too heavy", "d")
    gate.let_through()
    await asyncio.gather(*tasks)

    assert gate.batches == [["first"], ["aa", "bb"], ["c"], ["much too heavy"], ["d"]]


async def test_a_caller_that_gives_up_leaves_the_others_in_its_batch_answered() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)
    first, second, third, fourth = await submitted(coalescer, "a", "b", "c", "d")
    gate.let_through(1)
    await settled()

    second.cancel()
    await settled()
    gate.let_through(1)

    assert gate.batches == [["a"], ["b", "c", "d"]]
    assert await asyncio.gather(first, third, fourth) == ["A", "C", "D"]
    assert second.cancelled()


async def test_the_error_of_a_batch_reaches_those_who_still_wait() -> None:
    def fail(items: Sequence[str]) -> Sequence[str]:
        raise ValueError(items[0])

    gate = Gate(fail)
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)
    first, second, third = await submitted(coalescer, "a", "b", "c")
    gate.let_through(1)
    await settled()

    second.cancel()
    gate.let_through(1)

    assert [str(error) for error in await asyncio.gather(first, third, return_exceptions=True)] == ["a", "b"]


async def test_a_caller_that_gives_up_in_the_queue_is_not_sent() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)
    first, second, third = await submitted(coalescer, "a", "b", "c")

    second.cancel()
    gate.let_through()

    assert await asyncio.gather(first, third) == ["A", "C"]
    assert gate.batches == [["a"], ["c"]]


async def test_if_all_that_waited_gave_up_nothing_is_sent_and_the_next_call_goes() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)
    first, second = await submitted(coalescer, "a", "b")

    second.cancel()
    gate.let_through()
    await first

    assert await coalescer.submit("c") == "C"
    assert gate.batches == [["a"], ["c"]]


@pytest.mark.parametrize("count", [0, 2, 4])
async def test_another_number_of_results_fails_every_caller_of_the_batch(count: int) -> None:
    gate = Gate(lambda items: ["x"] * (count if len(items) > 1 else 1))
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)
    first, *batch = await submitted(coalescer, "a", "b", "c", "d")

    gate.let_through()
    outcomes = await asyncio.gather(*batch, return_exceptions=True)

    assert await first == "x"
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert f"returned {count} results for 3 items" in str(outcomes[0])


async def test_an_exception_reaches_every_caller_of_its_batch_and_no_other() -> None:
    def fail_for_many(items: Sequence[str]) -> Sequence[str]:
        if len(items) > 1:
            raise ValueError("no memory")
        return items

    gate = Gate(fail_for_many)
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)
    first, *batch = await submitted(coalescer, "a", "b", "c")

    gate.let_through()
    outcomes = await asyncio.gather(*batch, return_exceptions=True)

    assert await first == "a"
    assert [str(outcome) for outcome in outcomes] == ["no memory", "no memory"]
    assert await coalescer.submit("d") == "d"


async def test_a_full_queue_refuses_the_newest_at_once_and_keeps_the_others() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1, max_queued=2)
    tasks = await submitted(coalescer, "a", "b", "c")

    with pytest.raises(Overloaded, match="2 calls are waiting") as refused:
        await coalescer.submit("d")

    gate.let_through()
    assert refused.value.part == PART
    assert await asyncio.gather(*tasks) == ["A", "B", "C"]
    assert await coalescer.submit("e") == "E"


async def test_a_caller_that_gives_up_frees_its_place_in_the_queue() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1, max_queued=2)
    _, *waiting = await submitted(coalescer, "a", "b", "c")
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)

    (patient,) = await submitted(coalescer, "d")
    gate.let_through()

    assert await patient == "D"


async def test_a_call_that_is_cancelled_tells_its_callers_that_the_part_is_gone() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART)
    (task,) = await submitted(coalescer, "a")

    (in_flight,) = coalescer._in_flight
    in_flight.cancel()

    with pytest.raises(Unavailable, match="embedder"):
        await task


async def test_under_load_every_caller_gets_its_own_answer() -> None:
    async def call(items: Sequence[int]) -> Sequence[int]:
        await asyncio.sleep(0)
        return [item * item for item in items]

    coalescer = Coalescer(call, part=PART, max_items=7, max_in_flight=3)

    answers = await asyncio.gather(*(coalescer.submit(number) for number in range(500)))

    assert answers == [number * number for number in range(500)]
    assert not coalescer._in_flight
