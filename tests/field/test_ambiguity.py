"""Field case 70: what can be read in two ways is refused, and nothing is done."""

import json
from typing import Any

import pytest

from tests.support.application import Application

JSON = {"Content-Type": "application/json"}


async def test_a_user_named_twice_is_not_erased(application: Application) -> None:
    client = application.admin()
    for user in ("ann", "bob"):
        await client.post("/v1/notes", json={"content": f"{user} has a boat", "user": user})

    refused = [
        await client.delete("/v1/users?user=ann&user=bob"),
        await client.delete("/v1/users?user=ann&user=ann"),
        await client.request("DELETE", "/v1/users?user=ann", json={"user": "bob"}),
        await client.request("DELETE", "/v1/users?user=ann&users=bob"),
    ]
    left = [(await client.get("/v1/notes", params={"user": user})).json()["notes"] for user in ("ann", "bob")]

    assert [answer.status_code for answer in refused] == [422] * 4
    assert [answer.json()["errors"][0]["field"] for answer in refused] == ["user", "user", "body", "users"]
    assert [len(notes) for notes in left] == [1, 1]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/notes?workspace=a&workspace=b"),
        ("GET", "/v1/notes?limit=1&limit=2"),
        ("GET", "/v1/profile?user=a&user=b"),
        ("GET", "/v1/sessions/s/messages?offset=0&offset=1"),
        ("GET", "/v1/graph/neighbours?name=a&name=b"),
        ("GET", "/v1/documents?key=a&key=b"),
        ("DELETE", "/v1/memory-profile?agent=a&agent=b"),
        ("DELETE", "/cache?workspace=a&workspace=b"),
        ("GET", "/cache/stats?workspace=a&workspace=b"),
        ("GET", "/v1/jobs?limit=1&limit=2"),
    ],
)
async def test_a_parameter_that_has_one_value_is_sent_once(application: Application, method: str, path: str) -> None:
    client = application.admin()

    refused = await client.request(method, path)

    assert (refused.status_code, "is sent more than once" in refused.json()["detail"]) == (422, True)


async def test_a_parameter_that_is_a_list_may_be_repeated(application: Application) -> None:
    client = application.client()
    await client.post("/v1/notes", json={"content": "a green boat", "tags": ["boat", "green"]})

    found = (await client.get("/v1/notes?tag=boat&tag=green")).json()["notes"]

    assert [note["content"] for note in found] == ["a green boat"]


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [
        ("POST", "/v1/notes", '{"content": "one", "content": "two"}'),
        ("POST", "/v1/notes", '{"content": "one", "user": "ann", "user": "ann"}'),
        ("POST", "/v1/notes", '{"content": "one", "metadata": {"a": {"b": [{"c": 1, "c": 1}]}}}'),
        ("POST", "/v1/notes", '{"content": "one", "us\\u0065r": "ann", "user": "bob"}'),
        ("POST", "/v1/notes/batch", '{"notes": [{"content": "one"}, {"content": "one", "content": "two"}]}'),
        ("POST", "/v1/search", '{"query": "one", "filters": {"user": "ann", "user": "bob"}}'),
        ("POST", "/v1/context", '{"query": "one", "query": "two"}'),
        ("PATCH", "/v1/profile", '{"user": "ann", "patch": {"a": 1, "a": 2}}'),
        ("POST", "/v1/turns", '{"session": "s", "messages": [{"content": "one", "role": "user", "role": "tool"}]}'),
        ("POST", "/v1/documents", '{"content": "one", "key": "a", "key": "b"}'),
        ("POST", "/v1/procedures", '{"trigger": "one", "action": "two", "action": "three"}'),
        ("POST", "/v1/graph/edges", '{"edges": [{"subject": "a", "type": "knows", "object": "b", "object": "c"}]}'),
        ("PUT", "/v1/memory-profile", '{"agent": "a", "agent": "b"}'),
        ("POST", "/v1/responses", '{"agent": "a", "query": "q", "response": "r", "response": "s"}'),
    ],
)
async def test_a_key_twice_in_an_object_is_refused_at_any_depth(
    application: Application, method: str, path: str, text: str
) -> None:
    refused = await application.client().request(method, path, content=text, headers=JSON)

    assert (refused.status_code, "twice in one object" in refused.json()["detail"]) == (422, True)


async def test_two_keys_that_differ_only_in_composition_are_two(application: Application) -> None:
    body = '{"content": "one", "metadata": {"caf\\u00e9": 1, "cafe\\u0301": 2}}'

    stored = await application.client().post("/v1/notes", content=body, headers=JSON)

    assert stored.status_code == 201


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/v1/notes", '{"content": "one", "importance": @}'),
        ("/v1/notes", '{"content": "one", "metadata": {"deep": [@]}}'),
        ("/v1/search", '{"query": "one", "min_score": @}'),
        ("/v1/search", '{"query": "one", "filters": {"confidence": {"gt": @}}}'),
        ("/v1/responses/lookup", '{"agent": "a", "query": "q", "variant": @}'),
    ],
)
async def test_what_only_python_takes_for_a_number_is_refused(
    application: Application, path: str, text: str, number: str
) -> None:
    refused = await application.client().post(path, content=text.replace("@", number), headers=JSON)

    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b'{"content": "one"}', "text/plain"),
        (b'{"content": "one"}', "application/xml"),
        (b'{"content": "one"}', "application/json; charset=latin-1"),
        ('{"content": "caf\u00e9"}'.encode("latin-1"), "application/json"),
        (b"content=one", "application/x-www-form-urlencoded"),
        (b'{"content": "one"} {"content": "two"}', "application/json"),
        (b'{"content": "one",}', "application/json"),
        (b"{'content': 'one'}", "application/json"),
        (b'{"content": "one" /* a note */}', "application/json"),
        (b'["one"]', "application/json"),
        (b'"one"', "application/json"),
        (b"null", "application/json"),
        (b"", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"content": "one", "metadata": {"n": ' + b"9" * 5000 + b"}}", "application/json"),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(
    application: Application, content: bytes, content_type: str
) -> None:
    client = application.client()

    refused = await client.post("/v1/notes", content=content, headers={"Content-Type": content_type})

    assert (refused.status_code, refused.headers["Content-Type"]) == (422, "application/problem+json")
    assert (await client.get("/v1/notes")).json()["notes"] == []


@pytest.mark.parametrize("name", ["Idempotency-Key", "Content-Type", "Authorization"])
async def test_a_header_with_one_value_is_sent_once(application: Application, name: str) -> None:
    client = application.client()
    own = {"Content-Type": "application/json", "Authorization": f"Bearer {application.key}", "Idempotency-Key": "k"}
    headers = [*own.items(), (name, "another")]

    refused = await client.post("/v1/notes", content=b'{"content": "one"}', headers=headers)

    assert refused.status_code == 422
    assert refused.json()["errors"] == [{"field": name, "reason": "is sent more than once; send it once"}]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_body_that_no_call_reads_is_refused(application: Application, method: str) -> None:
    client = application.client()
    path = f"/v1/notes/{(await client.post('/v1/notes', json={'content': 'one'})).json()['id']}"

    refused = await client.request(method, path, json={"workspace": "other"})
    empty = await client.request("GET", path, json={})

    assert (refused.status_code, empty.status_code) == (422, 200)


def form(**fields: Any) -> dict[str, Any]:
    """Return a form with a file."""
    return {"files": [("file", ("a.txt", b"the log of a boat")), *fields.pop("more", ())], "data": fields}


@pytest.mark.parametrize(
    "sent",
    [
        form(key=["a", "b"]),
        form(workspace=["a", "a"]),
        form(more=[("file", ("b.txt", b"the other log"))]),
        form(metadata='{"a": 1, "a": 2}'),
        form(metadata='{"a": NaN}'),
        form(metadata="[1]"),
    ],
    ids=str,
)
async def test_a_form_says_everything_once(application: Application, sent: dict[str, Any]) -> None:
    refused = await application.client().post("/v1/documents/upload", **sent)

    assert refused.status_code == 422


async def test_tags_of_a_form_may_be_repeated(application: Application) -> None:
    client = application.client()
    sent = form(tags=["boat", "log"], metadata=json.dumps({"a": 1}))

    id_ = (await client.post("/v1/documents/upload", **sent)).json()["id"]

    assert (await client.get(f"/v1/documents/{id_}")).json()["tags"] == ["boat", "log"]


@pytest.mark.parametrize(
    "filters",
    [
        {"categroy": "note"},
        {"and": [{"user": "ann"}, {"usr": "bob"}]},
        {"not": {"metadata.beta": True}},
        {"or": [{"tenant": "acme"}]},
        {"user": {"is": "ann"}},
        {"confidence": True},
        {"confidence": {"gt": False}},
        {"occurred_at": 1},
        {"importance": "0.5"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/context", "/v1/procedures/match"])
async def test_a_filter_that_names_an_unknown_field_or_a_value_of_another_type_is_refused(
    application: Application, path: str, filters: dict[str, Any]
) -> None:
    refused = await application.client().post(path, json={"query": "a boat", "filters": filters})

    assert refused.status_code == 422


ROUTES = [
    ("/v1/notes", {"content": "one"}),
    ("/v1/notes/batch", {"notes": ["one"]}),
    ("/v1/notes/bulk", {"ids": [], "changes": {}}),
    ("/v1/turns", {"session": "s", "messages": [{"content": "one"}]}),
    ("/v1/documents/batch", {"documents": [{"content": "one"}]}),
    ("/v1/search/batch", {"searches": ["one"]}),
    ("/v1/responses", {"agent": "a", "query": "q", "response": "r"}),
]


@pytest.mark.parametrize(("path", "body"), ROUTES, ids=[path for path, _ in ROUTES])
async def test_a_body_of_another_type_or_charset_is_told_as_such(
    application: Application, path: str, body: dict[str, Any]
) -> None:
    client, text = application.client(), json.dumps(body).encode()
    broken = text.replace(b"one", b"on\xff").replace(b"{}", b'{"tags": ["\xff"]}').replace(b'"r"', b'"\xff"')
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    answers = [
        await client.post(path, content=broken, headers=JSON),
        await client.post(path, data={"content": "one"}),
        await client.post(path, content=text, headers=form),
        await client.post(path, content=text),
        await client.post(path, content=text, headers={"Content-Type": "text/plain; charset=utf-8"}),
        await client.post(path, files={"content": b"one"}),
        await client.post(path, content=b"[1]", headers=JSON),
    ]

    assert [answer.status_code for answer in answers] == [422] * len(answers)
    errors = [answer.json()["errors"] for answer in answers]
    assert [one[0]["field"] for one in errors] == ["body", *["Content-Type"] * 5, "body"]
    at = broken.index(b"\xff")
    assert errors[0][0]["reason"] == f"is no text in utf-8: byte 0xff at {at}; send JSON in UTF-8"
    assert all("send the body as JSON, with Content-Type: application/json" in one[0]["reason"] for one in errors[1:6])
    assert "'application/x-www-form-urlencoded'" in errors[1][0]["reason"]
    assert "is missing" in errors[3][0]["reason"]
    assert errors[6][0]["reason"] == "is no object; send a JSON object with its fields"
    assert [answer.json()["fields"] for answer in answers] == [one[0] for one in errors]


@pytest.mark.parametrize(
    "kind", ["application/json", "application/JSON; charset=UTF-8", "application/merge-patch+json"]
)
async def test_json_of_every_name_is_read(application: Application, kind: str) -> None:
    stored = await application.client().post("/v1/notes", content=b'{"content": "one"}', headers={"Content-Type": kind})

    assert stored.is_success


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/notes", {}),
        ("POST", "/v1/notes", {"content": " "}),
        ("POST", "/v1/notes", {"content": "one", "worksapce": "a"}),
        ("GET", "/v1/notes?limit=x", None),
        ("GET", "/v1/notes/x", None),
        ("POST", "/v1/notes/batch", {"notes": 1}),
    ],
)
async def test_every_refusal_of_a_request_has_the_first_field_for_programs(
    application: Application, method: str, path: str, body: Any
) -> None:
    answer = (await application.client().request(method, path, **({} if body is None else {"json": body}))).json()

    assert (answer["status"], answer["fields"]) == (422, answer["errors"][0])
    assert answer["detail"].startswith(f"{answer['fields']['field']}: {answer['fields']['reason']}")
