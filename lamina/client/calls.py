"""Requests as values: what both clients send, built once."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import UUID

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request, without its address and key."""

    method: str
    path: str
    json: Json | None = None
    params: Json = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def record(messages: Sequence[Json], scope: Json, idempotency_key: str | None) -> Call:
    """Hand over the messages of a turn."""
    return Call("POST", "/v1/turns", {**scope, "messages": list(messages)}, headers=_once(idempotency_key))


def add(content: str, fields: Json, idempotency_key: str | None) -> Call:
    """Store a note."""
    return Call("POST", "/v1/notes", {**fields, "content": content}, headers=_once(idempotency_key))


def add_many(notes: Sequence[str | Json], scope: Json, idempotency_key: str | None) -> Call:
    """Store notes, with a result per item."""
    return Call("POST", "/v1/notes/batch", {**scope, "notes": list(notes)}, headers=_once(idempotency_key))


def note(id_: UUID | str) -> Call:
    """Return a note."""
    return Call("GET", f"/v1/notes/{id_}")


def change(id_: UUID | str, fields: Json) -> Call:
    """Change fields of a note."""
    return Call("PATCH", f"/v1/notes/{id_}", fields)


def delete(id_: UUID | str) -> Call:
    """Delete a note."""
    return Call("DELETE", f"/v1/notes/{id_}")


def add_procedure(trigger: str, action: str, fields: Json, idempotency_key: str | None) -> Call:
    """Store a procedure."""
    body = {**fields, "trigger": trigger, "action": action}
    return Call("POST", "/v1/procedures", body, headers=_once(idempotency_key))


def add_procedures(procedures: Sequence[Json], scope: Json, idempotency_key: str | None) -> Call:
    """Store procedures, with a result per item."""
    body = {**scope, "procedures": list(procedures)}
    return Call("POST", "/v1/procedures/batch", body, headers=_once(idempotency_key))


def match_procedures(query: str, fields: Json) -> Call:
    """Return the procedures that a situation calls for."""
    return Call("POST", "/v1/procedures/match", {**fields, "query": query})


def report_outcome(id_: UUID | str, succeeded: bool, fields: Json, idempotency_key: str | None) -> Call:
    """Report what came of following a procedure."""
    body = {**fields, "succeeded": succeeded}
    return Call("POST", f"/v1/procedures/{id_}/outcomes", body, headers=_once(idempotency_key))


def add_document(content: str | bytes, fields: Json, idempotency_key: str | None) -> Call:
    """Store a document: its text, or the bytes of its file."""
    body = {**fields, **_content(content)}
    return Call("POST", "/v1/documents", body, headers=_once(idempotency_key))


def add_documents(documents: Sequence[Json], scope: Json, idempotency_key: str | None) -> Call:
    """Store documents, with a result per item."""
    items = [_with_content(document) for document in documents]
    return Call("POST", "/v1/documents/batch", {**scope, "documents": items}, headers=_once(idempotency_key))


def _with_content(document: Json) -> Json:
    others = {name: value for name, value in document.items() if name != "content"}
    return {**others, **_content(document["content"])} if "content" in document else others


def _content(content: str | bytes) -> Json:
    """Return the content as JSON can hold it."""
    if isinstance(content, str):
        return {"content": content}
    return {"content_base64": base64.b64encode(content).decode()}


def document(id_: UUID | str, *, content: bool) -> Call:
    """Return a document."""
    return Call("GET", f"/v1/documents/{id_}", params={"content": content})


def documents(scope: Json) -> Call:
    """List the documents of a scope."""
    return Call("GET", "/v1/documents", params=scope)


def passages(id_: UUID | str, page: Json) -> Call:
    """Return the passages of a document."""
    return Call("GET", f"/v1/documents/{id_}/passages", params=page)


def delete_document(id_: UUID | str) -> Call:
    """Delete a document."""
    return Call("DELETE", f"/v1/documents/{id_}")


def profile(scope: Json) -> Call:
    """Return a user's profile."""
    return Call("GET", "/v1/profile", params=scope)


def patch_profile(patch: Json, scope: Json) -> Call:
    """Merge a patch into a user's profile."""
    return Call("PATCH", "/v1/profile", {**scope, "patch": patch})


def search(query: str, fields: Json) -> Call:
    """Search all tiers."""
    return Call("POST", "/v1/search", {**fields, "query": query})


def context(query: str, fields: Json) -> Call:
    """Return a block ready for a prompt."""
    return Call("POST", "/v1/context", {**fields, "query": query})


def audit(*, repair: bool) -> Call:
    """Compare every projection with Postgres."""
    return Call("POST", "/v1/audit", {"repair": repair})


def neighbours(name: str, scope: Json) -> Call:
    """Return what an entity is linked to."""
    return Call("GET", "/v1/graph/neighbours", params={**scope, "name": name})


def traverse(names: Sequence[str], fields: Json) -> Call:
    """Follow links from entities."""
    return Call("POST", "/v1/graph/traverse", {**fields, "names": list(names)})


def state(edges: Sequence[Json], scope: Json, idempotency_key: str | None) -> Call:
    """State how entities stand to each other."""
    return Call("POST", "/v1/graph/edges", {**scope, "edges": list(edges)}, headers=_once(idempotency_key))


def look_up_response(query: str, fields: Json) -> Call:
    """Look for the response to a question."""
    return Call("POST", "/v1/responses/lookup", {**fields, "query": query})


def put_response(query: str, response: Any, fields: Json) -> Call:
    """Keep the response to a question."""
    return Call("POST", "/v1/responses", {**fields, "query": query, "response": response})


def cache_stats(workspace: str | None) -> Call:
    """Tell what the caches hold and did."""
    return Call("GET", "/cache/stats", params=_given(workspace=workspace))


def clear_caches(workspace: str | None, agent: str | None, *, everything: bool) -> Call:
    """Clear the caches of an agent, a workspace or the tenant."""
    named = _given(workspace=workspace, agent=agent, everything="true" if everything else None)
    return Call("DELETE", "/cache", params=named)


def purge_expired_caches() -> Call:
    """Remove what has expired from the caches' tables."""
    return Call("DELETE", "/cache/stats/expired")


def run_job(job: str, fields: Json, idempotency_key: str | None) -> Call:
    """Order a maintenance job."""
    return Call("POST", "/v1/jobs", {**fields, "job": job}, headers=_once(idempotency_key))


def job_runs(job: str | None, limit: int) -> Call:
    """List runs of jobs."""
    return Call("GET", "/v1/jobs", params={**_given(job=job), "limit": limit})


def job_run(id_: str) -> Call:
    """Report what a run did."""
    return Call("GET", f"/v1/jobs/{id_}")


def undo_job(id_: str) -> Call:
    """Take a run back."""
    return Call("POST", f"/v1/jobs/{id_}/undo")


def forecast(session: str, scope: Json) -> Call:
    """Tell how full a session is."""
    return Call("GET", f"/v1/sessions/{quote(session, safe='')}/forecast", params=scope)


def archived_notes(params: Json) -> Call:
    """List archived notes."""
    return Call("GET", "/v1/archive/notes", params=params)


def restore_notes(ids: Sequence[UUID | str]) -> Call:
    """Bring archived notes back."""
    return Call("POST", "/v1/archive/restore", {"ids": [str(id_) for id_ in ids]})


def erase_user(user: str) -> Call:
    """Erase a user."""
    return Call("DELETE", "/v1/users", params={"user": user})


JOB_SCHEDULE = Call("GET", "/v1/jobs/schedule")


def _given(**ids: str | None) -> Json:
    return {name: id_ for name, id_ in ids.items() if id_ is not None}


READY = Call("GET", "/readyz")


def _once(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key} if key else {}
