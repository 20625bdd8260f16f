"""A client of the API inside its own process: for doors that are made of the same routes that everybody calls."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.aio.cancelling import cancel_all
from lamina.core.principals import Principal
from lamina.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from lamina.client.client import AsyncClient

SCOPE_FIELDS = ("workspace", "namespace", "user", "agent", "swarm")
EVENTS = "/v1/events"
_BASE_URL = "http://lamina"
_CHECKED = "checked-by-the-front-door"


def inner_client(behind: ASGIApp, principal: Principal, ids: Mapping[str, str]) -> "AsyncClient":
    """Return a client whose calls are those of a principal, as the front door would let them in.

    Args:
        behind: The API behind the front door.
        principal: Whose key was checked.
        ids: Of the scope that every call is for.
    """
    import httpx  # noqa: PLC0415 - half a second, which most services never need

    from lamina.client.client import AsyncClient  # noqa: PLC0415 - as above

    async def as_principal(inner: Scope, receive: Receive, send: Send) -> None:
        await behind({**inner, "state": {"principal": principal}}, receive, send)

    transport = httpx.ASGITransport(as_principal, raise_app_exceptions=False)
    return AsyncClient(_BASE_URL, _CHECKED, scope=dict(ids), connect_retries=0, transport=transport)


@asynccontextmanager
async def follow_events(
    behind: ASGIApp, outer: Scope, ids: Mapping[str, str]
) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """Open the stream of events that `GET /v1/events` has for the same key, from the next one on.

    httpx hands an answer of an ASGI application over when it is complete, which a stream never is.

    Args:
        behind: The API behind the front door.
        outer: The request that is answered by it, with its key and principal.
        ids: Of the scope.

    Raises:
        LaminaError: If the stream is refused.
    """
    from lamina.client.event_stream import events_in  # noqa: PLC0415 - as above

    query = urlencode({name: ids[name] for name in ("workspace", "namespace", "user") if name in ids})
    kept = [(name, value) for name, value in outer["headers"] if name == b"authorization"]
    inner: Scope = {
        **{key: outer[key] for key in ("type", "asgi", "http_version", "scheme", "server", "client") if key in outer},
        "method": "GET",
        "path": EVENTS,
        "raw_path": EVENTS.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [*kept, (b"accept", b"text/event-stream")],
        "state": {"principal": outer["state"]["principal"]},
    }
    sending, messages = anyio.create_memory_object_stream[Message](0)

    unread: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if not unread:
            await asyncio.get_running_loop().create_future()  # The stream is cancelled when its reader leaves.
        return unread.pop()

    async def run() -> None:
        async with sending:
            await behind(inner, receive, sending.send)

    running = asyncio.create_task(run())
    try:
        async with messages:
            start = await messages.receive()
            if start["status"] != HTTPStatus.OK:
                await _refuse(start, messages)
            # Who listens works no more, and keeps nobody of the tenant from it.
            outer["state"]["rest"]()
            yield events_in(_lines(messages))
    except anyio.EndOfStream as error:
        raise Unavailable("events", "their stream ended before it began") from error
    finally:
        await cancel_all([running])


async def _refuse(start: Message, messages: AsyncIterable[Message]) -> None:
    """Raise the error that an answer stands for."""
    import httpx  # noqa: PLC0415 - as above

    from lamina.client.answers import read  # noqa: PLC0415 - as above

    body = b"".join([message.get("body", b"") async for message in messages])
    read(httpx.Response(start["status"], headers=start["headers"], content=body))


async def _lines(messages: AsyncIterable[Message]) -> AsyncIterator[str]:
    # A part of the answer holds whole events.
    async for message in messages:
        for line in message.get("body", b"").decode().split("\n"):
            yield line


def ids_of(headers: Headers, fields: Sequence[str] = SCOPE_FIELDS) -> dict[str, str]:
    """Return the ids that headers such as `Lamina-Workspace` name, each percent-encoded where it is not plain ASCII.

    Raises:
        InvalidInput: For one that is no UTF-8.
    """
    sent = {field: headers[f"lamina-{field}"] for field in fields if f"lamina-{field}" in headers}
    try:
        return {name: unquote(value, errors="strict") for name, value in sent.items()}
    except UnicodeDecodeError as error:
        raise InvalidInput("Lamina-…", "is no UTF-8; percent-encode the id") from error
