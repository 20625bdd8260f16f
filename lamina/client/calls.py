"""Requests as values: what both clients send, built once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
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


READY = Call("GET", "/readyz")


def _once(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key} if key else {}
