"""The figures of `python -m benchmarks swarm`: each kind of fault that it is to notice is there once."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from benchmarks.swarm import Ledger, count_lost, count_taken_twice
from lamina.client import AsyncClient
from tests.support.application import Application


@pytest.fixture
async def client(application: Application) -> AsyncIterator[AsyncClient]:
    transport = httpx.ASGITransport(application.api)
    async with AsyncClient("http://lamina", application.key, transport=transport) as client:
        yield client


async def test_a_write_that_is_gone_changed_or_counted_otherwise_is_lost(client: AsyncClient) -> None:
    board, ledger = await client.add("The board", metadata={"done": 3}), Ledger(marks=3)
    for content in ("Valve B sticks at 300 kPa", "Hall 2 is dark at noon", "Ann has left the boathouse"):
        stored = await client.add(content)
        ledger.acknowledge({**stored, "content": content, "version": 1}, content)
    assert await count_lost(client, board["id"], ledger) == 0

    first, second, _ = ledger.facts
    await client.delete(first)
    await client.change(second, content="Hall 2 is bright at noon")

    assert await count_lost(client, board["id"], ledger) == 2
    assert await count_lost(client, board["id"], replace(ledger, marks=5)) == 4


async def test_a_task_of_two_agents_or_of_another_one_is_taken_twice(client: AsyncClient) -> None:
    tasks = [(await client.add(f"Inspect boiler {n}", metadata={"owner": "ann"}))["id"] for n in range(2)]
    ledger = Ledger(claims=[(task, "ann") for task in tasks])
    assert await count_taken_twice(client, ledger) == 0

    assert await count_taken_twice(client, replace(ledger, claims=[*ledger.claims, (tasks[0], "ann")])) == 1
    assert await count_taken_twice(client, replace(ledger, claims=[(tasks[0], "ann"), (tasks[1], "bob")])) == 1


def test_a_read_of_an_older_state_is_stale() -> None:
    ledger = Ledger()

    ledger.check(is_stale=False)
    ledger.check(is_stale=True)

    assert (ledger.reads, ledger.stale_reads) == (2, 1)
