"""Refuse undocumented and repeated parameters, so that a call never does more than its sender meant."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPMethod
from typing import Any

from fastapi import FastAPI, Request

from lamina.errors import InvalidInput

_SINGLE_HEADERS = ("Authorization", "Content-Type", "Idempotency-Key")
_NO_BODY = (b"", b"{}")
"""Some clients send an empty object where no body is asked for."""


@dataclass(frozen=True, slots=True)
class _Call:
    """Parameters and body of a call.

    Args:
        parameters: The parameters of its query, and whether each may be repeated.
        has_body: Whether it reads a body.
    """

    parameters: Mapping[str, bool]
    has_body: bool


async def refuse_ambiguous(request: Request) -> None:
    """Refuse a query parameter that the call does not document, and whatever is sent twice where one is read.

    Raises:
        InvalidInput: Naming it, and what is known.
    """
    call = _calls(request.app).get((request.method, request.scope["route"].path_format))
    if call is None:  # not part of the API, as its documentation is not
        return
    for header in _SINGLE_HEADERS:
        if len(request.headers.getlist(header)) > 1:
            raise InvalidInput(header, "is sent more than once; send it once")
    for name in request.query_params:
        if name not in call.parameters:
            raise InvalidInput(
                name, f"is not known here; the query knows {', '.join(sorted(call.parameters)) or 'no name'}"
            )
        if not call.parameters[name] and len(request.query_params.getlist(name)) > 1:
            raise InvalidInput(name, "is sent more than once; send it once")
    if not call.has_body and (await request.body()).strip() not in _NO_BODY:
        raise InvalidInput("body", "is not known here; this call reads its path and query alone")


async def refuse_repeated_fields(request: Request) -> None:
    """Refuse a field that a form repeats, except tags.

    Raises:
        InvalidInput: Naming the field.
    """
    names = [name for name, _ in (await request.form()).multi_items() if name != "tags"]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(name, "is sent more than once; send it once")


def _calls(app: FastAPI) -> Mapping[tuple[str, str], _Call]:
    """Return the calls by method and path, read once from the OpenAPI document."""
    found: Mapping[tuple[str, str], _Call] | None = getattr(app.state, "calls", None)
    if found is None:
        found = app.state.calls = {
            (method.upper(), path): _read_call(call)
            for path, calls in app.openapi()["paths"].items()
            for method, call in calls.items()
            if method.upper() in HTTPMethod.__members__
        }
    return found


def _read_call(documented: Mapping[str, Any]) -> _Call:
    are_lists: dict[str, bool] = {}
    for item in documented.get("parameters", ()):
        if item["in"] == "query":
            schemas = (item["schema"], *item["schema"].get("anyOf", ()))
            are_lists[item["name"]] = any(schema.get("type") == "array" for schema in schemas)
    return _Call(are_lists, "requestBody" in documented)
