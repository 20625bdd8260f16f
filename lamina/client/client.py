"""The clients: plain and awaited, with models or JSON as answers."""

import asyncio
import os
import random
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from typing import Any, Self

import httpx
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from lamina.client.answers import is_missing, is_unrouted, parse, pause_s, read, unreachable
from lamina.client.calls import Calls
from lamina.client.event_stream import events_in, lines_of
from lamina.client.routes import Call, Command, Json, ListCall, ListRoute, Method, unsendable
from lamina.core.masking import mask_secrets
from lamina.errors import Misconfigured
from lamina.host.authorities import no_authorities, trusted_authorities
from lamina.host.secret_files import variable_or_file

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_TIMEOUT_S = 60.0
# Retries of a refused connection: at once, then after 0.5, 1, 2 and 4 seconds, longer than a proxy takes to restart.
# Nothing was sent then, so that this is safe for writes, too. So is a retry at a proxy that does not know its routes
# yet: no replica has seen the request.
CONNECT_RETRIES = 5
ROUTE_PAUSE_S = 0.5
# Retries of a call that the service refuses for now (`Retry-After`): any call that had not begun, as a search of too
# many, and one that did if it may be sent twice: a deletion that finds nothing then was done the first time. Those that
# were refused together do not come back together.
TURN_RETRIES = 4
SPREAD = 0.5


class _Plain(Calls):
    """A synchronous client.

    Args:
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
        scope: Ids sent with every request: workspace, namespace, user, agent, session, swarm.
        timeout_s: Longest wait for an answer, in seconds; also the longest pause before a call is repeated.
        connect_retries: Further tries after a refused connection, or an answer of a proxy that has no routes yet.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        scope: Json | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        connect_retries: int = CONNECT_RETRIES,
    ) -> None:
        super().__init__(scope or {})
        self._route_retries, self._longest_pause_s = connect_retries, timeout_s
        options = _options(url, key, timeout_s)
        transport = httpx.HTTPTransport(verify=_authorities(options["base_url"]), retries=connect_retries)
        self._http = httpx.Client(**options, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[Any]) -> Json:
        """Send a call and return its JSON answer; a `LaminaError` if there is none."""
        response = self._request(call)
        may_have_begun = False
        for retry in range(max(self._route_retries, TURN_RETRIES)):
            wait_s = _wait_s(call, response, retry, self._route_retries)
            if wait_s is None or wait_s > self._longest_pause_s:
                break
            time.sleep(wait_s)
            may_have_begun |= response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
            response = self._request(call)
        if may_have_begun and call.method == "DELETE" and is_missing(response):
            return {}
        return read(response)

    def answer(self, method: Method[Any, Any], call: Call[Any]) -> Any:
        """Send the call of a method and return its answer; a `LaminaError` if there is none."""
        answer = self.send(call)
        return None if isinstance(method, Command) else self._shape(method, answer)

    def each(self, method: ListRoute[Any, Any, Any], *args: Any, **fields: Any) -> Iterator[Any]:
        """Yield the items of all pages of a list; the same as `notes.each` of the list `notes`."""
        call: ListCall[Any, Any] | None = method.first_page(self, *args, **fields)
        while call is not None:
            answer = self.send(call)
            yield from _items(self._shape(method, answer), call.items)
            call = call.following(answer)

    def _request(self, call: Call[Any]) -> httpx.Response:
        with _explained(self._http.base_url):
            return self._http.request(call.method, call.path, **_content(call))

    @staticmethod
    def _shape(method: Method[Any, Any], answer: Json) -> Any:
        """Return an answer in the form of this client."""
        raise NotImplementedError


class _Awaited(Calls):
    """The asynchronous client: the same methods, awaited.

    Args:
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
        scope: Ids sent with every request: workspace, namespace, user, agent, session, swarm.
        timeout_s: Longest wait for an answer, in seconds; also the longest pause before a call is repeated.
        connect_retries: Further tries after a refused connection, or an answer of a proxy that has no routes yet.
        transport: Sends the requests in place of the network.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        scope: Json | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        connect_retries: int = CONNECT_RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(scope or {})
        self._route_retries, self._longest_pause_s = connect_retries, timeout_s
        options = _options(url, key, timeout_s)
        if transport is None:
            transport = httpx.AsyncHTTPTransport(verify=_authorities(options["base_url"]), retries=connect_retries)
        self._http = httpx.AsyncClient(**options, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[Any]) -> Json:
        """Send a call and return its JSON answer; a `LaminaError` if there is none."""
        response = await self._request(call)
        may_have_begun = False
        for retry in range(max(self._route_retries, TURN_RETRIES)):
            wait_s = _wait_s(call, response, retry, self._route_retries)
            if wait_s is None or wait_s > self._longest_pause_s:
                break
            await asyncio.sleep(wait_s)
            may_have_begun |= response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
            response = await self._request(call)
        if may_have_begun and call.method == "DELETE" and is_missing(response):
            return {}
        return read(response)

    async def answer(self, method: Method[Any, Any], call: Call[Any]) -> Any:
        """Send the call of a method and return its answer; a `LaminaError` if there is none."""
        answer = await self.send(call)
        return None if isinstance(method, Command) else self._shape(method, answer)

    async def each(self, method: ListRoute[Any, Any, Any], *args: Any, **fields: Any) -> AsyncIterator[Any]:
        """Yield the items of all pages of a list; the same as `notes.each` of the list `notes`."""
        call: ListCall[Any, Any] | None = method.first_page(self, *args, **fields)
        while call is not None:
            answer = await self.send(call)
            for item in _items(self._shape(method, answer), call.items):
                yield item
            call = call.following(answer)

    @asynccontextmanager
    async def following(self, **fields: Any) -> AsyncIterator[AsyncIterator[Json]]:
        """Open the stream of the scope's events, from the next one on, until the service ends it (`GET /v1/events`).

        Raises:
            LaminaError: If it is refused or breaks.
        """
        query = {**self._ids("workspace", "namespace", "user"), **fields}
        accepted = {"Accept": "text/event-stream"}
        try:
            async with self._http.stream("GET", "/v1/events", params=query, headers=accepted) as response:
                if not response.is_success:
                    await response.aread()
                    read(response)
                yield self._events_of(response)
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error

    async def _events_of(self, response: httpx.Response) -> AsyncIterator[Json]:
        # Raised where the events are read, which may be another task than the one that opened the stream.
        try:
            async for event in events_in(lines_of(response.aiter_text())):
                yield event
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error

    async def _request(self, call: Call[Any]) -> httpx.Response:
        with _explained(self._http.base_url):
            return await self._http.request(call.method, call.path, **_content(call))

    @staticmethod
    def _shape(method: Method[Any, Any], answer: Json) -> Any:
        """Return an answer in the form of this client."""
        raise NotImplementedError


def _as_json(method: Method[Any, Any], answer: Json) -> Json:  # noqa: ARG001 - as `_as_model`
    return answer


def _as_model(method: Method[Any, Any], answer: Json) -> BaseModel:
    return parse(method.model, answer)


class Lamina(_Plain):
    """A plain client whose answers are values of the models in `lamina.client.models`."""

    _shape = staticmethod(_as_model)


class AsyncLamina(_Awaited):
    """An awaited client whose answers are values of the models in `lamina.client.models`."""

    _shape = staticmethod(_as_model)


class Client(_Plain):
    """A plain client whose answers are the JSON that the service sends."""

    _shape = staticmethod(_as_json)


class AsyncClient(_Awaited):
    """An awaited client whose answers are the JSON that the service sends."""

    _shape = staticmethod(_as_json)


def _items(page: Any, name: str) -> Sequence[Any]:
    items: Sequence[Any] = page[name] if isinstance(page, dict) else getattr(page, name)
    return items


def _content(call: Call[Any]) -> Json:
    """Return what httpx sends; times, UUIDs and models may stand in it."""
    query = {name: value for name, value in call.params.items() if value is not None}
    content: Json = {"params": to_jsonable_python(query), "headers": call.headers}
    if call.file is None:
        return {**content, "json": to_jsonable_python(call.json)}
    return {**content, "data": to_jsonable_python(call.form), "files": {"file": call.file}}


@contextmanager
def _explained(url: httpx.URL) -> Iterator[None]:
    """Raise our errors for what cannot be sent, and for a service that does not answer."""
    try:
        yield
    except (ValueError, httpx.LocalProtocolError) as error:
        raise unsendable(error) from error
    except httpx.RequestError as error:  # Also an answer that is packed wrongly.
        raise unreachable(error, url) from error


def _wait_s(call: Call[Any], response: httpx.Response, retry: int, route_retries: int) -> float | None:
    """Return the seconds after which a call is repeated; ``None`` if its answer stands."""
    if is_unrouted(response):  # httpx repeats only what did not connect.
        return ROUTE_PAUSE_S if retry < route_retries else None
    pause = pause_s(response, is_repeatable=call.is_repeatable) if retry < TURN_RETRIES else None
    return None if pause is None else pause * random.uniform(1, 1 + SPREAD)  # noqa: S311 - no secret


def _options(url: str | None, key: str | None, timeout_s: float) -> dict[str, Any]:
    secret = key or variable_or_file("LAMINA_API_KEY")
    if secret and not (secret.isascii() and secret.isprintable()):
        raise Misconfigured(
            "the API key has a character that no key has, such as the end of a line", "correct LAMINA_API_KEY or `key`"
        )
    return {
        "base_url": _address(url or os.environ.get("LAMINA_URL") or DEFAULT_URL),
        "headers": {"Authorization": f"Bearer {secret}"} if secret else {},
        # A connection is there soon or not at all, however long an answer takes.
        "timeout": httpx.Timeout(timeout_s, connect=min(timeout_s, DEFAULT_TIMEOUT_S)),
    }


def _authorities(url: httpx.URL) -> ssl.SSLContext:
    """Return whom a client of this address trusts; no redirect leads it to another one."""
    return trusted_authorities() if url.scheme == "https" else no_authorities()


def _address(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL):
        found = httpx.URL(url)
        if found.scheme in {"http", "https"} and found.host:
            return found
    raise Misconfigured(
        f"{mask_secrets(repr(url))} is no address of a service", f"write one as {DEFAULT_URL} in LAMINA_URL or `url`"
    )
