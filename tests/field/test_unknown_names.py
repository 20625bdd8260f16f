"""A parameter or a field that no route knows is refused on every route, by its name and with those that are known."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from deployments.api import document
from tests.support.application import Application

SCHEMAS = document()["components"]["schemas"]
CALLS = [(method.upper(), path, call) for path, calls in document()["paths"].items() for method, call in calls.items()]
WRONG = "wokrspace"


def schema_of(call: dict[str, Any], media_type: str) -> dict[str, Any]:
    """The schema of a body; of any of its fields if it is free."""
    schema = call.get("requestBody", {}).get("content", {}).get(media_type, {}).get("schema", {})
    found = SCHEMAS.get(schema.get("$ref", "").rpartition("/")[2], {})
    return dict(found if "properties" in found else {})


def url(path: str) -> str:
    filled = path.replace("{session}", "s").replace("{workspace}", "w").replace("{path}", "a.md")
    return filled.replace("{id}", str(uuid4()))


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 422, answer.text
    (reason,) = [error["reason"] for error in answer.json()["errors"] if error["field"] == WRONG]
    return str(reason)


@pytest.fixture
def client(application: Application) -> httpx.AsyncClient:
    return application.admin()


async def test_an_unknown_parameter_is_refused_on_every_route(client: httpx.AsyncClient) -> None:
    for method, path, call in CALLS:
        if method == "HEAD":
            continue
        known = [item["name"] for item in call.get("parameters", ()) if item["in"] == "query"]

        answer = await client.request(method, url(path), params={WRONG: "atlas"})

        if "requestBody" in call and answer.status_code == 422 and WRONG not in answer.text:
            continue  # Its body was missed first; with one it is tried below.
        reason = refusal(answer)
        assert all(name in reason for name in known), (path, reason)


async def test_an_unknown_field_is_refused_on_every_route(client: httpx.AsyncClient) -> None:
    tried = 0
    for method, path, call in CALLS:
        schema = schema_of(call, "application/json")
        if not schema:
            continue
        reason = refusal(await client.request(method, url(path), json={WRONG: "atlas"}))
        assert reason.startswith("is not known here; known are ")
        assert all(name in reason for name in schema["properties"]), (path, reason)
        tried += 1

        in_query = await client.request(method, url(path), json={}, params={WRONG: "atlas"})
        assert in_query.status_code == 422, (path, in_query.text)
    assert tried > 30


async def test_an_unknown_field_of_a_form_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/documents/upload", data={WRONG: "atlas"}, files={"file": ("a.txt", b"text")})

    assert "workspace" in refusal(answer)


@pytest.mark.parametrize(
    ("path", "body", "field", "known"),
    [
        ("/v1/search", {"query": "boats", "filters": {"colour": "red"}}, "filters.colour", "category"),
        ("/v1/search", {"query": "boats", "filters": {"and": [{"userr": "ann"}]}}, "userr", "user"),
        ("/v1/turns", {"session": "s", "messages": [{"content": "x", "rol": "user"}]}, "messages.0.rol", "role"),
        ("/v1/graph/edges", {"edges": [{"subject": "a", "kind": "b", "object": "c"}]}, "edges.0.kind", "type"),
    ],
)
async def test_an_unknown_field_deep_in_a_body_is_refused(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], field: str, known: str
) -> None:
    answer = await client.post(path, json=body)

    assert answer.status_code == 422, answer.text
    errors = {error["field"]: error["reason"] for error in answer.json()["errors"]}
    (reason,) = [reason for name, reason in errors.items() if field in name]
    assert known in reason
