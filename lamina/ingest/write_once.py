"""Run a write in one transaction, and only once for each Idempotency-Key."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import TypeAdapter

from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.idempotency import Json, Once, answer_once

Result = TypeVar("Result")


async def write_once(
    pool: Pool, once: Once | None, results: TypeAdapter[Result], write: Callable[[Connection], Awaitable[Result]]
) -> Result:
    """Return the result of a write, or the one stored under its key; then nothing is written.

    Args:
        pool: Connections to Postgres.
        once: The caller's Idempotency-Key.
        results: Stores a result as JSON and reads it again, also one that an earlier version stored.
        write: Runs inside the transaction.

    Raises:
        Conflict: If the key was used for another request.
        Unavailable: If Postgres does not answer; nothing is written.
    """
    # Most writes have no key, and need no JSON.
    if once is None:
        return await in_transaction(pool, write)

    async def answer(connection: Connection) -> Json:
        return dict(results.dump_python(await write(connection), mode="json"))

    return results.validate_python(await answer_once(pool, once, answer))
