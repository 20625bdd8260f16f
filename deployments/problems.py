"""Errors at the HTTP edge: one table from the error tree to problem+json (RFC 9457)."""

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from deployments.oauth import challenge
from deployments.proxy_rules import GATEWAY
from lamina.api.problems import STATUS_OF
from lamina.core.metrics import REFUSALS
from lamina.core.request_ids import current_request
from lamina.errors import (
    InsufficientScope,
    InvalidInput,
    LaminaError,
    OutsideBounds,
    Overloaded,
    Unauthenticated,
    Unavailable,
)
from lamina.text.hygiene import shorten

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"

_PLACES = ("body", "query", "path", "header")
MOST_ERRORS, MOST_IN_LINE = 20, 3
# Where the words of validation are those of its library.
_REASONS = dict.fromkeys(("model_attributes_type", "model_type"), "is no object; send a JSON object with its fields")
# Characters of an answer's texts: whatever was sent, it is some ten kilobytes at most.
_TEXT_CHARS, _FIELD_CHARS, _REASON_CHARS = 1_000, 120, 500


def status_of(error: LaminaError) -> HTTPStatus:
    """Return the status of an error, by the nearest class of the tree."""
    return next(STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)


def problem(
    status: HTTPStatus,
    detail: str,
    *,
    errors: Sequence[Mapping[str, str]] | None = None,
    fields: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return an error response; the detail names the thing, the value and the remedy.

    Args:
        status: HTTP status.
        detail: What is wrong and what would be right.
        errors: The fields of the request that are wrong, each with its reason.
        fields: The error's own fields, from which a client raises the same error.
        headers: Further headers.
    """
    body: dict[str, Any] = {
        "type": f"urn:lamina:{status.name.lower().replace('_', '-')}",
        "title": status.phrase,
        "status": status.value,
        "detail": _printable(detail),
    }
    if errors:
        body["errors"] = [{name: _printable(text) for name, text in error.items()} for error in errors]
    if fields:
        body["fields"] = {
            name: _printable(value) if isinstance(value, str) else value for name, value in fields.items()
        }
    return JSONResponse(body, status.value, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Map every error of the library, of validation and of routing to a problem."""
    app.add_exception_handler(LaminaError, _on_lamina_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_any_error)


def from_error(error: LaminaError) -> JSONResponse:
    """Return the response for an error of the library."""
    errors = (
        [{"field": error.field, "reason": error.reason}] if isinstance(error, InvalidInput | OutsideBounds) else None
    )
    return problem(status_of(error), str(error), errors=errors, fields=vars(error), headers=_headers(error))


def _headers(error: LaminaError) -> dict[str, str]:
    match error:
        case Unavailable(retry_after_s=seconds):
            return {"Retry-After": str(seconds)}
        case Unauthenticated():
            return {"WWW-Authenticate": "Bearer"}
        case _:
            return {}


def answer_error(request: Request, error: LaminaError) -> JSONResponse:
    """Return the response for an error of the library, with a challenge; count it where it is a refusal."""
    services = request.app.state.services
    if isinstance(error, Overloaded):
        services.meter.record(REFUSALS, part=error.part)
    answer = from_error(error)
    if isinstance(error, Unauthenticated | InsufficientScope) and services.settings.auth.jwt is not None:
        answer.headers["WWW-Authenticate"] = challenge(error, services.settings.auth.jwt)
    return _for_openai(answer, str(error)) if request.url.path.startswith(GATEWAY) else answer


def _for_openai(answer: JSONResponse, detail: str) -> JSONResponse:
    """Return the same with the member that clients of OpenAI show."""
    body = json.loads(bytes(answer.body))
    body["error"] = {"message": _printable(detail), "type": "lamina_error", "param": None, "code": body["type"]}
    kept = {name: value for name, value in answer.headers.items() if name not in {"content-length", "content-type"}}
    return JSONResponse(body, answer.status_code, kept, media_type=answer.media_type)


async def _on_lamina_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, LaminaError)  # noqa: S101 - registered for this class
    return answer_error(request, error)


async def _on_validation_error(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class
    found = error.errors()
    errors = [_describe_error(item) for item in found[:MOST_ERRORS]]
    detail = f"{errors[0]['field']}: {errors[0]['reason']}"
    if len(found) > 1:
        detail = f"{detail}; and {len(found) - 1} more"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors=errors, fields=errors[0])


def _describe_error(error: Mapping[str, Any]) -> dict[str, str]:
    """Return the field and the reason of one error of validation; both may repeat names of any length."""
    return {
        "field": shorten(field_path(error["loc"]), _FIELD_CHARS),
        "reason": shorten(_REASONS.get(error["type"]) or error["msg"].lower(), _REASON_CHARS),
    }


def describe_errors(errors: Sequence[Mapping[str, Any]], path: str) -> str:
    """Return errors of validation in one line, at most three of them.

    Args:
        errors: As pydantic has them.
        path: Where that which was validated stands in the request.
    """
    shown = [_describe_error({**error, "loc": (path, *error["loc"])}) for error in errors[:MOST_IN_LINE]]
    line = "; ".join(f"{item['field']}: {item['reason']}" for item in shown)
    return line if len(errors) <= MOST_IN_LINE else f"{line}; and {len(errors) - MOST_IN_LINE} more"


def field_path(location: Sequence[int | str]) -> str:
    """Return a validation error's location as the caller wrote it (``messages.0.content``)."""
    parts = [str(part) for part in location]
    return ".".join(parts[1:] if len(parts) > 1 and parts[0] in _PLACES else parts)


async def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    if isinstance(error.__cause__, LaminaError):  # FastAPI wraps whatever the reading of a body raises
        return answer_error(request, error.__cause__)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return problem(HTTPStatus(error.status_code), detail, headers=error.headers)


async def _on_any_error(request: Request, error: Exception) -> JSONResponse:
    logger.error("unexpected error", exc_info=error, extra={"path": request.url.path})
    id_ = current_request()
    detail = f"unexpected {type(error).__name__}; the service's log has the rest"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail if id_ is None else f"{detail} (request {id_})")


def _printable(text: str) -> str:
    return shorten(text, _TEXT_CHARS).encode("utf-8", "replace").decode()
