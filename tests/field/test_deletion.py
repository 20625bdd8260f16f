"""Every id that a search returns has one call that deletes it, with one meaning."""

from typing import Any

import httpx
import pytest

from lamina.core.principals import KeyRole
from tests.support.application import Application

CALLS = {
    "message": "/v1/messages/{}",
    "note": "/v1/notes/{}",
    "entity": "/v1/graph/entities/{}",
    "fact": "/v1/graph/edges/{}",
    "procedure": "/v1/procedures/{}",
}
QUERY = {"query": "How does Mira moor the boat Orion in a storm?", "limit": 50, "user": "ann"}


async def fill(client: httpx.AsyncClient) -> None:
    """Write something for each tier to find."""
    message = {"content": "Mira said: the boat Orion needs two ropes in a storm.", "name": "Ann"}
    await client.post("/v1/turns", json={"session": "s", "user": "ann", "messages": [message]})
    await client.post("/v1/notes", json={"content": "Mira moors the boat Orion with two ropes", "user": "ann"})
    await client.post("/v1/graph/entities", json={"entities": [{"name": "Orion", "type": "boat"}]})
    edge = {"subject": "Mira", "type": "moors", "object": "Orion"}
    await client.post("/v1/graph/edges", json={"edges": [edge]})
    await client.post("/v1/procedures", json={"trigger": "a storm comes over the boat", "action": "moor Orion twice"})
    await client.post(
        "/v1/documents", json={"key": "log", "content": "# The log\nMira moors the boat Orion in a storm."}
    )


async def found(client: httpx.AsyncClient, kind: str) -> list[dict[str, Any]]:
    """Return the results of one kind."""
    results = (await client.post("/v1/search", json=QUERY)).json()["results"]
    kinds = {hit["id"]: hit["kind"] if hit["tier"] != "notes" else "note" for hit in results}
    return [hit for hit in results if kinds[hit["id"]] == kind]


@pytest.mark.parametrize("kind", CALLS)
async def test_what_a_search_found_is_deleted_by_its_id_and_not_found_again(unshared: Application, kind: str) -> None:
    client = unshared.client()
    await fill(client)
    await unshared.indexed()
    hits = await found(client, kind)
    reader = unshared.client(unshared.new_key(unshared.tenant, KeyRole.READER))
    other = unshared.client(unshared.new_key(f"{unshared.tenant} 2"))
    path = CALLS[kind].format(hits[0]["id"])

    refused = [(await client_.delete(path)).status_code for client_ in (reader, other)]
    before = {hit["id"] for hit in await found(client, kind)}
    deleted = await client.delete(path)
    after = {hit["id"] for hit in await found(client, kind)}
    again = await client.delete(path)

    assert refused == [403, 404]
    assert hits[0]["id"] in before
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert hits[0]["id"] not in after
    assert (again.status_code, again.json()["fields"]["id"]) == (404, hits[0]["id"])
    assert await unshared.drift() == {}
    assert hits[0]["id"] not in {hit["id"] for hit in await found(client, kind)}


async def test_a_passage_is_refused_with_the_name_of_its_document(unshared: Application) -> None:
    client = unshared.client()
    await fill(client)
    await unshared.indexed()
    (passage, *_) = await found(client, "passage")
    other = unshared.client(unshared.new_key(f"{unshared.tenant} 2"))

    refused = await client.delete(f"/v1/documents/{passage['id']}")
    hidden = await other.delete(f"/v1/documents/{passage['id']}")
    deleted = await client.delete(f"/v1/documents/{passage['document']}")

    assert (refused.status_code, passage["document"] in refused.json()["detail"]) == (409, True)
    assert (hidden.status_code, deleted.status_code) == (404, 204)
    assert await found(client, "passage") == []


async def test_an_id_is_deleted_by_the_call_of_its_kind_alone(unshared: Application) -> None:
    client = unshared.client()
    await fill(client)
    await unshared.indexed()
    ids = {kind: (await found(client, kind))[0]["id"] for kind in CALLS}

    answers = {
        (await client.delete(path.format(id_))).status_code
        for kind, path in CALLS.items()
        for other, id_ in ids.items()
        if other != kind
    }

    assert answers == {404}
    assert {kind: (await found(client, kind))[0]["id"] for kind in CALLS} == ids


async def neighbours(client: httpx.AsyncClient, name: str) -> httpx.Response:
    return await client.get("/v1/graph/neighbours", params={"name": name})


async def test_an_entity_goes_with_its_edges_and_leaves_what_mentions_it(unshared: Application) -> None:
    client = unshared.client()
    edges = [("Mira", "moors", "Orion"), ("Orion", "lies_in", "Harbour"), ("Mira", "knows", "Noor")]
    body = {"edges": [{"subject": one, "type": kind, "object": two} for one, kind, two in edges]}
    await client.post("/v1/graph/edges", json=body)
    note = (await client.post("/v1/notes", json={"content": "Yesterday Orion was painted green"})).json()["id"]
    await unshared.indexed()
    orion = (await neighbours(client, "Orion")).json()["entity"]["id"]

    await client.delete(f"/v1/graph/entities/{orion}")
    await unshared.indexed()
    mira = (await neighbours(client, "Mira")).json()["neighbours"]
    walk = (await client.post("/v1/graph/traverse", json={"names": ["Mira"], "depth": 3})).json()["nodes"]

    assert (await neighbours(client, "Orion")).status_code == 404
    assert [link["content"] for link in mira] == ["Noor"]
    assert {node["content"] for node in walk} == {"Mira", "Noor"}
    assert (await client.get(f"/v1/notes/{note}")).status_code == 200
    assert await unshared.drift() == {}


async def test_a_retracted_edge_may_be_stated_again(unshared: Application) -> None:
    client = unshared.client()
    body = {"edges": [{"subject": "Mira", "type": "moors", "object": "Orion", "confidence": 0.5, "source": "a"}]}
    first = (await client.post("/v1/graph/edges", json=body)).json()["results"][0]["id"]
    await client.post("/v1/graph/edges", json={"edges": [body["edges"][0] | {"source": "b"}]})
    await unshared.indexed()

    await client.delete(f"/v1/graph/edges/{first}")
    await unshared.indexed()
    between = (await neighbours(client, "Mira")).status_code
    second = (await client.post("/v1/graph/edges", json=body)).json()["results"][0]
    await unshared.indexed()
    link = (await neighbours(client, "Mira")).json()["neighbours"][0]

    assert between in {200, 404}
    assert second["id"] == first
    assert (link["kind"], link["content"]) == ("moors", "Orion")
    assert await unshared.drift() == {}


async def test_a_deleted_message_leaves_its_session_and_the_caches(unshared: Application) -> None:
    client = unshared.client()
    messages = [{"content": f"the {word} boat sails"} for word in ("first", "second", "third")]
    turn = (await client.post("/v1/turns", json={"session": "s", "messages": messages})).json()
    for _ in range(2):
        await client.post("/v1/search", json={"query": "the second boat", "tiers": ["sessions"]})

    await client.delete(f"/v1/messages/{turn['messages'][1]['id']}")
    again = (await client.post("/v1/search", json={"query": "the second boat", "tiers": ["sessions"]})).json()
    history = (await client.get("/v1/sessions/s/messages")).json()["messages"]
    sent_again = (await client.post("/v1/turns", json={"session": "s", "messages": messages[1:2]})).json()

    assert [item["position"] for item in history] == [1, 3]
    assert messages[1]["content"] not in {hit["content"] for hit in again["results"]}
    assert (sent_again["messages"][0]["position"], sent_again["messages"][0]["existed"]) == (4, False)
