"""What the client does while a proxy restarts: it asks again where nothing was seen of the request, and only there."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from deployments.environment import free_port
from lamina.client import AsyncClient, Client
from lamina.errors import NotFound, Unavailable
from tests.support.application import Application

OURS = (200, "application/json", b'{"id": "1"}')
NO_ROUTE = (404, "text/plain", b"Path '/v1/notes' not found.")
NO_TURN, AWAY = (
    (
        503,
        "application/problem+json",
        json.dumps({"fields": {"part": part, "reason": "…", "retry_after_s": 1}}).encode(),
    )
    for part in ("turn", "postgres")
)
NO_ANSWER = (503, NO_TURN[1], NO_TURN[2].replace(b'"turn"', b'"search"'))
MISSING = (404, "application/problem+json", b'{"detail": "note 1 does not exist"}')


class Proxy(ThreadingHTTPServer):
    """Answers what it is told, in order, the last for ever; counts what it was asked."""

    daemon_threads = True

    def __init__(self, port: int, answers: Sequence[tuple[int, str, bytes]]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answers = list(answers)
        self.asked = 0


class _Handler(BaseHTTPRequestHandler):
    server: Proxy

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        answers = self.server.answers
        status, kind, body = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def proxy(*answers: tuple[int, str, bytes], port: int = 0) -> Iterator[Proxy]:
    server = Proxy(port, answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def url_of(server: Proxy) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_a_write_is_sent_once_the_proxy_listens_again() -> None:
    port = free_port()
    stored: list[Any] = []

    def write() -> None:
        with Client(f"http://127.0.0.1:{port}", "k") as client:
            stored.append(client.add("green tea"))

    writing = threading.Thread(target=write)
    writing.start()
    time.sleep(0.3)
    with proxy(OURS, port=port) as server:
        writing.join(60)

    assert stored == [{"id": "1"}]
    assert server.asked == 1


async def test_both_clients_ask_a_proxy_again_that_has_no_routes_yet() -> None:
    with proxy(NO_ROUTE, NO_ROUTE, OURS) as server:
        async with AsyncClient(url_of(server), "k") as client:
            answer = await client.add("green tea")
    with proxy(NO_ROUTE, OURS) as other, Client(url_of(other), "k") as sync:
        same = await asyncio.to_thread(sync.add, "green tea")

    assert answer == same == {"id": "1"}
    assert (server.asked, other.asked) == (3, 2)


@pytest.mark.parametrize("refusal", [NO_TURN, NO_ANSWER], ids=["no turn", "no answer of any source in time"])
async def test_both_clients_repeat_a_refused_search_after_the_time_that_they_are_told(
    refusal: tuple[int, str, bytes],
) -> None:
    began = time.monotonic()
    with proxy(refusal, OURS) as server:
        async with AsyncClient(url_of(server), "k") as client:
            answer = await client.search("where is the key?")
    with proxy(refusal, OURS) as other, Client(url_of(other), "k") as sync:
        same = await asyncio.to_thread(sync.search, "where is the key?")

    assert answer == same == {"id": "1"}
    assert (server.asked, other.asked) == (2, 2)
    assert time.monotonic() - began >= 2


def test_a_search_that_never_has_a_turn_is_refused_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)

    with proxy(NO_TURN) as server, Client(url_of(server), "k") as client, pytest.raises(Unavailable, match="turn"):
        client.search("where is the key?")

    assert server.asked == 5


def test_what_failed_otherwise_is_not_repeated() -> None:
    with proxy(AWAY) as server, Client(url_of(server), "k") as client, pytest.raises(Unavailable, match="postgres"):
        client.search("where is the key?")

    assert server.asked == 1


def test_what_has_no_such_route_at_all_is_no_lamina() -> None:
    with (
        proxy(NO_ROUTE) as server,
        Client(url_of(server), "k", connect_retries=0) as client,
        pytest.raises(Unavailable, match="is no Lamina"),
    ):
        client.add("green tea")

    assert server.asked == 1


def test_a_thing_that_is_missing_is_not_asked_for_again() -> None:
    with proxy(MISSING) as server, Client(url_of(server), "k") as client, pytest.raises(NotFound):
        client.add("green tea")

    assert server.asked == 1


def test_where_nobody_listens_the_last_refusal_is_told() -> None:
    client = Client(f"http://127.0.0.1:{free_port()}", "k", connect_retries=1)

    with client, pytest.raises(Unavailable, match="does not answer"):
        client.add("green tea")


async def test_the_service_s_own_missing_things_are_told_as_such(application: Application) -> None:
    answer = await application.client().get("/v1/notes/00000000-0000-0000-0000-000000000007")

    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("application/problem+json")
