"""The OpenAPI document against that of the last release: nothing breaks programs that were written against it."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from deployments.api import document
from tests.support.openapi import RELEASED
from tests.support.openapi_changes import breaking_changes

ON_PURPOSE = RELEASED.with_name("breaking_changes.txt")

Change = Callable[[Any], Any]
NOTE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["content"],
    "properties": {
        "content": {"type": "string", "maxLength": 100, "minLength": 1},
        "kind": {"$ref": "#/components/schemas/Kind"},
        "weight": {"type": "number", "minimum": 0, "maximum": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 64},
        "parent": {"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]},
        "metadata": {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        "replies": {"type": "array", "items": {"$ref": "#/components/schemas/NoteIn"}},
    },
}
ANSWER = copy.deepcopy(NOTE) | {"required": ["content", "kind"]}
ANSWER["properties"]["replies"]["items"]["$ref"] = "#/components/schemas/Out"
LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000}
OLD: dict[str, Any] = {
    "paths": {
        "/notes": {
            "get": {
                "parameters": [{"in": "query", "name": "limit", "schema": LIMIT}],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Out"}}}}
                },
            },
            "post": {
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NoteIn"}}},
                },
                "responses": {"201": {}, "422": {}},
            },
            "delete": {"responses": {"204": {}}},
        }
    },
    "components": {
        "schemas": {
            "Kind": {"type": "string", "enum": ["note", "fact"]},
            "NoteIn": NOTE,
            "Out": ANSWER,
        }
    },
}


def note(document: Any) -> Any:
    return document["components"]["schemas"]["NoteIn"]


def answer(document: Any) -> Any:
    return document["components"]["schemas"]["Out"]


def call(document: Any, verb: str) -> Any:
    return document["paths"]["/notes"][verb]


def query(document: Any) -> Any:
    return call(document, "get")["parameters"]


def changed(*changes: Change) -> list[str]:
    new = copy.deepcopy(OLD)
    for change in changes:
        change(new)
    return list(breaking_changes(OLD, new))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda new: new["paths"].clear(), "DELETE /notes: is gone"),
        (lambda new: new["paths"]["/notes"].pop("delete"), "DELETE /notes: is gone"),
        (lambda new: query(new).clear(), "GET /notes: query limit: is gone"),
        (lambda new: query(new)[0].update(required=True), "GET /notes: query limit: is required now"),
        (
            lambda new: query(new).append({"in": "query", "name": "user", "required": True, "schema": {}}),
            "GET /notes: query user: is required now",
        ),
        (lambda new: query(new)[0]["schema"].update(maximum=100), "GET /notes: query limit: maximum is 100 now"),
        (lambda new: query(new)[0]["schema"].update(minimum=2), "GET /notes: query limit: minimum is 2 now"),
        (
            lambda new: query(new)[0].update(schema={"type": "string"}),
            "GET /notes: query limit: integer is accepted no longer",
        ),
        (lambda new: call(new, "post").pop("requestBody"), "POST /notes: body: application/json is accepted no longer"),
        (
            lambda new: call(new, "delete").update(requestBody={"required": True, "content": {}}),
            "DELETE /notes: body: is required now",
        ),
        (lambda new: note(new)["properties"].pop("tags"), "POST /notes: body.tags: is gone"),
        (lambda new: note(new)["required"].append("kind"), "POST /notes: body.kind: is required now"),
        (
            lambda new: note(new)["properties"]["content"].update(maxLength=10),
            "POST /notes: body.content: maxLength is 10 now",
        ),
        (
            lambda new: note(new)["properties"]["content"].update(pattern="^a"),
            "POST /notes: body.content: pattern is ^a now",
        ),
        (
            lambda new: note(new)["properties"]["content"].update(format="uuid"),
            "POST /notes: body.content: has to be a uuid now",
        ),
        (
            lambda new: note(new)["properties"]["weight"].update(type="integer"),
            "POST /notes: body.weight: number is accepted no longer",
        ),
        (
            lambda new: note(new)["properties"]["tags"]["items"].update(enum=["a"]),
            "POST /notes: body.tags[]: only some values are accepted now",
        ),
        (
            lambda new: note(new)["properties"]["parent"]["anyOf"].pop(),
            "POST /notes: body.parent: null is accepted no longer",
        ),
        (
            lambda new: note(new)["properties"]["metadata"]["additionalProperties"]["anyOf"].pop(),
            "POST /notes: body.metadata.*: integer is accepted no longer",
        ),
        (
            lambda new: new["components"]["schemas"]["Kind"]["enum"].remove("fact"),
            "POST /notes: body.kind: 'fact' is accepted no longer",
        ),
        (
            lambda new: new["components"]["schemas"]["Kind"]["enum"].remove("fact"),
            "GET /notes: answer 200.kind: 'fact' is gone",
        ),
        (lambda new: call(new, "post")["responses"].pop("201"), "POST /notes: answer 201: is gone"),
        (
            lambda new: call(new, "get")["responses"].update({"200": {"content": {"text/plain": {}}}}),
            "GET /notes: answer 200: application/json is gone",
        ),
        (lambda new: answer(new)["properties"].pop("weight"), "GET /notes: answer 200.weight: is gone"),
        (lambda new: answer(new)["required"].remove("kind"), "GET /notes: answer 200.kind: may be missing now"),
        (
            lambda new: answer(new)["properties"]["content"].update(type=["string", "null"]),
            "GET /notes: answer 200.content: may be null now",
        ),
        (
            lambda new: answer(new)["properties"].update(content={"anyOf": [{"type": "string"}, {"type": "null"}]}),
            "GET /notes: answer 200.content: may be null now",
        ),
        (
            lambda new: answer(new)["properties"]["kind"].update({"$ref": "#/components/schemas/Out"}),
            "GET /notes: answer 200.kind: may be object now",
        ),
        (
            lambda new: new["components"]["schemas"]["Kind"].pop("enum"),
            "GET /notes: answer 200.kind: may be any value now",
        ),
        (
            lambda new: answer(new)["properties"]["parent"]["anyOf"][0].pop("format"),
            "GET /notes: answer 200.parent: is no uuid any longer",
        ),
    ],
)
def test_a_change_that_breaks_programs_is_found(change: Change, line: str) -> None:
    assert line in changed(change)


@pytest.mark.parametrize(
    "change",
    [
        lambda new: new,
        lambda new: new["paths"].update({"/facts": {"get": {"responses": {}}}}),
        lambda new: query(new).append({"in": "query", "name": "tag", "schema": {"type": "string"}}),
        lambda new: query(new)[0]["schema"].update(maximum=10_000, minimum=0),
        lambda new: query(new)[0]["schema"].update(type="number"),
        lambda new: note(new)["properties"].update(hue={"type": "string"}),
        lambda new: note(new)["required"].clear(),
        lambda new: note(new)["properties"]["content"].pop("maxLength"),
        lambda new: note(new)["properties"].update(weight={"anyOf": [{"type": "number"}, {"type": "string"}]}),
        lambda new: note(new)["properties"].update(parent={"type": ["string", "null"]}),
        lambda new: note(new).update(description="A note."),
        lambda new: new["components"]["schemas"]["Kind"]["enum"].append("skill"),
        lambda new: answer(new)["properties"].update(hue={"type": "string"}),
        lambda new: answer(new)["required"].append("weight"),
        lambda new: answer(new)["properties"]["weight"].update(type="integer", minimum=0.5),
        lambda new: answer(new)["properties"]["parent"]["anyOf"].pop(),
        lambda new: call(new, "post")["responses"].update({"200": {}}),
        lambda new: call(new, "post")["responses"].pop("422"),
    ],
)
def test_a_change_that_breaks_no_program_is_none(change: Change) -> None:
    assert changed(change) == []


def test_two_changes_of_one_field_are_two_lines() -> None:
    found = changed(
        lambda new: note(new)["properties"]["content"].update(maxLength=10, minLength=5),
        lambda new: note(new)["properties"].pop("replies"),
    )

    assert found == [
        "POST /notes: body.content: maxLength is 10 now",
        "POST /notes: body.content: minLength is 5 now",
        "POST /notes: body.replies: is gone",
    ]


def test_the_api_breaks_no_program_that_was_written_against_the_last_release() -> None:
    found = set(breaking_changes(json.loads(RELEASED.read_text()), document()))
    meant = {line for line in ON_PURPOSE.read_text().splitlines() if line and not line.startswith("#")}

    accidental, stale = sorted(found - meant), sorted(meant - found)

    assert not accidental, f"keep it as it was, or write into {ON_PURPOSE.name}, with the reason: {accidental}"
    assert not stale, f"the API no longer differs in this; take it out of {ON_PURPOSE.name}: {stale}"
