import httpx
import pytest

from deployments.problems import from_error
from lamina.client.answers import read, unreachable
from lamina.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    LaminaError,
    LimitReached,
    Misconfigured,
    NotFound,
    OutsideBounds,
    Overloaded,
    TooLarge,
    Unauthenticated,
    Unavailable,
)


def sent(error: LaminaError) -> httpx.Response:
    """The service's response for an error, as a client receives it."""
    response = from_error(error)
    return httpx.Response(response.status_code, headers=dict(response.headers), content=bytes(response.body))


@pytest.mark.parametrize("status", [200, 201, 202])
def test_the_answer_of_a_success_is_its_json(status: int) -> None:
    assert read(httpx.Response(status, json={"id": "1"})) == {"id": "1"}


@pytest.mark.parametrize("response", [httpx.Response(204), httpx.Response(200, text="")])
def test_a_success_without_a_body_is_an_empty_answer(response: httpx.Response) -> None:
    assert read(response) == {}


@pytest.mark.parametrize("content", ["[1]", "<html>", "null"])
def test_a_success_that_is_no_object_is_of_another_program(content: str) -> None:
    request = httpx.Request("GET", "http://elsewhere.example/v1/notes?limit=1")

    with pytest.raises(Unavailable, match=r"http://elsewhere\.example/v1/notes is no Lamina"):
        read(httpx.Response(200, text=content, request=request))


def test_a_readiness_report_is_an_answer_whatever_it_says() -> None:
    report = {"ready": False, "parts": {"postgres": "gone"}}

    assert read(httpx.Response(503, json=report)) == report


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Unavailable),
        (401, Unauthenticated),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (413, TooLarge),
        (422, InvalidInput),
        (429, Overloaded),
        (500, Unavailable),
        (502, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
    ],
)
def test_a_status_stands_for_an_error(status: int, kind: type[LaminaError]) -> None:
    with pytest.raises(LaminaError) as raised:
        read(httpx.Response(status, json={"detail": "because of x"}))

    assert type(raised.value) is kind
    assert kind is Unauthenticated or "because of x" in str(raised.value)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidInput("messages.0.content", "is blank"), InvalidInput),
        (Unauthenticated(), Unauthenticated),
        (Forbidden("reader", "writer"), Forbidden),
        (OutsideBounds("user", "is bob; name ann"), OutsideBounds),
        (NotFound("note", "123"), NotFound),
        (Conflict("taken"), Conflict),
        (Unavailable("postgres", "gone", 7), Unavailable),
        (Overloaded("embedder", "full", 7), Unavailable),
        (LimitReached("tenant", "600 requests a minute", 7), LimitReached),
        (Misconfigured("this", "do that"), Unavailable),
    ],
)
def test_what_the_service_raises_is_what_the_caller_catches(error: LaminaError, kind: type[LaminaError]) -> None:
    with pytest.raises(kind) as raised:
        read(sent(error))

    assert str(error) in str(raised.value)


def test_the_field_that_was_wrong_is_told() -> None:
    with pytest.raises(InvalidInput) as raised:
        read(sent(InvalidInput("messages.0.content", "is blank")))

    assert (raised.value.field, raised.value.reason) == ("messages.0.content", "is blank")


@pytest.mark.parametrize("status", [429, 503])
def test_the_time_to_wait_is_told(status: int) -> None:
    with pytest.raises(Unavailable) as raised:
        read(httpx.Response(status, headers={"Retry-After": "7"}, json={"detail": "full"}))

    assert raised.value.retry_after_s == 7


@pytest.mark.parametrize("status", [429, 503])
def test_a_time_to_wait_that_is_a_date_is_not_an_error_of_its_own(status: int) -> None:
    response = httpx.Response(status, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, text="busy")

    with pytest.raises(Unavailable) as raised:
        read(response)

    assert raised.value.retry_after_s >= 1


@pytest.mark.parametrize("text", ["", "<html>Bad Gateway</html>", "[]", '"x"', "{"])
def test_an_answer_of_something_else_in_between_is_still_an_error(text: str) -> None:
    with pytest.raises(Unavailable, match="502 Bad Gateway"):
        read(httpx.Response(502, text=text))


def test_a_service_that_does_not_answer_is_named_with_the_remedy() -> None:
    error = unreachable(httpx.ConnectError("refused"), httpx.URL("http://127.0.0.1:1"))

    assert "http://127.0.0.1:1" in str(error)
    assert "lamina up" in str(error)
