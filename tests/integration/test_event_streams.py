"""Events as a list and as a stream: in order, once, for those who may see them, within bounds."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from lamina.core.events import EventFilter, EventPage, StoredEvent
from lamina.core.memories import new_id
from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.models.hashing import HashingModel
from lamina.projections.event_feed import EventFeed
from lamina.settings.serving import FrontDoorSettings
from lamina.stores.postgres.events import Events
from lamina.stores.postgres.keys import list_keys, revoke_key, store_key
from lamina.wiring.stores import utc_now
from tests.support.application import Application, running, settings_for
from tests.support.ingress import uvicorn_of

PATIENCE_S = 120.0
STREAMS = {"tenant_streams": 5, "streams": 8, "poll_s": 0.05, "heartbeat_s": 0.2}
STREAM = {"Accept": "text/event-stream"}
MANY_STREAMS = 1_000


@pytest.fixture
async def app(database: str, tmp_path: Path) -> AsyncIterator[Application]:
    settings = settings_for(database, tmp_path, events=STREAMS)
    async with running(settings, database, HashingModel()) as running_app:
        yield running_app


@pytest.fixture
async def url(app: Application) -> AsyncIterator[str]:
    async with uvicorn_of(app.api, FrontDoorSettings()) as port:
        yield f"http://127.0.0.1:{port}"


class Reader:
    """A client that reads a stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.aiter_lines()
        self.heartbeats = 0

    async def next(self) -> dict[str, str]:
        """The next event, by its fields."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_S):
            async for line in self._lines:
                if line.startswith(":"):
                    self.heartbeats += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif {"data", "event"} & fields.keys():
                    return fields
        raise EOFError

    async def heartbeat(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            async for line in self._lines:
                if line.startswith(":"):
                    return


@asynccontextmanager
async def streaming(url: str, key: str, last: str | None = None, **params: Any) -> AsyncIterator[Reader]:
    headers = {**STREAM, "Authorization": f"Bearer {key}"} | ({} if last is None else {"Last-Event-ID": last})
    async with (
        httpx.AsyncClient(timeout=PATIENCE_S) as client,
        client.stream("GET", f"{url}/v1/events", headers=headers, params=params) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        reader = Reader(answer)
        await reader.heartbeat()  # From then on it follows.
        yield reader


async def add(app: Application, content: str | None = None, **fields: Any) -> str:
    answer = await app.client().post("/v1/notes", json={"content": content or f"Of the boat {uuid4()}", **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def page(app: Application, key: str | None = None, **params: Any) -> dict[str, Any]:
    """A page of settled events; of a write that was answered everything is, unless another one goes on."""
    answer = await app.client(key).get("/v1/events", params=params)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def ids_of(events: dict[str, Any]) -> list[str]:
    return [id_ for event in events["events"] for id_ in event["ids"]]


async def test_a_stream_shows_each_write_once_and_in_order(app: Application, url: str) -> None:
    async with streaming(url, app.key) as reader:
        written = [await add(app) for _ in range(5)]
        seen = [json.loads((await reader.next())["data"]) for _ in written]

    assert [event["ids"] for event in seen] == [[id_] for id_ in written]
    assert {event["kind"] for event in seen} == {"note.created"}


async def test_a_reader_that_comes_back_goes_on_after_the_event_that_it_saw_last(app: Application, url: str) -> None:
    async with streaming(url, app.key) as reader:
        first = await add(app)
        seen = await reader.next()
    missed = [await add(app) for _ in range(3)]

    async with app_stream(url, app.key, seen["id"]) as again:
        found = [json.loads((await again.next())["data"])["ids"] for _ in missed]

    assert json.loads(seen["data"])["ids"] == [first]
    assert found == [[id_] for id_ in missed]


@asynccontextmanager
async def app_stream(url: str, key: str, last: str) -> AsyncIterator[Reader]:
    """A stream that is read from its beginning."""
    headers = {**STREAM, "Authorization": f"Bearer {key}", "Last-Event-ID": last}
    async with (
        httpx.AsyncClient(timeout=PATIENCE_S) as client,
        client.stream("GET", f"{url}/v1/events", headers=headers) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        yield Reader(answer)


async def test_a_list_pages_through_all_events_with_its_cursor(app: Application) -> None:
    written = [await add(app) for _ in range(5)]
    found: list[str] = []
    answer = await page(app, limit=2)
    while answer["events"]:
        found += ids_of(answer)
        answer = await page(app, limit=2, after=answer["next"])

    assert found == written
    assert (answer["more"], answer["missing"]) == (False, False)
    later = await add(app)
    assert ids_of(await page(app, after=answer["next"])) == [later]


async def test_a_bound_key_follows_its_own_and_a_foreign_tenant_nothing(app: Application, url: str) -> None:
    bounds = Bounds.from_lists({"workspaces": ["atlas"], "users": ["ann"]})
    bound = store_key(app.url, new_principal(app.tenant, KeyRole.READER, utc_now(), bounds=bounds), "bound")
    foreign = app.new_key(f"foreign {uuid4()}")

    async with streaming(url, bound) as reader, streaming(url, foreign) as stranger:
        hidden = [await add(app), await add(app, workspace="atlas", user="bob")]
        own = [await add(app, workspace="atlas", user="ann"), await add(app, workspace="atlas")]
        seen = [json.loads((await reader.next())["data"])["ids"][0] for _ in own]
        await stranger.heartbeat()

    assert seen == own
    assert not set(hidden) & set(ids_of(await page(app, bound)))
    assert await page(app, foreign) == {"events": [], "next": None, "more": False, "missing": False}
    refused = await app.client(bound).get("/v1/events", params={"workspace": "default"})
    assert refused.status_code == 403


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("last", ["garbage", "", "1", "0" * 200, "é", "' OR 1=1 --"])
async def test_garbage_in_the_place_of_an_event_is_refused(application: Application, accept: str, last: str) -> None:
    headers = {"Accept": accept, "Last-Event-ID": last.encode()}

    answer = await application.client().get("/v1/events", headers=headers)  # type: ignore[arg-type]

    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == "Last-Event-ID"


async def test_an_event_of_another_tenant_or_none_is_no_place_to_go_on(app: Application) -> None:
    await add(app)
    other = app.for_tenant(f"foreign {uuid4()}")
    await add(other)
    theirs = (await page(other))["events"][0]["id"]

    for last in (theirs, str(uuid4()), str(new_id())):
        answer = await app.client().get("/v1/events", headers={"Last-Event-ID": last})
        assert answer.status_code == 422, answer.text
    await other.close_clients()


async def test_a_reader_that_was_away_for_too_long_is_told_so(app: Application, url: str) -> None:
    await add(app)
    gone = (await page(app))["events"][0]["id"]
    with psycopg.connect(app.url) as connection:
        connection.execute("DELETE FROM events")
    kept = await add(app)

    answer = await page(app, after=gone)
    async with app_stream(url, app.key, gone) as reader:
        told, event = await reader.next(), await reader.next()

    assert (answer["missing"], ids_of(answer)) == (True, [kept])
    assert told["event"] == "events.missing"
    assert json.loads(event["data"])["ids"] == [kept]


async def test_an_erased_event_is_still_a_place_to_go_on_from(app: Application) -> None:
    await add(app, user="ann")
    last = (await page(app))["events"][0]["id"]
    admin = app.admin()
    erased = await admin.delete("/v1/users", params={"user": "ann"})
    kept = await add(app)

    answer = await page(app, after=last)

    assert "user.erased" in {event["kind"] for event in answer["events"]}
    assert ids_of(answer) == [erased.json()["id"], kept]
    assert "ann" not in str((await page(app))["events"])


async def test_events_are_chosen_by_kind_place_and_agent(app: Application) -> None:
    one = await add(app, workspace="atlas", namespace="north", agent="guide")
    two = await add(app, workspace="atlas", agent="cook")
    await app.client().delete(f"/v1/notes/{two}")

    assert ids_of(await page(app, by="guide")) == [one]
    assert ids_of(await page(app, namespace="north")) == [one]
    assert ids_of(await page(app, kind="note.deleted")) == [two]
    assert (await app.client().get("/v1/events", params={"kind": "note.read"})).status_code == 422


async def test_a_tenant_opens_as_many_streams_as_it_may_and_others_are_served(app: Application, url: str) -> None:
    limits = httpx.Limits(max_connections=MANY_STREAMS)
    headers = {**STREAM, "Authorization": f"Bearer {app.key}"}
    async with httpx.AsyncClient(timeout=PATIENCE_S * 2, limits=limits) as client:

        async def open_one() -> tuple[int, httpx.Response | None]:
            answer = await client.send(client.build_request("GET", f"{url}/v1/events", headers=headers), stream=True)
            if answer.status_code == 200:
                return 200, answer
            await answer.aclose()
            return answer.status_code, None

        opened = await asyncio.gather(*(open_one() for _ in range(MANY_STREAMS)))
        async with streaming(url, app.new_key(f"other {uuid4()}")):
            note = await add(app)
        for _, answer in opened:
            if answer is not None:
                await answer.aclose()

    assert [status for status, _ in opened].count(200) == STREAMS["tenant_streams"]
    assert {status for status, _ in opened} == {200, 429}
    assert note


async def has_streams(app: Application, number: int) -> None:
    """Wait until so many are open."""
    async with asyncio.timeout(PATIENCE_S):
        while app.services.events.feed.open_streams != number:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.01)


async def test_a_stream_that_is_closed_makes_room_for_another(app: Application, url: str) -> None:
    for _ in range(2 * int(STREAMS["tenant_streams"])):
        async with streaming(url, app.key):
            pass
        await has_streams(app, 0)


async def test_a_client_that_reads_nothing_is_cut_off(database: str, tmp_path: Path) -> None:
    door = FrontDoorSettings(body_s=0.5, body_bytes_per_s=10_000_000, idle_s=2)
    settings = settings_for(database, tmp_path, events=STREAMS, serve={"front_door": door})
    async with running(settings, database, HashingModel()) as app, uvicorn_of(app.api, door) as port:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", port))
            head = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {app.key}\r\nAccept: text/event-stream"
            client.sendall(head.encode() + b"\r\n\r\n")
            await has_streams(app, 1)
            fill = "INSERT INTO events (id, tenant, kind, agent_id) SELECT gen_random_uuid(), %s, 'turn.recorded', %s "
            with psycopg.connect(app.url, autocommit=True) as connection:
                fill_all = (fill + "FROM generate_series(1, 60000)").encode()
                await asyncio.to_thread(connection.execute, fill_all, [app.tenant, "a" * 128])
            await has_streams(app, 0)


async def test_a_stream_ends_with_its_key(app: Application, url: str) -> None:
    key = app.new_key(app.tenant, KeyRole.READER)
    async with streaming(url, key) as reader:
        [made] = [one for one in list_keys(app.url) if one.role is KeyRole.READER]
        revoke_key(app.url, made.id)
        with pytest.raises(EOFError):
            await reader.next()


async def test_a_quiet_stream_ends_with_its_key_long_before_it_says_so(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, events=STREAMS | {"heartbeat_s": 600.0})
    async with (
        running(settings, database, HashingModel()) as app,
        uvicorn_of(app.api, FrontDoorSettings()) as port,
        httpx.AsyncClient(timeout=PATIENCE_S) as client,
    ):
        headers = {**STREAM, "Authorization": f"Bearer {app.new_key(app.tenant, KeyRole.READER)}"}
        async with client.stream("GET", f"http://127.0.0.1:{port}/v1/events", headers=headers) as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "retry: 2000"
            [made] = [one for one in list_keys(app.url) if one.role is KeyRole.READER]
            revoke_key(app.url, made.id)
            assert [line async for line in lines if line] == []


async def test_the_head_of_a_stream_ends(application: Application) -> None:
    answer = await application.client().head("/v1/events", headers=STREAM)

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")


class CountedEvents(Events):
    """Events that count the pages that streams read for themselves, and the looks."""

    pages = 0
    looked: int | None = None
    failures = 0

    async def settled(self) -> int:
        if self.failures:
            self.failures -= 1
            raise psycopg.InterfaceError("the connection is closed")
        return await super().settled()

    async def page(self, tenant: str, wanted: EventFilter, after: int, limit: int) -> EventPage:
        self.pages += 1
        return await super().page(tenant, wanted, after, limit)

    async def new(self, tenants: Collection[str], after: int, until: int, limit: int) -> list[StoredEvent]:
        found = await super().new(tenants, after, until, limit)
        self.looked = until
        return found


async def test_a_look_that_fails_in_an_unknown_way_is_made_again(app: Application) -> None:
    events = CountedEvents(app.pool)
    feed = EventFeed(events, poll_s=0.01, streams=5, tenant_streams=5)
    position = await events.settled()
    events.failures = 1
    with feed.subscribe(app.tenant) as subscription:
        found = feed.follow(subscription, EventFilter(), position, heartbeat_s=0.05)
        async with asyncio.timeout(PATIENCE_S):
            await anext(found)
            while events.failures:
                await anext(found)
            written, seen = await add(app), []
            while not seen:
                seen = [str(id_) for one in await anext(found) for id_ in one.event.ids]
    await feed.close()

    assert seen == [written]


async def test_a_stream_shares_the_look_with_all_others_though_events_of_other_tenants_come_between(
    app: Application,
) -> None:
    events, other = CountedEvents(app.pool), app.for_tenant(f"other {uuid4()}")
    feed = EventFeed(events, poll_s=0.01, streams=5, tenant_streams=5, clock=lambda: 0)
    seen: list[list[str]] = []
    with feed.subscribe(app.tenant) as subscription:
        found = feed.follow(subscription, EventFilter(), await events.settled(), heartbeat_s=0.05)
        async with asyncio.timeout(PATIENCE_S):
            written = [await add(app)]
            while len(seen) < 1:
                seen += [[str(id_) for id_ in one.event.ids] for one in await anext(found)]
            at_first = events.pages
            for _ in range(6):
                await add(other)
                settled = await events.settled()
                while events.looked is None or events.looked < settled:
                    await anext(found)
                written.append(await add(app))
                while len(seen) < len(written):
                    seen += [[str(id_) for id_ in one.event.ids] for one in await anext(found)]
    await feed.close()
    await other.close_clients()

    assert [id_ for ids in seen for id_ in ids] == written
    assert events.pages - at_first <= 2  # The first look after a stream was opened has it read once more.
