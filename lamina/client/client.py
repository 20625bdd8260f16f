"""Two faces, sync and async, over the same calls and answers."""

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any, Self
from uuid import UUID

import httpx

from lamina.client import calls
from lamina.client.answers import is_unrouted, read, unreachable
from lamina.client.calls import Call, Json

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_TIMEOUT_S = 60.0
CONNECT_RETRIES = 5
"""Tries after a refused connection: at once, then after 0.5, 1, 2 and 4 seconds, longer than a proxy takes to restart.

Nothing was sent then, so that this is safe for writes, too. So is asking a proxy again that does not know its routes
yet: no replica has seen the request.
"""
ROUTE_PAUSE_S = 0.5


def _options(url: str | None, key: str | None, timeout_s: float) -> dict[str, Any]:
    secret = key or os.environ.get("LAMINA_API_KEY", "")
    return {
        "base_url": url or os.environ.get("LAMINA_URL", DEFAULT_URL),
        "headers": {"Authorization": f"Bearer {secret}"} if secret else {},
        "timeout": timeout_s,
    }


def _pauses_s(retries: int) -> list[float]:
    """Return how long to wait after each answer of a proxy without routes; the last one counts as it is."""
    return [ROUTE_PAUSE_S] * retries + [0.0]


class Client:
    """A synchronous client.

    Args:
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``.
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
        self._pauses_s = _pauses_s(connect_retries)
        transport = httpx.HTTPTransport(retries=connect_retries)
        self._http = httpx.Client(**_options(url, key, timeout_s), transport=transport)
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
        for pause_s in self._pauses_s:
            response = self._answer(call)
            if not is_unrouted(response):
                break
            time.sleep(pause_s)
        return read(response)

    def _answer(self, call: Call) -> httpx.Response:
        try:
            return self._http.request(call.method, call.path, json=call.json, params=call.params, headers=call.headers)
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error

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

    def add_procedure(self, trigger: str, action: str, *, idempotency_key: str | None = None, **fields: Any) -> Json:
        """Store a procedure (`POST /v1/procedures`)."""
        return self.send(calls.add_procedure(trigger, action, {**self._scope, **fields}, idempotency_key))

    def add_procedures(self, procedures: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any) -> Json:
        """Store procedures, with a result per item (`POST /v1/procedures/batch`)."""
        return self.send(calls.add_procedures(procedures, {**self._scope, **scope}, idempotency_key))

    def match_procedures(self, query: str, **fields: Any) -> Json:
        """Return the procedures that a situation calls for (`POST /v1/procedures/match`)."""
        return self.send(calls.match_procedures(query, {**self._scope, **fields}))

    def report_outcome(
        self, id_: UUID | str, *, succeeded: bool, idempotency_key: str | None = None, **fields: Any
    ) -> Json:
        """Report what came of following a procedure (`POST /v1/procedures/{id}/outcomes`)."""
        return self.send(calls.report_outcome(id_, succeeded, fields, idempotency_key))

    def add_document(self, content: str | bytes, *, idempotency_key: str | None = None, **fields: Any) -> Json:
        """Store a document, its text or the bytes of its file (`POST /v1/documents`)."""
        return self.send(calls.add_document(content, {**self._scope, **fields}, idempotency_key))

    def add_documents(self, documents: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any) -> Json:
        """Store documents, each with text or bytes as its content (`POST /v1/documents/batch`)."""
        return self.send(calls.add_documents(documents, {**self._scope, **scope}, idempotency_key))

    def document(self, id_: UUID | str, *, content: bool = True) -> Json:
        """Return a document, with its text if wanted (`GET /v1/documents/{id}`)."""
        return self.send(calls.document(id_, content=content))

    def documents(self, **fields: Any) -> Json:
        """List the documents of a scope (`GET /v1/documents`)."""
        return self.send(calls.documents({**self._scope, **fields}))

    def passages(self, id_: UUID | str, **page: Any) -> Json:
        """Return the passages of a document (`GET /v1/documents/{id}/passages`)."""
        return self.send(calls.passages(id_, page))

    def delete_document(self, id_: UUID | str) -> None:
        """Delete a document with all its passages (`DELETE /v1/documents/{id}`)."""
        self.send(calls.delete_document(id_))

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

    def state(self, edges: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any) -> Json:
        """State how entities stand to each other (`POST /v1/graph/edges`)."""
        return self.send(calls.state(edges, {**self._scope, **scope}, idempotency_key))

    def neighbours(self, name: str, **scope: Any) -> Json:
        """Return what an entity is linked to (`GET /v1/graph/neighbours`)."""
        return self.send(calls.neighbours(name, {**self._scope, **scope}))

    def traverse(self, names: Sequence[str], **fields: Any) -> Json:
        """Follow links from entities (`POST /v1/graph/traverse`)."""
        return self.send(calls.traverse(names, {**self._scope, **fields}))

    def audit(self, *, repair: bool = False) -> Json:
        """Compare every projection with Postgres (`POST /v1/audit`); needs an admin key."""
        return self.send(calls.audit(repair=repair))

    def look_up_response(self, query: str, **fields: Any) -> Json:
        """Look for the response to a question that was put before (`POST /v1/responses/lookup`)."""
        return self.send(calls.look_up_response(query, {**self._scope, **fields}))

    def put_response(self, query: str, response: Any, **fields: Any) -> Json:
        """Keep the response to a question (`POST /v1/responses`)."""
        return self.send(calls.put_response(query, response, {**self._scope, **fields}))

    def cache_stats(self, workspace: str | None = None) -> Json:
        """Return what the caches hold and did (`GET /cache/stats`)."""
        return self.send(calls.cache_stats(workspace))

    def clear_caches(self, workspace: str | None = None, agent: str | None = None, *, everything: bool = False) -> Json:
        """Clear the caches of an agent, a workspace or the tenant (`DELETE /cache`); needs an admin key."""
        return self.send(calls.clear_caches(workspace, agent, everything=everything))

    def purge_expired_caches(self) -> Json:
        """Remove what has expired from the caches' tables (`DELETE /cache/stats/expired`); needs an admin key."""
        return self.send(calls.purge_expired_caches())

    def forecast(self, session: str, **scope: Any) -> Json:
        """Tell how full a session is (`GET /v1/sessions/{session}/forecast`)."""
        return self.send(calls.forecast(session, {**self._scope, **scope}))

    def archived_notes(self, *, limit: int = 100, offset: int = 0, **scope: Any) -> Json:
        """List archived notes (`GET /v1/archive/notes`)."""
        where = {key: value for key, value in {**self._scope, **scope}.items() if key in {"workspace", "namespace"}}
        return self.send(calls.archived_notes({**where, "limit": limit, "offset": offset}))

    def restore_notes(self, ids: Sequence[UUID | str]) -> Json:
        """Bring archived notes back (`POST /v1/archive/restore`); needs an admin key."""
        return self.send(calls.restore_notes(ids))

    def erase_user(self, user: str) -> Json:
        """Erase everything that belongs to a user (`DELETE /v1/users`); needs an admin key."""
        return self.send(calls.erase_user(user))

    def run_job(self, job: str, *, idempotency_key: str | None = None, **fields: Any) -> Json:
        """Order a maintenance job on the key's tenant (`POST /v1/jobs`); needs an admin key."""
        return self.send(calls.run_job(job, fields, idempotency_key))

    def job_runs(self, job: str | None = None, *, limit: int = 20) -> Json:
        """List the latest runs of jobs (`GET /v1/jobs`); needs an admin key."""
        return self.send(calls.job_runs(job, limit))

    def job_run(self, id_: str) -> Json:
        """Report what a run did, or how far it is (`GET /v1/jobs/{id}`); needs an admin key."""
        return self.send(calls.job_run(id_))

    def undo_job(self, id_: str) -> Json:
        """Take a run back (`POST /v1/jobs/{id}/undo`); needs an admin key."""
        return self.send(calls.undo_job(id_))

    def job_schedule(self) -> Json:
        """Return when each job runs by itself (`GET /v1/jobs/schedule`); needs an admin key."""
        return self.send(calls.JOB_SCHEDULE)

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
        self._pauses_s = _pauses_s(connect_retries)
        transport = httpx.AsyncHTTPTransport(retries=connect_retries)
        self._http = httpx.AsyncClient(**_options(url, key, timeout_s), transport=transport)
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
        for pause_s in self._pauses_s:
            response = await self._answer(call)
            if not is_unrouted(response):
                break
            await asyncio.sleep(pause_s)
        return read(response)

    async def _answer(self, call: Call) -> httpx.Response:
        try:
            return await self._http.request(
                call.method, call.path, json=call.json, params=call.params, headers=call.headers
            )
        except httpx.TransportError as error:
            raise unreachable(error, self._http.base_url) from error

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

    async def add_procedure(
        self, trigger: str, action: str, *, idempotency_key: str | None = None, **fields: Any
    ) -> Json:
        """Store a procedure (`POST /v1/procedures`)."""
        return await self.send(calls.add_procedure(trigger, action, {**self._scope, **fields}, idempotency_key))

    async def add_procedures(
        self, procedures: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any
    ) -> Json:
        """Store procedures, with a result per item (`POST /v1/procedures/batch`)."""
        return await self.send(calls.add_procedures(procedures, {**self._scope, **scope}, idempotency_key))

    async def match_procedures(self, query: str, **fields: Any) -> Json:
        """Return the procedures that a situation calls for (`POST /v1/procedures/match`)."""
        return await self.send(calls.match_procedures(query, {**self._scope, **fields}))

    async def report_outcome(
        self, id_: UUID | str, *, succeeded: bool, idempotency_key: str | None = None, **fields: Any
    ) -> Json:
        """Report what came of following a procedure (`POST /v1/procedures/{id}/outcomes`)."""
        return await self.send(calls.report_outcome(id_, succeeded, fields, idempotency_key))

    async def add_document(self, content: str | bytes, *, idempotency_key: str | None = None, **fields: Any) -> Json:
        """Store a document, its text or the bytes of its file (`POST /v1/documents`)."""
        return await self.send(calls.add_document(content, {**self._scope, **fields}, idempotency_key))

    async def add_documents(
        self, documents: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any
    ) -> Json:
        """Store documents, each with text or bytes as its content (`POST /v1/documents/batch`)."""
        return await self.send(calls.add_documents(documents, {**self._scope, **scope}, idempotency_key))

    async def document(self, id_: UUID | str, *, content: bool = True) -> Json:
        """Return a document, with its text if wanted (`GET /v1/documents/{id}`)."""
        return await self.send(calls.document(id_, content=content))

    async def documents(self, **fields: Any) -> Json:
        """List the documents of a scope (`GET /v1/documents`)."""
        return await self.send(calls.documents({**self._scope, **fields}))

    async def passages(self, id_: UUID | str, **page: Any) -> Json:
        """Return the passages of a document (`GET /v1/documents/{id}/passages`)."""
        return await self.send(calls.passages(id_, page))

    async def delete_document(self, id_: UUID | str) -> None:
        """Delete a document with all its passages (`DELETE /v1/documents/{id}`)."""
        await self.send(calls.delete_document(id_))

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

    async def state(self, edges: Sequence[Json], *, idempotency_key: str | None = None, **scope: Any) -> Json:
        """State how entities stand to each other (`POST /v1/graph/edges`)."""
        return await self.send(calls.state(edges, {**self._scope, **scope}, idempotency_key))

    async def neighbours(self, name: str, **scope: Any) -> Json:
        """Return what an entity is linked to (`GET /v1/graph/neighbours`)."""
        return await self.send(calls.neighbours(name, {**self._scope, **scope}))

    async def traverse(self, names: Sequence[str], **fields: Any) -> Json:
        """Follow links from entities (`POST /v1/graph/traverse`)."""
        return await self.send(calls.traverse(names, {**self._scope, **fields}))

    async def audit(self, *, repair: bool = False) -> Json:
        """Compare every projection with Postgres (`POST /v1/audit`); needs an admin key."""
        return await self.send(calls.audit(repair=repair))

    async def look_up_response(self, query: str, **fields: Any) -> Json:
        """Look for the response to a question that was put before (`POST /v1/responses/lookup`)."""
        return await self.send(calls.look_up_response(query, {**self._scope, **fields}))

    async def put_response(self, query: str, response: Any, **fields: Any) -> Json:
        """Keep the response to a question (`POST /v1/responses`)."""
        return await self.send(calls.put_response(query, response, {**self._scope, **fields}))

    async def cache_stats(self, workspace: str | None = None) -> Json:
        """Return what the caches hold and did (`GET /cache/stats`)."""
        return await self.send(calls.cache_stats(workspace))

    async def clear_caches(
        self, workspace: str | None = None, agent: str | None = None, *, everything: bool = False
    ) -> Json:
        """Clear the caches of an agent, a workspace or the tenant (`DELETE /cache`); needs an admin key."""
        return await self.send(calls.clear_caches(workspace, agent, everything=everything))

    async def purge_expired_caches(self) -> Json:
        """Remove what has expired from the caches' tables (`DELETE /cache/stats/expired`); needs an admin key."""
        return await self.send(calls.purge_expired_caches())

    async def forecast(self, session: str, **scope: Any) -> Json:
        """Tell how full a session is (`GET /v1/sessions/{session}/forecast`)."""
        return await self.send(calls.forecast(session, {**self._scope, **scope}))

    async def archived_notes(self, *, limit: int = 100, offset: int = 0, **scope: Any) -> Json:
        """List archived notes (`GET /v1/archive/notes`)."""
        where = {key: value for key, value in {**self._scope, **scope}.items() if key in {"workspace", "namespace"}}
        return await self.send(calls.archived_notes({**where, "limit": limit, "offset": offset}))

    async def restore_notes(self, ids: Sequence[UUID | str]) -> Json:
        """Bring archived notes back (`POST /v1/archive/restore`); needs an admin key."""
        return await self.send(calls.restore_notes(ids))

    async def erase_user(self, user: str) -> Json:
        """Erase everything that belongs to a user (`DELETE /v1/users`); needs an admin key."""
        return await self.send(calls.erase_user(user))

    async def run_job(self, job: str, *, idempotency_key: str | None = None, **fields: Any) -> Json:
        """Order a maintenance job on the key's tenant (`POST /v1/jobs`); needs an admin key."""
        return await self.send(calls.run_job(job, fields, idempotency_key))

    async def job_runs(self, job: str | None = None, *, limit: int = 20) -> Json:
        """List the latest runs of jobs (`GET /v1/jobs`); needs an admin key."""
        return await self.send(calls.job_runs(job, limit))

    async def job_run(self, id_: str) -> Json:
        """Report what a run did, or how far it is (`GET /v1/jobs/{id}`); needs an admin key."""
        return await self.send(calls.job_run(id_))

    async def undo_job(self, id_: str) -> Json:
        """Take a run back (`POST /v1/jobs/{id}/undo`); needs an admin key."""
        return await self.send(calls.undo_job(id_))

    async def job_schedule(self) -> Json:
        """Return when each job runs by itself (`GET /v1/jobs/schedule`); needs an admin key."""
        return await self.send(calls.JOB_SCHEDULE)

    async def ready(self) -> Json:
        """Return the state of every part, ready or not (`GET /readyz`)."""
        return await self.send(calls.READY)
