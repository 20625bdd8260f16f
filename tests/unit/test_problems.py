import json
from http import HTTPStatus

import pytest

from deployments.problems import MEDIA_TYPE, field_path, from_error, problem, status_of
from lamina import errors
from lamina.api.problems import STATUS_OF
from lamina.errors import (
    Conflict,
    Forbidden,
    InsufficientScope,
    InvalidInput,
    InvalidToken,
    LaminaError,
    LimitReached,
    Misconfigured,
    NotFound,
    OutsideBounds,
    Overloaded,
    Unauthenticated,
    Unavailable,
)

STATUSES = [
    (InvalidInput("user", "is blank"), 422),
    (Unauthenticated(), 401),
    (InvalidToken("it has ended"), 401),
    (InsufficientScope("lamina:write"), 403),
    (Forbidden("reader", "writer"), 403),
    (OutsideBounds("user", "is bob"), 403),
    (NotFound("note", "1"), 404),
    (Conflict("taken"), 409),
    (Unavailable("postgres", "gone"), 503),
    (Overloaded("embedder", "full"), 503),
    (LimitReached("tenant", "600 requests a minute", 7), 429),
    (Misconfigured("a", "b"), 500),
    (LaminaError("x"), 500),
]


def test_every_class_of_the_tree_has_a_status() -> None:
    classes = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LaminaError)}

    assert STATUS_OF.keys() == classes


@pytest.mark.parametrize(("error", "status"), STATUSES, ids=lambda value: type(value).__name__)
def test_an_error_has_its_status(error: LaminaError, status: int) -> None:
    assert status_of(error) == status


def test_a_class_that_is_added_later_has_the_status_of_the_nearest_one() -> None:
    class Stale(Conflict):
        pass

    assert status_of(Stale("old version")) == HTTPStatus.CONFLICT


@pytest.mark.parametrize(("error", "status"), STATUSES, ids=lambda value: type(value).__name__)
def test_a_problem_tells_status_and_detail(error: LaminaError, status: int) -> None:
    response = from_error(error)
    body = json.loads(bytes(response.body))

    assert response.status_code == body["status"] == status
    assert response.media_type == MEDIA_TYPE
    assert body["detail"] == str(error)
    assert body["title"] == HTTPStatus(status).phrase
    assert body["type"].startswith("urn:lamina:")


def test_invalid_input_names_its_field() -> None:
    body = json.loads(bytes(from_error(InvalidInput("messages.0.content", "is blank")).body))

    assert body["errors"] == [{"field": "messages.0.content", "reason": "is blank"}]


@pytest.mark.parametrize(
    "error", [Unavailable("postgres", "gone", 7), Overloaded("embedder", "full", 7), LimitReached("tenant", "full", 7)]
)
def test_who_should_retry_is_told_when(error: LaminaError) -> None:
    assert from_error(error).headers["Retry-After"] == "7"


def test_who_has_no_key_is_told_which_scheme_to_use() -> None:
    assert from_error(Unauthenticated()).headers["WWW-Authenticate"] == "Bearer"


def test_a_detail_that_cannot_be_encoded_is_still_answered() -> None:
    response = problem(HTTPStatus.CONFLICT, "name \ud800", errors=[{"field": "\udfff", "reason": "x"}])

    assert json.loads(bytes(response.body))["detail"] == "name ?"


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (("body", "messages", 0, "content"), "messages.0.content"),
        (("query", "limit"), "limit"),
        (("path", "id"), "id"),
        (("header", "Idempotency-Key"), "Idempotency-Key"),
        (("body",), "body"),
        (("body", "query"), "query"),
        (("query",), "query"),
        (("content",), "content"),
    ],
)
def test_a_field_is_named_as_the_caller_wrote_it(location: tuple[int | str, ...], path: str) -> None:
    assert field_path(location) == path
