import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.aio import coalescing, write_behind
from lamina.aio.coalescing import Coalescer
from lamina.aio.write_behind import WriteBehind
from lamina.errors import Overloaded, Unavailable
from tests.support.tasks import tasks_of
from tests.support.virtual_time import in_virtual_time

PART = "embedder"
LONG_S = 3600.0
SOON_S = 0.02
PATIENCE_S = 60.0


class Gate:
    """A call that notes what it is given and answers when the test lets it through."""

    def __init__(self, answer: Callable[[Sequence[str]], Sequence[str]] | None = None) -> None:
        self.batches: list[list[str]] = []
        self._permits = asyncio.Semaphore(0)
        self._given = asyncio.Semaphore(0)
        self._answer = answer or (lambda items: [item.upper() for item in items])

    async def __call__(self, items: Sequence[str]) -> Sequence[str]:
        self.batches.append(list(items))
        self._given.release()
        await self._permits.acquire()
        return self._answer(items)

    async def has_batches(self, count: int) -> None:
        for _ in range(count):
            await self._given.acquire()

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


@in_virtual_time
async def test_a_lone_call_goes_at_once() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART)

    (task,) = await submitted(coalescer, "a")

    assert gate.batches == [["a"]]
    gate.let_through()
    assert await task == "A"


@in_virtual_time
async def test_what_queues_during_a_call_travels_together_in_its_order() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)

    tasks = await submitted(coalescer, "a", "b", "c", "d")
    gate.let_through()

    assert await asyncio.gather(*tasks) == ["A", "B", "C", "D"]
    assert gate.batches == [["a"], ["b", "c", "d"]]


@in_virtual_time
async def test_no_more_calls_are_in_flight_than_allowed() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=2)

    tasks = await submitted(coalescer, "a", "b", "c", "d")

    assert gate.batches == [["a"], ["b"]]
    gate.let_through()
    await asyncio.gather(*tasks)
    assert gate.batches == [["a"], ["b"], ["c", "d"]]


@in_virtual_time
async def test_a_call_carries_no_more_items_than_allowed() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1, max_items=2)

    tasks = await submitted(coalescer, *"abcdef")
    gate.let_through()
    await asyncio.gather(*tasks)

    assert gate.batches == [["a"], ["b", "c"], ["d", "e"], ["f"]]


@in_virtual_time
async def test_items_are_weighed_and_one_that_is_too_heavy_goes_alone() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1, max_items=4, weigh=len)

    tasks = await submitted(coalescer, "first", "aa", "bb", "c", "much too heavy", "d")
    gate.let_through()
    await asyncio.gather(*tasks)

    assert gate.batches == [["first"], ["aa", "bb"], ["c"], ["much too heavy"], ["d"]]


@in_virtual_time
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


@in_virtual_time
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


@in_virtual_time
async def test_a_caller_that_gives_up_in_the_queue_is_not_sent() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)
    first, second, third = await submitted(coalescer, "a", "b", "c")

    second.cancel()
    gate.let_through()

    assert await asyncio.gather(first, third) == ["A", "C"]
    assert gate.batches == [["a"], ["c"]]


@in_virtual_time
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
@in_virtual_time
async def test_another_number_of_results_fails_every_caller_of_the_batch(count: int) -> None:
    gate = Gate(lambda items: ["x"] * (count if len(items) > 1 else 1))
    coalescer = Coalescer(gate, part=PART, max_in_flight=1)
    first, *batch = await submitted(coalescer, "a", "b", "c", "d")

    gate.let_through()
    outcomes = await asyncio.gather(*batch, return_exceptions=True)

    assert await first == "x"
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert f"returned {count} results for 3 items" in str(outcomes[0])


@in_virtual_time
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


@in_virtual_time
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


@in_virtual_time
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


@in_virtual_time
async def test_a_call_that_is_cancelled_tells_its_callers_that_the_part_is_gone() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART)
    (task,) = await submitted(coalescer, "a")

    (in_flight,) = coalescer._in_flight
    in_flight.cancel()

    with pytest.raises(Unavailable, match="embedder"):
        await task


@in_virtual_time
async def test_under_load_every_caller_gets_its_own_answer() -> None:
    async def call(items: Sequence[int]) -> Sequence[int]:
        await asyncio.sleep(0)
        return [item * item for item in items]

    coalescer = Coalescer(call, part=PART, max_items=7, max_in_flight=3)

    answers = await asyncio.gather(*(coalescer.submit(number) for number in range(500)))

    assert answers == [number * number for number in range(500)]
    assert not coalescer._in_flight


class Table:
    """A place to write to, which notes its batches; it can fail, or wait until the test lets it go on."""

    def __init__(self, *, failures: int = 0, hangs: bool = False) -> None:
        self.batches: list[str] = []
        self.failures = failures
        self.go_on = asyncio.Event()
        if not hangs:
            self.go_on.set()

    async def __call__(self, items: Sequence[str]) -> None:
        await self.go_on.wait()
        if self.failures > 0:
            self.failures -= 1
            raise OSError("gone")
        self.batches.append("".join(items))


@asynccontextmanager
async def behind(table: Table, **changes: Any) -> AsyncIterator[WriteBehind[str]]:
    """A buffer before the table, with a window that does not end by itself."""
    before = tasks_of(coalescing)
    buffer = WriteBehind[str](table, part="table", **{"window_s": LONG_S, **changes})
    yield buffer
    await asyncio.wait_for(buffer.close(), PATIENCE_S)
    await settled()
    assert tasks_of(coalescing) == before


def add(buffer: WriteBehind[str], items: str) -> None:
    for item in items:
        buffer.add(item)


async def until(table: Table, *batches: str) -> None:
    """Wait until the table has just these batches."""
    for _ in range(round(PATIENCE_S / SOON_S)):
        if table.batches == list(batches):
            return
        await asyncio.sleep(SOON_S)
    assert table.batches == list(batches)


@in_virtual_time
async def test_what_comes_within_a_window_is_written_by_one_call_in_its_order() -> None:
    table = Table()
    async with behind(table, window_s=SOON_S) as buffer:
        add(buffer, "ab")
        await settled()
        add(buffer, "cd")
        assert table.batches == []

        await until(table, "abcd")

        add(buffer, "e")
        await until(table, "abcd", "e")


@in_virtual_time
async def test_without_a_window_items_of_one_turn_are_written_in_the_next() -> None:
    table = Table()
    async with behind(table, window_s=0.0) as buffer:
        add(buffer, "abc")
        assert table.batches == []

        await asyncio.sleep(0)

        assert table.batches == ["abc"]


@in_virtual_time
async def test_no_task_runs_where_there_is_nothing_to_write() -> None:
    before = tasks_of(write_behind)
    async with behind(Table(), window_s=0.0) as buffer:
        assert tasks_of(write_behind) == before

        add(buffer, "a")
        assert len(tasks_of(write_behind)) == len(before) + 1

        await settled()
        assert tasks_of(write_behind) == before


@in_virtual_time
async def test_a_full_batch_is_written_without_waiting_and_the_rest_gathers_on() -> None:
    table = Table()
    async with behind(table, max_items=3) as buffer:
        add(buffer, "ab")
        await settled()
        assert table.batches == []

        add(buffer, "cdefgh")
        await settled()

        assert table.batches == ["abc", "def"]
        add(buffer, "i")
        await settled()
        assert table.batches == ["abc", "def", "ghi"]


@in_virtual_time
async def test_a_flush_writes_all_that_is_there_in_its_order() -> None:
    table = Table()
    async with behind(table, max_items=3) as buffer:
        add(buffer, "abcdefgh")

        await asyncio.wait_for(buffer.flush(), PATIENCE_S)

        assert table.batches == ["abc", "def", "gh"]


@in_virtual_time
async def test_a_flush_waits_for_the_batch_that_is_being_written() -> None:
    table = Table(hangs=True)
    async with behind(table, max_items=2) as buffer:
        add(buffer, "ab")
        await settled()

        flush = asyncio.create_task(buffer.flush())
        await settled()
        assert not flush.done()
        table.go_on.set()
        await asyncio.wait_for(flush, PATIENCE_S)

        assert table.batches == ["ab"]


@in_virtual_time
async def test_after_a_flush_the_next_items_have_a_window_again() -> None:
    table = Table(hangs=True)
    async with behind(table, max_items=2) as buffer:
        add(buffer, "ab")
        await settled()
        flush = asyncio.create_task(buffer.flush())
        await settled()
        table.go_on.set()
        await flush

        add(buffer, "c")
        await settled()

        assert table.batches == ["ab"]


@in_virtual_time
async def test_a_flush_does_not_wait_for_what_comes_after_it() -> None:
    table = Table()

    async def write(items: Sequence[str]) -> None:
        await table(items)
        buffer.add("more")

    buffer = WriteBehind[str](write, part="table", window_s=0.0)
    buffer.add("a")

    await asyncio.wait_for(buffer.flush(), PATIENCE_S)

    assert table.batches[0] == "a"
    await asyncio.wait_for(buffer.close(), PATIENCE_S)


@in_virtual_time
async def test_a_flush_of_nothing_calls_nobody() -> None:
    table = Table()
    async with behind(table) as buffer:
        await asyncio.wait_for(buffer.flush(), PATIENCE_S)

    assert table.batches == []


@in_virtual_time
async def test_a_batch_that_fails_is_reported_and_dropped_and_the_next_one_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table, errors = Table(failures=1), list[Exception]()
    async with behind(table, max_items=2, on_error=errors.append) as buffer:
        add(buffer, "abc")

        await asyncio.wait_for(buffer.flush(), PATIENCE_S)

        assert table.batches == ["c"]
        assert [str(error) for error in errors] == ["gone"]
        assert "table: 2 items are not written: OSError: gone" in caplog.text


@in_virtual_time
async def test_a_batch_that_hangs_is_given_up_at_its_deadline() -> None:
    table, errors = Table(hangs=True), list[Exception]()
    async with behind(table, window_s=0.0, deadline_s=SOON_S, on_error=errors.append) as buffer:
        add(buffer, "a")

        await asyncio.wait_for(buffer.flush(), PATIENCE_S)

        assert [type(error) for error in errors] == [TimeoutError]
        table.go_on.set()
        add(buffer, "b")
        await until(table, "b")


@in_virtual_time
async def test_beyond_the_capacity_the_newest_is_dropped_and_counted() -> None:
    table = Table()
    async with behind(table, capacity=3) as buffer:
        add(buffer, "abcde")

        await asyncio.wait_for(buffer.flush(), PATIENCE_S)
        add(buffer, "f")
        await asyncio.wait_for(buffer.flush(), PATIENCE_S)

        assert (table.batches, buffer.dropped) == (["abc", "f"], 2)


@in_virtual_time
async def test_while_the_table_hangs_adding_returns_at_once_and_memory_stays_bounded() -> None:
    table = Table(hangs=True)
    async with behind(table, window_s=0.0, max_items=2, capacity=3) as buffer:
        add(buffer, "ab")
        await settled()

        add(buffer, "cdefg")

        assert buffer.dropped == 2
        table.go_on.set()
        await until(table, "ab", "cd", "e")


@in_virtual_time
async def test_the_end_writes_what_is_left_and_takes_nothing_more() -> None:
    table = Table()
    async with behind(table, max_items=2) as buffer:
        add(buffer, "abc")

        await asyncio.wait_for(buffer.close(), PATIENCE_S)
        add(buffer, "d")
        await settled()

        assert (table.batches, buffer.dropped) == (["ab", "c"], 1)


@in_virtual_time
async def test_the_end_does_not_wait_for_a_table_that_hangs(caplog: pytest.LogCaptureFixture) -> None:
    table = Table(hangs=True)
    async with behind(table, max_items=1, deadline_s=SOON_S) as buffer:
        add(buffer, "abcdefgh")

        await asyncio.wait_for(buffer.close(), PATIENCE_S)
        await asyncio.wait_for(buffer.flush(), PATIENCE_S)

        assert table.batches == []
        assert buffer.dropped > 0
        assert "items stay unwritten at the end" in caplog.text


@in_virtual_time
async def test_a_caller_that_gives_up_its_flush_leaves_the_batch_to_be_written() -> None:
    table = Table(hangs=True)
    async with behind(table) as buffer:
        add(buffer, "a")
        flush = asyncio.create_task(buffer.flush())
        await settled()

        flush.cancel()
        await settled()
        assert flush.cancelled()
        table.go_on.set()

        await until(table, "a")


@pytest.mark.parametrize("turns", range(8))
@in_virtual_time
async def test_a_flush_is_never_deaf_to_a_cancellation(turns: int) -> None:
    table = Table()
    async with behind(table, max_items=1) as buffer:
        add(buffer, "abcdefgh")
        flush = asyncio.create_task(buffer.flush())
        for _ in range(turns):
            await asyncio.sleep(0)

        flush.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(flush, PATIENCE_S)

        assert flush.cancelled()
        await until(table, *"abcdefgh")


@in_virtual_time
async def test_an_end_that_is_cancelled_ends_the_task_all_the_same() -> None:
    before = tasks_of(write_behind)
    table = Table(hangs=True)
    buffer = WriteBehind[str](table, part="table", window_s=0.0)
    add(buffer, "a")
    await settled()
    end = asyncio.create_task(buffer.close())
    await settled()

    end.cancel()
    await settled()

    assert end.cancelled()
    assert tasks_of(write_behind) == before


@in_virtual_time
async def test_a_task_that_is_cancelled_while_it_gathers_loses_nothing() -> None:
    table = Table()
    async with behind(table) as buffer:
        add(buffer, "a")
        await settled()
        assert buffer._writing is not None
        buffer._writing.cancel()
        await settled()

        add(buffer, "b")
        await asyncio.wait_for(buffer.flush(), PATIENCE_S)

        assert table.batches == ["ab"]


@in_virtual_time
async def test_a_task_that_is_cancelled_while_it_writes_holds_up_no_flush() -> None:
    table = Table(hangs=True)
    async with behind(table, max_items=1) as buffer:
        add(buffer, "ab")
        await settled()
        flush = asyncio.create_task(buffer.flush())
        await settled()
        assert buffer._writing is not None
        buffer._writing.cancel()
        table.go_on.set()

        await asyncio.wait_for(flush, PATIENCE_S)

        assert table.batches == ["b"]


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4), st.booleans())
def test_whatever_comes_when_is_written_once_and_in_its_order(
    bursts: list[int],
    max_items: int,
    has_window: bool,
) -> None:
    async def run() -> None:
        written: list[int] = []

        async def write(items: Sequence[int]) -> None:
            assert 1 <= len(items) <= max_items
            await asyncio.sleep(0)
            written.extend(items)

        buffer = WriteBehind(write, part="table", window_s=LONG_S if has_window else 0.0, max_items=max_items)
        numbers = iter(range(sum(bursts)))
        for burst in bursts:
            for _ in range(burst):
                buffer.add(next(numbers))
            await asyncio.sleep(0)
        await buffer.close()
        assert written == list(range(sum(bursts)))

    asyncio.run(run())


def refuse_poison(items: Sequence[str]) -> Sequence[str]:
    if any("poison" in item for item in items):
        raise ValueError(f"too large: {', '.join(items)}")
    return [item.upper() for item in items]


@in_virtual_time
async def test_a_batch_that_fails_is_sent_again_item_by_item() -> None:
    gate = Gate(refuse_poison)
    coalescer = Coalescer(gate, part=PART, max_in_flight=1, is_sent_singly=True)
    first, *batch = await submitted(coalescer, "a", "b", "poison", "secret")

    gate.let_through()
    outcomes = await asyncio.gather(*batch, return_exceptions=True)

    assert await first == "A"
    assert [str(outcome) for outcome in outcomes] == ["B", "too large: poison", "SECRET"]
    assert gate.batches == [["a"], ["b", "poison", "secret"], ["b"], ["poison"], ["secret"]]


@in_virtual_time
async def test_a_batch_that_met_a_full_queue_is_not_sent_again() -> None:
    def refuse(items: Sequence[str]) -> Sequence[str]:
        raise Overloaded(PART, "its queue is full")

    gate = Gate(refuse)
    coalescer = Coalescer(gate, part=PART, max_in_flight=1, is_sent_singly=True)
    tasks = await submitted(coalescer, "a", "b", "c")

    gate.let_through()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [Overloaded] * 3
    assert gate.batches == [["a"], ["b", "c"]]


@in_virtual_time
async def test_what_comes_while_a_call_takes_its_time_waits_for_its_end_and_travels_together() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=4, patience_s=LONG_S, enough=3)

    tasks = await submitted(coalescer, "a", "b", "c")
    before_the_end = list(gate.batches)
    gate.let_through()

    assert await asyncio.gather(*tasks) == ["A", "B", "C"]
    assert before_the_end == [["a"]]
    assert gate.batches == [["a"], ["b", "c"]]


@in_virtual_time
async def test_enough_items_wait_for_no_call() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=4, patience_s=LONG_S, enough=2)

    tasks = await submitted(coalescer, "a", "b", "c", "d")

    assert gate.batches == [["a"], ["b", "c"]]
    gate.let_through()
    assert await asyncio.gather(*tasks) == ["A", "B", "C", "D"]


@in_virtual_time
async def test_items_wait_no_longer_than_their_patience_for_a_call_that_hangs() -> None:
    gate = Gate()
    coalescer = Coalescer(gate, part=PART, max_in_flight=2, patience_s=SOON_S, enough=8)

    tasks = await submitted(coalescer, "a", "b")
    async with asyncio.timeout(PATIENCE_S):
        await gate.has_batches(2)

    assert gate.batches == [["a"], ["b"]]
    gate.let_through()
    assert await asyncio.gather(*tasks) == ["A", "B"]
