"""Building a graph beside the one that is searched, and switching to it."""

import asyncio
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from redis.asyncio import Redis

from lamina.core.links import Frontier, Link, Node, NodeLabel
from lamina.core.ports import Change
from lamina.core.scope import Scope
from lamina.embedded import EmbeddedFalkorDB
from lamina.stores.graph.falkordb import FalkorDBGraph, falkordb_graph
from tests.support.servers import running_falkordb

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
HUB, OLD, NEW, LATER = sorted(uuid.uuid4() for _ in range(4))
FRONTIER = Frontier(Scope("t", "w", "n"), (HUB,), kinds=(), fan_out=10)


@pytest.fixture
def server() -> Iterator[EmbeddedFalkorDB]:
    """A FalkorDB of this test alone: a switch is the whole server's."""
    with running_falkordb() as server:
        yield server


@pytest.fixture
async def store(server: EmbeddedFalkorDB) -> AsyncIterator[FalkorDBGraph]:
    store = falkordb_graph(server.url, connections=8, read_deadline_s=60)
    yield store
    await store.close()


def hub(target: UUID) -> list[Change[Node]]:
    """A hub with one link, and what it leads to."""
    link = Link(HUB, target, "about", 0.5, None, MORNING)
    return [
        Change(HUB, Node(NodeLabel.ENTITY, "t", "w", "n", 4, None, "hub", MORNING, (link,))),
        Change(target, Node(NodeLabel.MEMORY, "t", "w", "n", 2, None, None, MORNING)),
    ]


def restart(server: EmbeddedFalkorDB) -> None:
    assert server.pid
    os.kill(server.pid, signal.SIGKILL)
    while server.pid:
        time.sleep(0.01)
    server.start()


async def ends(store: FalkorDBGraph) -> Sequence[UUID]:
    return [link.end for link in await store.expand(FRONTIER)]


async def graphs(server: EmbeddedFalkorDB) -> list[str]:
    async with Redis(unix_socket_path=server.url.removeprefix("unix://"), decode_responses=True) as client:
        return sorted(await client.execute_command("GRAPH.LIST"))


async def test_a_build_is_not_searched_before_the_switch_and_alone_after_it(store: FalkorDBGraph) -> None:
    await store.apply(hub(OLD))
    await store.beside(1).apply(hub(NEW))

    before = await ends(store)
    await store.switch(1)

    assert before == [OLD]
    assert await ends(store) == [NEW]


async def test_changes_after_a_switch_go_to_what_is_searched(store: FalkorDBGraph) -> None:
    await store.beside(1).apply(hub(NEW))
    await store.switch(1)

    await store.apply(hub(LATER))

    assert await ends(store) == [LATER]


async def test_a_switch_that_is_repeated_changes_nothing(server: EmbeddedFalkorDB, store: FalkorDBGraph) -> None:
    await store.apply(hub(OLD))
    await store.beside(1).apply(hub(NEW))
    await store.switch(1)
    await store.apply(hub(LATER))

    await store.switch(1)

    assert await ends(store) == [LATER]
    assert await graphs(server) == ["lamina"]


async def test_an_earlier_build_takes_no_later_ones_place(store: FalkorDBGraph) -> None:
    await store.beside(2).apply(hub(NEW))
    await store.switch(2)
    await store.beside(1).apply(hub(OLD))

    await store.switch(1)

    assert await ends(store) == [NEW]


async def test_a_build_that_took_no_change_leaves_nothing_to_find(store: FalkorDBGraph) -> None:
    await store.apply(hub(OLD))

    await store.switch(1)

    assert await store.prepare()


async def test_a_switch_removes_builds_that_were_given_up_and_no_later_one(
    server: EmbeddedFalkorDB, store: FalkorDBGraph
) -> None:
    await store.apply(hub(OLD))
    for build in (3, 7, 11):
        await store.beside(build).apply(hub(NEW))

    await store.switch(7)

    assert await graphs(server) == ["lamina", "lamina:11"]


async def test_a_switch_outlives_a_kill_of_the_server(server: EmbeddedFalkorDB, store: FalkorDBGraph) -> None:
    await store.apply(hub(OLD))
    await store.beside(1).apply(hub(NEW))
    await store.switch(1)
    await store.apply(hub(LATER))
    await store.flush()

    restart(server)
    await store.switch(1)

    assert await ends(store) == [LATER]
    assert await graphs(server) == ["lamina"]


async def test_searches_during_a_switch_find_the_old_or_the_new(store: FalkorDBGraph) -> None:
    await store.apply(hub(OLD))
    await store.beside(1).apply(hub(NEW))
    found: list[Sequence[UUID]] = []

    async def search() -> None:
        while not found or found[-1] != [NEW]:
            found.append(await ends(store))

    searching = [asyncio.create_task(search()) for _ in range(4)]
    while not found:  # noqa: ASYNC110 - searches come to it by themselves
        await asyncio.sleep(0.01)
    await store.switch(1)
    await asyncio.wait_for(asyncio.gather(*searching), 60)

    assert {tuple(one) for one in found} == {(OLD,), (NEW,)}
