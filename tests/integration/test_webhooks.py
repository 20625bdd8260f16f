"""Webhooks: signed, in order, at least once, past endpoints that misbehave, and only to public addresses."""

import asyncio
import contextlib
import ipaddress
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from standardwebhooks import Webhook as Verifier

from lamina.core.memories import new_id
from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.core.webhooks import allowed_addresses, clean_url, is_public, pause_after
from lamina.errors import InvalidInput
from lamina.models.hashing import HashingModel
from lamina.projections.webhook_delivery import WebhookDelivery
from lamina.stores.postgres.keys import store_key
from lamina.wiring.events import build_webhook_delivery
from lamina.wiring.stores import utc_now
from tests.support.application import Application, running, settings_for

PATIENCE_S = 30.0
NEWER_KIND = "dream.woven"
ALLOWED = {"allow_private": True, "allow_http": True, "attempts": 3, "timeout_s": 5, "poll_s": 0.05}
OK = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"

Answer = Callable[["Received", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Received:
    headers: dict[str, str]
    body: str

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body)["data"])


@dataclass
class Receiver:
    """A small HTTP server that keeps what it gets, and answers as a test says."""

    port: int = 0
    got: list[Received] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    misbehave: Answer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def ids(self) -> list[str]:
        """Ids of the memories of the events, as they came."""
        return [id_ for one in self.got for id_ in one.event["ids"]]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.got.append(received := Received(headers, body.decode()))
            if self.misbehave is not None:
                await self.misbehave(received, writer)
            else:
                writer.write(self.answers.pop(0) if self.answers else OK)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture
async def app(database: str, tmp_path: Path) -> AsyncIterator[Application]:
    async with running(settings_for(database, tmp_path, webhooks=ALLOWED), database, HashingModel()) as made:
        yield made


@pytest.fixture
def delivery(app: Application) -> WebhookDelivery:
    return build_webhook_delivery(app.settings, app.pool)


async def hook(app: Application, url: str, **fields: Any) -> dict[str, Any]:
    answer = await app.admin().post("/v1/webhooks", json={"url": url, **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def shown(app: Application, made: dict[str, Any]) -> dict[str, Any]:
    return dict((await app.admin().get(f"/v1/webhooks/{made['id']}")).json())


async def dead_letters(app: Application, made: dict[str, Any]) -> list[dict[str, Any]]:
    return list((await app.admin().get(f"/v1/webhooks/{made['id']}/dead-letters")).json()["dead_letters"])


async def add(app: Application, **fields: Any) -> str:
    answer = await app.client().post("/v1/notes", json={"content": f"Of the boat {uuid4()}", **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def end_pauses_and_claims(app: Application) -> None:
    with psycopg.connect(app.url, autocommit=True) as connection:
        connection.execute("UPDATE webhooks SET next_at = now(), claimed_until = now()")


async def retried(app: Application, delivery: WebhookDelivery) -> None:
    """Deliver as if every pause were over."""
    end_pauses_and_claims(app)
    await delivery.deliver_due()


@pytest.mark.parametrize("failures", [2, 3])
async def test_an_event_that_a_renaming_left_is_tried_as_often_as_others_before_those_that_follow(
    app: Application, delivery: WebhookDelivery, receiver: Receiver, failures: int
) -> None:
    made = await hook(app, receiver.url, workspace="a", kinds=["note.created"])
    first = await add(app, workspace="a")
    renaming = await app.admin().post("/v1/scopes/rename", json={"workspace": "a", "to_workspace": "b"})
    async with asyncio.timeout(PATIENCE_S):
        while (await shown(app, made))["workspace"] != "b":  # noqa: ASYNC110 - its end is told nowhere else
            await asyncio.sleep(0.05)
    second = await add(app, workspace="b")
    receiver.answers += [FAILED] * failures
    attempts = []

    for _ in range(3):
        await retried(app, delivery)
        attempts.append((await shown(app, made))["attempts"])

    assert renaming.is_success
    assert receiver.ids() == [first, first, first, second]
    assert attempts == [0, 0, 0]
    letters = [(one["attempts"], one["is_due"]) for one in await dead_letters(app, made)]
    assert letters == ([(3, False)] if failures == 3 else [])


async def test_events_arrive_signed_in_order_and_once(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    await add(app)
    made = await hook(app, receiver.url)
    written = [await add(app) for _ in range(5)]

    await delivery.deliver_due()
    await delivery.deliver_due()

    assert receiver.ids() == written
    for one in receiver.got:
        told = Verifier(made["secret"]).verify(one.body, one.headers)
        assert (told["type"], told["data"]["id"]) == ("note.created", one.headers["webhook-id"])
    state = await shown(app, made)
    assert (state["delivered"], state["last_error"]) == (5, None)
    assert "secret" not in state


async def test_a_failed_event_is_sent_again_under_its_id_before_the_next_one(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    made = await hook(app, receiver.url)
    first, second = await add(app), await add(app)
    receiver.answers = [FAILED]

    await delivery.deliver_due()
    waiting = await shown(app, made)
    await delivery.deliver_due()  # The pause is not over.
    assert receiver.ids() == [first]
    await retried(app, delivery)

    assert receiver.ids() == [first, first, second]
    assert len({one.headers["webhook-id"] for one in receiver.got[:2]}) == 1
    assert (waiting["attempts"], waiting["last_error"]) == (1, "it answered 500")


async def test_what_is_not_taken_becomes_a_dead_letter_and_can_be_sent_again(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    made = await hook(app, receiver.url)
    first, second = await add(app), await add(app)
    receiver.answers = [FAILED] * 3
    for _ in range(4):
        await retried(app, delivery)

    [letter] = await dead_letters(app, made)
    assert receiver.ids() == [first, first, first, second]
    assert (letter["event"], letter["attempts"]) == (receiver.got[0].headers["webhook-id"], 3)

    again = await app.admin().post(f"/v1/webhooks/{made['id']}/dead-letters/retry", json={})
    await delivery.deliver_due()

    assert again.json() == {"queued": 1}
    assert receiver.ids()[-1] == first
    assert receiver.got[-1].headers["webhook-id"] == letter["event"]
    assert await dead_letters(app, made) == []


async def test_a_dead_letter_that_fails_again_is_kept(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    made = await hook(app, receiver.url)
    await add(app)
    receiver.answers = [FAILED] * 4
    for _ in range(3):
        await retried(app, delivery)
    [letter] = await dead_letters(app, made)

    body = {"events": [letter["event"]]}
    await app.admin().post(f"/v1/webhooks/{made['id']}/dead-letters/retry", json=body)
    await delivery.deliver_due()

    [kept] = await dead_letters(app, made)
    assert (kept["event"], kept["attempts"], kept["is_due"]) == (letter["event"], 4, False)


async def test_both_secrets_sign_until_the_old_one_ends(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    made = await hook(app, receiver.url)
    rotated = (await app.admin().post(f"/v1/webhooks/{made['id']}/rotate")).json()
    await add(app)
    await delivery.deliver_due()
    with psycopg.connect(app.url, autocommit=True) as connection:
        past = (utc_now() - timedelta(seconds=1)).isoformat()
        connection.execute("UPDATE webhooks SET secrets = jsonb_set(secrets, '{1,until}', to_jsonb(%s::text))", [past])
    await add(app)
    await delivery.deliver_due()

    both, one = receiver.got
    for secret in (made["secret"], rotated["secret"]):
        Verifier(secret).verify(both.body, both.headers)
    Verifier(rotated["secret"]).verify(one.body, one.headers)
    assert len(one.headers["webhook-signature"].split()) == 1


async def test_a_webhook_gets_its_workspace_and_kinds_alone_and_none_of_another_tenant(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    await hook(app, receiver.url, workspace="atlas", kinds=["note.deleted"])
    gone = await add(app, workspace="atlas")
    elsewhere = await add(app)
    for id_ in (gone, elsewhere):
        await app.client().delete(f"/v1/notes/{id_}")
    other = app.for_tenant(f"other {uuid4()}")
    theirs = await add(other, workspace="atlas")
    await other.client().delete(f"/v1/notes/{theirs}")

    await delivery.deliver_due()
    await other.close_clients()

    assert receiver.ids() == [gone]


async def test_two_processes_deliver_each_event_once(app: Application, receiver: Receiver) -> None:
    await hook(app, receiver.url)
    written = [await add(app) for _ in range(10)]
    deliveries = [build_webhook_delivery(app.settings, app.pool) for _ in range(3)]

    await asyncio.gather(*(one.deliver_due() for one in deliveries))

    assert receiver.ids() == written


async def test_what_a_killed_process_had_claimed_is_delivered_by_another_one(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    await hook(app, receiver.url)
    written = [await add(app) for _ in range(3)]
    arrived = asyncio.Event()

    async def hang(_: Received, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await writer.drain()
        await asyncio.sleep(PATIENCE_S)

    receiver.misbehave = hang
    killed = asyncio.create_task(build_webhook_delivery(app.settings, app.pool).run())
    await asyncio.wait_for(arrived.wait(), 4 * PATIENCE_S)
    killed.cancel()
    await asyncio.wait([killed])
    receiver.misbehave = None
    assert await delivery.deliver_due() == 0  # Until the claim is over.
    end_pauses_and_claims(app)

    await delivery.deliver_due()

    assert receiver.ids() == [written[0], *written]


async def hang(_: Received, writer: asyncio.StreamWriter) -> None:
    await writer.drain()
    await asyncio.sleep(PATIENCE_S)


async def send_without_end(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
    for _chunk in range(1_600):
        writer.write(b"x" * 65_536)
        await writer.drain()


async def send_head_without_end(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-More: " + b"x" * 1_000 + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


async def send_no_http(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff garbage\r\n\r\n")


async def close(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.mark.parametrize("misbehave", [hang, send_head_without_end, send_no_http, close])
async def test_an_endpoint_that_misbehaves_has_failed_and_others_get_theirs(
    database: str, tmp_path: Path, misbehave: Answer
) -> None:
    settings = settings_for(database, tmp_path, webhooks={**ALLOWED, "timeout_s": 1})
    async with running(settings, database, HashingModel()) as app, receiving() as bad, receiving() as good:
        bad.misbehave = misbehave
        broken, _ = await hook(app, bad.url), await hook(app, good.url)
        written = await add(app)

        await build_webhook_delivery(settings, app.pool).deliver_due()

        assert good.ids() == [written]
        assert (await shown(app, broken))["attempts"] == 1


async def test_the_body_of_an_answer_is_not_read(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    made = await hook(app, receiver.url)
    await add(app)
    receiver.misbehave = send_without_end
    began = time.process_time()

    await delivery.deliver_due()

    assert (await shown(app, made))["delivered"] == 1
    assert time.process_time() - began < PATIENCE_S


async def test_a_redirect_is_not_followed(app: Application, delivery: WebhookDelivery) -> None:
    async with receiving() as bad, receiving() as inner:
        bad.answers = [
            f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {inner.url}\r\nContent-Length: 0\r\n\r\n".encode()
        ]
        made = await hook(app, bad.url)
        await add(app)

        await delivery.deliver_due()

        assert inner.got == []
        assert (await shown(app, made))["last_error"] == "it answered 307, a redirect, which is not followed"


async def test_names_are_resolved_once_and_private_addresses_are_not_connected_to(
    database: str, tmp_path: Path, receiver: Receiver
) -> None:
    settings = settings_for(database, tmp_path, webhooks={**ALLOWED, "allow_private": False})
    answers = [["127.0.0.1"], ["10.0.0.1", "::1", "fe80::1%lo", "::ffff:127.0.0.1"]]
    asked: list[str] = []

    async def resolve(host: str, _: int) -> Sequence[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    async with running(settings, database, HashingModel()) as app:
        made = await hook(app, f"http://rebinds.example:{receiver.port}/hook")
        await add(app)
        delivery = build_webhook_delivery(settings, app.pool, resolve)
        for _ in range(2):
            await retried(app, delivery)

        assert receiver.got == []
        assert asked == ["rebinds.example"] * 2  # Once an attempt.
        assert (await shown(app, made))["last_error"] == "its host has no public address"


async def test_a_connection_goes_to_what_was_resolved_with_the_name_of_the_host(
    app: Application, receiver: Receiver
) -> None:
    async def resolve(_: str, __: int) -> Sequence[str]:
        return ["127.0.0.1"]

    await hook(app, f"http://hook.example:{receiver.port}/a?b=c")
    await add(app)

    await build_webhook_delivery(app.settings, app.pool, resolve).deliver_due()

    assert receiver.got[0].headers["host"] == f"hook.example:{receiver.port}"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",  # noqa: S104 - it is refused
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "::127.0.0.1",
    ],
)
def test_an_address_that_is_not_public_is_refused_however_it_is_written(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    assert allowed_addresses([address, "93.184.216.34"], allows_private=False) == ["93.184.216.34"]


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34"])
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "ftp://example.com",
        "https://",
        "https://user:pass@example.com/",
        "https://example.com/#part",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://exa mple.com/",
        "https://example.com/\r\nX-Header: 1",
        "javascript:alert(1)",
        "//example.com",
        "",
        "https://[::1",
        "https://exämple.com/",
        "https://example.com/" + "a" * 2_000,
    ],
)
def test_a_url_that_events_are_not_sent_to_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        clean_url(url, allows_http=False, allows_private=False)


def test_pauses_grow_up_to_an_hour() -> None:
    assert [pause_after(attempts).total_seconds() for attempts in (1, 2, 3, 10, 1_000)] == [5, 10, 20, 2_560, 3_600]


async def test_a_tenant_has_as_many_webhooks_as_it_may(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, webhooks={**ALLOWED, "most": 1})
    async with running(settings, database, HashingModel()) as app:
        await hook(app, "https://example.com/hook")

        answer = await app.admin().post("/v1/webhooks", json={"url": "https://example.com/hook"})

        assert answer.status_code == 409, answer.text


async def test_a_key_of_a_workspace_makes_and_sees_the_webhooks_of_it_alone(app: Application) -> None:
    whole = await hook(app, "https://example.com/hook")
    bounds = Bounds.from_lists({"workspaces": ["atlas"]})
    bound = app.client(store_key(app.url, new_principal(app.tenant, KeyRole.ADMIN, utc_now(), bounds=bounds), "b"))

    made = (await bound.post("/v1/webhooks", json={"url": "https://example.com/hook"})).json()

    assert made["workspace"] == "atlas"
    assert [one["id"] for one in (await bound.get("/v1/webhooks")).json()["webhooks"]] == [made["id"]]
    assert (await bound.delete(f"/v1/webhooks/{whole['id']}")).status_code == 404
    assert (await app.admin().delete(f"/v1/webhooks/{whole['id']}")).status_code == 204


async def test_an_erased_user_is_in_nothing_that_is_sent_later(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    await hook(app, receiver.url)
    note = await add(app, user="ann lee")
    await app.admin().delete("/v1/users", params={"user": "ann lee"})

    await delivery.deliver_due()

    assert "user.erased" in {one.event["kind"] for one in receiver.got}
    assert not [one for one in receiver.got if "ann lee" in one.body or note in one.body]


def report_an_event_of_a_newer_release(app: Application) -> str:
    with psycopg.connect(app.url) as connection:
        connection.execute(
            "INSERT INTO events (id, tenant, workspace, kind, memory_ids) VALUES (%s, %s, 'default', %s, ARRAY[%s])",
            [new_id(), app.tenant, NEWER_KIND, id_ := uuid4()],
        )
    return str(id_)


async def test_kinds_of_a_newer_release_pass_as_text(
    app: Application, delivery: WebhookDelivery, receiver: Receiver
) -> None:
    every, one = await hook(app, receiver.url), await hook(app, receiver.url, kinds=["note.created"])
    with psycopg.connect(app.url) as connection:
        connection.execute("UPDATE webhooks SET kinds = %s WHERE id = %s", [[NEWER_KIND], one["id"]])
    reported = report_an_event_of_a_newer_release(app)
    written = await add(app)

    await delivery.deliver_due()

    assert sorted(receiver.ids()) == sorted([reported, reported, written])
    assert {received.event["kind"] for received in receiver.got} == {NEWER_KIND, "note.created"}
    assert ((await shown(app, every))["kinds"], (await shown(app, one))["kinds"]) == ([], [NEWER_KIND])
    events = (await app.client().get("/v1/events")).json()["events"]
    assert NEWER_KIND in {event["kind"] for event in events}


async def test_a_webhook_whose_row_cannot_be_read_keeps_no_other_from_its_events(
    app: Application, receiver: Receiver
) -> None:
    broken = await hook(app, receiver.url)
    await hook(app, receiver.url)
    with psycopg.connect(app.url) as connection:
        connection.execute("UPDATE webhooks SET secrets = '[{}]' WHERE id = %s", [broken["id"]])
    written = await add(app)
    arrived = asyncio.Event()

    async def take(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await writer.drain()
        arrived.set()

    receiver.misbehave = take
    delivering = asyncio.create_task(build_webhook_delivery(app.settings, app.pool).run())
    arrival = asyncio.create_task(arrived.wait())

    await asyncio.wait([delivering, arrival], timeout=4 * PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)

    assert not delivering.done()
    assert receiver.ids() == [written]
    delivering.cancel()
    await asyncio.wait([delivering])


async def test_an_event_that_cannot_be_sent_keeps_no_other_webhook_from_it(
    app: Application, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    await hook(app, receiver.url)
    await hook(app, receiver.url.replace("127.0.0.1", "localhost"))
    written = await add(app)

    async def resolve(host: str, _: int) -> Sequence[str]:
        if host == "localhost":
            raise RuntimeError("the resolver is broken")
        return ["127.0.0.1"]

    await build_webhook_delivery(app.settings, app.pool, resolve).deliver_due()

    assert receiver.ids() == [written]
    assert "the resolver is broken" in caplog.text


async def test_the_authorities_are_read_once_however_many_events_are_sent(
    app: Application, delivery: WebhookDelivery, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hook(app, receiver.url)
    await add(app)
    await delivery.deliver_due()
    read: list[object] = []
    load = ssl.SSLContext.load_verify_locations

    def counted(self: ssl.SSLContext, *args: Any, **kwargs: Any) -> None:
        read.append(self)
        load(self, *args, **kwargs)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    for _ in range(3):
        await add(app)

    await delivery.deliver_due()

    assert (len(receiver.got), read) == (4, [])
