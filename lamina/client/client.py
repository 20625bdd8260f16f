"""Two faces, sync and async, over the same calls and answers."""

import os
from collections.abc import Sequence
from typing import Any, Self
from uuid import UUID

import httpx

from lamina.client import calls
from lamina.client.answers import read, unreachable
from lamina.client.calls import Call, Json

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_TIMEOUT_S = 60.0


def _options(url: str | None, key: str | None, timeout_s: float) -> dict[str, Any]:
    secret = key or os.environ.get("LAMINA_API_KEY", "")
    return {
        "base_url": url or os.environ.get("LAMINA_URL", DEFAULT_URL),
        "headers": {"Authorization": f"Bearer {secret}"} if secret else {},
        "timeout": timeout_s,
    }


class Client:
    """A synchronous client.

    Args:
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``.
        scope: Ids sent with every request: workspace, namespace, user, agent, session, swarm.
        timeout_s: Longest wait for an answer, in seconds.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        scope: Json | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self._http = httpx.Client(**_options(url, key, timeout_s))
        self._scope = scope or {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call) -> Json:
        """Send a call and return its JSON answer.

        Raises:
            LaminaError: What the service answered, or that it does not.
        """
        try:
            response = self._http.request(
                call.method, call.path, json=call.json, params=call.params, headers=call.headers
            )
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error
        return read(response)

    def record(self, messages: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any) -> Json:
        """Hand over the messages of a turn (`POST /v1/turns`)."""
        return self.send(calls.record(messages, {**self._scope, **scope}, idempotency_key))

    def add(self, content: str, *, idempotency_key: str | None = None, **fields: Any) -> Json:
        """Store a note (`POST /v1/notes`)."""
        return self.send(calls.add(content, {**self._scope, **fields}, idempotency_key))

    def add_many(self, notes: Sequence[str | Json], *, idempotency_key: str | None = None, **scope: Any) -> Json:
        """Store notes, with a result per item (`POST /v1/notes/batch`)."""
        return self.send(calls.add_many(notes, {**self._scope, **scope}, idempotency_key))

    def note(self, id_: UUID | str) -> Json:
        """Return a note (`GET /v1/notes/{id}`)."""
        return self.send(calls.note(id_))

    def change(self, id_: UUID | str, **fields: Any) -> Json:
        """Change fields of a note (`PATCH /v1/notes/{id}`)."""
        return self.send(calls.change(id_, fields))

    def delete(self, id_: UUID | str) -> None:
        """Delete a note (`DELETE /v1/notes/{id}`)."""
        self.send(calls.delete(id_))

    def profile(self, **scope: Any) -> Json:
        """Return a user's profile (`GET /v1/profile`)."""
        return self.send(calls.profile({**self._scope, **scope}))

    def patch_profile(self, patch: Json, **scope: Any) -> Json:
        """Merge a patch into a user's profile (`PATCH /v1/profile`)."""
        return self.send(calls.patch_profile(patch, {**self._scope, **scope}))

    def search(self, query: str, **fields: Any) -> Json:
        """Search all tiers (`POST /v1/search`)."""
        return self.send(calls.search(query, {**self._scope, **fields}))

    def context(self, query: str, **fields: Any) -> Json:
        """Return a block ready for a prompt (`POST /v1/context`)."""
        return self.send(calls.context(query, {**self._scope, **fields}))

    def ready(self) -> Json:
        """Return the state of every part, ready or not (`GET /readyz`)."""
        return self.send(calls.READY)


class AsyncClient:
    """The asynchronous client: the same methods, awaited.

    Args:
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``.
        scope: Ids sent with every request.
        timeout_s: Longest wait for an answer, in seconds.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        scope: Json | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self._http = httpx.AsyncClient(**_options(url, key, timeout_s))
        self._scope = scope or {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call) -> Json:
        """Send a call and return its JSON answer.

        Raises:
            LaminaError: What the service answered, or that it does not.
        """
        try:
            response = await self._http.request(
                call.method, call.path, json=call.json, params=call.params, headers=call.headers
            )
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error
        return read(response)

    async def record(self, messages: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any) -> Json:
        """Hand over the messages of a turn (`POST /v1/turns`)."""
        return await self.send(calls.record(messages, {**self._scope, **scope}, idempotency_key))

    async def add(self, content: str, *, idempotency_key: str | None = None, **fields: Any) -> Json:
        """Store a note (`POST /v1/notes`)."""
        return await self.send(calls.add(content, {**self._scope, **fields}, idempotency_key))

    async def add_many(self, notes: Sequence[str | Json], *, idempotency_key: str | None = None, **scope: Any) -> Json:
        """Store notes, with a result per item (`POST /v1/notes/batch`)."""
        return await self.send(calls.add_many(notes, {**self._scope, **scope}, idempotency_key))

    async def note(self, id_: UUID | str) -> Json:
        """Return a note (`GET /v1/notes/{id}`)."""
        return await self.send(calls.note(id_))

    async def change(self, id_: UUID | str, **fields: Any) -> Json:
        """Change fields of a note (`PATCH /v1/notes/{id}`)."""
        return await self.send(calls.change(id_, fields))

    async def delete(self, id_: UUID | str) -> None:
        """Delete a note (`DELETE /v1/notes/{id}`)."""
        await self.send(calls.delete(id_))

    async def profile(self, **scope: Any) -> Json:
        """Return a user's profile (`GET /v1/profile`)."""
        return await self.send(calls.profile({**self._scope, **scope}))

    async def patch_profile(self, patch: Json, **scope: Any) -> Json:
        """Merge a patch into a user's profile (`PATCH /v1/profile`)."""
        return await self.send(calls.patch_profile(patch, {**self._scope, **scope}))

    async def search(self, query: str, **fields: Any) -> Json:
        """Search all tiers (`POST /v1/search`)."""
        return await self.send(calls.search(query, {**self._scope, **fields}))

    async def context(self, query: str, **fields: Any) -> Json:
        """Return a block ready for a prompt (`POST /v1/context`)."""
        return await self.send(calls.context(query, {**self._scope, **fields}))

    async def ready(self) -> Json:
        """Return the state of every part, ready or not (`GET /readyz`)."""
        return await self.send(calls.READY)
