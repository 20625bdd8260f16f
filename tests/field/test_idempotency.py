"""Field case 68: a repeated request is never answered with ids that are gone, and answers end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.core.principals import KeyRole
from tests.support.application import Application, another_router
from tests.support.jobs import in_days, run_job

WRITES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/turns", {"session": "s", "messages": [{"content": "I am ann. We decided to work at Boatyard."}]}),
    ("/v1/notes", {"content": "ann keeps the key of the boathouse"}),
    ("/v1/notes/batch", {"notes": ["ann has a boat", {"content": "ann has an oar"}]}),
    ("/v1/documents", {"key": "log", "content": "the log of ann"}),
    ("/v1/documents/batch", {"documents": [{"key": "a", "content": "the first log"}, {"content": "the second log"}]}),
]


def ids_in(answer: Any) -> list[str]:
    """Return every id of an answer."""
    if isinstance(answer, dict):
        own = [answer["id"]] if "id" in answer else []
        return own + [id_ for value in answer.values() for id_ in ids_in(value)]
    return [id_ for item in answer for id_ in ids_in(item)] if isinstance(answer, list) else []


@pytest.mark.parametrize(("path", "body"), WRITES, ids=[path for path, _ in WRITES])
async def test_after_the_erasure_of_a_user_the_same_request_is_stored_anew(
    unshared: Application, path: str, body: dict[str, Any]
) -> None:
    client, headers = unshared.client(), {"Idempotency-Key": "delivery-1"}
    admin = unshared.admin()
    first = await client.post(path, json=body | {"user": "ann"}, headers=headers)
    repeated = await client.post(path, json=body | {"user": "ann"}, headers=headers)

    receipt = (await admin.delete("/v1/users", params={"user": "ann"})).json()
    again = await client.post(path, json=body | {"user": "ann"}, headers=headers)

    assert ids_in(repeated.json()) == ids_in(first.json()) != []
    assert (receipt["erased"]["idempotency_keys"], receipt["left"]["idempotency_keys"]) == (1, 0)
    assert again.status_code in {200, 201}
    assert set(ids_in(again.json())).isdisjoint(ids_in(first.json()))


@pytest.mark.parametrize(
    ("path", "body", "delete"),
    [
        ("/v1/notes", {"content": "the key hangs in the boathouse"}, "/v1/notes/"),
        ("/v1/procedures", {"trigger": "a storm comes", "action": "moor twice"}, "/v1/procedures/"),
        ("/v1/documents", {"key": "log", "content": "the log of the boat"}, "/v1/documents/"),
    ],
)
async def test_after_a_deletion_the_same_request_is_refused_with_the_name_of_its_key(
    application: Application, path: str, body: dict[str, Any], delete: str
) -> None:
    client, headers = application.client(), {"Idempotency-Key": "delivery-1"}
    id_ = (await client.post(path, json=body, headers=headers)).json()["id"]
    await client.delete(f"{delete}{id_}")

    refused = await client.post(path, json=body, headers=headers)
    anew = await client.post(path, json=body, headers={"Idempotency-Key": "delivery-2"})

    assert refused.status_code == 409
    assert "'delivery-1'" in refused.json()["detail"]
    assert id_ in refused.json()["detail"]
    # A note is brought back by its text, under the id that it had; other things are stored anew.
    is_note = path == "/v1/notes"
    assert (anew.status_code, anew.json()["id"] == id_) == (200 if is_note else 201, is_note)


async def test_an_archived_note_is_not_given_again(application: Application) -> None:
    client, headers = application.client(), {"Idempotency-Key": "delivery-1"}
    body = {"content": "the telescope stands in the loft", "workspace": "loft"}
    await client.post("/v1/notes", json=body, headers=headers)
    await run_job(application, "sweep", in_days(30), workspace="loft")
    await run_job(application, "archival", in_days(300), workspace="loft", is_forced=True)

    assert (await client.post("/v1/notes", json=body, headers=headers)).status_code == 409


async def test_an_answer_of_an_earlier_release_is_checked_too(unshared: Application) -> None:
    client, headers = unshared.client(), {"Idempotency-Key": "delivery-1"}
    admin = unshared.admin()
    body = {"content": "ann keeps the key of the boathouse", "user": "ann"}
    await client.post("/v1/notes", json=body, headers=headers)
    async with unshared.pool.connection() as connection:
        await connection.execute("UPDATE idempotency_keys SET user_hash = NULL WHERE tenant = %s", [unshared.tenant])

    await admin.delete("/v1/users", params={"user": "ann"})

    assert (await client.post("/v1/notes", json=body, headers=headers)).status_code == 409


async def age(application: Application, days: float) -> None:
    """Make the answers of the tenant older."""
    async with application.pool.connection() as connection:
        statement = "UPDATE idempotency_keys SET created_at = created_at - make_interval(hours => %s) WHERE tenant = %s"
        await connection.execute(statement, [int(days * 24), application.tenant])


async def kept(application: Application) -> int:
    """Count the answers of the tenant."""
    async with application.pool.connection() as connection:
        cursor = await connection.execute(
            "SELECT count(*) AS n FROM idempotency_keys WHERE tenant = %s", [application.tenant]
        )
        row = await cursor.fetchone()
    return int(row["n"]) if row else 0


async def test_an_answer_ends_after_its_days_and_the_key_may_stand_for_another_request(
    application: Application,
) -> None:
    client, headers = application.client(), {"Idempotency-Key": "delivery-1"}
    await client.post("/v1/notes", json={"content": "the first"}, headers=headers)
    await age(application, 0.9)
    while_it_lasts = await client.post("/v1/notes", json={"content": "the second"}, headers=headers)
    await age(application, 0.2)

    later = await client.post("/v1/notes", json={"content": "the second"}, headers=headers)
    repeated = await client.post("/v1/notes", json={"content": "the second"}, headers=headers)

    assert (while_it_lasts.status_code, later.status_code) == (409, 201)
    assert repeated.json() == later.json()
    assert await kept(application) == 1


async def test_the_job_caches_removes_answers_that_have_ended(application: Application) -> None:
    client = application.client()
    for number in range(3):
        headers = {"Idempotency-Key": f"old-{number}"}
        await client.post("/v1/notes", json={"content": f"old {number}"}, headers=headers)
    await age(application, 7.1)
    await client.post("/v1/notes", json={"content": "new"}, headers={"Idempotency-Key": "new"})

    done = await run_job(application, "caches", in_days(0))

    assert done.counts.changed >= 3
    assert await kept(application) == 1


async def test_the_same_key_of_another_tenant_is_another_key(application: Application) -> None:
    headers = {"Idempotency-Key": "delivery-1"}
    other = application.for_tenant(f"{application.tenant}-other")
    one = (await application.client().post("/v1/notes", json={"content": "one"}, headers=headers)).json()["id"]

    two = (await other.client().post("/v1/notes", json={"content": "one"}, headers=headers)).json()["id"]
    await application.client().delete(f"/v1/notes/{one}")

    assert (await other.client().post("/v1/notes", json={"content": "one"}, headers=headers)).json()["id"] == two


AT_ONCE: list[tuple[str, dict[str, Any]]] = [
    *WRITES,
    ("/v1/procedures", {"trigger": "a storm comes", "action": "moor twice"}),
    ("/v1/procedures/batch", {"procedures": [{"trigger": "fog", "action": "sound the horn"}]}),
    ("/v1/graph/entities", {"entities": [{"name": "Pier"}]}),
    ("/v1/graph/edges", {"edges": [{"subject": "Ann", "type": "paints", "object": "Boat"}]}),
    ("/v1/jobs", {"job": "sweep", "dry_run": True}),
]


@pytest.fixture
async def replica(application: Application) -> AsyncIterator[Application]:
    async with another_router(application, {}) as other:
        yield other


@pytest.mark.parametrize(("path", "body"), AT_ONCE, ids=[path for path, _ in AT_ONCE])
async def test_one_write_sent_many_times_at_once_under_one_key_happens_once_while_others_search(
    application: Application, replica: Application, path: str, body: dict[str, Any]
) -> None:
    key = application.new_key(application.tenant, KeyRole.ADMIN)
    clients, headers = [application.client(key), replica.client(key)], {"Idempotency-Key": "at once"}
    search = {"query": "who has the key of the boathouse?"}

    answers = await asyncio.gather(
        *(client.post(path, json=body, headers=headers) for client in clients for _ in range(6)),
        *(client.post("/v1/search", json=search) for client in clients for _ in range(2)),
    )

    writes, searches = answers[:12], answers[12:]
    assert {answer.status_code for answer in writes} <= {200, 201, 202}, [answer.text for answer in writes]
    assert {answer.status_code for answer in searches} == {200}
    assert all(answer.json() == writes[0].json() for answer in writes)
