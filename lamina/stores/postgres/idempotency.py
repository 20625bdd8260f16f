"""Answers stored under the caller's Idempotency-Key."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from lamina.errors import Conflict
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import run_statement

QUERIES = load_queries("idempotency.sql")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Once:
    """A write that must happen once.

    Args:
        tenant: Whose key it is.
        key: The caller's Idempotency-Key.
        request_hash: SHA-256 of the request, so that a key cannot stand for two of them.
        lifetime: How long its answer is given again.
        user: Person of the request, with whom the answer is erased.
    """

    tenant: str
    key: str
    request_hash: bytes
    lifetime: timedelta
    user: str | None = None


def hash_request(request: object) -> bytes:
    """Return the hash of a request as JSON."""
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode()).digest()


async def find_answer(connection: Connection, once: Once) -> Json | None:
    """Return the ``response`` stored under a key, with the ``request_hash`` of its request."""
    alive = {"tenant": once.tenant, "key": once.key, "cutoff": datetime.now(UTC) - once.lifetime}
    return await (await connection.execute(QUERIES["find_idempotent_response"], alive)).fetchone()


async def answer_once(
    pool: Pool,
    once: Once | None,
    write: Callable[[Connection], Awaitable[Json]],
    check: Callable[[Connection, Once, Json], Awaitable[None]] | None = None,
) -> Json:
    """Run a write in a transaction and return its answer; a repeated key returns the stored answer and writes nothing.

    Args:
        pool: Connections to Postgres.
        once: Identifies the write; without it, the write just runs.
        write: Runs inside the transaction.
        check: Raises if a stored answer no longer holds; without it, every stored answer is given again.

    Raises:
        Conflict: If the key was used for another request.
        Unavailable: If Postgres does not answer; nothing is written.
    """
    if once is None:
        return await in_transaction(pool, write)

    async def act(connection: Connection) -> Json:
        name = {"tenant": once.tenant, "key": once.key}
        # Before the look: a repetition that comes during the first call waits for its answer instead of writing twice.
        await connection.execute(QUERIES["lock_idempotency_key"], name)
        stored = await find_answer(connection, once)
        if stored is None:
            response = await write(connection)
            row = {"request_hash": once.request_hash, "response": Jsonb(response), "user_id": once.user}
            await connection.execute(QUERIES["put_idempotent_response"], name | row)
            return response
        if bytes(stored["request_hash"]) != once.request_hash:
            raise Conflict(f"Idempotency-Key {once.key!r} was used for another request; send a new key")
        if check is not None:
            await check(connection, once, stored["response"])
        return dict(stored["response"])

    return await in_transaction(pool, act)


async def purge_answers(pool: Pool, tenant: str, cutoff: datetime) -> int:
    """Delete a tenant's answers from before the cutoff; return how many."""
    return await run_statement(pool, QUERIES["purge_idempotency_keys"], {"tenant": tenant, "cutoff": cutoff})
