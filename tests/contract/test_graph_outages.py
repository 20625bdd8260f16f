"""What graph stores do when their server goes, comes back, says nothing or must not be trusted."""

import asyncio
import os
import signal
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest
from pydantic import ValidationError
from redis import Redis

from lamina.core.links import Frontier, Link, Node, NodeLabel
from lamina.core.ports import Change
from lamina.core.scope import Scope
from lamina.embedded import EmbeddedFalkorDB
from lamina.errors import Misconfigured, Unavailable
from lamina.settings.stores import EmbeddedFalkorDBSettings, Neo4jServerSettings
from lamina.stores.graph import neo4j
from lamina.stores.graph.falkordb import falkordb_graph
from lamina.stores.graph.neo4j import neo4j_graph
from lamina.stores.graph.store import CypherGraph
from tests.support.bolt import FalkorDBByBolt, bolt_graph, bolt_server, free_bolt_port
from tests.support.wires import new_certificate, silence, tls_front

# Of writes that are tried again for five seconds, where nothing comes in between.
SOON_S = 0.2
MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
NOTE, ADA = sorted(uuid.uuid4() for _ in range(2))
FRONTIER = Frontier(Scope("t", "w", "n"), (ADA,), kinds=(), fan_out=10)
NODES = [
    Change(
        NOTE,
        Node(NodeLabel.MEMORY, "t", "w", "n", 2, None, None, MORNING, (Link(NOTE, ADA, "about", 0.5, None, MORNING),)),
    ),
    Change(ADA, Node(NodeLabel.ENTITY, "t", "w", "n", 4, None, "Ada", MORNING)),
]


class Server(Protocol):
    """A server that a test may kill and start again."""

    def store(self) -> CypherGraph: ...
    def kill(self) -> None: ...
    def start(self) -> None: ...


class FalkorDBServer:
    """FalkorDB, which keeps what it was given."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._server = EmbeddedFalkorDB(folder / "graph", EmbeddedFalkorDBSettings())
        stack.callback(self._server.stop)

    @property
    def path(self) -> str:
        return self._server.url.removeprefix("unix://")

    def store(self) -> CypherGraph:
        return falkordb_graph(self._server.url, connections=4, read_deadline_s=60)

    def kill(self) -> None:
        assert self._server.pid
        os.kill(self._server.pid, signal.SIGKILL)
        while self._server.pid:
            time.sleep(0.01)

    def start(self) -> None:
        self._server.start()


class BoltServer:
    """What speaks Bolt, on one port; it starts empty."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._port, self._stack = folder, free_bolt_port(), stack
        self._running = ExitStack()
        stack.callback(self.kill)

    def store(self) -> CypherGraph:
        return bolt_graph(f"bolt://127.0.0.1:{self._port}", read_deadline_s=60)

    def kill(self) -> None:
        self._running.close()

    def start(self) -> None:
        self._running = ExitStack()
        self._running.enter_context(bolt_server(self._folder, self._port))


@pytest.fixture(params=[FalkorDBServer, BoltServer])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        server: Server = request.param(Path(folder), stack)
        server.start()
        yield server


async def test_a_killed_server_is_unavailable_and_met_again_when_it_is_back(server: Server) -> None:
    store = server.store()
    await store.apply(NODES)
    server.kill()

    with pytest.raises(Unavailable, match="graph is not available"):
        await store.expand(FRONTIER)
    server.start()
    await store.apply(NODES)

    assert [link.end for link in await store.expand(FRONTIER)] == [NOTE]
    await store.close()


async def test_a_restart_between_two_changes_is_not_noticed(server: Server) -> None:
    store = server.store()
    await store.apply(NODES)

    server.kill()
    server.start()
    await store.apply(NODES)

    assert [link.end for link in await store.expand(FRONTIER)] == [NOTE]
    await store.close()


@pytest.mark.parametrize("kind", ["falkordb", "neo4j"])
async def test_a_server_that_says_nothing_is_given_up_in_time(kind: str) -> None:
    with silence() as port:
        if kind == "falkordb":
            store: CypherGraph = falkordb_graph(f"redis://127.0.0.1:{port}", connections=1, read_deadline_s=0.2)
        else:
            store = neo4j_graph(Neo4jServerSettings(url=f"bolt://127.0.0.1:{port}"), read_deadline_s=0.2)
        began = time.monotonic()

        with pytest.raises(Unavailable, match="no answer within"):
            await store.expand(FRONTIER)

        assert time.monotonic() - began < 60
        await store.close()


@pytest.mark.parametrize("kind", ["falkordb", "neo4j"])
async def test_a_search_does_not_wait_for_a_server_that_is_gone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # No search, but the probe that follows it tries a statement that writes.
    monkeypatch.setattr(neo4j, "RETRY_WRITES_FOR_S", SOON_S)
    if kind == "falkordb":
        store: CypherGraph = falkordb_graph("redis://127.0.0.1:1", connections=1, read_deadline_s=60)
    else:
        store = neo4j_graph(Neo4jServerSettings(url="bolt://127.0.0.1:1"), read_deadline_s=60)
    began = time.monotonic()

    with pytest.raises(Unavailable, match=r"(?i)connect"):
        await store.expand(FRONTIER)

    with pytest.raises(Unavailable, match=r"(?i)connect"):
        await store.probe()
    assert time.monotonic() - began < 50
    await store.close()


async def test_after_a_read_that_was_given_up_the_next_one_is_answered() -> None:
    with tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        store = bolt_graph(stack.enter_context(bolt_server(Path(folder))), read_deadline_s=1.0, connections=1)
        await store.apply(NODES)

        with pytest.raises(Unavailable, match="no answer within"):
            await store._engine.read("UNWIND range(1, 300000000) AS i RETURN count(i)", {})
        await store.apply(NODES)

        assert [link.end for link in await store.expand(FRONTIER)] == [NOTE]
        await store.close()


async def test_reads_of_replicas_find_what_was_applied_here() -> None:
    with tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        url = stack.enter_context(bolt_server(Path(folder)))
        settings = Neo4jServerSettings(url=url, user="default", reads="replicas")
        store = CypherGraph(FalkorDBByBolt(settings, read_deadline_s=60))

        await store.apply(NODES)

        assert [link.end for link in await store.expand(FRONTIER)] == [NOTE]
        await store.close()


async def test_a_falkordb_that_wants_a_password_is_no_outage() -> None:
    with tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        server = FalkorDBServer(Path(folder), stack)
        server.start()
        with Redis(unix_socket_path=server.path) as client:
            client.config_set("requirepass", "secret")
        wrong = falkordb_graph(f"unix://default:wrong@{server.path}", connections=1, read_deadline_s=60)

        for store in (server.store(), wrong):
            with pytest.raises(Misconfigured, match=r"falkordb refuses who connects; .* in graph\.url"):
                await store.expand(FRONTIER)
            with pytest.raises(Misconfigured):
                await store.apply(NODES)
            await store.close()


async def test_a_bolt_server_is_trusted_by_its_certificate_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        url = stack.enter_context(bolt_server(Path(folder)))
        certificate = new_certificate(Path(folder), "own")
        far = partial(asyncio.open_connection, "127.0.0.1", int(url.rpartition(":")[2]))
        port = stack.enter_context(tls_front(far, certificate, after_request=False))
        strict = bolt_graph(f"bolt+s://localhost:{port}", read_deadline_s=60)
        lax = bolt_graph(f"bolt+ssc://localhost:{port}", read_deadline_s=60)

        await lax.apply(NODES)
        monkeypatch.setattr(neo4j, "RETRY_WRITES_FOR_S", SOON_S)
        with pytest.raises(Unavailable, match=r"(?i)certificate|encrypted|secure"):
            await strict.apply(NODES)

        assert [link.end for link in await lax.expand(FRONTIER)] == [NOTE]
        await lax.close()
        await strict.close()


def test_a_url_that_neo4j_cannot_use_is_told_at_once_without_its_password() -> None:
    with pytest.raises(ValidationError, match="url"):
        Neo4jServerSettings(url="http://localhost:7474")
    with pytest.raises(Misconfigured, match=r"graph\.url") as told:
        neo4j_graph(Neo4jServerSettings(url="bolt://ann:secret@localhost"), read_deadline_s=1)
    assert "secret" not in str(told.value)
