"""Run a write of memories in one transaction, and only once for each Idempotency-Key."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar
from uuid import UUID

from pydantic import TypeAdapter

from lamina.errors import Conflict
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.idempotency import Json, Once, answer_once
from lamina.stores.postgres.tiers import find_missing

Result = TypeVar("Result")


async def write_once(
    pool: Pool, once: Once | None, results: TypeAdapter[Result], write: Callable[[Connection], Awaitable[Result]]
) -> Result:
    """Return the result of a write, or the one stored under its key; then nothing is written.

    Args:
        pool: Connections to Postgres.
        once: Identifies the write.
        results: Stores a result as JSON and reads it again, also one that an earlier version stored.
        write: Runs inside the transaction.

    Raises:
        Conflict: If the key was used for another request, or a memory of the stored result is there no more.
        Unavailable: If Postgres does not answer; nothing is written.
    """
    # Most writes have no key, and need no JSON.
    if once is None:
        return await in_transaction(pool, write)

    async def answer(connection: Connection) -> Json:
        return dict(results.dump_python(await write(connection), mode="json"))

    return results.validate_python(await answer_once(pool, once, answer, _refuse_gone))


async def _refuse_gone(connection: Connection, once: Once, response: Json) -> None:
    missing = await find_missing(connection, once.tenant, set(_ids_in(response)))
    if missing:
        reason = f"stands for a write whose {min(missing)} was deleted or archived since"
        raise Conflict(f"Idempotency-Key {once.key!r} {reason}; send a new key to write it again")


def _ids_in(answer: object) -> Iterator[UUID]:
    """Yield the id of every memory in a stored answer."""
    match answer:
        case dict():
            for name, value in answer.items():
                yield from [UUID(value)] if name == "id" else _ids_in(value)
        case list():
            for item in answer:
                yield from _ids_in(item)
