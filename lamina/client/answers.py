"""Read an HTTP answer: its JSON, or an error of the library."""

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import httpx

from lamina.api.problems import STATUS_OF
from lamina.errors import (
    TURN,
    Conflict,
    Forbidden,
    InvalidInput,
    LaminaError,
    NotFound,
    Overloaded,
    PreconditionFailed,
    TooLarge,
    Unauthenticated,
    Unavailable,
)


def read(response: httpx.Response) -> dict[str, Any]:
    """Return the answer's JSON; a report of readiness is one, also with status 503.

    Raises:
        LaminaError: The error that the status stands for.
    """
    body = _json(response)
    if response.is_success or "parts" in body:
        return body
    raise _error(response, body)


def is_unrouted(response: httpx.Response) -> bool:
    """Report whether a proxy has no route for the path yet: then no replica has seen the request."""
    tells_more = "json" in str(response.headers.get("Content-Type", ""))
    return response.status_code == HTTPStatus.NOT_FOUND and not tells_more


def pause_s(response: httpx.Response) -> int | None:
    """Return the seconds after which to repeat a search that had no turn, or no answer in its time; else ``None``."""
    if response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
        return None
    fields = _json(response).get("fields")
    is_refused = isinstance(fields, dict) and fields.get("part") in (TURN, "search")
    return _seconds(response.headers.get("Retry-After", "")) if is_refused else None


def unreachable(error: httpx.TransportError, url: httpx.URL) -> Unavailable:
    """Return the error for a service that does not answer at all."""
    return Unavailable("lamina", f"{url} does not answer ({type(error).__name__}); start it with `lamina up`")


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _classes(status: int) -> list[type[LaminaError]]:
    """Return the classes of a status, the wider ones first; 500 stands for no class."""
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return []
    return [kind for kind, its_status in reversed(list(STATUS_OF.items())) if its_status == status]


def _error(response: httpx.Response, body: Mapping[str, Any]) -> LaminaError:
    """Return the error that the service raised, or the one nearest to a proxy's answer."""
    if is_unrouted(response):
        return Unavailable("lamina", "what answers there is no Lamina, or a proxy that has just started; check the URL")
    fields = body.get("fields")
    if isinstance(fields, dict):
        for kind in _classes(response.status_code):
            with suppress(TypeError):
                return kind(**fields)
    return _nearest(response, body)


def _nearest(response: httpx.Response, body: Mapping[str, Any]) -> LaminaError:
    detail = str(body.get("detail") or response.reason_phrase)
    wait = _seconds(response.headers.get("Retry-After", ""))
    errors: Mapping[int, LaminaError] = {
        401: Unauthenticated(),
        403: Forbidden("unknown", detail),
        404: NotFound("such thing:", detail),
        409: Conflict(detail),
        412: PreconditionFailed("request", detail),
        413: TooLarge("request", detail),
        422: _invalid(body, detail),
        429: Overloaded("lamina", detail, wait),
    }
    return errors.get(response.status_code) or Unavailable("lamina", f"{response.status_code} {detail}", wait)


def _seconds(retry_after: str) -> int:
    """Return the seconds to wait; a proxy may name a date instead, which means soon."""
    return int(retry_after) if retry_after.isascii() and retry_after.isdigit() else 1


def _invalid(body: Mapping[str, Any], detail: str) -> InvalidInput:
    first = next(iter(body.get("errors") or []), None)
    return InvalidInput(first["field"], first["reason"]) if first else InvalidInput("request", detail)
