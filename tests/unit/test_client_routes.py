"""The Python client against the OpenAPI document: every route has a method, with the model that the service uses."""

import inspect
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_type_hints

import pytest
from fastapi.routing import APIRoute

from deployments.api import ALL_ROUTERS, document
from lamina.client import AsyncClient, AsyncLamina, Client, Lamina, models
from lamina.client.routes import Command, ListCall, ListRoute, Route
from lamina.errors import InvalidInput
from tests.support.client_calls import METHODS, SCOPE, Unsent, call_of, documented, route_of

# Prometheus reads it: a text, which no program of ours asks for.
NOT_FOR_CLIENTS = {"GET /metrics"}


def test_every_route_has_a_method() -> None:
    reached = {route_of(call_of(name)) for name in METHODS}

    missing = documented().keys() - reached - NOT_FOR_CLIENTS
    unknown = reached - documented().keys()

    assert not missing, f"write a method in lamina/client/calls.py for each of: {', '.join(sorted(missing))}"
    assert not unknown, f"no route of the service, take away or correct in lamina/client/calls.py: {sorted(unknown)}"


@cache
def answers() -> Mapping[str, Any]:
    return {
        f"{method} {route.path_format}": route.response_model
        for router in ALL_ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }


@pytest.mark.parametrize("name", METHODS)
def test_a_method_names_the_model_that_the_service_answers_with(name: str) -> None:
    method, call = METHODS[name], call_of(name)

    served = answers()[route_of(call)]

    assert isinstance(method, Command) == (served is None), f"{name}: `@command` is for routes without an answer"
    if served is not None:
        assert method.model is served, f"{name} in lamina/client/calls.py should return Call[models.{served.__name__}]"


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if isinstance(method, ListRoute)])
def test_a_list_names_the_field_and_the_model_of_its_items(name: str) -> None:
    call = call_of(name)
    assert isinstance(call, ListCall)
    hints = get_type_hints(METHODS[name].make, {**METHODS[name].make.__globals__, "models": models})

    page, item = get_args(hints["return"])

    assert get_args(page.model_fields[call.items].annotation) == (item,)


@pytest.mark.parametrize("name", METHODS)
def test_every_route_that_pages_is_a_list(name: str) -> None:
    asked = {one["name"] for one in documented()[route_of(call_of(name))].get("parameters", ())}
    several = name == "shares"  # Two lists in one answer.

    assert isinstance(METHODS[name], ListRoute) == bool("cursor" in asked or "after" in asked) or several, (
        f"{name} in lamina/client/calls.py should be a `@listing`"
    )


@pytest.mark.parametrize("name", METHODS)
def test_the_client_s_scope_is_sent_only_where_a_route_takes_it(name: str) -> None:
    call = call_of(name)
    route = documented()[route_of(call)]

    query = {one["name"] for one in route.get("parameters", ()) if one["in"] == "query"}
    body = {*(call.json or {}), *call.form} & SCOPE.keys()
    schema = next(iter(route.get("requestBody", {}).get("content", {}).values()), {}).get("schema", {})
    fields = document()["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})

    assert call.params.keys() <= query
    assert body <= fields.get("properties", {}).keys()


def test_a_method_s_documentation_names_its_route() -> None:
    for name, method in METHODS.items():
        route = re.sub(r"\{\w+\}", "{}", route_of(call_of(name)))
        assert f"`{route}`" in re.sub(r"\{\w+\}", "{}", method.make.__doc__ or ""), name


@pytest.mark.parametrize("kind", [Client, AsyncClient, Lamina, AsyncLamina])
def test_every_client_has_every_method_with_its_signature(kind: Any) -> None:
    client = kind("http://127.0.0.1:9", "k")

    for name, method in METHODS.items():
        bound = getattr(client, name)
        assert callable(bound)
        if isinstance(method, Route | Command):
            assert "self" not in inspect.signature(bound).parameters
            assert bound.__doc__ == method.make.__doc__


@pytest.mark.parametrize("id_", ["a/b c", "ü?#&%2F", "🦊", "日本語", "..", ".", "a b", " "])
def test_an_id_is_one_segment_of_a_path(id_: str) -> None:
    call = METHODS["messages"].call(Unsent({}), id_)

    assert re.fullmatch(r"/v1/sessions/[A-Za-z0-9%_.~-]+/messages", call.path)
    assert "/./" not in call.path
    assert "/../" not in call.path


@pytest.mark.parametrize(("method", "argument"), [("note", ""), ("messages", ""), ("delete_document", "")])
def test_an_empty_id_is_refused_before_another_route_is_called(method: str, argument: str) -> None:
    with pytest.raises(InvalidInput, match="id: is empty"):
        METHODS[method].call(Unsent({}), argument)


@pytest.mark.parametrize(
    ("params", "page", "following"),
    [
        ({}, {"items": [1], "next_cursor": "c"}, {"cursor": "c"}),
        ({"cursor": "b", "limit": 5}, {"items": [1], "next_cursor": "c"}, {"cursor": "c", "limit": 5}),
        ({"offset": 4, "tag": "x"}, {"items": [1], "next_cursor": "c"}, {"cursor": "c", "tag": "x"}),
        ({}, {"items": [], "next_cursor": "c"}, {"cursor": "c"}),
        ({}, {"items": [1], "next_cursor": None}, None),
        ({}, {"items": [1], "next_cursor": None, "next": 7}, None),
        ({"after": "d"}, {"items": [1], "next": "e", "more": True}, {"after": "e"}),
        ({}, {"items": [1], "next": "e", "more": False}, None),
        ({}, {"items": [], "next": None, "more": False}, None),
        ({}, {"items": [1]}, None),
    ],
)
def test_the_page_after_one_is_found_by_what_the_answer_says(
    params: dict[str, Any], page: dict[str, Any], following: dict[str, Any] | None
) -> None:
    call: ListCall[Any, Any] = ListCall("GET", "/v1/things", params=params, items="items")

    found = call.following(page)

    assert (None if found is None else found.params) == following
