"""Field cases 13, 14, 21 to 24, 31 to 33 and 48 for documents: text in and out, isolation, silent loss."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from tests.support.application import Application, running, settings_for
from tests.support.embedders import Switchable

NUL_IN = {
    "content": {"content": "a\x00b"},
    "title": {"title": "a\x00b"},
    "key": {"key": "a\x00b"},
    "tags.0": {"tags": ["a\x00b"]},
    "source": {"source": "a\x00b"},
    "user": {"user": "a\x00b"},
    "metadata.key": {"metadata": {"key": "a\x00b"}},
    "metadata: key": {"metadata": {"a\x00b": 1}},
}


@pytest.mark.parametrize("field", NUL_IN)
async def test_a_nul_is_refused_naming_its_field(application: Application, field: str) -> None:
    answer = await application.client().post("/v1/documents", json={"content": "x", **NUL_IN[field]})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


async def test_a_nul_is_refused_where_documents_are_listed(application: Application) -> None:
    for name in ("key", "tag", "user"):
        answer = await application.client().get("/v1/documents", params={name: "a\x00b"})

        assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("body", [r'{"content": "a\ud800b"}', r'{"content": "x", "title": "\udfff"}'])
async def test_a_lone_surrogate_is_refused(application: Application, body: str) -> None:
    headers = {"content-type": "application/json"}

    answer = await application.client().post("/v1/documents", content=body, headers=headers)

    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Stop at <|endoftext|> here", "<|endoftext|>"),
        ("мой кот любит рыбу", "кот"),
        ("今日は成語しりとりをした", "しりとり"),
        ("שלום לכולם", "שלום"),
    ],
)
async def test_text_of_every_script_comes_back_and_is_found(application: Application, content: str, query: str) -> None:
    client = application.client()

    stored = (await client.post("/v1/documents", json={"content": content})).json()
    await application.indexed()
    results = (await client.post("/v1/search", json={"query": query, "tiers": ["documents"]})).json()["results"]

    assert (await client.get(f"/v1/documents/{stored['id']}")).json()["content"] == content
    assert [result["content"] for result in results] == [content]


async def test_every_marker_of_a_long_document_is_findable(application: Application) -> None:
    client = application.client()
    text = " ".join(f"marker{number:03} {'lorem ipsum dolor sit amet ' * 37}." for number in range(100))
    assert len(text) > 100_000

    stored = (await client.post("/v1/documents", json={"key": "long", "title": "Long", "content": text})).json()
    await application.indexed()

    assert stored["passages"] > 100
    for number in range(0, 100, 7):
        body = {"query": f"marker{number:03}", "tiers": ["documents"], "limit": 1}
        (result,) = (await client.post("/v1/search", json=body)).json()["results"]
        assert f"marker{number:03}" in result["content"]


async def test_a_tag_with_a_comma_filters_as_one_tag(application: Application) -> None:
    client = application.client()
    await client.post("/v1/documents", json={"content": "one", "key": "1", "tags": ["salt, pepper"]})
    await client.post("/v1/documents", json={"content": "two", "key": "2", "tags": ["salt", "pepper"]})

    listed = (await client.get("/v1/documents", params={"tag": "salt, pepper"})).json()["documents"]

    assert [document["key"] for document in listed] == ["1"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/documents/not-a-uuid", "id"),
        ("/v1/documents/not-a-uuid/passages", "id"),
        ("/v1/documents?limit=-1", "limit"),
        ("/v1/documents?limit=0", "limit"),
        ("/v1/documents?limit=1000000000", "limit"),
        ("/v1/documents?offset=-5", "offset"),
        ("/v1/documents?since=yesterday", "since"),
    ],
)
async def test_a_wrong_parameter_is_named(application: Application, path: str, field: str) -> None:
    answer = await application.client().get(path)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


@pytest.mark.parametrize("user", [42, True, None, {}])
async def test_a_user_that_is_no_text_is_refused(application: Application, user: Any) -> None:
    for path, body in (("", {"content": "x"}), ("/batch", {"documents": [{"content": "x"}]})):
        answer = await application.client().post(f"/v1/documents{path}", json={**body, "user": user})

        assert answer.status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": "x", "content_base64": "eA=="},
        {"content_base64": "not base64"},
        {"content_base64": "éé"},
        {"content": None},
        {"content": "x", "media_type": "application/zip"},
        {"content_base64": "JVBERi0xLjQ=", "media_type": "application/pdf"},
        {"content_base64": "/9j/", "media_type": "text/html"},
        {"content": "x", "unknown": 1},
    ],
)
async def test_what_is_no_document_is_refused_and_nothing_is_stored(
    application: Application, body: dict[str, Any]
) -> None:
    client = application.client()

    answer = await client.post("/v1/documents", json=body)

    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["reason"]
    assert (await client.get("/v1/documents")).json() == {"documents": [], "next_cursor": None}


async def test_metadata_are_data_and_move_no_scope(application: Application) -> None:
    metadata = {"user_id": "victim", "tenant": "other", "workspace": "elsewhere"}
    client = application.client()

    for content in ("first", "second"):
        stored = await client.post("/v1/documents", json={"key": "a", "content": content, "metadata": metadata})
    document = (await client.get(f"/v1/documents/{stored.json()['id']}")).json()

    assert document["metadata"] == metadata
    assert (document["user"], document["workspace"]) == (None, "default")
    assert (await client.get("/v1/documents", params={"workspace": "elsewhere"})).json() == {
        "documents": [],
        "next_cursor": None,
    }


async def test_another_tenants_key_sees_and_changes_nothing(application: Application) -> None:
    stored = (await application.client().post("/v1/documents", json={"key": "a", "content": "mine"})).json()
    stranger = application.client(application.new_key("stranger"))

    for method, path in (("GET", ""), ("GET", "/passages"), ("DELETE", "")):
        answer = await stranger.request(method, f"/v1/documents/{stored['id']}{path}")
        assert answer.status_code == 404

    theirs = (await stranger.post("/v1/documents", json={"key": "a", "content": "theirs"})).json()
    assert theirs["status"] == "created"
    assert (await application.client().get(f"/v1/documents/{stored['id']}")).json()["content"] == "mine"


async def test_a_reader_cannot_write(application: Application) -> None:
    from lamina.core.principals import KeyRole

    reader = application.client(application.new_key(application.tenant, KeyRole.READER))

    answers = [
        await reader.post("/v1/documents", json={"content": "x"}),
        await reader.post("/v1/documents/batch", json={"documents": [{"content": "x"}]}),
        await reader.post("/v1/documents/upload", files={"file": ("a.txt", b"x")}),
        await reader.delete("/v1/documents/00000000-0000-0000-0000-000000000000"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 4


async def test_reading_an_unknown_scope_creates_nothing(application: Application) -> None:
    answer = await application.client().get("/v1/documents", params={"workspace": "unknown"})

    assert answer.json() == {"documents": [], "next_cursor": None}
    with psycopg.connect(application.url) as connection:
        row = connection.execute("SELECT count(*) FROM epochs WHERE tenant = %s", [application.tenant]).fetchone()
        assert row == (0,)


@pytest.fixture
async def failing(database: str, tmp_path: Path) -> AsyncIterator[tuple[Application, Switchable]]:
    """An application whose embedder can be switched off."""
    embedder = Switchable(BatchingEmbedder(HashingModel()))
    async with running(settings_for(database, tmp_path), database, HashingModel(), embedder=embedder) as app:
        yield app, embedder


@pytest.mark.parametrize("state", ["down", "hanging"])
async def test_without_the_embedder_nothing_is_stored_and_the_old_document_stays(
    failing: tuple[Application, Switchable], monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    app, embedder = failing
    stored = (await app.client().post("/v1/documents", json={"key": "a", "content": "old"})).json()

    embedder.state = state
    monkeypatch.setattr(app.services.documents.recorder, "_embed_deadline_s", 1)
    replaced = await app.client().post("/v1/documents", json={"key": "a", "content": "new"})
    created = await app.client().post("/v1/documents/batch", json={"documents": [{"content": "other"}]})
    same = await app.client().post("/v1/documents", json={"key": "a", "content": "old"})

    assert [replaced.status_code, created.status_code] == [503, 503]
    assert same.json() == stored | {"status": "existed"}
    (document,) = (await app.client().get("/v1/documents")).json()["documents"]
    assert (document["key"], document["version"]) == ("a", 1)
