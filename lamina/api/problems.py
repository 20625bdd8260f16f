"""Errors as the API returns them."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field

from lamina.errors import (
    Conflict,
    Forbidden,
    InsufficientScope,
    InvalidInput,
    InvalidToken,
    LaminaError,
    LimitReached,
    Misconfigured,
    ModelLimit,
    NotFound,
    OutsideBounds,
    Overloaded,
    PreconditionFailed,
    TextRefused,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

STATUS_OF: Mapping[type[LaminaError], HTTPStatus] = {
    InvalidInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    InvalidToken: HTTPStatus.UNAUTHORIZED,
    OutsideBounds: HTTPStatus.FORBIDDEN,
    InsufficientScope: HTTPStatus.FORBIDDEN,
    Forbidden: HTTPStatus.FORBIDDEN,
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    LimitReached: HTTPStatus.TOO_MANY_REQUESTS,
    Overloaded: HTTPStatus.SERVICE_UNAVAILABLE,
    TextRefused: HTTPStatus.SERVICE_UNAVAILABLE,
    ModelLimit: HTTPStatus.SERVICE_UNAVAILABLE,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    Misconfigured: HTTPStatus.INTERNAL_SERVER_ERROR,
    LaminaError: HTTPStatus.INTERNAL_SERVER_ERROR,
}


class ProblemOut(BaseModel):
    """An error, as RFC 9457 describes it."""

    type: str = Field(description="Kind of error.")
    title: str = Field(description="The kind in words.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="What is wrong and what would be right.")
    errors: list[dict[str, str]] | None = Field(None, description="The fields that are wrong: field and reason.")
    fields: dict[str, Any] | None = Field(None, description="The error's own values: part and reason, kind and id, …")
