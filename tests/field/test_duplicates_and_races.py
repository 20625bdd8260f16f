"""Field cases 1 to 4 and 10: duplicates, races, lost writes."""

import asyncio

import psycopg
import pytest

from tests.support.application import Application


async def test_two_clients_on_two_replicas_adding_one_text_forty_times_store_it_once(
    application: Application, replica: Application
) -> None:
    clients = [application.client(), replica.client(application.key)]
    body = {"content": "I like green tea", "user": "ann"}

    answers = await asyncio.gather(*(client.post("/v1/notes", json=body) for client in clients for _ in range(20)))

    assert sorted(answer.status_code for answer in answers) == [200] * 39 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum(answer.json()["existed"] for answer in answers) == 39
    assert _count(application, "SELECT count(*) FROM notes WHERE tenant = %s") == 1


async def test_ten_parallel_updates_of_one_note_are_ten_versions(application: Application) -> None:
    client = application.client()
    id_ = (await client.post("/v1/notes", json={"content": "draft 0"})).json()["id"]

    answers = await asyncio.gather(
        *(client.patch(f"/v1/notes/{id_}", json={"content": f"draft {number}"}) for number in range(1, 11))
    )

    versions = (await client.get(f"/v1/notes/{id_}/versions")).json()["versions"]
    assert [answer.status_code for answer in answers] == [200] * 10
    assert [version["version"] for version in versions] == list(range(1, 12))
    assert [version["is_current"] for version in versions] == [False] * 10 + [True]
    assert {version["content"] for version in versions} == {f"draft {number}" for number in range(11)}


async def test_three_parallel_appends_to_one_session_are_all_there_in_order(application: Application) -> None:
    client = application.client()

    def turn(number: int) -> dict[str, object]:
        said = [{"content": f"question {number}"}, {"role": "assistant", "content": f"answer {number}"}]
        return {"session": "s1", "messages": said}

    answers = await asyncio.gather(*(client.post("/v1/turns", json=turn(number)) for number in range(3)))

    messages = (await client.get("/v1/sessions/s1/messages")).json()["messages"]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert [message["position"] for message in messages] == [1, 2, 3, 4, 5, 6]
    assert sorted(message["content"] for message in messages[::2]) == [f"question {number}" for number in range(3)]
    for asked, answered in zip(messages[::2], messages[1::2], strict=True):
        assert asked["content"].replace("question", "answer") == answered["content"]


@pytest.mark.parametrize("api_first", [True, False])
async def test_one_text_through_the_api_and_by_extraction_is_one_note(
    application: Application, *, api_first: bool
) -> None:
    client = application.client()
    writes = [
        lambda: client.post("/v1/notes", json={"content": "I like green tea.", "user": "ann"}),
        lambda: client.post(
            "/v1/turns", json={"session": "s1", "user": "ann", "messages": [{"content": "I like green tea."}]}
        ),
    ]

    for write in writes if api_first else reversed(writes):
        assert (await write()).is_success

    notes = (await client.get("/v1/notes", params={"user": "ann"})).json()["notes"]
    assert [note["content"] for note in notes] == ["I like green tea."]


async def test_adding_a_text_again_and_again_never_removes_it(application: Application) -> None:
    client = application.client()
    seen = []

    for _ in range(3):
        seen.append((await client.post("/v1/notes", json={"content": "the kiln is in room 12"})).json()["id"])
        await application.indexed()
        found = (await client.post("/v1/search", json={"query": "the kiln is in room 12"})).json()["results"]
        assert [hit["id"] for hit in found] == [seen[0]]
        await asyncio.sleep(1)

    assert len(set(seen)) == 1


async def test_a_dated_message_delivered_twice_is_one_and_an_undated_one_is_two(application: Application) -> None:
    client = application.client()
    dated = {"content": "ok", "occurred_at": "2026-03-01T10:00:00Z"}

    for message in (dated, dated, {"content": "yes"}, {"content": "yes"}):
        await client.post("/v1/turns", json={"session": "s1", "messages": [message]})

    messages = (await client.get("/v1/sessions/s1/messages")).json()["messages"]
    assert [message["content"] for message in messages] == ["ok", "yes", "yes"]


async def test_a_write_repeated_under_its_idempotency_key_happens_once(application: Application) -> None:
    client = application.client()
    body = {"session": "s1", "messages": [{"content": "ship it"}]}
    headers = {"Idempotency-Key": "turn-1"}

    first, second = [await client.post("/v1/turns", json=body, headers=headers) for _ in range(2)]
    other = await client.post("/v1/turns", json={**body, "session": "s2"}, headers=headers)

    assert first.json() == second.json()
    assert other.status_code == 409
    assert len((await client.get("/v1/sessions/s1/messages")).json()["messages"]) == 1


async def test_parallel_writes_under_one_idempotency_key_happen_once(application: Application) -> None:
    client = application.client()
    body = {"session": "s1", "messages": [{"content": "ship it"}]}

    answers = await asyncio.gather(
        *(client.post("/v1/turns", json=body, headers={"Idempotency-Key": "k"}) for _ in range(10))
    )

    assert [answer.json() for answer in answers] == [answers[0].json()] * 10
    assert _count(application, "SELECT count(*) FROM messages WHERE tenant = %s") == 1


def _count(application: Application, query: str) -> int:
    with psycopg.connect(application.url) as connection:
        row = connection.execute(query.encode(), (application.tenant,)).fetchone()
    return int(row[0]) if row else 0


async def test_one_idempotency_key_cannot_stand_for_two_kinds_of_write(application: Application) -> None:
    client = application.client()
    once = {"Idempotency-Key": "the same"}

    first = await client.post("/v1/notes", json={"content": "x"}, headers=once)
    second = await client.post("/v1/documents", json={"content": "x"}, headers=once)

    assert (first.status_code, second.status_code) == (201, 409)
