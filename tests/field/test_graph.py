"""What users of other memory systems met in their graphs, with the right values."""

import asyncio
import unicodedata
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from tests.support.application import Application

Json = dict[str, Any]


async def state(client: httpx.AsyncClient, *edges: tuple[str, str, str], **fields: Any) -> list[Json]:
    body = [{"subject": subject, "type": type_, "object": object_, **fields} for subject, type_, object_ in edges]
    response = await client.post("/v1/graph/edges", json={"edges": body})
    assert response.status_code == 200, response.text
    return list(response.json()["results"])


async def neighbours(client: httpx.AsyncClient, name: str, **params: Any) -> set[tuple[str, str, str]]:
    response = await client.get("/v1/graph/neighbours", params={"name": name, **params})
    assert response.status_code == 200, response.text
    return {(item["direction"], item["kind"], item["content"]) for item in response.json()["neighbours"]}


async def test_one_name_in_any_spelling_is_one_entity_and_a_longer_name_another(application: Application) -> None:
    client = application.client()
    names = ["Zoë", unicodedata.normalize("NFD", "Zoë"), "ZOË", "Ann", "Annapolis"]

    response = await client.post("/v1/graph/entities", json={"entities": [{"name": name} for name in names]})

    ids = [item["id"] for item in response.json()["results"]]
    assert ids[0] == ids[1] == ids[2]
    assert len(set(ids)) == 3


async def test_an_edge_and_its_reverse_are_two_each_with_its_direction(application: Application) -> None:
    client = application.client()

    first, second = await state(client, ("A1", "works_with", "B1"), ("B1", "works_with", "A1"))
    await application.indexed()

    assert first["id"] != second["id"]
    assert await neighbours(client, "A1") == {("out", "works_with", "B1"), ("in", "works_with", "B1")}


async def test_parallel_upserts_of_overlapping_edges_all_succeed_each_edge_once(application: Application) -> None:
    client = application.client()
    ring = [(f"N{place}", "next_to", f"N{(place + 1) % 6}") for place in range(6)]

    answers = await asyncio.gather(*(state(client, *ring[turn % 6 :], *ring[: turn % 6]) for turn in range(16)))

    ids = {item["id"] for answer in answers for item in answer}
    assert len(ids) == 6
    assert all(len(answer) == 6 for answer in answers)


async def test_five_agents_repeating_one_source_count_once_as_evidence(application: Application) -> None:
    client = application.client()

    for _ in range(5):
        await state(client, ("Ann", "works_at", "Initech"), source="wiki page 17", confidence=0.5)
    repeated = await confidence(application, "works_at")
    another = application.client(application.new_key(application.tenant))
    await state(another, ("Ann", "works_at", "Initech"), source="wiki page 17", confidence=0.5)
    cited = await confidence(application, "works_at")
    await state(another, ("Ann", "works_at", "Initech"), source="the pay slip", confidence=0.5)

    assert (repeated, cited) == (pytest.approx(0.5), pytest.approx(0.5))
    assert await confidence(application, "works_at") == pytest.approx(0.75)


async def confidence(application: Application, type_: str) -> float:
    async with await psycopg.AsyncConnection.connect(application.url) as connection:
        cursor = await connection.execute(
            "SELECT confidence FROM edges WHERE tenant = %s AND type = %s", (application.tenant, type_)
        )
        (row,) = await cursor.fetchall()
    return float(row[0])


async def test_a_deleted_note_takes_its_links_and_what_it_alone_caused_along(application: Application) -> None:
    client = application.client()
    mine = await remember(client, "Marta Keller works at Initech", user="marta")
    theirs = await remember(client, "Marta Keller works at Initech", user="otto")
    only = await remember(client, "The lamp of Quentin Zorg is blue", user="marta")
    await application.indexed()
    before = await neighbours(client, "Marta Keller")
    assert ("in", "mentions", "Marta Keller works at Initech") in before

    for id_ in (mine, only):
        assert (await client.delete(f"/v1/notes/{id_}")).status_code == 204
    await application.indexed()

    found = (await client.get("/v1/graph/neighbours", params={"name": "Marta Keller"})).json()["neighbours"]
    assert [item["id"] for item in found if item["kind"] == "mentions"] == [theirs]
    assert (await client.get("/v1/graph/neighbours", params={"name": "Quentin Zorg"})).status_code == 404
    assert (await client.get("/v1/graph/neighbours", params={"id": mine})).status_code == 404
    kept = await nodes_of(application)
    assert UUID(mine) not in kept
    assert UUID(only) not in kept
    assert UUID(theirs) in kept


async def remember(client: httpx.AsyncClient, content: str, **ids: str) -> str:
    response = await client.post("/v1/notes", json={"content": content, **ids})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def nodes_of(application: Application) -> set[UUID]:
    graph = application.tiers["graph"].graph
    assert graph is not None
    found = await graph.nodes(None, 100_000)
    return {id_ for id_, node in found if node.tenant == application.tenant}


async def test_a_time_window_applies_to_what_the_graph_adds(application: Application) -> None:
    client = application.client()
    for year in (2024, 2026):
        body = {"content": f"Petra Nowak moved the server in {year}", "event_at": f"{year}-05-01T12:00:00Z"}
        await client.post("/v1/notes", json=body)
    await application.indexed()

    asked = {"query": "what about Petra Nowak?", "tiers": ["graph"], "since": "2026-01-01T00:00:00Z"}
    found = (await client.post("/v1/search", json=asked)).json()

    assert found.get("degraded") == [], found
    assert [hit["content"] for hit in found["results"]] == ["Petra Nowak moved the server in 2026"]


async def test_what_a_private_memory_says_is_followed_by_its_owner_alone(application: Application) -> None:
    client = application.client()
    await remember(client, "Rolf Brandt hides the key at Mill Lane", user="rolf")
    await application.indexed()

    asked = {"query": "Rolf Brandt", "tiers": ["graph"]}
    own = (await client.post("/v1/search", json={**asked, "user": "rolf"})).json()["results"]
    other = (await client.post("/v1/search", json={**asked, "user": "otto"})).json()["results"]

    assert [hit["content"] for hit in own] == ["Rolf Brandt hides the key at Mill Lane"]
    assert other == []
    hidden = await client.get("/v1/graph/neighbours", params={"name": "Rolf Brandt", "user": "otto"})
    assert hidden.status_code == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("edges", {"edges": [{"subject": "A", "type": "mentions", "object": "B"}]}),
        ("edges", {"edges": [{"subject": "A", "type": "knows", "object": " a "}]}),
        ("edges", {"edges": [{"subject": "A", "type": "knows", "object": "B", "source": "x" * 2000}]}),
        ("edges", {"edges": [{"subject": "A\u0000", "type": "knows", "object": "B"}]}),
        ("entities", {"entities": [{"name": "A"}], "user": "ann"}),
        ("entities", {"entities": [{"name": ""}]}),
        ("traverse", {"names": ["\u0000"]}),
        ("traverse", {"names": ["A"], "kinds": ["\u0000"]}),
        ("traverse", {"names": []}),
        ("traverse", {"names": ["A"], "depth": 4}),
    ],
)
async def test_what_the_graph_cannot_hold_is_refused_by_name(application: Application, path: str, body: Json) -> None:
    client = application.client()
    await state(client, ("A", "next_to", "B"))

    refused = await client.post(f"/v1/graph/{path}", json=body)

    assert refused.status_code == 422, refused.text


async def test_a_name_that_nobody_can_write_is_refused(application: Application) -> None:
    refused = await application.client().get("/v1/graph/neighbours", params={"name": "\u0000"})

    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("start", "reason"), [({"name": "Ann", "id": str(UUID(int=1))}, "is given beside id"), ({}, "is missing")]
)
async def test_neighbours_are_those_of_one_start(application: Application, start: Json, reason: str) -> None:
    refused = await application.client().get("/v1/graph/neighbours", params=start)

    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["name"]
    assert f"name: {reason}; the start is" in refused.json()["detail"]


async def test_the_hints_of_a_context_obey_its_filters(application: Application) -> None:
    client = application.client()
    await state(client, ("Petra Nowak", "works_at", "Initech"))
    body = {"content": "Petra Nowak moved the server", "event_at": "2020-01-01T00:00:00Z"}
    await client.post("/v1/notes", json=body)
    await application.indexed()

    asked = {"query": "Petra Nowak moved the server", "min_score": 0}
    now = (await client.post("/v1/context", json=asked)).json()["text"]
    then = (await client.post("/v1/context", json={**asked, "as_of": "2021-01-01T00:00:00Z"})).json()["text"]

    assert "Petra Nowak works_at Initech" in now
    assert "moved the server" in then
    assert "works_at" not in then


async def test_aliases_of_one_name_sent_twice_are_all_kept(application: Application) -> None:
    client = application.client()
    entities = [{"name": "Robert Hall", "aliases": ["Bob"]}, {"name": "robert hall", "aliases": ["Bobby"]}]

    await client.post("/v1/graph/entities", json={"entities": entities})

    known = (await client.get("/v1/graph/neighbours", params={"name": "Bobby"})).json()["entity"]
    assert sorted(known["aliases"]) == ["Bob", "Bobby"]


async def documents_of(client: httpx.AsyncClient, texts: dict[str, str], **fields: Any) -> None:
    documents = [{"key": title, "title": title, "content": content} for title, content in texts.items()]
    response = await client.post("/v1/documents/batch", json={"documents": documents, **fields})
    assert {item["status"] for item in response.json()["results"]} == {"created"}


async def titles_by_graph(client: httpx.AsyncClient, query: str, **fields: Any) -> list[str]:
    response = await client.post("/v1/search", json={"query": query, "tiers": ["graph"], **fields})
    assert response.status_code == 200, response.text
    return [hit["title"] for hit in response.json()["results"]]


COMEDY = {
    "Silent Harbour": "A comedy about a lighthouse keeper, whose director is Vera Lindqvist.",
    "Loud Harbour": "A drama of bankers, whose director is Otto Brandt.",
}
PEOPLE = {
    "Vera Lindqvist": "Born in Malmö to Greta Holm and raised at sea.",
    "Otto Brandt": "Born in Bremen to Ida Brandt and raised on a farm.",
}
DESCRIBED = "where was the director of the comedy about a lighthouse keeper born"


async def test_a_question_that_describes_a_document_and_names_nothing_leads_to_whom_that_names(
    application: Application,
) -> None:
    client = application.client()
    await documents_of(client, PEOPLE)
    await documents_of(client, COMEDY)
    await application.indexed()

    assert (await titles_by_graph(client, DESCRIBED))[:2] == ["Silent Harbour", "Vera Lindqvist"]


async def test_a_document_of_somebody_else_describes_nothing(application: Application) -> None:
    client = application.client()
    await documents_of(client, PEOPLE)
    await documents_of(client, COMEDY, user="ann")
    await application.indexed()

    assert "Vera Lindqvist" not in await titles_by_graph(client, DESCRIBED, user="ben")
    assert "Vera Lindqvist" in await titles_by_graph(client, DESCRIBED, user="ann")
