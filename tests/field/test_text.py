"""Field cases 13 to 26: text of every kind, in and out."""

import itertools
import json
from typing import Any

import httpx
import pytest

from tests.support.application import Application

PARTS = {
    "content": {"content": "a\x00b"},
    "metadata value": {"content": "x", "metadata": {"key": "a\x00b"}},
    "metadata key": {"content": "x", "metadata": {"a\x00b": 1}},
    "nested metadata": {"content": "x", "metadata": {"list": [{"deep": "a\x00b"}]}},
    "user": {"content": "x", "user": "a\x00b"},
    "workspace": {"content": "x", "workspace": "a\x00b"},
    "tag": {"content": "x", "tags": ["a\x00b"]},
    "source": {"content": "x", "source": "a\x00b"},
}


@pytest.mark.parametrize("part", PARTS)
async def test_a_nul_is_refused_naming_its_field(application: Application, part: str) -> None:
    answer = await application.client().post("/v1/notes", json=PARTS[part])

    assert answer.status_code == 422
    assert part.split()[-1 if part.startswith("nested") else 0].rstrip("s") in answer.json()["errors"][0]["field"]
    assert "NUL" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("POST", "/v1/search", {"json": {"query": "a\x00b"}}),
        ("POST", "/v1/context", {"json": {"query": "a\x00b"}}),
        ("POST", "/v1/search", {"json": {"query": "x", "user": "a\x00b"}}),
        ("POST", "/v1/turns", {"json": {"session": "s", "messages": [{"content": "a\x00b"}]}}),
        ("POST", "/v1/turns", {"json": {"session": "a\x00b", "messages": [{"content": "x"}]}}),
        ("PATCH", "/v1/profile", {"json": {"user": "u", "patch": {"a\x00b": 1}}}),
        ("PATCH", "/v1/profile", {"json": {"user": "a\x00b", "patch": {}}}),
        ("GET", "/v1/profile", {"params": {"user": "a\x00b"}}),
        ("GET", "/v1/notes", {"params": {"tag": "a\x00b"}}),
        ("GET", "/v1/sessions/a%00b/messages", {}),
    ],
)
async def test_a_nul_is_refused_on_every_route(
    application: Application, method: str, path: str, options: dict[str, Any]
) -> None:
    answer = await application.client().request(method, path, **options)

    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"]


@pytest.mark.parametrize("body", [r'{"content": "a\ud800b"}', r'{"content": "x", "metadata": {"k": "\udfff"}}'])
async def test_a_lone_surrogate_is_refused(application: Application, body: str) -> None:
    headers = {"content-type": "application/json"}

    answer = await application.client().post("/v1/notes", content=body, headers=headers)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_control_token_of_a_model_is_only_text(semantic: Application) -> None:
    client = semantic.client()
    text = "the marker <|endoftext|> ends a document"

    await client.post("/v1/notes", json={"content": text})
    await semantic.indexed()

    assert await _found(client, "<|endoftext|>") == [text]


@pytest.mark.parametrize("query", ["", "   ", "\u200b", "\ufeff", "\n\t", "\u2060\u200d"])
async def test_a_blank_query_is_refused_and_scans_nothing(application: Application, query: str) -> None:
    client = application.client()
    await client.post("/v1/notes", json={"content": "something"})

    for path in ("/v1/search", "/v1/context"):
        answer = await client.post(path, json={"query": query})

        assert answer.status_code == 422
        assert "query: is blank" in answer.json()["detail"]


@pytest.mark.parametrize(
    "query", ["?!…", 'foo" OR (bar', "a AND", "-", "*", "\\", "the", "'; DROP TABLE notes; --", "🎉"]
)
async def test_a_query_of_any_shape_is_answered(application: Application, query: str) -> None:
    client = application.client()
    await client.post("/v1/notes", json={"content": 'the quick foo "or" bar'})
    await client.post("/v1/turns", json={"session": "s", "messages": [{"content": "the quick brown fox"}]})
    await application.indexed()

    answer = await client.post("/v1/search", json={"query": query})

    assert answer.status_code == 200
    assert answer.json()["degraded"] == []


async def test_japanese_is_found_by_its_words_alone(without_vectors: Application) -> None:
    client = without_vectors.client()
    await client.post("/v1/notes", json={"content": "今日は成語しりとりをした"})
    await client.post("/v1/turns", json={"session": "s", "messages": [{"content": "昨日はしりとりで負けた"}]})
    await without_vectors.indexed()

    found = await _found(client, "しりとり")

    assert set(found) == {"今日は成語しりとりをした", "昨日はしりとりで負けた"}


async def test_chinese_finds_nothing_among_english_notes(without_vectors: Application) -> None:
    client = without_vectors.client()
    notes = [f"note {number} about the weather in May" for number in range(100)]
    await client.post("/v1/notes/batch", json={"notes": notes})
    await without_vectors.indexed()

    assert await _found(client, "记忆") == []


@pytest.mark.parametrize("text", ["мой кот", "שלום", "🎉", "e\u0301tude", "naïve — “quoted”"])
async def test_text_of_every_script_comes_back_as_written(semantic: Application, text: str) -> None:
    client = semantic.client()
    await client.post("/v1/notes", json={"content": text, "metadata": {"original": text}})
    await client.post("/v1/turns", json={"session": "s", "messages": [{"content": f"{text}!"}]})
    await semantic.indexed()

    found = (await client.post("/v1/search", json={"query": text})).json()["results"]

    assert {hit["content"] for hit in found} == {text, f"{text}!"}
    assert next(hit for hit in found if hit["tier"] == "notes")["metadata"] == {"original": text}


IDS = [
    "a-b",
    "_",
    "%",
    "0190f3d4-7e1a-7c3e-9b57-1f2d3c4b5a69",
    "x@y.z",
    "a&agent=b",
    "Ünïcode",
    "x" * 128,
    "a b",
    "A-b",
]


@pytest.mark.parametrize("kind", ["workspace", "namespace", "user"])
async def test_ids_of_every_shape_are_scopes_of_their_own(application: Application, kind: str) -> None:
    client = application.client()
    for id_ in IDS:
        await client.post("/v1/notes", json={"content": "the same text", kind: id_, "metadata": {"of": id_}})
        turn = {kind: id_, "session": "s", "messages": [{"content": "the same text", "ref": id_}]}
        await client.post("/v1/turns", json={**turn, "session": f"s{IDS.index(id_)}"})
    await application.indexed()

    for id_ in IDS:
        found = (await client.post("/v1/search", json={"query": "the same text", kind: id_, "explain": True})).json()
        notes = [hit for hit in found["results"] if hit["tier"] == "notes"]
        messages = [hit for hit in found["results"] if hit["tier"] == "sessions"]
        assert [note["metadata"]["of"] for note in notes] == [id_]
        assert set(notes[0]["explain"]) == {"notes_hybrid", "notes_warm"}
        assert [message["ref"] for message in messages] == [id_]
        assert set(messages[0]["explain"]) == {"session_vectors", "session_words", "session_context"}


@pytest.mark.parametrize("bad", ["x" * 129, "", " ", "a\nb", "a\x7fb"])
async def test_an_id_that_is_too_long_blank_or_unprintable_is_refused(application: Application, bad: str) -> None:
    answer = await application.client().post("/v1/notes", json={"content": "x", "user": bad})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "user"


@pytest.mark.parametrize(("one", "other"), [("foo", "foobar"), ("foobar", "foo")])
async def test_a_workspace_never_shows_another_whose_name_begins_alike(
    application: Application, one: str, other: str
) -> None:
    client = application.client()
    await client.post("/v1/notes", json={"content": "the secret of this place", "workspace": one})
    await client.patch("/v1/profile", json={"user": "u", "workspace": one, "patch": {"secret": True}})
    await application.indexed()

    assert await _found(client, "the secret of this place", workspace=other) == []
    assert (await client.get("/v1/notes", params={"workspace": other})).json()["notes"] == []
    assert (await client.get("/v1/profile", params={"user": "u", "workspace": other})).json()["document"] == {}


@pytest.mark.parametrize(("one", "other"), [("john_doe", "johnXdoe"), ("johnXdoe", "john_doe"), ("%", "john")])
async def test_a_user_never_sees_another_whose_id_would_match_as_a_pattern(
    application: Application, one: str, other: str
) -> None:
    client = application.client()
    await client.post("/v1/notes", json={"content": "my secret", "user": one})
    turn = {"session": "s", "user": one, "messages": [{"content": "my secret"}]}
    await client.post("/v1/turns", json=turn)
    await application.indexed()

    assert await _found(client, "my secret", user=other) == []
    assert len(await _found(client, "my secret", user=one)) == 2


async def test_every_part_of_a_very_long_note_is_found(semantic: Application) -> None:
    client = semantic.client()
    filler = "The tide tables of the harbour are printed every year by the same small press. "
    parts = [f"Marker zq{number:03d}x stands here. " + filler * 12 for number in range(100)]
    text = "".join(part[:1000].ljust(1000, ".") for part in parts)
    assert len(text) == 100_000
    await client.post("/v1/notes", json={"content": text})
    await semantic.indexed()

    for number in range(100):
        query = {"query": f"zq{number:03d}x", "tiers": ["notes"]}
        hits = (await client.post("/v1/search", json=query)).json()["results"]
        assert [f"zq{number:03d}x" in hit["content"] for hit in hits] == [True], number
    stored = await client.get(f"/v1/notes/{hits[0]['id']}")
    assert stored.json()["content"] == text


async def test_every_part_of_a_long_message_is_found_by_words_and_by_meaning(semantic: Application) -> None:
    client = semantic.client()
    filler = "The tide tables of the harbour are printed every year by the same small press. "
    secret = "Our plumber keeps seven tame hedgehogs in the boiler room. "
    turn = {"session": "s", "messages": [{"name": "Ann", "content": filler * 60 + secret + filler * 60}]}
    await client.post("/v1/turns", json=turn)
    await semantic.indexed()

    query = {"query": "hedgehogs kept by the plumber", "tiers": ["sessions"], "explain": True}
    (hit,) = (await client.post("/v1/search", json=query)).json()["results"]

    assert set(hit["explain"]) == {"session_vectors", "session_words", "session_context"}
    assert secret.strip() in hit["content"]
    assert len(hit["content"]) < 2000


async def test_a_batch_has_a_result_for_each_item_and_stores_the_good_ones(application: Application) -> None:
    client = application.client()
    items: list[Any] = ["a", "", "b", {"content": "c", "tags": ["t"]}, {"content": 5}, 7, {"text": "d"}, "a"]

    answer = await client.post("/v1/notes/batch", json={"notes": items})

    statuses = [item["status"] for item in answer.json()["results"]]
    assert statuses == ["created", "invalid", "created", "created", "invalid", "invalid", "invalid", "existed"]
    assert "notes.1" in answer.json()["results"][1]["error"]
    stored = (await client.get("/v1/notes")).json()["notes"]
    assert {note["content"] for note in stored} == {"a", "b", "c"}


async def test_a_tag_with_a_comma_filters_as_one_tag(application: Application) -> None:
    client = application.client()
    await client.post("/v1/notes", json={"content": "spice rack one", "tags": ["salt, pepper"]})
    await client.post("/v1/notes", json={"content": "spice rack two", "tags": ["salt", "pepper"]})
    await application.indexed()

    assert await _found(client, "spice rack", tags=["salt, pepper"]) == ["spice rack one"]
    assert await _found(client, "spice rack", tags=["salt"]) == ["spice rack two"]
    listed = (await client.get("/v1/notes", params={"tag": "salt, pepper"})).json()["notes"]
    assert [note["content"] for note in listed] == ["spice rack one"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/notes/not-a-uuid", "id"),
        ("/v1/notes?limit=-1", "limit"),
        ("/v1/notes?limit=0", "limit"),
        ("/v1/notes?limit=1000000000", "limit"),
        ("/v1/notes?offset=-5", "offset"),
        ("/v1/notes?since=yesterday", "since"),
        ("/v1/notes?category=gossip", "category"),
    ],
)
async def test_a_wrong_parameter_is_refused_by_name(application: Application, path: str, field: str) -> None:
    answer = await application.client().get(path)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


@pytest.mark.parametrize("limit", [-1, 0, 10**9, 2.5, "10", True, None])
async def test_a_wrong_limit_of_a_search_is_refused_by_name(application: Application, limit: object) -> None:
    answer = await application.client().post("/v1/search", json={"query": "x", "limit": limit})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "limit"


async def test_a_question_about_the_distant_past_is_answered(application: Application) -> None:
    answer = await application.client().post("/v1/search", json={"query": "what happened 100000 years ago"})

    assert answer.status_code == 200


BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "/v1/turns": ("POST", {"session": "s", "messages": [{"content": "x"}]}),
    "/v1/notes": ("POST", {"content": "x"}),
    "/v1/notes/batch": ("POST", {"notes": ["x"]}),
    "/v1/search": ("POST", {"query": "x"}),
    "/v1/context": ("POST", {"query": "x"}),
    "/v1/profile": ("PATCH", {"patch": {}}),
}


@pytest.mark.parametrize(("path", "value"), list(itertools.product(BODIES, [42, True, None, {}, []])))
async def test_an_id_that_is_no_text_is_refused_on_every_route(
    application: Application, path: str, value: object
) -> None:
    method, body = BODIES[path]

    answer = await application.client().request(method, path, json={**body, "user": value})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "user"


@pytest.mark.parametrize("body", ["{", "[]", "null", '"text"', json.dumps({"content": "x", "user_id": "ann"})])
async def test_a_malformed_body_is_a_problem_and_not_a_failure(application: Application, body: str) -> None:
    answer = await application.client().post("/v1/notes", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


async def _found(client: httpx.AsyncClient, query: str, **fields: Any) -> list[str]:
    answer = await client.post("/v1/search", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    return [hit["content"] for hit in answer.json()["results"]]
