"""Messages and documents matter more or less, as notes do: it is kept, shown, filtered by and weighed."""

from typing import Any

import pytest

from lamina.core.documents import Document, Span
from tests.support.application import Application

QUESTION = "when does the ferry leave"
TEXT = "The ferry leaves at noon"


async def say(app: Application, session: str, content: str, **more: Any) -> str:
    message = {"content": content, "occurred_at": "2026-03-01T12:00:00Z", **more}
    answer = await app.client().post("/v1/turns", json={"session": session, "messages": [message]})
    assert answer.is_success, answer.text
    return str(answer.json()["messages"][0]["id"])


async def upload(app: Application, key: str, content: str, **more: Any) -> dict[str, Any]:
    body = {"key": key, "content": content, "occurred_at": "2026-03-01T12:00:00Z", **more}
    answer = await app.client().post("/v1/documents", json=body)
    assert answer.is_success, answer.text
    return dict(answer.json())


async def found(app: Application, tier: str, **more: Any) -> list[dict[str, Any]]:
    body = {"query": QUESTION, "tiers": [tier], "fusion": "composite", **more}
    answer = await app.client().post("/v1/search", json=body)
    assert answer.is_success, answer.text
    return list(answer.json()["results"])


async def test_what_matters_more_comes_first_by_the_composite_relevance(application: Application) -> None:
    plain = await say(application, "one", TEXT)
    great = await say(application, "two", TEXT, importance=1.0)
    small = await say(application, "three", TEXT, importance=0.1)
    await upload(application, "plain", TEXT)
    await upload(application, "great", TEXT, importance=1.0)
    await application.indexed()

    messages, passages = await found(application, "sessions"), await found(application, "documents")

    assert [(hit["id"], hit["importance"]) for hit in messages] == [(great, 1.0), (plain, 0.5), (small, 0.1)]
    assert messages[0]["score"] - messages[2]["score"] == pytest.approx(0.3 * 0.9, abs=1e-6)
    assert [hit["importance"] for hit in passages] == [1.0, 0.5]
    assert passages[0]["score"] - passages[1]["score"] == pytest.approx(
        0.9 * 0.3 * 0.5, abs=1e-6
    )  # A document weighs 0.9.


async def test_the_order_by_ranks_does_not_depend_on_it(application: Application) -> None:
    await say(application, "one", TEXT, importance=0.1)
    await say(application, "two", "The ferry was late", importance=1.0)
    await application.indexed()

    first, *_ = await found(application, "sessions", fusion="rrf")

    assert (first["content"], first["importance"]) == (TEXT, 0.1)


async def test_a_filter_finds_what_matters_and_each_read_shows_it(application: Application) -> None:
    await say(application, "one", TEXT)
    great = await say(application, "two", TEXT, importance=0.9)
    document = await upload(application, "great", TEXT, importance=0.8)
    await upload(application, "plain", TEXT)
    await application.indexed()
    client, matters = application.client(), {"filters": {"importance": {"gte": 0.7}}}

    messages = await found(application, "sessions", fusion="rrf", **matters)
    passages = await found(application, "documents", fusion="rrf", **matters)
    history = (await client.get("/v1/sessions/two/messages")).json()["messages"]
    memory = (await client.get(f"/v1/memories/{great}")).json()
    read = (await client.get(f"/v1/documents/{document['id']}")).json()

    assert [hit["id"] for hit in messages] == [great]
    assert [hit["document"] for hit in passages] == [document["id"]]
    assert [item["importance"] for item in history] == [0.9]
    assert memory["message"]["importance"] == 0.9
    assert read["importance"] == 0.8


async def test_a_deleted_message_comes_back_as_important_as_it_was(application: Application) -> None:
    great = await say(application, "two", TEXT, importance=0.9)
    client = application.client()
    await client.delete(f"/v1/messages/{great}")

    await client.post(f"/v1/trash/{great}/restore")

    assert (await client.get(f"/v1/memories/{great}")).json()["message"]["importance"] == 0.9


async def test_a_document_of_another_importance_takes_the_place_of_the_first(application: Application) -> None:
    first = await upload(application, "key", TEXT)
    same = await upload(application, "key", TEXT, importance=0.5)
    other = await upload(application, "key", TEXT, importance=0.6)

    assert [item["status"] for item in (first, same, other)] == ["created", "existed", "replaced"]


@pytest.mark.parametrize("importance", [-0.1, 1.1, "high"])
async def test_another_number_is_refused_by_its_field(application: Application, importance: float | str) -> None:
    client, message = application.client(), {"content": TEXT, "importance": importance}

    turn = await client.post("/v1/turns", json={"session": "one", "messages": [message]})
    document = await client.post("/v1/documents", json=message)

    assert (turn.status_code, document.status_code) == (422, 422)
    assert "messages.0.importance" in turn.text
    assert "importance" in document.text


def test_a_document_that_is_as_any_other_has_the_hash_of_earlier_releases() -> None:
    document = Document("key", "title", "text/plain", "text", (Span(0, 4),))

    assert document.content_hash().hex() == "994b3334d917c045573512c19656ae1a4de18f8e04f493b10f4c0e559a48e89d"
