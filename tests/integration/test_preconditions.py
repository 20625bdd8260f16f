"""Changes of notes and documents that insist on a version."""

import asyncio
from http import HTTPStatus
from typing import Any

import httpx
import pytest

from tests.support.application import Application

AGENTS = 12


async def new_note(client: httpx.AsyncClient) -> str:
    answer = await client.post("/v1/notes", json={"content": "Task: check the boilers", "tags": ["open"]})
    return str(answer.json()["id"])


async def put(client: httpx.AsyncClient, content: str, **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.post("/v1/documents", json={"content": content, "key": "plan"}, headers=sent)


async def test_of_many_agents_that_claim_a_note_one_gets_it(application: Application) -> None:
    client = application.client()
    id_ = await new_note(client)

    claims = await asyncio.gather(
        *(
            client.patch(f"/v1/notes/{id_}", json={"metadata": {"owner": agent}}, headers={"If-Match": '"1"'})
            for agent in range(AGENTS)
        )
    )

    statuses = [claim.status_code for claim in claims]
    assert sorted(statuses) == [HTTPStatus.OK, *[HTTPStatus.PRECONDITION_FAILED] * (AGENTS - 1)]
    note = (await client.get(f"/v1/notes/{id_}")).json()
    assert note["metadata"] == {"owner": statuses.index(HTTPStatus.OK)}
    assert note["version"] == 2


async def test_a_note_tells_its_version_as_its_etag(application: Application) -> None:
    client = application.client()
    id_ = await new_note(client)
    first = await client.get(f"/v1/notes/{id_}")

    changed = await client.patch(
        f"/v1/notes/{id_}", json={"importance": 0.9}, headers={"If-Match": first.headers["ETag"]}
    )

    assert first.headers["ETag"] == '"1"'
    assert changed.headers["ETag"] == '"2"'
    late = await client.patch(f"/v1/notes/{id_}", json={"importance": 0.1}, headers={"If-Match": '"1"'})
    assert late.json()["detail"] == f'If-Match: note {id_} has the ETag "2"; read it again'
    assert (await client.get(f"/v1/notes/{id_}")).json()["importance"] == 0.9


@pytest.mark.parametrize("header", ['"7"', 'W/"1"', '"2", "3"'])
async def test_a_note_in_another_version_is_not_deleted(application: Application, header: str) -> None:
    client = application.client()
    id_ = await new_note(client)

    refused = await client.delete(f"/v1/notes/{id_}", headers={"If-Match": header})

    assert refused.status_code == HTTPStatus.PRECONDITION_FAILED
    assert (await client.get(f"/v1/notes/{id_}")).is_success
    assert (await client.delete(f"/v1/notes/{id_}", headers={"If-Match": '"5", "1"'})).is_success


@pytest.mark.parametrize("header", ["1", '"1', "", "**", '"1" "2"'])
async def test_what_is_no_list_of_etags_is_refused(application: Application, header: str) -> None:
    client = application.client()
    id_ = await new_note(client)

    for answer in (
        await client.patch(f"/v1/notes/{id_}", json={"importance": 1.0}, headers={"If-Match": header}),
        await client.delete(f"/v1/notes/{id_}", headers={"If-Match": header}),
        await put(client, "The plan", If_Match=header),
    ):
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
        assert answer.json()["errors"][0]["field"] == "If-Match"


async def test_of_many_writers_of_a_new_document_one_creates_it(application: Application) -> None:
    client = application.client()

    answers = await asyncio.gather(
        *(put(client, f"The plan of agent {agent}", If_None_Match="*") for agent in range(AGENTS))
    )

    statuses = [answer.status_code for answer in answers]
    assert sorted(statuses) == [HTTPStatus.CREATED, *[HTTPStatus.PRECONDITION_FAILED] * (AGENTS - 1)]
    (stored,) = (await client.get("/v1/documents", params={"key": "plan"})).json()["documents"]
    content = (await client.get(f"/v1/documents/{stored['id']}")).json()["content"]
    assert content == f"The plan of agent {statuses.index(HTTPStatus.CREATED)}"


async def test_of_many_writers_of_a_document_one_replaces_a_version(application: Application) -> None:
    client = application.client()
    created = await put(client, "The plan")

    answers = await asyncio.gather(
        *(put(client, f"The plan of agent {agent}", If_Match=created.headers["ETag"]) for agent in range(AGENTS))
    )

    assert [answer.status_code for answer in answers].count(HTTPStatus.OK) == 1
    assert {answer.status_code for answer in answers} == {HTTPStatus.OK, HTTPStatus.PRECONDITION_FAILED}


async def test_changes_that_insist_on_any_version_all_take_place(application: Application) -> None:
    client = application.client()
    created = (await put(client, "The plan")).json()

    answers = await asyncio.gather(
        *(
            client.patch(f"/v1/memories/{created['id']}", json={"title": f"Plan {agent}"}, headers={"If-Match": "*"})
            for agent in range(AGENTS)
        )
    )

    assert {answer.status_code for answer in answers} == {HTTPStatus.OK}
    assert (await client.get(f"/v1/documents/{created['id']}")).json()["version"] == 1 + AGENTS


async def refusals(client: httpx.AsyncClient) -> list[Any]:
    id_ = (await client.get("/v1/documents", params={"key": "plan"})).json()["documents"][0]["id"]
    return [
        await put(client, "Another plan", If_None_Match="*"),
        await put(client, "Another plan", If_Match='"1"'),
        await put(client, "The second plan", If_Match='"1"'),  # Nothing would change, and yet it is version 2.
        await client.delete(f"/v1/documents/{id_}", headers={"If-Match": '"1"'}),
    ]


async def test_a_document_in_another_version_stays_as_it_is(application: Application) -> None:
    client = application.client()
    await put(client, "The first plan")
    await put(client, "The second plan")

    assert {answer.status_code for answer in await refusals(client)} == {HTTPStatus.PRECONDITION_FAILED}

    (stored,) = (await client.get("/v1/documents", params={"key": "plan"})).json()["documents"]
    document = await client.get(f"/v1/documents/{stored['id']}")
    assert (document.json()["content"], document.headers["ETag"]) == ("The second plan", '"2"')
    gone = await client.delete(f"/v1/documents/{stored['id']}", headers={"If-Match": '"2"'})
    assert gone.status_code == HTTPStatus.NO_CONTENT
    assert (await put(client, "A plan", If_Match="*")).status_code == HTTPStatus.PRECONDITION_FAILED
