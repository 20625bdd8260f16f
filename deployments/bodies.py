"""Middleware around requests: their bodies stay within a limit, packed or not, and HEAD is answered as GET."""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPMethod, HTTPStatus
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.problems import from_error, problem
from lamina.errors import InvalidInput

MAX_BODY_BYTES = 256 * 1024
"""Of a route that declares no other limit."""
_MIB = 1024 * 1024
_LIMIT = "x-max-body-bytes"
_CODINGS = ("gzip", "x-gzip", "deflate")
_NOT_PACKED = ("", "identity")
_GZIP_BITS, _ZLIB_BITS, _RAW_BITS = zlib.MAX_WBITS + 16, zlib.MAX_WBITS, -zlib.MAX_WBITS
_DEFLATE = 8
_CHECKED_BY = 31


def body_of(mib: int) -> dict[str, Any]:
    """Return the limit of a route's body as ``openapi_extra``, with which the route declares and documents it."""
    return {_LIMIT: mib * _MIB}


def body_limit(routes: Sequence[BaseRoute], scope: Scope) -> int:
    """Return the most bytes that the body of a request may have, by its route."""
    route = next((route for route in routes if route.matches(scope)[0] is Match.FULL), None)
    declared: Mapping[str, Any] = getattr(route, "openapi_extra", None) or {}
    return int(declared.get(_LIMIT, MAX_BODY_BYTES))


class _TooLargeError(Exception):
    pass


class _DisconnectedError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """Refuses a body that is larger than its route needs before it is read whole, and unpacks one that is packed.

    A body whose length was not declared is read here, at most up to the limit.

    Args:
        app: Answers the requests.
        routes: Declare their limits, all of them before the first request.
    """

    app: ASGIApp
    routes: Sequence[BaseRoute]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 413, 415 or 422."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        coding = ", ".join(headers.getlist("content-encoding")).strip().lower()
        if coding not in (*_NOT_PACKED, *_CODINGS):
            detail = f"Content-Encoding: is {coding}; send the body plain, or packed once by gzip or deflate"
            accepted = {"Accept-Encoding": "gzip, deflate"}
            await problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail, headers=accepted)(scope, receive, send)
            return
        length = headers.get("content-length", "0")
        # Most requests have no body, or a short one of known length: they need no look at the routes.
        is_read_here = coding not in _NOT_PACKED or "content-length" not in headers
        is_short = not is_read_here and length.isdigit() and int(length) <= MAX_BODY_BYTES
        max_bytes = MAX_BODY_BYTES if is_short else body_limit(self.routes, scope)
        try:
            _refuse_declared(length, max_bytes)
            if is_read_here:
                scope, receive = await _with_read_body(scope, receive, coding, max_bytes)
        except _TooLargeError:
            call = f"{scope['method']} {scope['path']}"
            detail = f"the body is larger than {max_bytes} bytes, the most that {call} takes; send it in parts"
            await problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)(scope, receive, send)
            return
        except _DisconnectedError:  # Nobody waits for an answer, and half a body is none.
            return
        except zlib.error as error:
            await from_error(InvalidInput("body", f"is no {coding}: {error}"))(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _refuse_declared(length: str, max_bytes: int) -> None:
    if length.isdigit() and int(length) > max_bytes:
        raise _TooLargeError


async def _with_read_body(scope: Scope, receive: Receive, coding: str, max_bytes: int) -> tuple[Scope, Receive]:
    body = await _read(receive, max_bytes)
    if coding not in _NOT_PACKED and body:
        # In a thread: a packed megabyte may take as long as many requests.
        body = await asyncio.to_thread(_unpack, body, coding, max_bytes)
    scope = {**scope, "headers": list(scope["headers"])}
    headers = MutableHeaders(scope=scope)
    del headers["content-encoding"]
    del headers["transfer-encoding"]
    headers["content-length"] = str(len(body))
    return scope, receive_body(body, receive)


def receive_body(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that begins with a body that was read whole, or is replaced."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_rest() -> Message:
        return unread.pop() if unread else await receive()

    return receive_rest


async def _read(receive: Receive, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size_bytes, is_more = 0, True
    while is_more:
        message = await receive()
        if message["type"] != "http.request":
            raise _DisconnectedError
        parts.append(message.get("body", b""))
        size_bytes += len(parts[-1])
        if size_bytes > max_bytes:
            raise _TooLargeError
        is_more = message.get("more_body", False)
    return b"".join(parts)


def _unpack(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Return the unpacked body.

    Raises:
        _TooLargeError: If it is larger than ``max_bytes``; no more than that is ever unpacked.
        zlib.error: If it is packed otherwise, ends too early, or goes on behind its end: a body of a million empty
            parts would take minutes.
    """
    bits = _GZIP_BITS if coding != "deflate" else _ZLIB_BITS if _has_zlib_header(body) else _RAW_BITS
    unpacker = zlib.decompressobj(bits)
    unpacked = unpacker.decompress(body, max_bytes + 1)
    if len(unpacked) > max_bytes:
        raise _TooLargeError
    if not unpacker.eof:
        raise zlib.error("it ends too early")
    if unpacker.unused_data:
        raise zlib.error("it goes on behind its end")
    return unpacked


def _has_zlib_header(body: bytes) -> bool:
    """Tell whether deflated data have zlib's header, as they should; some clients leave it out."""
    return body[0] & 0x0F == _DEFLATE and int.from_bytes(body[:2], "big") % _CHECKED_BY == 0


@dataclass(frozen=True, slots=True)
class HeadAsGet:
    """Answers HEAD as GET would be answered, without the body."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["method"] != HTTPMethod.HEAD:
            await self.app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                if message.get("more_body", False):
                    return
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        state = {**scope.get("state", {}), "is_head": True}
        await self.app({**scope, "method": HTTPMethod.GET.value, "state": state}, receive, send_head)
