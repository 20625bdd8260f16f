"""Events are written with the change, in an order that no reader has to correct later, and without contents."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from lamina.core.events import IDS_OF_EVENT, Event, EventKind
from lamina.core.memories import new_id
from lamina.core.scope import Scope
from lamina.ingest.erasure import PAGE
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction
from lamina.stores.postgres.events import QUERIES, record_event, record_events, settled_position
from lamina.stores.postgres.retention import end_of_tenant
from lamina.wiring.stores import build_pool, utc_now
from tests.support.application import Application, settings_for

WRITERS = 6
WRITES = 25
SECRET = "heliotrope"


@pytest.fixture
async def pool(database: str, tmp_path: Any) -> AsyncIterator[Pool]:
    made = build_pool(settings_for(database, tmp_path))
    yield made
    await made.close()


def written(*ids: UUID, tenant: str = "acme") -> Event:
    return Event.of(Scope(tenant, user="ann"), EventKind.NOTE_CREATED, *ids)


async def settled(pool: Pool) -> int:
    async with connect(pool) as connection:
        return await settled_position(connection)


async def positions(pool: Pool, after: int = 0, until: int | None = None) -> list[int]:
    async with connect(pool) as connection:
        query = "SELECT seq FROM events WHERE seq > %s AND seq <= coalesce(%s, 9e18) ORDER BY seq"
        return [row["seq"] async for row in await connection.execute(query, [after, until])]


async def test_an_event_is_not_settled_while_an_earlier_number_may_still_be_committed(pool: Pool) -> None:
    assert await settled(pool) == 0
    async with connect(pool) as slow, slow.transaction():
        await record_event(slow, written(new_id()))
        await in_transaction(pool, lambda quick: record_event(quick, written(new_id())))

        assert await positions(pool, until=await settled(pool)) == []
        assert len(await positions(pool)) == 1  # Of the later one, which is committed.

    assert len(await positions(pool, until=await settled(pool))) == 2


async def test_a_transaction_that_fails_holds_nothing_back(pool: Pool) -> None:
    async def fail(connection: Connection) -> None:
        await record_event(connection, written(new_id()))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await in_transaction(pool, fail)
    await in_transaction(pool, lambda connection: record_event(connection, written(new_id())))

    assert len(await positions(pool, until=await settled(pool))) == 1


async def test_a_long_transaction_that_records_nothing_holds_nothing_back(pool: Pool) -> None:
    async with connect(pool) as long, long.transaction():
        await long.execute("CREATE TABLE takes_a_transaction_id ()")
        await in_transaction(pool, lambda connection: record_event(connection, written(new_id())))

        assert len(await positions(pool, until=await settled(pool))) == 1


async def test_a_reader_of_settled_events_misses_none_of_many_writers(pool: Pool) -> None:
    waits = [[(0, 0, 0.002, 0.01)[(7 * place + 3 * turn) % 4] for turn in range(WRITES)] for place in range(WRITERS)]

    async def write(place: int) -> None:
        for wait in waits[place]:

            async def act(connection: Connection, wait: float = wait) -> None:
                await record_event(connection, written(new_id()))
                await asyncio.sleep(wait)
                await record_event(connection, written(new_id()))

            await in_transaction(pool, act)

    read: list[int] = []
    writers = asyncio.gather(*map(write, range(WRITERS)))
    while not writers.done():
        read += await positions(pool, after=max(read, default=0), until=await settled(pool))
        await asyncio.sleep(0)
    await writers
    read += await positions(pool, after=max(read, default=0), until=await settled(pool))

    assert read == await positions(pool)
    assert len(read) == 2 * WRITERS * WRITES


async def test_many_ids_are_several_events_and_none_is_left_out(pool: Pool) -> None:
    ids = [new_id() for _ in range(2 * IDS_OF_EVENT + 1)]

    await in_transaction(pool, lambda connection: record_events(connection, [written(*ids)]))

    async with connect(pool) as connection:
        cursor = await connection.execute("SELECT memory_ids FROM events ORDER BY seq")
        rows = [row["memory_ids"] async for row in cursor]
    assert [len(row) for row in rows] == [IDS_OF_EVENT, IDS_OF_EVENT, 1]
    assert [id_ for row in rows for id_ in row] == ids


async def test_events_from_before_the_time_that_they_are_kept_for_end(pool: Pool) -> None:
    await in_transaction(pool, lambda connection: record_event(connection, written(new_id())))
    await in_transaction(pool, lambda connection: record_event(connection, written(new_id(), tenant="other")))
    later = utc_now() + timedelta(hours=1)

    await end_of_tenant(pool, "acme", {"events": timedelta(0)}, later)

    assert len(await positions(pool)) == 1


def events_of(app: Application) -> list[dict[str, Any]]:
    with psycopg.connect(app.url, row_factory=psycopg.rows.dict_row) as connection:
        return connection.execute("SELECT * FROM events WHERE tenant = %s ORDER BY seq", [app.tenant]).fetchall()


async def test_a_turn_is_reported_with_its_ids_and_without_its_contents(application: Application) -> None:
    body = {"session": "s1", "user": "ann", "agent": "guide", "messages": [{"content": f"I live in {SECRET} street."}]}

    said = (await application.client().post("/v1/turns", json=body)).json()

    events = events_of(application)
    assert events[0]["kind"] == EventKind.TURN_RECORDED
    assert [str(id_) for id_ in events[0]["memory_ids"]] == [message["id"] for message in said["messages"]]
    assert {(event["workspace"], event["user_id"], event["agent_id"]) for event in events} == {
        ("default", "ann", "guide")
    }
    assert SECRET not in str(events)


async def test_a_turn_that_is_sent_again_is_no_event(application: Application) -> None:
    message = {"content": "The boat is painted on Monday.", "occurred_at": "2026-03-02T10:00:00Z"}
    body = {"session": "s1", "messages": [message]}
    await application.client().post("/v1/turns", json=body)
    before = events_of(application)

    await application.client().post("/v1/turns", json=body)

    assert events_of(application) == before


async def test_an_erased_user_and_the_ids_of_everything_erased_vanish_from_events(unshared: Application) -> None:
    client = unshared.client()
    user = f"ann {uuid4()}"
    note = (await client.post("/v1/notes", json={"user": user, "content": "Ann keeps bees"})).json()["id"]
    derived = {"user": user, "content": "Bees are kept", "derived_from": [note]}
    made = (await client.post("/v1/notes", json=derived)).json()["id"]
    message = {"user": user, "session": user, "messages": [{"content": "I like green tea a lot."}]}
    said = (await client.post("/v1/turns", json=message)).json()
    kept = (await client.post("/v1/notes", json={"content": "The boat is blue"})).json()["id"]
    admin = unshared.admin()
    before = events_of(unshared)

    answer = await admin.delete("/v1/users", params={"user": user})

    assert answer.json()["erased"]["events"] >= 3, answer.text
    assert answer.json()["left"]["events"] == 0
    events = events_of(unshared)
    assert [event["id"] for event in events][: len(before)] == [event["id"] for event in before]
    assert kept in str(events)
    for gone in (user, note, made, said["messages"][0]["id"]):
        assert gone in str(before)
        assert gone not in str(events)


def test_the_events_of_erased_memories_are_found_by_an_index(application: Application) -> None:
    with psycopg.connect(application.url, row_factory=psycopg.rows.scalar_row) as connection:
        connection.execute(
            "INSERT INTO events (id, tenant, kind, memory_ids) "
            "SELECT gen_random_uuid(), %s, 'note.created', ARRAY[gen_random_uuid()] FROM generate_series(1, 20000)",
            [application.tenant],
        )
        connection.execute("ANALYZE events")
        parameters = {"tenant": application.tenant, "ids": [uuid4() for _ in range(PAGE)]}
        lines = connection.execute(b"EXPLAIN " + QUERIES["erase_memory_ids"], parameters).fetchall()
        connection.rollback()

    assert "events_of_memories" in str(lines)
    assert "Seq Scan" not in str(lines)
