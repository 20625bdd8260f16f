"""Nobody without a key stops the service: half-sent and slow requests, bodies before the key, keys that are guessed."""

import asyncio
import contextlib
import json
import math
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from deployments.api import build_api
from deployments.front_door import FrontDoor, needs_key
from deployments.patient_server import MAX_HEAD_BYTES, MAX_PIPELINED, PatientProtocol, install
from deployments.proxy_rules import MOST_BODY_BYTES, MOST_EXPECTING, PAGE_COST, server_variables
from deployments.restarts import HA_PROXY, AnswerRestarts, proxy_middlewares
from deployments.services import MOST_KEYS_OF_A_LOOKUP, KeyCheck
from lamina.core.principals import Principal
from lamina.embedded import EmbeddedPostgres
from lamina.errors import Unauthenticated
from lamina.models.hashing import HashingModel
from lamina.policies.limits.address_rates import MINUTE_S, AddressRates, network_of
from lamina.policies.limits.open_connections import OpenConnections
from lamina.policies.limits.pace import Pace
from lamina.settings.loading import load_settings
from lamina.settings.serving import FrontDoorSettings
from lamina.stores.postgres.keys import KeyRole, list_keys, revoke_key
from tests.support.application import Application, running, settings_for
from tests.support.databases import new_database
from tests.support.ingress import haproxy_before, uvicorn_of
from tests.support.scratch import new_folder

LIMITS = FrontDoorSettings(
    headers_s=1,
    idle_s=2,
    body_s=1,
    body_bytes_per_s=50_000,
    connections=2000,
    connections_per_address=200,
    wrong_keys_per_minute=5,
)
# Of the others, while somebody misbehaves: a busy machine took 7 s of it; without an end it would be ENDED_WITHIN_S.
BOUND_S = 15.0
ENDED_WITHIN_S = 20.0
ATTACKERS = [f"127.0.1.{number}" for number in range(1, 5)]
MIB = 1024 * 1024
TEN_GB = 10 * 1000**3
HALF_HEADS = {
    "silent": b"",
    "one letter": b"P",
    "a line": b"POST /v1/search HTTP/1.1\r\n",
    "headers without an end": b"POST /v1/search HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer lamina_x\r\nX-A: ",
    "a folded header": b"GET /livez HTTP/1.1\r\nHost: x\r\nX-A: b\r\n ",
    "half a preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM",
    "HTTP/2 without a stream": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "HTTP/2 with half a head": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    b"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82",
}


@dataclass
class Door:
    """The service as clients reach it, and the server behind HAProxy."""

    app: Application
    port: int
    server_port: int

    def head(self, path: str = "/v1/notes", method: str = "POST", **headers: str) -> bytes:
        """The head of a request with the writer's key, unless another one is given."""
        given = {"Host": "lamina", "Authorization": f"Bearer {self.app.key}", "Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
        return "\r\n".join((*lines, "", "")).encode()

    def client(self, key: str | None = None, **headers: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {key or self.app.key}", **headers},
            timeout=30,
        )


@pytest.fixture(scope="module")
async def door(postgres: EmbeddedPostgres) -> AsyncIterator[Door]:
    with new_folder() as folder, new_database(postgres) as url:
        settings = settings_for(url, folder / "data", serve={"front_door": LIMITS})
        async with (
            running(settings, url, HashingModel()) as app,
            uvicorn_of(app.api, LIMITS) as server_port,
            haproxy_before(server_port, LIMITS, folder) as port,
        ):
            door = Door(app, port, server_port)
            await slowest_of_others(door, asyncio.create_task(asyncio.sleep(0)))  # The first search takes longer.
            yield door


def limited(app: Application, limits: FrontDoorSettings) -> FastAPI:
    """Return the application with other limits, none of which is used up."""
    serve = app.settings.serve.model_copy(update={"front_door": limits})
    return build_api(replace(app.services, settings=app.settings.model_copy(update={"serve": serve})))


@asynccontextmanager
async def opened(port: int, address: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def asked(port: int, sent: bytes) -> tuple[int, float]:
    """Send something, and return the status of what comes, and after how many seconds it begins."""
    began = time.monotonic()
    async with opened(port, ATTACKERS[3]) as (reader, writer):
        writer.write(sent)
        return status_of(await reader.read(10_000)), time.monotonic() - began


async def exchange(port: int, sent: bytes, address: str = ATTACKERS[0]) -> tuple[bytes, float]:
    """Send something, and return all that comes until the other side closes, and after how many seconds it does."""
    began = time.monotonic()
    answer = b""
    with contextlib.suppress(OSError):
        async with opened(port, address) as (reader, writer):
            writer.write(sent)
            async with asyncio.timeout(ENDED_WITHIN_S):
                answer = await reader.read()
    return answer, time.monotonic() - began


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


async def slowest_of_others(door: Door, during: asyncio.Task[Any]) -> float:
    """Work as somebody else until a task ends; returns the seconds of the slowest answer."""
    slowest, answers = 0.0, 0
    async with door.client() as client:
        while not during.done() or answers < 3:
            began = time.monotonic()
            stored = await client.post("/v1/notes", json={"content": f"note {answers} of somebody else"})
            found = await client.post("/v1/search", json={"query": "somebody else"})
            slowest = max(slowest, time.monotonic() - began)
            assert stored.is_success, stored.text
            assert found.is_success, found.text
            answers += 1
            await asyncio.sleep(0.05)
    return slowest


async def crowd(port: int, sent: bytes, size: int) -> list[tuple[bytes, float]]:
    return await asyncio.gather(*(exchange(port, sent, ATTACKERS[place % len(ATTACKERS)]) for place in range(size)))


@pytest.mark.parametrize("half", HALF_HEADS.values(), ids=HALF_HEADS)
async def test_half_sent_heads_end_while_others_are_served(door: Door, half: bytes) -> None:
    attack = asyncio.create_task(crowd(door.port, half, 600))

    slowest = await slowest_of_others(door, attack)

    assert slowest < BOUND_S
    assert max(seconds for _, seconds in await attack) < ENDED_WITHIN_S
    assert {status_of(answer) for answer, _ in await attack if b"HTTP/1.1" in answer[:8]} <= {400, 408}


async def test_one_address_has_so_many_connections_and_others_have_theirs(door: Door) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(LIMITS.connections_per_address):
            await stack.enter_async_context(opened(door.port, ATTACKERS[0]))

        answer, seconds = await exchange(door.port, door.head("/livez", "GET"))
        another, _ = await exchange(door.port, door.head("/livez", "GET", Connection="close"), ATTACKERS[1])

    assert (answer, seconds < BOUND_S) == (b"", True)
    assert status_of(another) == 200


@pytest.mark.parametrize("key", ["", "Bearer lamina_wrong", "Basic dXNlcjpwYXNz"])
@pytest.mark.parametrize(
    "length", [{"Content_Length": str(TEN_GB)}, {"Content_Length": "5"}, {"Transfer_Encoding": "chunked"}]
)
async def test_without_a_key_no_byte_of_a_body_is_waited_for(door: Door, key: str, length: dict[str, str]) -> None:
    head = door.head(Authorization=key, **length)
    async with opened(door.port, f"127.0.2.{len(head) % 250 + 1}") as (reader, writer):
        writer.write(head)
        answer = await reader.read(10_000)
        with contextlib.suppress(ConnectionError):
            for _ in range(10):  # The rest of a body is not taken.
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.1)
            raise AssertionError("the connection goes on")

    assert status_of(answer) == 401
    assert b"connection: close" in answer.lower()


async def test_a_body_that_is_too_large_is_refused_by_its_length_alone(door: Door) -> None:
    status, seconds = await asked(door.port, door.head(Content_Length=str(TEN_GB)))

    assert status == 413
    assert seconds < BOUND_S


async def _in_parts(size_bytes: int) -> AsyncIterator[bytes]:
    for _ in range(size_bytes // 65_536):
        yield b"x" * 65_536


@pytest.mark.parametrize("through", ["HAProxy", "Python"])
@pytest.mark.parametrize("headers", [{}, {"Expect": "100-continue"}, {"Content-Encoding": "gzip"}])
@pytest.mark.parametrize(
    ("path", "mib", "accepted"), [("/v1/notes", 17, 16 * MIB), ("/v1/notes/batch", 33, 32 * MIB), ("/v1/keys", 2, None)]
)
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_client_that_sends_all_of_a_body_that_is_too_large_reads_the_refusal(
    door: Door, through: str, headers: dict[str, str], path: str, mib: int, accepted: int | None, is_chunked: bool
) -> None:
    body = _in_parts(mib * MIB) if is_chunked else b"x" * mib * MIB
    async with door.client(**headers) as client:
        port = door.port if through == "HAProxy" else door.server_port
        answer = await client.post(f"http://127.0.0.1:{port}{path}", content=body)

    assert answer.status_code == 413
    assert f"larger than {accepted or 256 * 1024} bytes" in answer.json()["detail"]


async def test_a_client_that_stops_within_a_body_that_is_too_large_has_its_answer_at_once(door: Door) -> None:
    async with opened(door.port, ATTACKERS[3]) as (reader, writer):
        writer.write(door.head(Content_Length=str(33 * MIB)) + b"x" * MIB)
        began = time.monotonic()
        answer = await reader.readuntil(b"}")
        seconds = time.monotonic() - began
        rest = await asyncio.wait_for(reader.read(), ENDED_WITHIN_S)

    assert status_of(answer) == 413
    assert seconds < BOUND_S
    assert rest == b""


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/cache/health", "/openapi.json", "/nothing"])
async def test_no_body_is_waited_for_where_no_key_is_needed(door: Door, path: str) -> None:
    large, large_s = await asked(door.port, door.head(path, "GET", Authorization="", Content_Length=str(TEN_GB)))
    small, small_s = await asked(door.port, door.head(path, "GET", Authorization="", Content_Length="2"))
    chunked, chunked_s = await asked(door.port, door.head(path, "GET", Transfer_Encoding="chunked"))

    assert (large, chunked) == (413, 413)
    assert small in {200, 404}
    assert max(large_s, small_s, chunked_s) < BOUND_S


@pytest.mark.parametrize("through", ["HAProxy", "Python"])
async def test_half_a_body_is_answered_408(door: Door, through: str) -> None:
    port = door.port if through == "HAProxy" else door.server_port

    async def sent(path: str, packed: str) -> tuple[bytes, bytes, float]:
        is_form = path.endswith("upload")
        form = "multipart/form-data; boundary=b", b"--b\r\nContent-Disp"
        kind, body = form if is_form else ("application/json", b'{"content": "half')
        head = door.head(path, Content_Length="100", Content_Type=kind, Content_Encoding=packed)
        return body, *await exchange(port, head + body)

    cases = list(product(("/v1/notes", "/v1/documents/upload", "/v1/search", "/v1/turns"), ("", "gzip")))
    answers = await asyncio.gather(*(sent(*case) for case in cases))

    for case, (body, answer, seconds) in zip(cases, answers, strict=True):
        assert status_of(answer) == 408, case
        assert LIMITS.body_s <= seconds < ENDED_WITHIN_S, case
        counted = b": %d bytes" % len(body) if through == "Python" else b""
        assert b"the body did not arrive in time" + counted in answer, case
        assert b"application/problem+json" in answer, case


async def test_half_sent_bodies_of_a_right_key_reach_no_router(door: Door) -> None:
    reached: list[int] = []

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        size, is_more = 0, True
        while is_more:
            message = await receive()
            size, is_more = size + len(message.get("body", b"")), message.get("more_body", False)
        reached.append(size)
        await PlainTextResponse("")(scope, receive, send)

    with new_folder() as folder:
        async with uvicorn_of(read, LIMITS) as behind, haproxy_before(behind, LIMITS, folder) as port:
            await exchange(port, door.head("/v1/notes", "GET", Connection="close"))
            halves = [door.head(Content_Length=str(size)) + b"x" * 10 for size in (1_000, 1_000_000, 32 * MIB)]
            halves.append(door.head(Transfer_Encoding="chunked") + b"5\r\n12345\r\n")
            refused = await asyncio.gather(*(exchange(port, half) for half in halves))
            async with opened(port, ATTACKERS[0]) as (_, writer):
                writer.write(halves[0])
            of_halves = list(reached)
            for size in (10, 100_000, 2 * MIB):
                await exchange(port, door.head(Content_Length=str(size), Connection="close") + b"x" * size)

    assert [status_of(answer) for answer, _ in refused] == [408] * len(halves)
    assert of_halves == [0]
    assert reached == [0, 10, 100_000, 2 * MIB]


async def test_one_half_sent_body_of_a_right_key_that_has_had_no_answer_reaches_a_router(door: Door) -> None:
    half = door.head(Content_Length="1000") + b"x" * 10
    with new_folder() as folder:
        async with haproxy_before(door.server_port, LIMITS, folder) as port:
            answers = [(await exchange(port, half))[0] for _ in range(2)]

    assert [status_of(answer) for answer in answers] == [408, 408]
    assert [b"in time: 10 bytes" in answer for answer in answers] == [True, False]


async def test_a_large_body_that_waits_for_a_100_is_refused_unsent(door: Door) -> None:
    head = door.head(Content_Length=str(17 * MIB), Expect="100-continue")
    with new_folder() as folder:
        async with haproxy_before(door.server_port, LIMITS, folder) as port:
            await exchange(port, door.head("/v1/notes", "GET", Connection="close"))
            status, _ = await asked(port, head)
            beyond = await asyncio.gather(*(asked(port, head) for _ in range(MOST_EXPECTING + 10)))

    assert status == 413
    assert 100 in {status for status, _ in beyond}


async def test_a_larger_buffer_of_haproxy_waits_for_no_more_of_a_body(door: Door) -> None:
    begun = asyncio.Event()
    limits = LIMITS.model_copy(update={"body_s": 60, "idle_s": 60})

    async def answer_begun(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            begun.set()
        await PlainTextResponse("")(scope, receive, send)

    with new_folder() as folder:
        async with (
            uvicorn_of(answer_begun, limits) as behind,
            haproxy_before(behind, limits, folder, bufsize=MIB) as port,
        ):
            await exchange(port, door.head("/v1/notes", "GET", Connection="close"))
            async with opened(port, ATTACKERS[0]) as (_, writer), asyncio.timeout(30):
                writer.write(door.head(Content_Length="500000") + b"x" * 20_000)
                await begun.wait()


async def test_haproxy_waits_for_bodies_of_the_largest_size_that_a_route_takes(door: Door) -> None:
    documented = door.app.api.openapi()["paths"].values()
    taken = [call.get("x-max-body-bytes", 0) for calls in documented for call in calls.values()]

    assert max(taken) == MOST_BODY_BYTES


async def test_half_sent_and_trickled_bodies_end_while_others_are_served(door: Door) -> None:
    async def trickle() -> int:
        async with opened(door.port, ATTACKERS[1]) as (reader, writer):
            writer.write(door.head(Content_Length="100000") + b" " * 20_000)  # More than HAProxy waits for.
            answer = asyncio.create_task(reader.read())
            while not answer.done():
                with contextlib.suppress(OSError):
                    writer.write(b" ")
                    await writer.drain()
                await asyncio.sleep(0.1)
            return status_of(await answer)

    async def attack() -> tuple[list[int], list[tuple[bytes, float]]]:
        trickled, halves = await asyncio.gather(
            asyncio.gather(*(trickle() for _ in range(50))),
            crowd(door.port, door.head(Content_Length="1000") + b"{", 50),
        )
        return trickled, halves

    during = asyncio.create_task(attack())
    slowest = await slowest_of_others(door, during)
    trickled, halves = await during

    assert slowest < BOUND_S
    assert set(trickled) == {408}
    assert {status_of(answer) for answer, _ in halves} == {408}
    assert max(seconds for _, seconds in halves) < ENDED_WITHIN_S


async def test_half_sent_bodies_that_have_no_place_are_not_waited_for(door: Door) -> None:
    patient = LIMITS.model_copy(update={"body_s": 8.0})
    async with uvicorn_of(limited(door.app, patient), patient) as port:
        # Of the router's 200 places a key has three quarters.
        answers = await crowd(port, door.head(Content_Length="1000") + b"{", 200)

    refused = [seconds for answer, seconds in answers if status_of(answer) == 429]
    assert len(refused) >= 20
    assert sorted(refused)[len(refused) // 2] < patient.body_s


async def test_a_large_body_at_a_steady_pace_is_taken(door: Door) -> None:
    body = json.dumps({"content": "slow but steady", "metadata": {}}).encode().ljust(150_000)
    async with opened(door.port, ATTACKERS[2]) as (reader, writer):
        writer.write(door.head(Content_Length=str(len(body)), Connection="close"))
        for place in range(0, len(body), 25_000):
            writer.write(body[place : place + 25_000])
            await asyncio.sleep(0.3)
        answer = await reader.read()

    assert status_of(answer) == 201


async def test_an_answer_that_takes_longer_than_the_idle_time_arrives(door: Door) -> None:
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/livez":
            await asyncio.sleep(LIMITS.idle_s + 1)
        await PlainTextResponse("at last")(scope, receive, send)

    with new_folder() as folder:
        async with uvicorn_of(slow, LIMITS) as behind, haproxy_before(behind, LIMITS, folder) as port:
            answer, _ = await exchange(port, door.head("/v1/audit", Connection="close"))

    assert answer.endswith(b"at last")


@pytest.mark.parametrize("size_bytes", [100, 17_000, 30_000, 40_000, 60_000, 200_000, 2_000_000])
@pytest.mark.parametrize("is_reset", [False, True])
async def test_a_server_learns_that_a_client_has_gone_however_large_its_body_is(
    size_bytes: int, is_reset: bool
) -> None:
    noticed = asyncio.Event()
    asked = asyncio.Event()

    async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/v1/notes":
            await PlainTextResponse("ok")(scope, receive, send)
            return
        while (message := await receive())["type"] != "http.disconnect":
            if not message.get("more_body"):
                asked.set()
        noticed.set()

    with new_folder() as folder:
        async with uvicorn_of(waiting, LIMITS) as behind, haproxy_before(behind, LIMITS, folder) as port:
            async with opened(port, ATTACKERS[0]) as (_, writer):
                head = f"POST /v1/notes HTTP/1.1\r\nHost: lamina\r\nContent-Length: {size_bytes}\r\n\r\n"
                writer.write(head.encode() + b"x" * size_bytes)
                await asyncio.wait_for(asked.wait(), ENDED_WITHIN_S)
                await asyncio.sleep(0.3)  # HAProxy has nothing left to do.
                if is_reset:
                    writer.transport.abort()

            await asyncio.wait_for(noticed.wait(), ENDED_WITHIN_S)


async def test_wrong_keys_are_answered_429_in_the_end_and_right_ones_of_that_address_go_on(door: Door) -> None:
    address = "127.0.3.1"
    known = door.head("/v1/notes", "GET", Connection="close")
    assert status_of((await exchange(door.port, known, address))[0]) == 200

    def guess(number: int, **headers: str) -> Awaitable[tuple[bytes, float]]:
        key = f"Bearer lamina_{number}"
        head = door.head("/v1/notes", "GET", Authorization=key, Connection="close", **headers)
        return exchange(door.port, head, address)

    one_by_one = [status_of((await guess(number))[0]) for number in range(3)]
    at_once = [status_of(answer) for answer, _ in await asyncio.gather(*(guess(number) for number in range(3, 20)))]
    forged = [status_of((await guess(number, X_Forwarded_For=f"192.0.2.{number}"))[0]) for number in range(20, 23)]
    refused, _ = await guess(23)

    assert one_by_one == [401] * 3
    assert sorted(at_once) == [401] * 2 + [429] * 15
    assert forged == [429] * 3
    assert int(refused.lower().split(b"retry-after: ")[1].split(b"\r\n")[0]) in range(1, 61)
    assert status_of((await exchange(door.port, known, address))[0]) == 200
    elsewhere = door.head("/v1/notes", "GET", Authorization="Bearer lamina_x", Connection="close")
    assert status_of((await exchange(door.port, elsewhere, "127.0.3.2"))[0]) == 401


async def test_a_key_that_was_revoked_counts_as_a_wrong_one(door: Door) -> None:
    address, key = "127.0.3.3", door.app.new_key("tenant of the revoked", KeyRole.READER)
    request = door.head("/v1/notes", "GET", Authorization=f"Bearer {key}", Connection="close")
    assert status_of((await exchange(door.port, request, address))[0]) == 200

    (info,) = [item for item in list_keys(door.app.url) if item.tenant == "tenant of the revoked"]
    revoke_key(door.app.url, info.id)
    answers = [status_of((await exchange(door.port, request, address))[0]) for _ in range(8)]

    assert answers == [401] * 6 + [429] * 2  # The first one was known.


async def test_wrong_keys_of_an_address_reach_no_router_in_the_end(door: Door) -> None:
    address = "127.0.3.4"
    reached = 0

    async def count(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal reached
        reached += 1
        is_right = (b"authorization", b"Bearer right") in scope["headers"]
        await PlainTextResponse("", 200 if is_right else 401)(scope, receive, send)

    def head(key: str) -> bytes:
        return door.head("/v1/notes", "GET", Authorization=f"Bearer {key}", Connection="close")

    with new_folder() as folder:
        async with uvicorn_of(count, LIMITS) as behind, haproxy_before(behind, LIMITS, folder) as port:
            assert status_of((await exchange(port, head("right"), address))[0]) == 200
            for number in range(LIMITS.wrong_keys_per_minute + 1):
                assert status_of((await exchange(port, head(f"wrong {number}"), address))[0]) == 401
            before = reached
            crowd_of_wrong = await asyncio.gather(*(exchange(port, head(f"more {n}"), address) for n in range(40)))
            assert reached == before
            assert {status_of(answer) for answer, _ in crowd_of_wrong} == {429}
            assert status_of((await exchange(port, head("right"), address))[0]) == 200
            assert status_of((await exchange(port, head("wrong"), "127.0.3.5"))[0]) == 401


async def test_a_crowd_of_wrong_keys_costs_no_statement_for_each(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    check, statements = door.app.services.key_check, 0

    async def find(keys: Sequence[str]) -> list[Principal | None]:
        nonlocal statements
        statements += 1
        return await door.app.services.reads.keys.find(keys)

    monkeypatch.setattr(check._lookups, "_call", find)
    unlike = ["lamina_x", "", "lamina_" + "x" * 42, "lamina_" + "x" * 44, "lamina_" + "é" * 43, "x" * 50, "\ud800"]
    made_up = [f"lamina_{secrets.token_urlsafe(32)}" for _ in range(500)]

    refused = await asyncio.gather(*(check.check(key) for key in unlike), return_exceptions=True)
    assert statements == 0
    refused += await asyncio.gather(*(check.check(key) for key in made_up), return_exceptions=True)

    assert {type(error) for error in refused} == {Unauthenticated}
    assert statements <= 1 + math.ceil(len(made_up) / MOST_KEYS_OF_A_LOOKUP)
    assert (await check.check(door.app.key)).tenant == door.app.tenant


async def test_the_same_wrong_key_is_looked_up_once_in_a_while(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def nobody(keys: Sequence[str]) -> list[Principal | None]:
        asked.extend(keys)
        return [None] * len(keys)

    check = KeyCheck(door.app.services.reads.keys, trust_s=60)
    monkeypatch.setattr(check._lookups, "_call", nobody)
    key = f"lamina_{secrets.token_urlsafe(32)}"
    for _ in range(20):
        with pytest.raises(Unauthenticated):
            await check.check(key)

    assert asked == [key]


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/docs/start.js"])
@pytest.mark.parametrize("is_behind_haproxy", [True, False])
async def test_pages_are_read_so_often_a_minute_by_an_address_and_monitors_go_on(
    door: Door, path: str, is_behind_haproxy: bool
) -> None:
    limits = LIMITS.model_copy(update={"unkeyed_requests_per_minute": 4 * PAGE_COST + 50})
    head = door.head(path, "GET", Authorization="Bearer any")
    last = door.head(path, "GET", Authorization="Bearer any", Connection="close")  # Or it ends after the idle time.
    end = door.head("/livez", "GET", Connection="close")
    answered = 0

    async def count(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal answered
        answered += scope["path"] == path
        await app(scope, receive, send)

    app = limited(door.app, limits)
    with new_folder() as folder:
        async with contextlib.AsyncExitStack() as stack:
            port = await stack.enter_async_context(uvicorn_of(count, limits))
            if is_behind_haproxy:
                port = await stack.enter_async_context(haproxy_before(port, limits, folder))
            answers, _ = await exchange(port, head * 11 + last, ATTACKERS[0])
            again, _ = await exchange(port, head * 11 + last, ATTACKERS[0])
            monitored, _ = await exchange(port, end, ATTACKERS[0])
            elsewhere, _ = await exchange(port, head + end, ATTACKERS[1])

    refusals = answers.count(b"HTTP/1.1 429")
    assert answers.count(b"HTTP/1.1 200") == 4
    assert refusals == (8 if is_behind_haproxy else 1)  # A router ends the connection with it.
    assert (again.count(b"HTTP/1.1 200"), status_of(again)) == (0, 429)
    assert (status_of(monitored), status_of(elsewhere)) == (200, 200)
    assert answered == (4 + 1 if is_behind_haproxy else 4 + 1 + 1 + 1)


async def test_keyed_paths_without_a_key_count_as_requests_without_one(door: Door) -> None:
    limits = LIMITS.model_copy(update={"unkeyed_requests_per_minute": 3})

    async with uvicorn_of(limited(door.app, limits), limits) as port:
        answers, _ = await exchange(port, door.head("/v1/notes", "GET", Authorization="") * 8)
        right, _ = await exchange(port, door.head("/v1/notes", "GET", Connection="close"))

    assert (answers.count(b"HTTP/1.1 401"), answers.count(b"HTTP/1.1 429")) == (3, 1)
    assert status_of(right) == 200


async def test_refused_keys_wait_but_never_so_many_that_others_have_no_place(door: Door) -> None:
    front_door = FrontDoor(door.app.api, door.app.services)
    most = front_door._most_slowed

    waiting = [asyncio.create_task(front_door._slow_down()) for _ in range(10 * most)]
    await asyncio.sleep(0.01)
    still_wait = sum(not task.done() for task in waiting)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)

    assert 1 <= still_wait == most < door.app.settings.serve.router.max_ongoing_requests / 2
    assert front_door._slowed == 0


async def test_every_route_with_a_key_asks_for_it_before_its_body(door: Door) -> None:
    documented = door.app.api.openapi()["paths"]
    asked = {path for path, calls in documented.items() for call in calls.values() if call.get("security")}

    assert asked == {path for path in documented if needs_key(path)}


async def test_statistics_and_metrics_of_haproxy_listen_on_this_machine_alone(door: Door) -> None:
    with new_folder() as folder:
        limits = FrontDoorSettings(trusted_proxies=("10.1.2.3/8", "2001:db8::/32"))
        async with haproxy_before(door.server_port, limits, folder):
            lines = [line.strip() for line in (folder / "haproxy.cfg").read_text().splitlines()]

    assert [line for line in lines if line.startswith("bind ") and not line.startswith("bind 127.0.0.1:")] == []
    assert "acl is_trusted src 10.0.0.0/8 2001:db8::/32" in lines
    assert "timeout http-request 10s" in lines


async def test_the_address_of_a_trusted_proxys_client_is_believed(door: Door) -> None:
    async def tell(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(scope["client"][0])(scope, receive, send)

    request = door.head("/", "GET", X_Forwarded_For="192.0.2.1, 198.51.100.7", Connection="close")
    told = []
    for trusted in ((), (ATTACKERS[0],)):
        limits = FrontDoorSettings(trusted_proxies=trusted)
        with new_folder() as folder:
            async with uvicorn_of(tell, limits) as behind, haproxy_before(behind, limits, folder) as port:
                answers = [(await exchange(port, request, address))[0] for address in ATTACKERS[:2]]
        told.append([answer.rpartition(b"\n")[2].decode() for answer in answers])

    assert told == [ATTACKERS[:2], ["198.51.100.7", ATTACKERS[1]]]


@pytest.mark.parametrize("half", [half for name, half in HALF_HEADS.items() if "HTTP/2" not in name])
async def test_half_sent_heads_end_without_haproxy_too(door: Door, half: bytes) -> None:
    ended = await crowd(door.server_port, half, 50)

    assert max(seconds for _, seconds in ended) < ENDED_WITHIN_S


async def test_without_haproxy_connections_are_bounded_too_by_address_and_in_all() -> None:
    limits = FrontDoorSettings(connections=50, connections_per_address=20)

    async def is_served(port: int, stack: contextlib.AsyncExitStack, address: str) -> bool:
        with contextlib.suppress(OSError):
            reader, writer = await stack.enter_async_context(opened(port, address))
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            return bool(await reader.read(10))
        return False

    async with uvicorn_of(PlainTextResponse("here"), limits, is_behind_haproxy=False) as port:
        async with contextlib.AsyncExitStack() as stack:
            served = [sum([await is_served(port, stack, address) for _ in range(25)]) for address in ATTACKERS[:3]]
        await asyncio.sleep(0.2)
        async with contextlib.AsyncExitStack() as stack:
            later = await is_served(port, stack, ATTACKERS[0])

    assert served == [20, 20, 10]
    assert later


async def test_requests_that_are_sent_ahead_of_their_turn_are_bounded() -> None:
    answered = 0

    async def count(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal answered
        answered += 1
        await PlainTextResponse("")(scope, receive, send)

    request, last = b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
    async with uvicorn_of(count, LIMITS) as port:
        await asyncio.gather(*(exchange(port, request * 3_000) for _ in range(3)))
        answered_of_many = answered
        few, _ = await exchange(port, request * MAX_PIPELINED + last)

    assert answered_of_many <= 3
    assert few.count(b"HTTP/1.1 200") == MAX_PIPELINED + 1


def test_connections_count_by_network_and_trusted_proxies_have_no_limit_of_their_own() -> None:
    counted = OpenConnections(most=7, of_address=2, trusted=["10.0.0.0/8", "fd00::/8"])
    addresses = ["2001:db8::1", "2001:db8::2", "2001:db8::3", *["10.1.2.3"] * 4, "fd00::1", "unix", "192.0.2.1"]

    assert [counted.admit(address) for address in addresses] == [True, True, False, *[True] * 4, *[False] * 3]
    for address in addresses:
        counted.leave(address)
    assert (len(counted), len(counted._open)) == (0, 0)


def test_servers_learn_the_limits_of_the_settings_and_count_where_no_haproxy_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = FrontDoorSettings(connections=99, connections_per_address=9, trusted_proxies=("10.0.0.0/8", "::1/128"))
    for name, value in server_variables(limits).items():
        monkeypatch.setenv(name, value)
    counted = []
    for value in ("0", "1"):
        monkeypatch.setenv(HA_PROXY, value)
        proxy_middlewares()
        counted.append(PatientProtocol.open_connections is not None)
    learnt = PatientProtocol.limits
    install(FrontDoorSettings(), counts_connections=False)

    names = ("connections", "connections_per_address", "trusted_proxies")
    assert [getattr(learnt, name) for name in names] == [getattr(limits, name) for name in names]
    assert load_settings().serve.front_door.trusted_proxies == limits.trusted_proxies
    assert counted == [True, False]


async def test_a_head_without_end_is_cut_off(door: Door) -> None:
    line = b"X-Padding: " + b"a" * 1000 + b"\r\n"
    answer, seconds = await exchange(door.server_port, b"GET /livez HTTP/1.1\r\n" + line * (2 * MAX_HEAD_BYTES // 1000))

    assert answer == b""
    assert seconds < BOUND_S


async def test_a_reader_that_takes_nothing_is_cut_off_and_its_answer_forgotten() -> None:
    limits = FrontDoorSettings(body_s=2, body_bytes_per_s=20_000_000)
    async with (
        uvicorn_of(Response(b"x" * 20_000_000), limits) as port,
        opened(port, ATTACKERS[0]) as (reader, writer),
    ):
        reader._limit = 1  # type: ignore[attr-defined]  # Asyncio would read ahead.
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(ENDED_WITHIN_S):
            while PatientProtocol.unread_bytes <= 1_000_000:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.05)
            while PatientProtocol.unread_bytes > 0:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_a_reader_that_keeps_its_pace_gets_all() -> None:
    limits = FrontDoorSettings(body_s=0.5, body_bytes_per_s=2_000_000)
    async with (
        uvicorn_of(Response(b"x" * 20_000_000), limits) as port,
        opened(port, ATTACKERS[0]) as (reader, writer),
    ):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        size = 0
        while part := await reader.read(1_000_000):
            size += len(part)
            await asyncio.sleep(0.01)

    assert size > 20_000_000


async def test_no_sender_gives_orders_to_serve() -> None:
    async def tell(scope: Scope, receive: Receive, send: Send) -> None:
        names = [name.decode() for name, _ in scope["headers"] if name.startswith(b"x-")]
        await PlainTextResponse(" ".join(names))(scope, receive, send)

    orders = {"X-Request-Timeout-Seconds": "0", "X-Request-Disconnect-Disabled": "?1", "X-Request-Id": "mine"}
    transport = httpx.ASGITransport(AnswerRestarts(tell))
    async with httpx.AsyncClient(transport=transport, base_url="http://lamina") as client:
        assert (await client.get("/", headers=orders)).text == "x-request-id"


def test_an_address_earns_its_tries_back() -> None:
    wrong = AddressRates(per_minute=6)

    assert [wrong.take("192.0.2.1", 0.0) for _ in range(8)] == [0] * 6 + [10] * 2
    assert wrong.take("192.0.2.1", 9.0) == 1
    assert [wrong.take("192.0.2.1", 10.0) for _ in range(2)] == [0, 10]
    assert [wrong.take("192.0.2.1", MINUTE_S * 5) for _ in range(7)] == [0] * 6 + [10]
    wrong.give_back("192.0.2.1", MINUTE_S * 5)
    assert wrong.take("192.0.2.1", MINUTE_S * 5) == 0


def test_more_addresses_than_there_is_room_for_end_none() -> None:
    wrong = AddressRates(per_minute=1, most=100)

    assert [wrong.take(f"10.0.{number // 256}.{number % 256}", 0.0) for number in range(1000)] == [0] * 1000
    assert len(wrong) == 100


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("unix:", "unix:", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_an_address_stands_for_what_one_client_has(one: str, other: str, is_same: bool) -> None:
    assert (network_of(one) == network_of(other)) is is_same


def test_bytes_extend_a_pace_and_waiting_uses_it_up() -> None:
    pace = Pace(patience_s=2.0, bytes_per_s=100.0)

    pace.count(300, 4.0)

    assert pace.left_s() == pytest.approx(1.0)
    pace.count(0, 5.0)
    assert pace.left_s() == 0.0
