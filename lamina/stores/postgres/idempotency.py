"""Answers kept under the caller's Idempotency-Key."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from lamina.errors import Conflict
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("idempotency.sql")


@dataclass(frozen=True, slots=True)
class Once:
    """A write that must happen once.

    Args:
        tenant: Whose key it is.
        key: What the caller sent as Idempotency-Key.
        request_hash: SHA-256 of the request, so that a key cannot stand for two of them.
    """

    tenant: str
    key: str
    request_hash: bytes


def once_for(tenant: str, key: str, request: object) -> Once:
    """Return the identity of a write from its request as JSON."""
    text = json.dumps(request, sort_keys=True, default=str)
    return Once(tenant, key, hashlib.sha256(text.encode()).digest())


Json = dict[str, Any]


async def answer_once(connection: Connection, once: Once | None, act: Callable[[], Awaitable[Json]]) -> Json:
    """Return the kept answer of this key, or what ``act`` answers, kept in the same transaction.

    Raises:
        Conflict: If the key was used for another request.
    """
    if once is None:
        return await act()
    name = {"tenant": once.tenant, "key": once.key}
    await connection.execute(QUERIES["lock_idempotency_key"], name)
    cursor = await connection.execute(QUERIES["find_idempotent_response"], name)
    kept = await cursor.fetchone()
    if kept is None:
        response = await act()
        row = {**name, "request_hash": once.request_hash, "response": Jsonb(response)}
        await connection.execute(QUERIES["keep_idempotent_response"], row)
        return response
    if bytes(kept["request_hash"]) != once.request_hash:
        raise Conflict(f"Idempotency-Key {once.key!r} was used for another request; send a new key")
    response = kept["response"]
    return dict(response)
