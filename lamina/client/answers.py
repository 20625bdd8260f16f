"""Read an HTTP answer: its JSON, or an error of the library."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import ceil
from typing import Any

import httpx
from pydantic import BaseModel, ValidationError

from lamina.api.problems import STATUS_OF
from lamina.errors import (
    TURN,
    Conflict,
    Forbidden,
    InvalidInput,
    LaminaError,
    Misconfigured,
    NotFound,
    Overloaded,
    PreconditionFailed,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

MOST_DIGITS = 9
"""Of a number of seconds; a longer one is for ever, too."""


def read(response: httpx.Response) -> dict[str, Any]:
    """Return the answer's JSON; a report of readiness is one, also with status 503.

    Raises:
        LaminaError: The error that the status stands for; also for a success of another program, which is no JSON.
    """
    body = _json_object(response)
    if response.is_success and response.content and body is None:
        raise Unavailable("lamina", f"what answers at {response.url.copy_with(query=None)} is no Lamina; check the URL")
    if response.is_success or "parts" in (body or {}):
        return body or {}
    raise _error(response, body or {})


def is_unrouted(response: httpx.Response) -> bool:
    """Report whether a proxy has no route for the path yet: then no replica has seen the request."""
    tells_more = "json" in str(response.headers.get("Content-Type", ""))
    return response.status_code == HTTPStatus.NOT_FOUND and not tells_more


def is_missing(response: httpx.Response) -> bool:
    """Report whether the service says that what a path names is not there."""
    return response.status_code == HTTPStatus.NOT_FOUND and not is_unrouted(response)


def pause_s(response: httpx.Response, *, is_repeatable: bool) -> float | None:
    """Return the seconds after which to repeat a call that was refused; ``None`` if its answer stands.

    Args:
        response: The answer.
        is_repeatable: Whether the call may have begun: sent twice it does no more than once.
    """
    after = response.headers.get("Retry-After", "")
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return _seconds(after) if after else None
    if response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
        return None
    fields = (_json_object(response) or {}).get("fields")
    is_search = isinstance(fields, dict) and fields.get("part") in (TURN, "search")
    return _seconds(after) if is_search or (is_repeatable and after) else None


def parse(model: type[BaseModel], answer: Mapping[str, Any]) -> BaseModel:
    """Return an answer as a value of its model.

    Raises:
        Misconfigured: If it is none: the service is of another release.
    """
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        what = f"the service's answer is no {model.__name__}: {place}: {first['msg']}"
        raise Misconfigured(
            what, "use a client of the service's release, or `Client`, whose answers are JSON"
        ) from error


def unreachable(error: httpx.RequestError, url: httpx.URL) -> Unavailable:
    """Return the error for a service that does not answer at all, or not in time."""
    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
        reason = f"{url} did not answer in time, and may still work on it; a client waits longer with `timeout_s`"
        return Unavailable("lamina", reason)
    return Unavailable("lamina", f"{url} does not answer ({type(error).__name__}); start it with `lamina up`")


def _json_object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _classes(status: int) -> list[type[LaminaError]]:
    """Return the classes of a status, the wider ones first; 500 stands for no class."""
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return []
    return [kind for kind, its_status in reversed(list(STATUS_OF.items())) if its_status == status]


def _error(response: httpx.Response, body: Mapping[str, Any]) -> LaminaError:
    """Return the error that the service raised, or the one nearest to a proxy's answer."""
    if is_unrouted(response):
        return Unavailable("lamina", "what answers there is no Lamina, or a proxy that has just started; check the URL")
    if response.has_redirect_location:
        # Not followed: the key would go to another address, and a body be lost.
        elsewhere = response.headers["Location"]
        return Unavailable("lamina", f"{response.url} leads to {elsewhere}; give the client the address behind it")
    fields = body.get("fields")
    if isinstance(fields, dict):
        for kind in _classes(response.status_code):
            with suppress(TypeError):
                return kind(**fields)
    return _nearest(response, body)


def _nearest(response: httpx.Response, body: Mapping[str, Any]) -> LaminaError:
    detail = str(body.get("detail") or response.reason_phrase)
    wait = _seconds(response.headers.get("Retry-After", ""))
    first = next(iter(body.get("errors") or []), None)
    errors: Mapping[int, LaminaError] = {
        401: Unauthenticated(),
        403: Forbidden("unknown", detail),
        404: NotFound("such thing:", detail),
        409: Conflict(detail),
        412: PreconditionFailed("request", detail),
        413: TooLarge("request", detail),
        422: InvalidInput(first["field"], first["reason"]) if first else InvalidInput("request", detail),
        429: Overloaded("lamina", detail, wait),
    }
    return errors.get(response.status_code) or Unavailable("lamina", f"{response.status_code} {detail}", wait)


def _seconds(retry_after: str) -> int:
    """Return the seconds to wait, at least one where a proxy names a date instead, or nothing that can be read."""
    if retry_after.isascii() and retry_after.isdigit():
        return int(retry_after[:MOST_DIGITS])
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return 1
    return max(1, ceil((until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds()))
