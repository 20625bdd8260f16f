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
