"""The stream of events in the client: what a reader is given, and what it is told when the stream breaks."""

from collections.abc import AsyncIterator

import httpx
import pytest

from lamina.client.client import AsyncClient
from lamina.errors import Overloaded, Unavailable

MISSING, HEARTBEAT = b"event: events.missing\ndata: {}\n\n", b":\n\n"
TEXT = b"retry: 2000\n\n" + MISSING + b'id: 1\nevent: note.created\ndata: {"kind": "note.created"}\n\n' + HEARTBEAT


class Breaking(httpx.AsyncByteStream):
    """A stream that breaks after its first part."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield TEXT
        raise httpx.ReadError("gone")


def client_of(answer: httpx.Response, asked: list[httpx.Request]) -> AsyncClient:
    def answering(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return answer

    scope = {"workspace": "desk", "agent": "helper"}
    return AsyncClient("http://lamina", "key", scope=scope, transport=httpx.MockTransport(answering))


async def test_events_of_the_scope_are_followed_until_the_stream_breaks() -> None:
    asked: list[httpx.Request] = []
    async with (
        client_of(httpx.Response(200, stream=Breaking()), asked) as client,
        client.following(kind="note.created") as events,
    ):
        first = await anext(events)
        with pytest.raises(Unavailable):
            await anext(events)

    [request] = asked
    assert first == {"kind": "note.created"}
    assert dict(request.url.params) == {"workspace": "desk", "kind": "note.created"}
    assert request.headers["accept"] == "text/event-stream"


async def test_an_id_with_a_line_separator_in_it_ends_no_stream() -> None:
    event = 'data: {"kind": "note.created", "agent": "a\u2028b"}\n\n'.encode()
    stream = httpx.Response(200, content=event * 2)

    async with client_of(stream, []) as client, client.following() as events:
        found = [item async for item in events]

    assert found == [{"kind": "note.created", "agent": "a\u2028b"}] * 2


async def test_a_stream_that_is_refused_is_the_error_of_the_service() -> None:
    answer = httpx.Response(429, json={"title": "Too many", "status": 429, "detail": "20 open streams of events"})

    async with client_of(answer, []) as client:
        with pytest.raises(Overloaded):
            async with client.following():
                pass
