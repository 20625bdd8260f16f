"""The synchronous and the asynchronous client: how each sends a call."""

import asyncio
import os
import random
import time
from collections.abc import Coroutine
from typing import Any, Self

import httpx

from lamina.client.answers import is_unrouted, pause_s, read, unreachable
from lamina.client.calls import Call, Calls, Json
from lamina.secret_files import variable_or_file

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_TIMEOUT_S = 60.0
# Retries of a refused connection: at once, then after 0.5, 1, 2 and 4 seconds, longer than a proxy takes to restart.
# Nothing was sent then, so that this is safe for writes, too. So is a retry at a proxy that does not know its routes
# yet: no replica has seen the request.
CONNECT_RETRIES = 5
ROUTE_PAUSE_S = 0.5
# Retries of a search that was refused because too many ran; those that were refused together do not come back together.
TURN_RETRIES = 4
SPREAD = 0.5


class Client(Calls[Json, None]):
    """A synchronous client.

    Args:
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
        scope: Ids sent with every request: workspace, namespace, user, agent, session, swarm.
        timeout_s: Longest wait for an answer, in seconds.
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
        self._route_retries = connect_retries
        transport = httpx.HTTPTransport(retries=connect_retries)
        self._http = httpx.Client(**_options(url, key, timeout_s), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call) -> Json:
        """Send a call and return its JSON answer; a `LaminaError` if there is none."""
        response = self._request(call)
        for retry in range(max(self._route_retries, TURN_RETRIES)):
            wait_s = _wait_s(response, retry, self._route_retries)
            if wait_s is None:
                break
            time.sleep(wait_s)
            response = self._request(call)
        return read(response)

    def _request(self, call: Call) -> httpx.Response:
        try:
            return self._http.request(call.method, call.path, json=call.json, params=call.params, headers=call.headers)
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error

    def _finish(self, call: Call) -> None:
        self.send(call)


class AsyncClient(Calls[Coroutine[Any, Any, Json], Coroutine[Any, Any, None]]):
    """The asynchronous client: the same methods, awaited.

    Args:
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
        scope: Ids sent with every request: workspace, namespace, user, agent, session, swarm.
        timeout_s: Longest wait for an answer, in seconds.
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
        self._route_retries = connect_retries
        network = transport or httpx.AsyncHTTPTransport(retries=connect_retries)
        self._http = httpx.AsyncClient(**_options(url, key, timeout_s), transport=network)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call) -> Json:
        """Send a call and return its JSON answer; a `LaminaError` if there is none."""
        response = await self._request(call)
        for retry in range(max(self._route_retries, TURN_RETRIES)):
            wait_s = _wait_s(response, retry, self._route_retries)
            if wait_s is None:
                break
            await asyncio.sleep(wait_s)
            response = await self._request(call)
        return read(response)

    async def _request(self, call: Call) -> httpx.Response:
        try:
            return await self._http.request(
                call.method, call.path, json=call.json, params=call.params, headers=call.headers
            )
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error

    async def _finish(self, call: Call) -> None:
        await self.send(call)


def _wait_s(response: httpx.Response, retry: int, route_retries: int) -> float | None:
    """Return the seconds after which a call is repeated; ``None`` if its answer stands."""
    if is_unrouted(response):  # httpx repeats only what did not connect.
        return ROUTE_PAUSE_S if retry < route_retries else None
    pause = pause_s(response) if retry < TURN_RETRIES else None
    return None if pause is None else pause * random.uniform(1, 1 + SPREAD)  # noqa: S311 - no secret


def _options(url: str | None, key: str | None, timeout_s: float) -> dict[str, Any]:
    secret = key or variable_or_file("LAMINA_API_KEY")
    return {
        "base_url": url or os.environ.get("LAMINA_URL", DEFAULT_URL),
        "headers": {"Authorization": f"Bearer {secret}"} if secret else {},
        "timeout": timeout_s,
    }
