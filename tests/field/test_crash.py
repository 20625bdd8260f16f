"""Field case 49: processes are killed in the middle of a load, and nothing acknowledged is lost."""

import asyncio
import signal
from pathlib import Path

from lamina.client import AsyncClient
from lamina.errors import LaminaError
from tests.support.service import Running, start

TURNS = 1000
CLIENTS = 8
FAST_MODEL = {"LAMINA_EMBEDDING__KIND": "hashing"}
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
        async with AsyncClient(instance.service.url, instance.service.key, timeout_s=20) as client:
            while todo and instance.process.poll() is None:
                number = todo.pop()
                if await record(client, number):
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
            answer = await client.search(f"token{number:04d}x", limit=10, tiers=["sessions"])
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
        for _ in range(300):
            ready = await client.ready()
            if ready["ready"] and all(lag["pending"] == 0 for lag in ready["outbox"].values()):
                return
            await asyncio.sleep(0.1)
    raise AssertionError(ready)


async def test_killing_processes_during_a_load_loses_no_acknowledged_turn(home: Path) -> None:
    first = await asyncio.to_thread(start, home, **FAST_MODEL)
    try:
        acknowledged = await load(first, list(range(TURNS)))
    finally:
        first.stop(signal.SIGKILL)

    second = await asyncio.to_thread(start, home, **FAST_MODEL)
    try:
        await indexed(second)
        lost = await missing(second, acknowledged)
        repeated = {number for number in range(TURNS) if number not in acknowledged}
        acknowledged_later = {number for number in repeated if await deliver(second, number)}
        await indexed(second)
        lost_later = await missing(second, set(range(TURNS)))
    finally:
        await asyncio.to_thread(second.stop)

    assert len(acknowledged) > TURNS / 2
    assert lost == []
    assert acknowledged_later == repeated
    assert lost_later == []


async def deliver(instance: Running, number: int) -> bool:
    """Hand over a turn again; it may have been stored without its acknowledgement arriving."""
    async with AsyncClient(instance.service.url, instance.service.key) as client:
        return await record(client, number)
