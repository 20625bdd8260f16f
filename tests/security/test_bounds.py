"""Whatever is sent has a greatest length, which is checked before any work on it, in bounded time and memory.

The cases are made from the OpenAPI document: a field, a parameter or a route without a bound fails the tests.
"""

import json
import pickle
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

import httpx
import pytest

from deployments.bodies import MAX_BODY_BYTES
from lamina.core.memories import MAX_METADATA_VALUES
from lamina.core.queries import Hit, Query, Ranking
from lamina.core.scope import Scope
from lamina.core.tiers import TIERS, Source
from lamina.search.tier_sources import TierSources
from lamina.text.words import question_words
from tests.support.application import Application
from tests.unit.builders import Rows, candidate, memory

ID = "00000000-0000-7000-8000-000000000000"
# Of a text with such a format every implementation knows the greatest length.
SHORT_FORMATS = {"uuid", "date-time"}
ANSWER_BYTES = 12_000
SECONDS = 3.0
MIB = 1024 * 1024


class Call(NamedTuple):
    """A documented call."""

    method: str
    path: str
    documented: dict[str, Any]

    @property
    def url(self) -> str:
        return self.path.replace("{session}", "s").replace("{id}", ID)

    @property
    def media_type(self) -> str | None:
        return next(iter(self.documented.get("requestBody", {}).get("content", ())), None)

    @property
    def max_bytes(self) -> int:
        return int(self.documented.get("x-max-body-bytes", MAX_BODY_BYTES))


class Place(NamedTuple):
    """A part of a request's body: the keys that lead to it, and its schema."""

    path: tuple[str | int, ...]
    schema: dict[str, Any]

    def __str__(self) -> str:
        return ".".join(map(str, self.path))


def calls_of(application: Application) -> Iterator[Call]:
    for path, calls in application.api.openapi()["paths"].items():
        for method, documented in calls.items():
            yield Call(method.upper(), path, documented)


def resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without references and without null."""
    if "$ref" in schema:
        return resolved(document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]], document)
    for option in schema.get("anyOf") or ():
        if option.get("type") != "null":
            return {**schema, **resolved(option, document), "anyOf": None}
    return schema


def places(schema: dict[str, Any], document: dict[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[Place]:
    found = resolved(schema, document)
    yield Place(path, found)
    for name, part in found.get("properties", {}).items():
        yield from places(part, document, (*path, name))
    if "items" in found:
        yield from places(found["items"], document, (*path, 0))


def body_schema(call: Call) -> dict[str, Any]:
    assert call.media_type is not None
    schema: dict[str, Any] = call.documented["requestBody"]["content"][call.media_type]["schema"]
    return schema


def is_bounded(schema: dict[str, Any]) -> bool:
    match schema.get("type"):
        case "string":
            # A file ("contentMediaType") is bounded by its route's limit of a body.
            return bool({"maxLength", "enum", "const", "contentMediaType"} & schema.keys()) or (
                schema.get("format") in SHORT_FORMATS
            )
        case "array":
            return "maxItems" in schema
    return True


def with_value(body: Any, path: tuple[str | int, ...], value: Any, document: dict[str, Any], schema: Any) -> Any:
    """Return a minimal body with a value at a place, and what is required around it."""
    found = resolved(schema, document)
    made = minimal(found, document) if body is None else body
    if not path:
        return value
    key, *rest = path
    if isinstance(key, int):
        return [with_value(None, tuple(rest), value, document, found["items"])]
    return {**made, key: with_value(None, tuple(rest), value, document, found["properties"][key])}


def minimal(schema: dict[str, Any], document: dict[str, Any]) -> Any:
    """Return the smallest value of a schema."""
    found = resolved(schema, document)
    if "enum" in found:
        return found["enum"][0]
    match found.get("type"):
        case "object":
            return {name: minimal(found["properties"][name], document) for name in found.get("required", ())}
        case "array":
            return [minimal(found["items"], document)] * found.get("minItems", 0)
        case "integer" | "number" | "boolean":
            return int(found.get("minimum", 1)) if found["type"] != "boolean" else True
        case _:
            return ID if found.get("format") == "uuid" else "x"


def items_of(schema: dict[str, Any], document: dict[str, Any], count: int) -> list[Any]:
    return [minimal(schema["items"], document)] * count


@pytest.fixture
def admin(application: Application) -> httpx.AsyncClient:
    return application.admin()


async def timed(client: httpx.AsyncClient, call: Call, **options: Any) -> httpx.Response:
    """Return an answer that took bounded time and is of bounded size, if it is an error."""
    begin = time.process_time()
    answer = await client.request(call.method, call.url, **options)
    assert time.process_time() - begin < SECONDS, call
    assert answer.is_success or len(answer.content) < ANSWER_BYTES, call
    return answer


def test_every_text_and_list_of_every_request_has_a_greatest_length(application: Application) -> None:
    document = application.api.openapi()
    unbounded = [
        f"{call.method} {call.path}: {place}"
        for call in calls_of(application)
        if call.media_type
        for place in places(body_schema(call), document)
        if not is_bounded(place.schema)
    ] + [
        f"{call.method} {call.path}: {item['in']} {item['name']}"
        for call in calls_of(application)
        for item in call.documented.get("parameters", ())
        for place in places(item["schema"], document)
        if not is_bounded(place.schema)
    ]

    assert unbounded == []


async def test_a_list_or_text_of_its_limit_is_read_and_one_more_is_refused(
    application: Application, admin: httpx.AsyncClient
) -> None:
    document, tried = application.api.openapi(), 0
    for call in calls_of(application):
        if call.media_type != "application/json":
            continue
        schema = body_schema(call)
        for place in places(schema, document):
            if (
                place.schema.get("type") not in {"string", "array"}
                or not {"maxLength", "maxItems"} & place.schema.keys()
            ):
                continue
            most = place.schema.get("maxLength", place.schema.get("maxItems"))
            if most >= 8 * MIB:  # Bounded by the route's limit alone, which has its own test.
                continue
            is_text = place.schema["type"] == "string"
            for length in (most, most + 1):
                value = "x" * length if is_text else items_of(place.schema, document, length)
                body = with_value(None, place.path, value, document, schema)
                answer = await timed(admin, call, json=body)
                tried += 1
                if length == most:
                    assert answer.status_code < 500, (call, place, answer.text)
                    # The limit itself is accepted, or refused for another reason.
                    assert f"at most {most} " not in answer.text, (call, place, answer.text)
                else:
                    assert answer.status_code in {413, 422}, (call, place, answer.text)
                    assert str(most) in answer.json()["detail"], (call, place, answer.text)
                    assert answer.json()["errors"][0]["field"] == str(place), (call, place, answer.text)
    assert tried > 150


async def test_a_parameter_of_more_than_its_limit_is_refused(
    application: Application, admin: httpx.AsyncClient
) -> None:
    document, tried = application.api.openapi(), 0
    for call in calls_of(application):
        for item in call.documented.get("parameters", ()):
            schema = resolved(item["schema"], document)
            if item["in"] == "path" and schema.get("format") == "uuid":
                continue
            most = schema.get("maxItems", schema.get("maxLength"))
            if most is None:
                continue
            value: Any = ["x"] * (most + 1) if schema["type"] == "array" else "x" * (most + 1)
            needed = {
                part["name"]: "x"
                for part in call.documented["parameters"]
                if part["in"] == "query" and part.get("required")
            }
            options: dict[str, Any] = {"params": needed}
            if item["in"] == "query":
                options["params"] = {**needed, item["name"]: value}
            elif item["in"] == "header":
                options["headers"] = {item["name"]: value}
            if item["in"] != "query" and call.media_type == "application/json":
                options["json"] = minimal(body_schema(call), document)
            in_path = f"{{{item['name']}}}"
            target = call._replace(path=call.path.replace(in_path, value)) if item["in"] == "path" else call
            answer = await timed(admin, target, **options)

            assert answer.status_code == 422, (call, item["name"], answer.text)
            assert answer.json()["errors"][0]["field"].split(".")[0] == item["name"], (call, answer.text)
            tried += 1
    assert tried > 50


async def test_a_body_of_more_than_its_route_needs_is_refused_and_the_route_is_named(
    application: Application, admin: httpx.AsyncClient
) -> None:
    tried = 0
    for call in calls_of(application):
        headers = {"Content-Type": "application/json", "Content-Length": str(call.max_bytes + 1)}
        refused = await timed(admin, call, content=b"{}", headers=headers)
        headers["Content-Length"] = str(call.max_bytes)
        read = await timed(admin, call, content=b"{}", headers=headers)

        assert refused.status_code == 413, call
        if call.media_type is not None:  # No body at all is read of the others.
            assert f"{call.max_bytes} bytes, the most that {call.method} " in refused.json()["detail"]
            assert read.status_code != 413, call
        assert call.max_bytes <= 32 * MIB
        assert call.max_bytes == MAX_BODY_BYTES or call.media_type is not None, call
        tried += 1
    assert tried > 40


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/turns", {"session": "s", "messages": [{"role": 7, "wrong": 1}] * 256}),
        ("/v1/turns", {"session": "s", "messages": [{"x" * 10_000: 1, "content": 3}] * 256}),
        ("/v1/notes", {f"wrong{number}": number for number in range(50_000)}),
        ("/v1/notes", {"content": "x", "category": "y" * 1_000_000}),
        ("/v1/notes", {"content": "x", "source": "job:" + "y" * 1_000}),
        ("/v1/notes", {"content": "x", "tags": [["z" * 1000] * 60] * 64}),
        ("/v1/notes", {"content": "x", "derived_from": ["z" * 1000] * 1000}),
        ("/v1/notes", {"content": "x", "metadata": {"k" * 60_000: {"\x00": 1}}}),
        ("/v1/graph/edges", {"edges": [{"subject": 1, "type": 2, "object": 3, "x": 4}] * 500}),
        ("/v1/search", {"query": "x", "filters": {"f" * 100_000: 1}}),
        ("/v1/search", {"query": "x", "filters": {"category": {"in": ["c" * 10_000] * 100}}}),
        ("/v1/search", {"query": "x", "tiers": ["t" * 1_000] * 64}),
        ("/v1/search", {"query": "x", "since": "2026-01-01" + "0" * 100_000}),
        ("/v1/jobs", {"job": "j" * 100_000}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_errors_are_at_most_twenty_each_once_and_repeat_nothing_long(
    admin: httpx.AsyncClient, path: str, body: dict[str, Any]
) -> None:
    answer = await admin.post(path, json=body)

    problem = answer.json()
    assert answer.status_code == 422, answer.text[:2000]
    assert len(answer.content) < ANSWER_BYTES
    assert len(problem["errors"]) <= 20
    assert len({(error["field"], error["reason"]) for error in problem["errors"]}) == len(problem["errors"])
    assert len(problem["errors"]) < 20 or " more" in problem["detail"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/turns", b'{"session": "s", "messages": [' + b"1," * 1_000_000 + b"1]}"),
        ("/v1/turns", b'{"session": "s", "messages": [' + b"{}," * 400_000 + b"1]}"),
        ("/v1/notes/batch", b'{"notes": [' + b'{"a":1},' * 2_000_000 + b"1]}"),
        ("/v1/notes/batch", b'{"notes": [' + b'"",' * 9_000_000 + b'""]}'),
        ("/v1/documents/batch", b'{"documents": ' + b"[" * 1_000_000 + b"}"),
        ("/v1/notes", b'{"content": "x", "metadata": ' + b'{"a":' * 200_000 + b"}"),
    ],
    ids=["numbers", "objects", "objects of a key", "texts", "lists in lists", "objects in objects"],
)
async def test_a_million_wrong_items_cost_no_more_than_their_body(
    admin: httpx.AsyncClient, path: str, body: bytes
) -> None:
    tracemalloc.start()
    begin = time.process_time()

    answer = await admin.post(path, content=body, headers={"Content-Type": "application/json"})

    seconds, (_, peak) = time.process_time() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.status_code == 422, answer.text[:2000]
    assert len(answer.content) < ANSWER_BYTES
    assert seconds < 12  # Three times as long as without the tracing of memory.
    assert peak < 6 * len(body) + 150_000_000


async def test_a_batch_tells_of_each_item_in_few_words(admin: httpx.AsyncClient) -> None:
    items = [{"x" * 1_000: 1, "y" * 1_000: 2, **{f"z{n}": n for n in range(12)}} for _ in range(1000)]
    for path, field in (("/v1/notes/batch", "notes"), ("/v1/procedures/batch", "procedures")):
        answer = await admin.post(path, json={field: items})

        reasons = [result["error"] for result in answer.json()["results"]]
        assert {result["status"] for result in answer.json()["results"]} == {"invalid"}
        assert len(reasons) == 1000
        assert max(map(len, reasons)) < 1_200


MARKS = {
    "Latin": "a" + "\u0301\u0327" * 60_000,
    "Hebrew": "\u05d0" + "\u05bc\u05b4" * 60_000,
    "voicing": "\uff76" + "\uff9e" * 120_000,
    "many letters": ("a" + "\u0301\u0327" * 16) * 3_600,
}


@pytest.mark.parametrize("script", MARKS)
async def test_combining_marks_hold_up_nobody_and_stay_as_they_were_sent(application: Application, script: str) -> None:
    client, text = application.client(), f"The tower leans. {MARKS[script]} It was built in 1173."
    begin = time.process_time()

    asked = await client.post("/v1/search", json={"query": text[:100_000]})
    too_long = await client.post("/v1/search", json={"query": text})
    note = await client.post("/v1/notes", json={"content": text})
    again = await client.post("/v1/notes", json={"content": text})
    turn = await client.post("/v1/turns", json={"session": "s", "messages": [{"content": text}]})
    refused = [
        await client.post("/v1/notes", json={"content": "x", field: MARKS[script]}) for field in ("user", "source")
    ]
    seconds = time.process_time() - begin
    await application.indexed()
    found = (await client.post("/v1/search", json={"query": "when was the tower built?"})).json()["results"]

    assert seconds < 20
    assert (asked.status_code, too_long.status_code) == (200, 422), (asked.text[:500], too_long.text[:500])
    assert (note.status_code, again.status_code, turn.status_code) == (201, 200, 200), note.text[:500]
    assert [answer.status_code for answer in refused] == [422, 422]
    assert (await client.get(f"/v1/notes/{note.json()['id']}")).json()["content"] == text
    assert (await client.get("/v1/sessions/s/messages")).json()["messages"][0]["content"] == text
    assert {"notes", "sessions"} <= {hit["tier"] for hit in found}


METADATA = {
    "bytes": ({"k": "x" * 65_525}, {"k": "x" * 65_531}, "65536"),
    "bytes of another script": ({"k": "猫" * 21_000}, {"k": "猫" * 22_000}, "65536"),
    "values": ({"k": [1] * 4_900}, {"k": [1] * 5_100}, str(MAX_METADATA_VALUES)),
    "keys": (
        {f"{number}": 1 for number in range(2_400)},
        {f"{number}": 1 for number in range(2_600)},
        str(MAX_METADATA_VALUES),
    ),
}
WRITES: dict[str, tuple[str, str, dict[str, Any], tuple[str | int, ...]]] = {
    "a note": ("POST", "/v1/notes", {"content": "x", "metadata": None}, ("metadata",)),
    "a batch of notes": ("POST", "/v1/notes/batch", {"notes": [{"content": "y"}]}, ("notes", 0, "metadata")),
    "a turn": ("POST", "/v1/turns", {"session": "s", "messages": [{"content": "x"}]}, ("messages", 0, "metadata")),
    "a procedure": ("POST", "/v1/procedures", {"trigger": "x", "action": "y"}, ("metadata",)),
    "a batch of procedures": (
        "POST",
        "/v1/procedures/batch",
        {"procedures": [{"trigger": "y", "action": "y"}]},
        ("procedures", 0, "metadata"),
    ),
    "a document": ("POST", "/v1/documents", {"content": "x"}, ("metadata",)),
    "a batch of documents": (
        "POST",
        "/v1/documents/batch",
        {"documents": [{"content": "y"}]},
        ("documents", 0, "metadata"),
    ),
    "a profile": ("PATCH", "/v1/profile", {"user": "ann"}, ("patch",)),
}


@pytest.mark.parametrize("limit", METADATA)
@pytest.mark.parametrize("write", WRITES)
async def test_metadata_of_64_kib_are_stored_and_larger_ones_refused(
    application: Application, write: str, limit: str
) -> None:
    (method, path, body, field), (fits, too_large, most) = WRITES[write], METADATA[limit]
    client = application.client()

    def sent(metadata: dict[str, Any]) -> dict[str, Any]:
        copy = json.loads(json.dumps(body))
        target = copy
        for key in field[:-1]:
            target = target[key]
        target[field[-1]] = metadata
        return copy

    refused = await client.request(method, path, json=sent(too_large))
    stored = await client.request(method, path, json=sent(fits))

    text = refused.text if "results" in refused.text else refused.json()["detail"]
    assert refused.status_code == (200 if "results" in refused.text else 422)
    assert f"at most {most} are accepted" in text
    assert "write.max_metadata_bytes" in text or "values and keys" in text
    assert ".".join(map(str, field)) in text
    assert stored.is_success, stored.text[:500]
    assert "at most" not in stored.text


async def test_a_memory_with_large_metadata_takes_no_source_from_a_search(application: Application) -> None:
    client, metadata = application.client(), {"k": "x" * 60_000}
    await client.post("/v1/notes", json={"content": "The heliotrope boat leaks.", "metadata": metadata})
    await client.post(
        "/v1/turns",
        json={"session": "s", "messages": [{"content": "The heliotrope boat was towed.", "metadata": metadata}]},
    )
    await client.post(
        "/v1/procedures", json={"trigger": "the heliotrope boat leaks", "action": "pump it", "metadata": metadata}
    )
    await client.post("/v1/documents", json={"content": "# The heliotrope boat\n\nIt leaks.", "metadata": metadata})
    await application.indexed()
    # As earlier releases stored them.
    old = {"k": "y" * 4_500_000}
    async with application.pool.connection() as connection:
        await connection.execute(
            "UPDATE notes SET metadata = %s::json WHERE tenant = %s", (json.dumps(old), application.tenant)
        )
        await connection.commit()

    found = (await client.post("/v1/search", json={"query": "the heliotrope boat", "cache": False})).json()
    text = "the heliotrope boat"
    query = Query(text, tuple(question_words(text)), Scope(application.tenant), limit=10)
    replies = [pickle.dumps(await parts.searcher.search(query)) for parts in application.tiers.values()]

    of_tier = {hit["tier"]: hit["metadata"] for hit in found["results"]}
    assert set(found["degraded"]) <= {"graph"}
    assert of_tier["notes"] == old
    assert of_tier["sessions"] == of_tier["procedures"] == of_tier["documents"] == metadata
    assert {name for name in TIERS if name != "graph"} == set(of_tier)
    assert max(map(len, replies)) < 100_000


class OneHit:
    """A searcher that finds one note."""

    source = Source.NOTES_WARM

    async def search(self, query: Query) -> Ranking:
        return (Hit(candidate(1), 0.5, {"cosine": 0.5}),)


async def test_a_router_of_an_earlier_release_gets_whole_memories_and_one_of_this_release_reads_them_itself() -> None:
    query = Query("a boat", ("boat",), Scope("acme"), limit=10, depth=2)
    state: list[object] = list(query.__getstate__())  # type: ignore[call-overload]
    of_earlier = object.__new__(Query)
    known_then = [field.name for field in fields(Query)].index("late_metadata")
    of_earlier.__setstate__([*state[:known_then], True])  # With late metadata, of which this release knows nothing.
    of_later = object.__new__(Query)
    of_later.__setstate__([*state, "a field to come"])
    sources = TierSources([OneHit()], deadline_s=5, rows=Rows())

    replies = [await sources.search(asked) for asked in (of_earlier, pickle.loads(pickle.dumps(query)))]  # noqa: S301
    found = [outcome[0].memory for reply in replies for outcome in reply.values() if outcome]  # type: ignore[index]

    assert replace(of_earlier, late_metadata=False) == replace(query, late_rows=False)
    assert of_later == query == pickle.loads(pickle.dumps(query))  # noqa: S301
    assert found == [memory(1, content="row 1"), candidate(1)]


async def test_a_note_that_is_gone_is_in_no_reply_to_a_router_of_an_earlier_release() -> None:
    asked = Query("a boat", ("boat",), Scope("acme"), limit=10, late_rows=False)

    reply = await TierSources([OneHit()], deadline_s=5, rows=Rows(1)).search(asked)

    assert reply == {Source.NOTES_WARM: ()}
