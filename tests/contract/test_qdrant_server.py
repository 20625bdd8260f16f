"""What becomes of a Qdrant server's answers, and of their absence: a double of the wire, for no server can be had here.

The double says what the documentation says a server says; what a search brings, `test_index.py` asks real engines.
"""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from qdrant_client import models

from deployments.environment import free_port
from lamina.core.ports import Change
from lamina.errors import Misconfigured, Unavailable
from lamina.projections.ownership import is_new_store
from lamina.settings.stores import QdrantServerSettings
from lamina.stores.index.qdrant.collections import Collections, build_of, connect
from lamina.stores.index.qdrant.index import QdrantIndex
from tests.support.indexes import ONE, asked, record
from tests.support.wires import silence


class Server(ThreadingHTTPServer):
    """Answers every call alike, and remembers what was asked."""

    daemon_threads = True

    def __init__(self, status: int, body: Any, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.status = status
        self.body = body
        self.calls: list[tuple[str, str, str | None]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.calls.append((self.command, self.path, self.headers.get("api-key")))
        body = json.dumps(self.server.body).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the names that the base class asks for

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def server(status: int, body: Any, port: int = 0) -> Iterator[Server]:
    running = Server(status, body, port)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield running
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


def settings(port: int, **options: Any) -> QdrantServerSettings:
    chosen = {"grpc_port": None, "read_timeout_s": 60, "write_timeout_s": 60, **options}
    return QdrantServerSettings(url=f"http://127.0.0.1:{port}", **chosen)


def index_at(port: int, **options: Any) -> QdrantIndex:
    return QdrantIndex(settings(port, **options), "lamina_notes", dimension=64)


@pytest.mark.parametrize("by_grpc", [False, True])
async def test_a_server_that_refuses_connections_is_unavailable(by_grpc: bool) -> None:
    index = index_at(free_port(), grpc_port=free_port() if by_grpc else None)

    with pytest.raises(Unavailable, match="index is not available"):
        await index.by_both(asked("green tea"))
    with pytest.raises(Unavailable):
        await index.apply([Change(ONE, record("green tea"))])
    with pytest.raises(Unavailable):
        await index.probe()
    await index.close()


@pytest.mark.parametrize("by_grpc", [False, True])
async def test_a_server_that_says_nothing_is_given_up_in_time(by_grpc: bool) -> None:
    with silence() as port:
        hasty = {"read_timeout_s": 0.5, "write_timeout_s": 0.5}
        index = index_at(port, grpc_port=port if by_grpc else None, **hasty)
        begin = time.monotonic()

        with pytest.raises(Unavailable):
            await index.by_both(asked("green tea"))

        await index.close()
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_a_fault_of_the_configuration(status: int) -> None:
    with server(status, {"status": {"error": "forbidden"}}) as running:
        with pytest.warns(UserWarning, match="insecure"):
            index = index_at(running.server_address[1], api_key=SecretStr("secret"))

        with pytest.raises(Misconfigured, match="api_key") as refused:
            await index.by_both(asked("green tea"))

        await index.close()
    assert {key for *_, key in running.calls} == {"secret"}
    assert "secret" not in str(refused.value)


async def test_a_server_s_fault_is_told_in_one_line() -> None:
    with server(500, {"status": {"error": "disk is full"}}) as running:
        index = index_at(running.server_address[1])

        with pytest.raises(Unavailable) as failed:
            await index.apply([Change(ONE, record("green tea"))])

        await index.close()
    assert "\n" not in str(failed.value)


async def test_a_server_that_is_too_old_is_refused_with_what_to_run() -> None:
    with server(200, {"title": "qdrant", "version": "1.18.2"}) as running:
        index = index_at(running.server_address[1])

        with pytest.raises(Misconfigured, match=r"1\.18\.2.*1\.19"):
            await index.prepare()

        await index.close()


def test_a_server_that_does_not_answer_at_the_start_counts_as_empty() -> None:
    assert is_new_store(lambda: index_at(free_port()))


async def test_a_server_that_comes_up_is_met_without_a_restart() -> None:
    port = free_port()
    index = index_at(port)
    with pytest.raises(Unavailable):
        await index.by_both(asked("green tea"))

    with server(401, {}, port) as running, pytest.raises(Misconfigured):
        await index.by_both(asked("green tea"))

    await index.close()
    assert running.calls


async def test_a_collection_that_is_taken_away_is_made_again(tmp_path: Path) -> None:
    chosen = QdrantServerSettings(url=str(tmp_path))
    client = connect(chosen, "shared")
    index = QdrantIndex(chosen, "lamina_notes", dimension=64, client=client)
    await index.apply([Change(ONE, record("green tea"))])
    await client.update_collection_aliases(
        [models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name="lamina_notes"))]
    )
    await client.delete_collection("lamina_notes.0")

    with pytest.raises(Unavailable, match="is missing on the server"):
        await index.by_both(asked("green tea"))
    with pytest.raises(Unavailable):
        await index.apply([Change(ONE, record("green tea"))])
    await index.apply([Change(ONE, record("green tea"))])

    assert [item.place for item in await index.by_words(asked("green tea"))] == [(ONE, 0)]
    await index.close()


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("lamina_notes.0", 0),
        ("lamina_notes.12", 12),
        ("lamina_notes", None),
        ("lamina_notes-2-1.3", None),
        ("x.1", None),
    ],
)
def test_a_collection_is_a_build_of_its_alias_alone(name: str, build: int | None) -> None:
    assert build_of(name, "lamina_notes") == build


@pytest.mark.parametrize("quantisation", ["none", "scalar", "binary"])
async def test_a_new_collection_is_as_the_settings_say(quantisation: str) -> None:
    made: dict[str, Any] = {}

    class Taking:
        async def create_collection(self, name: str, **options: Any) -> None:
            made.update(options, name=name)

        async def create_payload_index(self, *_: Any, **__: Any) -> None: ...

    chosen = settings(1, m=24, ef_construction=200, quantisation=quantisation, on_disk=True, shards=2, replicas=3)
    collections = Collections(chosen, Taking(), dimension=384)  # type: ignore[arg-type]  # what it asks of a client
    await collections.make("lamina_notes.0")

    dense = made["vectors_config"]["dense"]
    assert (dense.size, dense.distance, dense.on_disk) == (384, models.Distance.COSINE, True)
    assert (dense.hnsw_config.m, dense.hnsw_config.ef_construct) == (24, 200)
    assert (dense.quantization_config is None) == (quantisation == "none")
    assert (made["shard_number"], made["replication_factor"], made["write_consistency_factor"]) == (2, 3, 2)


async def test_several_callers_make_a_collection_once_or_agree(tmp_path: Path) -> None:
    chosen = QdrantServerSettings(url=str(tmp_path))
    index = QdrantIndex(chosen, "lamina_notes", dimension=64)

    await asyncio.gather(*(index.prepare() for _ in range(5)))

    assert await index.count() == 0
    await index.close()
