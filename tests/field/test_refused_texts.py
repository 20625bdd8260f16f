"""A text that the model does not take: its writer learns so, and nobody tries again for nothing."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from tests.support.application import running, settings_for
from tests.support.embedders import Refusing

REFUSED = "unspeakable"
WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("content", "/v1/notes", {"content": f"an {REFUSED} note"}),
    ("content", "/v1/notes/batch", {"notes": ["a boat", f"an {REFUSED} note", "a tram"]}),
    ("messages", "/v1/turns", {"session": "s", "messages": [{"content": "hi"}, {"content": f"an {REFUSED} one"}]}),
    ("content", "/v1/documents", {"content": f"an {REFUSED} document", "key": "d"}),
    ("trigger", "/v1/procedures", {"trigger": f"an {REFUSED} hour", "action": "wait"}),
    ("name", "/v1/graph/entities", {"entities": [{"name": f"The {REFUSED}"}]}),
    ("query", "/v1/responses", {"agent": "a", "query": f"an {REFUSED} question?", "response": "Yes."}),
]


async def stored(client: httpx.AsyncClient) -> list[Any]:
    found = [(await client.get("/v1/notes")).json()["notes"], (await client.get("/v1/turns")).json()["turns"]]
    return [row for rows in found for row in rows]


@pytest.mark.parametrize(("field", "path", "body"), WRITES, ids=[path for _, path, _ in WRITES])
async def test_a_text_that_the_model_refuses_is_named_with_a_remedy_and_no_time_to_retry(
    database: str, tmp_path: Path, field: str, path: str, body: dict[str, Any]
) -> None:
    embedder = Refusing(BatchingEmbedder(HashingModel()), REFUSED)
    async with running(settings_for(database, tmp_path), database, HashingModel(), embedder=embedder) as app:
        answer = await app.client().post(path, json=body)
        nothing = await stored(app.client())

    assert answer.status_code == 422
    assert "retry-after" not in answer.headers
    [error] = answer.json()["errors"]
    assert error["field"] == field
    assert REFUSED in error["reason"]
    assert "its endpoint answers 413; send it in smaller parts" in error["reason"]
    assert nothing == []


async def test_texts_that_are_too_much_together_are_embedded_apart(database: str, tmp_path: Path) -> None:
    embedder = Refusing(BatchingEmbedder(HashingModel()), REFUSED, most_texts=2)
    async with running(settings_for(database, tmp_path), database, HashingModel(), embedder=embedder) as app:
        answer = await app.client().post("/v1/notes/batch", json={"notes": [f"note {place}" for place in range(9)]})
        notes = await stored(app.client())

    assert answer.status_code == 200
    assert len(notes) == 9


async def test_a_model_that_takes_nothing_is_away_for_its_writers(database: str, tmp_path: Path) -> None:
    embedder = Refusing(BatchingEmbedder(HashingModel()), "")
    async with running(settings_for(database, tmp_path), database, HashingModel(), embedder=embedder) as app:
        answer = await app.client().post("/v1/notes", json={"content": "a note"})

    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "its endpoint answers 413" in answer.json()["detail"]


@pytest.mark.parametrize("is_old", [False, True], ids=["trash", "trash of an earlier release"])
async def test_what_the_model_took_once_comes_back_from_the_trash_although_it_refuses_it_now(
    database: str, tmp_path: Path, is_old: bool
) -> None:
    settings = settings_for(database, tmp_path)
    fact = {"subject": "Ann", "relation": "owns", "object": "Graystone"}
    document = {"content": "Ann moved the boat to Graystone.", "key": "d", "title": "Graystone"}
    async with running(settings, database, HashingModel()) as app:
        client, tenant = app.client(), app.tenant
        ids = [
            (await client.post("/v1/facts", json=fact)).json()["id"],
            (await client.post("/v1/notes", json={"content": "Ann sails to Graystone."})).json()["id"],
            (await client.post("/v1/documents", json=document)).json()["id"],
        ]
        for id_ in ids:
            assert (await client.delete(f"/v1/memories/{id_}")).is_success
        if is_old:
            async with app.pool.connection() as connection:
                old = "UPDATE trash SET rows = (rows::jsonb - 'evidence')::json WHERE tenant = %s AND kind <> 'fact'"
                await connection.execute(old, (tenant,))

    embedder = Refusing(BatchingEmbedder(HashingModel()), "Graystone")
    async with running(settings, database, HashingModel(), embedder=embedder) as app:
        client = app.for_tenant(tenant).client()
        back = [await client.post(f"/v1/trash/{id_}/restore") for id_ in ids]
        facts = (await client.get("/v1/facts", params={"subject": "Ann"})).json()["facts"]
        notes = (await client.get("/v1/notes")).json()["notes"]

    assert [(answer.status_code, answer.text) for answer in back if answer.status_code != 200] == []
    assert [one["object"] for one in facts] == ["Graystone"]
    assert [note["content"] for note in notes] == ["Ann sails to Graystone."]
