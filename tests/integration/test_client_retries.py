"""What the client does while a proxy restarts: it asks again where nothing was seen of the request, and only there."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from deployments.environment import free_port
from lamina.cli.common import LONG_TIMEOUT_S, client_of
from lamina.client import AsyncClient, Client, Lamina
from lamina.client.files import upload_batches
from lamina.errors import InvalidInput, Misconfigured, NotFound, Unavailable
from lamina.settings.writing import DocumentsSettings, WriteSettings
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

    def __init__(self, port: int, answers: Sequence[tuple[Any, ...]]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answers = list(answers)
        self.asked = 0


class _Handler(BaseHTTPRequestHandler):
    server: Proxy

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked += 1
        answers = self.server.answers
        status, kind, body, *headers = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PATCH = do_DELETE = do_POST  # noqa: N815 - names of http.server

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def proxy(*answers: tuple[Any, ...], port: int = 0) -> Iterator[Proxy]:
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


def busy(retry_after: str, status: int = 503) -> tuple[Any, ...]:
    return (status, "application/json", b"{}", ("Retry-After", retry_after))


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


READ = ("note", {"id_": "1"})
STORE = ("add", {"content": "green tea"})
STORE_ONCE = ("add", {"content": "green tea", "idempotency_key": "k"})
CHANGE = ("change", {"id_": "1", "content": "green tea"})
CHANGE_ONE_VERSION = ("change", {"id_": "1", "content": "green tea", "if_version": 3})
DELETE_ONE_VERSION = ("delete_document", {"id_": "1", "if_version": 3})
PUT_NEW = ("add_document", {"content": "green tea", "key": "k", "if_version": 0})
FORGET = ("delete_memory", {"id_": "1"})


@pytest.mark.parametrize(
    ("call", "refusal", "least_s", "most_s"),
    [
        (READ, busy("7"), 7, 10.5),
        (CHANGE, busy("7"), 7, 10.5),
        (STORE_ONCE, busy("0"), 0, 0),
        (CHANGE_ONE_VERSION, NO_TURN, 1, 1.5),
        (STORE, busy("7", 429), 7, 10.5),
        (READ, busy("soon"), 1, 1.5),
        (READ, busy("-5"), 1, 1.5),
        (READ, busy("Wed, 21 Oct 2015 07:28:00 GMT"), 1, 1.5),
        (READ, busy(in_seconds(30)), 1, 46.5),
    ],
)
def test_a_call_that_may_be_repeated_is_after_the_time_that_the_answer_names(
    pauses: list[float], call: tuple[str, dict[str, Any]], refusal: tuple[Any, ...], least_s: float, most_s: float
) -> None:
    name, arguments = call

    with proxy(refusal, OURS) as server, Client(url_of(server), "k") as client:
        answer = getattr(client, name)(**arguments)

    assert answer == {"id": "1"}
    assert server.asked == 2
    assert len(pauses) == 1
    assert least_s <= pauses[0] <= most_s


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (STORE, busy("1")),
        (CHANGE_ONE_VERSION, busy("1")),
        (DELETE_ONE_VERSION, busy("1")),
        (PUT_NEW, busy("1")),
        (FORGET, busy("1")),
        (READ, busy("90000")),
        (READ, busy("9" * 500)),
        (READ, busy(in_seconds(90_000))),
        (READ, (503, "application/json", b"{}")),
        (READ, (500, "application/json", b"{}", ("Retry-After", "1"))),
    ],
    ids=[
        "a write that may have begun",
        "a change of one version",
        "a deletion of one version",
        "a document that may not be there yet",
        "a deletion that tells what it deleted",
        "longer than the client waits",
        "for ever",
        "tomorrow",
        "no time",
        "an error",
    ],
)
def test_a_call_is_not_repeated_that_may_do_more_or_would_wait_too_long(
    pauses: list[float], call: tuple[str, dict[str, Any]], refusal: tuple[Any, ...]
) -> None:
    name, arguments = call

    with proxy(refusal) as server, Client(url_of(server), "k") as client, pytest.raises(Unavailable):
        getattr(client, name)(**arguments)

    assert (server.asked, pauses) == (1, [])


async def test_a_deletion_that_was_done_the_first_time_is_no_error(pauses: list[float]) -> None:
    with proxy(busy("0"), busy("0", 429), MISSING) as server, Client(url_of(server), "k") as client:
        client.delete("1")
    with proxy(busy("0"), MISSING) as other:
        async with AsyncClient(url_of(other), "k") as awaited:
            await awaited.delete_message("1")

    assert (server.asked, other.asked) == (3, 2)


def test_a_deletion_of_what_was_never_there_is_an_error(pauses: list[float]) -> None:
    refused = busy("0", 429)

    with proxy(refused, MISSING) as server, Client(url_of(server), "k") as client, pytest.raises(NotFound):
        client.delete("1")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_told_and_the_key_goes_nowhere_else(status: int) -> None:
    elsewhere = (status, "text/html", b"moved", ("Location", "https://elsewhere.example/v1/notes"))

    with (
        proxy(elsewhere) as server,
        Client(url_of(server), "k") as client,
        pytest.raises(Unavailable, match=r"leads to https://elsewhere\.example"),
    ):
        client.add("green tea")

    assert server.asked == 1


@pytest.mark.parametrize("body", [b"[]", b"<html>", b"\xff", b"[" * 100_000])
@pytest.mark.parametrize("kind", [Client, Lamina])
def test_an_answer_of_another_program_is_told_as_such(kind: type[Client | Lamina], body: bytes) -> None:
    with (
        proxy((200, "text/html", body)) as server,
        kind(url_of(server), "k") as client,
        pytest.raises(Unavailable, match="is no Lamina; check the URL"),
    ):
        client.search("green tea")


def test_an_answer_that_is_packed_wrongly_is_told_as_such() -> None:
    packed = (200, "application/json", b"no gzip", ("Content-Encoding", "gzip"))

    with proxy(packed) as server, Client(url_of(server), "k") as client, pytest.raises(Unavailable, match="Decoding"):
        client.search("green tea")


@pytest.mark.parametrize("body", [b"{}", b'{"id": "no uuid"}'])
def test_an_answer_of_another_release_is_told_as_such(body: bytes) -> None:
    other = (200, "application/json", body)

    with (
        proxy(other) as server,
        Lamina(url_of(server), "k") as client,
        pytest.raises(Misconfigured, match=r"is no PutResult.*release"),
    ):
        client.add("green tea")


def test_a_field_that_only_a_newer_service_has_does_no_harm() -> None:
    newer = (201, "application/json", b'{"id": "00000000-0000-0000-0000-000000000007", "existed": false, "hue": 7}')

    with proxy(newer) as server, Lamina(url_of(server), "k") as client:
        stored = client.add("green tea")

    assert stored.id == UUID(int=7)


def test_a_list_that_is_empty_or_away_ends() -> None:
    empty = (200, "application/json", b'{"notes": [], "next_cursor": null}')

    with proxy(empty) as server, Lamina(url_of(server), "k") as client:
        assert list(client.notes.each()) == []
        assert client.notes().notes == []
    away = Lamina(f"http://127.0.0.1:{free_port()}", "k", connect_retries=0)
    with away, pytest.raises(Unavailable, match="does not answer"):
        next(away.notes.each())

    assert server.asked == 2


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


@pytest.mark.parametrize("kind", [Client, AsyncClient, Lamina])
@pytest.mark.parametrize(
    ("url", "key", "told"),
    [
        *(
            (url, "k", "is no address of a service; write one as http://")
            for url in ("localhost:8000", "127.0.0.1:8000", "ftp://x", "http://", "http://[::1", "http://127.0.0.1:1\r")
        ),
        *((None, key, "the API key has a character that no key has") for key in ("k\r", "ké", "k\n")),
    ],
)
def test_an_address_or_a_key_that_cannot_be_one_is_named(
    kind: type[Client], url: str | None, key: str, told: str
) -> None:
    with pytest.raises(Misconfigured, match=told):
        kind(url, key)


def test_a_header_that_cannot_be_sent_is_no_service_that_is_away() -> None:
    with proxy(OURS) as server, Client(url_of(server), "k") as client, pytest.raises(InvalidInput, match="be sent"):
        client.add("green tea", idempotency_key="a\nb")

    assert server.asked == 0


def test_a_service_that_works_too_long_is_not_said_to_be_away() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Client(f"http://127.0.0.1:{silent.getsockname()[1]}", "k", timeout_s=1) as client,
        pytest.raises(Unavailable, match=r"did not answer in time, and may still work on it; .*timeout_s"),
    ):
        client.add("green tea")


def test_an_upload_is_waited_for_as_long_as_the_service_may_embed_and_sent_in_small_parts(tmp_path: Path) -> None:
    sizes = [150_000, 40_000, 20_000, 900_000, *([10] * 40)]
    files = [tmp_path / f"{number}.md" for number in range(len(sizes))]
    for file, size in zip(files, sizes, strict=True):
        file.write_bytes(b"x" * size)

    batches = list(upload_batches(files))

    with client_of(None, None, "http://127.0.0.1:1", "k", timeout_s=LONG_TIMEOUT_S) as client:
        timeout = client._http.timeout
    assert timeout.read > DocumentsSettings().embed_budget_s + WriteSettings().embed_deadline_s
    assert timeout.connect == 60
    assert [len(batch) for batch in batches] == [2, 1, 1, 32, 8]
    assert [path for batch in batches for path in batch] == files


async def test_the_service_s_own_missing_things_are_told_as_such(application: Application) -> None:
    answer = await application.client().get("/v1/notes/00000000-0000-0000-0000-000000000007")

    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("application/problem+json")
