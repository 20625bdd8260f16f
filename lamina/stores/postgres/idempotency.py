"""Answers stored under the caller's Idempotency-Key."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from lamina.errors import Conflict
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("idempotency.sql")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Once:
    """A write that must happen once.

    Args:
        tenant: Whose key it is.
        key: The caller's Idempotency-Key.
        request_hash: SHA-256 of the request, so that a key cannot stand for two of them.
    """

    tenant: str
    key: str
    request_hash: bytes


def once_for(tenant: str, key: str, request: object) -> Once:
    """Identify a write by its key and the hash of its request as JSON."""
    text = json.dumps(request, sort_keys=True, default=str)
    return Once(tenant, key, hashlib.sha256(text.encode()).digest())


async def answer_once(pool: Pool, once: Once | None, write: Callable[[Connection], Awaitable[Json]]) -> Json:
    """Run a write in a transaction and return its answer; a repeated key returns the stored answer and writes nothing.

    Raises:
        Conflict: If the key was used for another request.
        Unavailable: If Postgres does not answer; nothing is written.
    """
    if once is None:
        return await in_transaction(pool, write)

    async def act(connection: Connection) -> Json:
        name = {"tenant": once.tenant, "key": once.key}
        await connection.execute(QUERIES["lock_idempotency_key"], name)
        stored = await (await connection.execute(QUERIES["find_idempotent_response"], name)).fetchone()
        if stored is None:
            response = await write(connection)
            row = {**name, "request_hash": once.request_hash, "response": Jsonb(response)}
            await connection.execute(QUERIES["insert_idempotent_response"], row)
            return response
        if bytes(stored["request_hash"]) != once.request_hash:
            raise Conflict(f"Idempotency-Key {once.key!r} was used for another request; send a new key")
        return dict(stored["response"])

    return await in_transaction(pool, act)
