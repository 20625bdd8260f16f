import asyncio
from contextlib import suppress
from itertools import count

import pytest

from lamina.aio.cancelling import cancel_all


async def take_for_ever(things: "asyncio.Queue[int]") -> None:
    """Take things as a pool of connections is asked for them."""
    while True:
        await asyncio.wait_for(things.get(), 60)


@pytest.mark.parametrize("steps", range(5))
async def test_a_task_ends_though_what_it_waits_for_comes_with_its_cancellation(steps: int) -> None:
    things = asyncio.Queue[int]()
    task = asyncio.create_task(take_for_ever(things))
    await asyncio.sleep(0.01)

    things.put_nowait(1)
    for _ in range(steps):
        await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await cancel_all([task])

    assert task.cancelled()


async def test_each_of_several_tasks_ends_and_one_that_has_failed_harms_none() -> None:
    async def fail() -> None:
        raise ValueError

    tasks = [asyncio.create_task(fail()), *(asyncio.create_task(asyncio.sleep(60)) for _ in range(3))]
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await cancel_all(tasks)

    assert [task.cancelled() for task in tasks] == [False, True, True, True]


async def test_a_task_that_loses_several_cancellations_gets_as_many_as_it_needs() -> None:
    lost = count()

    async def stay() -> None:
        while next(lost) < 2:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    task = asyncio.create_task(stay())
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await cancel_all([task])

    assert task.done()


async def test_a_caller_that_is_cancelled_itself_again_and_again_leaves_no_task_behind_and_lets_it_clean_up() -> None:
    """A follower of the indexer went on beside a service that had ended."""
    is_clean = False

    async def stay() -> None:
        nonlocal is_clean
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        for _ in range(20):
            await asyncio.sleep(0)
        is_clean = True

    task = asyncio.create_task(stay())
    await asyncio.sleep(0)
    caller = asyncio.create_task(cancel_all([task]))
    for _ in range(10):
        await asyncio.sleep(0)
        caller.cancel()
    async with asyncio.timeout(30):
        await asyncio.wait([caller])

    assert caller.cancelled()
    assert task.done()
    assert is_clean
