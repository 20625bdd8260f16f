"""Field case 49: processes are killed in the middle of a load, and nothing acknowledged is lost."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from lamina.client import AsyncClient
from lamina.errors import LaminaError
from tests.support.effort import IS_LONG
from tests.support.scratch import new_folder
from tests.support.service import Running, descendants, left_of, run_command, start

TURNS = 1000 if IS_LONG else 160
CLIENTS = 8
ATTEMPTS = 20
# After a turn that was not acknowledged: while a process is away, each client loses one.
PAUSE_S = 0.5 if IS_LONG else 2.0
FAST_MODEL = {"LAMINA_EMBEDDING__KIND": "hashing", "LAMINA_SERVE__TOPOLOGY": "spread"}
# Each victim by what its command line contains; all but the last come back by themselves.
VICTIMS = (
    "ServeReplica:lamina:Notes",
    "ServeReplica:lamina:Embedder",
    "bin/postgres -D",
    "ServeReplica:lamina:Indexer",
)


def message(number: int) -> dict[str, str]:
    """Return the one message of a turn, with a word of its own."""
    return {"content": f"We decided that token{number:04d}x goes to shelf {number}", "ref": str(number)}


async def record(client: AsyncClient, number: int) -> bool:
    """Hand over one turn; tell whether it was acknowledged."""
    try:
        await client.record([message(number)], session=f"s{number % 10}")
    except LaminaError:
        return False
    return True


async def load(instance: Running, numbers: list[int]) -> set[int]:
    """Hand over turns by some clients at once, killing a process now and then; return those acknowledged."""
    acknowledged: set[int] = set()
    todo = list(reversed(numbers))
    kill_at = {len(numbers) * (place + 1) // (len(VICTIMS) + 2): victim for place, victim in enumerate(VICTIMS)}

    async def work() -> None:
        async with AsyncClient(instance.service.url, instance.service.key, timeout_s=60) as client:
            while todo and instance.process.poll() is None:
                number = todo.pop()
                if not await record(client, number):
                    await asyncio.sleep(PAUSE_S)
                    continue
                acknowledged.add(number)
                if victim := kill_at.pop(len(acknowledged), None):
                    assert instance.kill(victim) >= 1, victim

    await asyncio.gather(*(work() for _ in range(CLIENTS)))
    assert not kill_at
    return acknowledged


async def missing(instance: Running, numbers: set[int]) -> list[int]:
    """Return the turns that search does not find by their word."""
    async with AsyncClient(instance.service.url, instance.service.key) as client:

        async def is_missing(number: int) -> bool:
            for _ in range(ATTEMPTS):  # Beside other work the embedder may miss its deadline.
                answer = await client.search(f"token{number:04d}x", limit=10, tiers=["sessions"])
                if not answer["degraded"]:
                    break
            assert answer["degraded"] == []
            return str(number) not in {hit["ref"] for hit in answer["results"]}

        gate = asyncio.Semaphore(CLIENTS)

        async def checked(number: int) -> bool:
            async with gate:
                return await is_missing(number)

        flags = await asyncio.gather(*(checked(number) for number in sorted(numbers)))
    return [number for number, flag in zip(sorted(numbers), flags, strict=True) if flag]


async def indexed(instance: Running) -> None:
    """Wait until the outbox is applied."""
    async with AsyncClient(instance.service.url, instance.service.key) as client:
        for _ in range(1200):
            ready = await client.ready()
            if ready["ready"] and all(lag["pending"] == 0 for lag in ready["outbox"].values()):
                return
            await asyncio.sleep(0.1)
    raise AssertionError(ready)


async def deliver(instance: Running, number: int) -> bool:
    """Hand over a turn again; it may have been stored without its acknowledgement arriving."""
    async with AsyncClient(instance.service.url, instance.service.key) as client:
        return await record(client, number)


@dataclass
class Crashed:
    """An instance that was killed under a load, and the one that came after it on the same data."""

    acknowledged: set[int]
    left: list[str]
    key: str
    again: Running


@pytest.fixture(scope="module")
async def crashed() -> AsyncIterator[Crashed]:
    with new_folder() as folder:
        first = await asyncio.to_thread(start, folder, **FAST_MODEL)
        pids = descendants(first.process.pid)
        try:
            acknowledged = await load(first, list(range(TURNS)))
        finally:
            code = first.stop(signal.SIGKILL)
        assert code == -signal.SIGKILL
        assert len(pids) > 5
        left = await asyncio.to_thread(left_of, pids)
        again = await asyncio.to_thread(start, folder, **FAST_MODEL)
        try:
            yield Crashed(acknowledged, left, first.service.key, again)
        finally:
            await asyncio.to_thread(again.stop)


def test_no_process_of_an_instance_that_is_killed_is_left(crashed: Crashed) -> None:
    assert crashed.left == []


async def test_killing_processes_during_a_load_loses_no_acknowledged_turn(crashed: Crashed) -> None:
    await indexed(crashed.again)
    lost = await missing(crashed.again, crashed.acknowledged)
    repeated = {number for number in range(TURNS) if number not in crashed.acknowledged}
    acknowledged_later = {number for number in repeated if await deliver(crashed.again, number)}
    await indexed(crashed.again)
    lost_later = await missing(crashed.again, set(range(TURNS)))

    assert len(crashed.acknowledged) > TURNS / 2
    assert lost == []
    assert acknowledged_later == repeated
    assert lost_later == []


def test_a_second_start_after_a_crash_has_the_key_of_the_first(crashed: Crashed) -> None:
    assert crashed.again.service.key == crashed.key


def test_a_terminated_instance_leaves_no_process_and_its_data_refuse_another_model(crashed: Crashed) -> None:
    pids = descendants(crashed.again.process.pid)

    code = crashed.again.stop(signal.SIGTERM)
    refused = run_command(crashed.again.data_dir, "up", "--port", "0")

    assert code == 0
    assert left_of(pids) == []
    assert refused.returncode == 1
    assert "the stores hold vectors of hashing-384" in refused.stderr
    assert "set embedding.model to hashing-384" in refused.stderr
