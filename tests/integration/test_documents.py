"""Documents over the whole application: stored, replaced and deleted as a whole, in every index."""

import asyncio
import base64
from typing import Any

import psycopg
import pytest

from lamina.stores.postgres.outbox import enqueue_all
from tests.support.application import Application, index_of
from tests.support.pdf import pdf

GUIDE = "# Guide\nThe axolotl lives in Xochimilco.\n\n# Food\nIt eats worms and small fish."


async def put(app: Application, content: str = GUIDE, *, expected: int | None = None, **fields: Any) -> dict[str, Any]:
    answer = await app.client().post(
        "/v1/documents", json={"content": content, "media_type": "text/markdown", **fields}
    )
    assert answer.status_code == (expected or answer.status_code), answer.text
    assert answer.status_code in (200, 201), answer.text
    result: dict[str, Any] = answer.json()
    return result


async def found(app: Application, query: str, **fields: Any) -> list[dict[str, Any]]:
    answer = await app.client().post("/v1/search", json={"query": query, "tiers": ["documents"], **fields})
    assert answer.status_code == 200, answer.text
    assert answer.json()["degraded"] == []
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def index_size(app: Application) -> int:
    count: int = index_of(app, "documents", "documents").count()
    return count


async def test_a_document_is_found_by_its_passages_each_with_its_place(application: Application) -> None:
    stored = await put(application, key="guide", title="Axolotls", tags=["pets"], metadata={"shelf": 3}, expected=201)
    await application.indexed()

    first, *_ = await found(application, "what does it eat, worms?")

    assert stored | {"status": "created", "version": 1, "passages": 2} == stored
    assert first["content"] == "# Food\nIt eats worms and small fish."
    assert (first["document"], first["title"], first["position"], first["ref"]) == (
        stored["id"],
        "Axolotls",
        2,
        "guide",
    )
    assert (first["tier"], first["kind"], first["tags"]) == ("documents", "passage", ["pets"])
    assert first["metadata"] == {"heading": "Food", "shelf": 3}


async def test_a_passage_is_found_by_the_title_that_it_does_not_contain(application: Application) -> None:
    await put(application, title="Ambystoma mexicanum")
    await application.indexed()

    assert len(await found(application, "ambystoma mexicanum")) == 2


async def test_the_same_document_again_changes_nothing(alone: Application) -> None:
    first = await put(alone, key="guide", expected=201)
    await alone.indexed()

    again = await put(alone, key="guide", expected=200)

    assert again == first | {"status": "existed"}
    assert await alone.indexer.drain() == 0


async def test_a_new_content_replaces_the_document_as_a_whole_in_every_index(alone: Application) -> None:
    first = await put(alone, key="guide")
    await alone.indexed()
    before = index_size(alone)

    second = await put(alone, "# Guide\nThe olm lives in caves.", key="guide", expected=200)
    unheard = await found(alone, "axolotl olm worms")
    await alone.indexed()
    heard = await found(alone, "axolotl olm worms")

    assert before == 2
    assert second == {**first, "status": "replaced", "version": 2, "passages": 1}
    assert unheard == []
    assert [result["content"] for result in heard] == ["# Guide\nThe olm lives in caves."]
    assert index_size(alone) == 1


@pytest.mark.parametrize("change", [{"tags": ["new"]}, {"metadata": {"a": 1}}, {"title": "Other"}, {"source": "web"}])
async def test_a_change_of_anything_else_is_stored_and_indexed_too(
    application: Application, change: dict[str, Any]
) -> None:
    await put(application, key="guide")

    changed = await put(application, key="guide", **change)
    await application.indexed()
    (document,) = (await application.client().get("/v1/documents?key=guide")).json()["documents"]
    hits = await found(application, "axolotl", tags=change.get("tags", []))

    assert changed["status"] == "replaced"
    assert {name: document[name] for name in change} == change
    assert hits
    assert all({name: hit[name] for name in change if name != "metadata"}.items() <= change.items() for hit in hits)


async def test_a_deleted_document_leaves_every_index_and_nothing_of_it_is_returned_meanwhile(
    alone: Application,
) -> None:
    gone = await put(alone, key="guide")
    await put(alone, "Axolotl soup", key="other")
    await alone.indexed()

    answer = await alone.client().delete(f"/v1/documents/{gone['id']}")
    unheard = await found(alone, "axolotl")
    await alone.indexed()

    assert answer.status_code == 204
    assert [result["ref"] for result in unheard] == ["other"]
    assert index_size(alone) == 1
    for path in ("", "/passages"):
        assert (await alone.client().get(f"/v1/documents/{gone['id']}{path}")).status_code == 404
    assert (await alone.client().delete(f"/v1/documents/{gone['id']}")).status_code == 404
    with psycopg.connect(alone.url) as connection:
        counts = "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM passages)"
        assert connection.execute(counts).fetchone() == (1, 1)


async def test_another_users_equal_document_stays(application: Application) -> None:
    mine = await put(application, key="guide", user="ann")
    theirs = await put(application, key="guide", user="bob")

    await application.client().delete(f"/v1/documents/{mine['id']}")
    await application.indexed()

    assert theirs["status"] == "created"
    assert await found(application, "axolotl", user="ann") == []
    assert {hit["document"] for hit in await found(application, "axolotl", user="bob")} == {theirs["id"]}


async def test_of_many_writers_of_one_key_all_are_kept_in_turn(application: Application) -> None:
    answers = await asyncio.gather(*(put(application, f"Axolotl number {number}", key="guide") for number in range(10)))
    await application.indexed()

    last = next(answer for answer in answers if answer["version"] == 10)
    hits = await found(application, "axolotl number")

    assert sorted(answer["version"] for answer in answers) == list(range(1, 11))
    assert {answer["id"] for answer in answers} == {last["id"]}
    assert [hit["document"] for hit in hits] == [last["id"]]


async def test_of_many_who_send_the_same_document_one_stores_it(application: Application) -> None:
    answers = await asyncio.gather(*(put(application, key="guide") for _ in range(10)))

    assert sorted(answer["status"] for answer in answers) == ["created", *["existed"] * 9]
    assert {(answer["id"], answer["version"]) for answer in answers} == {(answers[0]["id"], 1)}


async def test_a_document_that_changes_and_changes_back_in_one_batch_is_what_it_was(application: Application) -> None:
    stored = await put(application, "Axolotl", key="a", media_type="text/plain")
    documents = [{"key": "a", "content": content} for content in ("Olm", "Axolotl")]

    answer = await application.client().post("/v1/documents/batch", json={"documents": documents})
    await application.indexed()

    assert [(item["status"], item["version"]) for item in answer.json()["results"]] == [
        ("replaced", 2),
        ("replaced", 3),
    ]
    assert [hit["content"] for hit in await found(application, "axolotl olm")] == ["Axolotl"]
    assert answer.json()["results"][0]["id"] == stored["id"]


async def test_a_document_that_is_deleted_while_it_is_sent_again_comes_back_whole(application: Application) -> None:
    for _ in range(5):
        stored = await put(application, key="guide")

        deleted, again = await asyncio.gather(
            application.client().delete(f"/v1/documents/{stored['id']}"), put(application, key="guide")
        )
        listed = (await application.client().get("/v1/documents?key=guide")).json()["documents"]

        assert deleted.status_code == 204
        assert again["status"] in ("created", "existed")
        assert [document["passages"] for document in listed] == ([2] if again["status"] == "created" else [])


async def test_the_documents_of_a_batch_have_a_result_each(application: Application) -> None:
    documents = [
        {"key": "a", "content": "Alpha axolotl"},
        {"key": "b", "content": ""},
        {"key": "c", "content": "Gamma", "media_type": "image/png"},
        {
            "key": "d",
            "content_base64": base64.b64encode(pdf(["Delta axolotl"])).decode(),
            "media_type": "application/pdf",
        },
        {"key": "e", "content_base64": "!!!"},
        {"key": "f", "content": "x", "colour": "red"},
        "just a text",
        {"key": "a", "content": "Alpha again"},
    ]
    answer = await application.client().post("/v1/documents/batch", json={"documents": documents})
    await application.indexed()

    results = answer.json()["results"]

    statuses = ["created", "invalid", "invalid", "created", "invalid", "invalid", "invalid", "replaced"]
    assert [result["status"] for result in results] == statuses
    errors = [result["error"] for result in results if result["error"]]
    for error, field in zip(
        errors, ("1.content:", "2.media_type:", "4.content_base64:", "5.colour:", "6"), strict=True
    ):
        assert error.startswith(f"documents.{field}")
    assert {hit["content"] for hit in await found(application, "alpha delta")} == {"Alpha again", "Delta axolotl"}


async def test_a_file_can_be_sent_as_a_form(application: Application) -> None:
    form = {"key": "paper", "tags": ["a", "b"], "metadata": '{"shelf": 3}', "workspace": "library"}
    files = {"file": ("paper.pdf", pdf(["The axolotl regrows limbs"], ["It lives in lakes"], title="On axolotls"))}

    answer = await application.client().post("/v1/documents/upload", data=form, files=files)
    await application.indexed()
    first, *_ = await found(application, "lives in lakes", workspace="library", tags=["a", "b"])

    assert answer.status_code == 201, answer.text
    assert (first["title"], first["metadata"], first["source"]) == ("On axolotls", {"page": 2, "shelf": 3}, "paper.pdf")


@pytest.mark.parametrize("metadata", ["[]", "{", "[" * 100_000])
async def test_metadata_of_a_form_must_be_a_json_object(application: Application, metadata: str) -> None:
    answer = await application.client().post(
        "/v1/documents/upload", data={"metadata": metadata}, files={"file": ("a.txt", b"text")}
    )

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "metadata"


async def test_a_repeated_idempotency_key_writes_nothing_and_answers_the_same(application: Application) -> None:
    client, headers = application.client(), {"Idempotency-Key": "once"}
    body = {"key": "guide", "content": "Axolotl"}

    first = await client.post("/v1/documents", json=body, headers=headers)
    await client.post("/v1/documents", json={"key": "guide", "content": "Olm"})
    again = await client.post("/v1/documents", json=body, headers=headers)
    other = await client.post("/v1/documents", json=body | {"content": "Newt"}, headers=headers)

    assert again.json() == first.json()
    assert other.status_code == 409
    (document,) = (await client.get("/v1/documents")).json()["documents"]
    assert (await client.get(f"/v1/documents/{document['id']}")).json()["content"] == "Olm"


async def test_a_document_is_read_whole_and_listed_without_its_text(application: Application) -> None:
    stored = await put(application, key="guide", occurred_at="2026-03-01T10:00+05:30")
    client = application.client()

    whole = (await client.get(f"/v1/documents/{stored['id']}")).json()
    bare = (await client.get(f"/v1/documents/{stored['id']}?content=false")).json()
    (listed,) = (await client.get("/v1/documents")).json()["documents"]
    passages = (await client.get(f"/v1/documents/{stored['id']}/passages")).json()["passages"]

    assert whole["content"] == GUIDE
    assert whole["occurred_at"] == "2026-03-01T04:30:00Z"
    assert whole["title"] == "Guide"
    assert listed == bare == whole | {"content": None}
    assert "".join(passage["content"] for passage in passages) == GUIDE
    assert [GUIDE[passage["start"] : passage["end"]] for passage in passages] == [item["content"] for item in passages]
    assert [passage["position"] for passage in passages] == [1, 2]


async def test_the_index_is_rebuilt_from_postgres(alone: Application) -> None:
    await put(alone)

    await alone.indexed()
    count = enqueue_all(alone.url, "documents")

    assert count == 2
    assert await alone.indexer.drain() == 2
    assert index_size(alone) == 2
