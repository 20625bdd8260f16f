"""Refuse unknown query parameters, so that a misspelt one never widens a call."""

from collections.abc import Mapping
from http import HTTPMethod

from fastapi import FastAPI, Request

from lamina.errors import InvalidInput


async def refuse_unknown(request: Request) -> None:
    """Refuse a query parameter that the call does not document.

    Raises:
        InvalidInput: Naming it, and those that are known.
    """
    if not request.query_params:
        return
    known = _known(request.app).get((request.method, request.scope["route"].path_format), frozenset())
    for name in request.query_params:
        if name not in known:
            raise InvalidInput(name, f"is not known here; the query knows {', '.join(sorted(known)) or 'nothing'}")


def _known(app: FastAPI) -> Mapping[tuple[str, str], frozenset[str]]:
    """Return the query parameters by method and path, read once from the OpenAPI document."""
    found: Mapping[tuple[str, str], frozenset[str]] | None = getattr(app.state, "query_parameters", None)
    if found is None:
        found = app.state.query_parameters = {
            (method.upper(), path): frozenset(
                item["name"] for item in call.get("parameters", ()) if item["in"] == "query"
            )
            for path, calls in app.openapi()["paths"].items()
            for method, call in calls.items()
            if method.upper() in HTTPMethod.__members__
        }
    return found
