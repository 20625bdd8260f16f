"""Rows that belong to one user, deleted for good a page at a time."""

from collections.abc import Mapping, Sequence
from typing import Literal
from uuid import UUID

from psycopg.rows import DictRow

from lamina.stores.postgres.connection import Connection, Pool, connect
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("erasure.sql")

UserRows = Literal["messages", "passages", "documents", "profiles", "statements"]
_DELETE: Mapping[UserRows, bytes] = {
    "messages": QUERIES["erase_user_messages"],
    "passages": QUERIES["erase_user_passages"],
    "documents": QUERIES["erase_user_documents"],
    "profiles": QUERIES["erase_user_profiles"],
    "statements": QUERIES["erase_user_statements"],
}


async def delete_user_rows(
    connection: Connection, rows: UserRows, tenant: str, user: str, *, limit: int
) -> list[DictRow]:
    """Delete rows of a user; return ``workspace``, ``namespace`` and what else is known of each.

    Args:
        connection: In a transaction.
        rows: Of what. Documents go once their passages are gone.
        tenant: Whose user.
        user: Whose rows.
        limit: Most messages or passages; all of the others go at once.
    """
    parameters = {"tenant": tenant, "user_id": user, "limit": limit}
    return await (await connection.execute(_DELETE[rows], parameters)).fetchall()


async def lock_user_notes(connection: Connection, tenant: str, user: str, *, limit: int) -> list[DictRow]:
    """Lock notes of a user, deleted and merged ones too; return ``id``, ``workspace`` and ``namespace`` of each."""
    parameters = {"tenant": tenant, "user_id": user, "limit": limit}
    return await (await connection.execute(QUERIES["erase_user_notes"], parameters)).fetchall()


async def lock_derived_notes(connection: Connection, tenant: str, ids: Sequence[UUID]) -> list[DictRow]:
    """Lock all notes that were made from these, also by way of others; return the same of each."""
    parameters = {"ids": list(ids), "tenant": tenant}
    return await (await connection.execute(QUERIES["erase_derived_notes"], parameters)).fetchall()


async def erase_notes(connection: Connection, tenant: str, ids: Sequence[UUID]) -> None:
    """Delete rows of notes with everything that belongs to them, also from the journal of job runs."""
    await connection.execute(QUERIES["erase_notes"], {"ids": list(ids), "tenant": tenant})


async def count_user_rows(pool: Pool, tenant: str, user: str) -> Mapping[str, int]:
    """Return how many rows there are of a user, by kind."""
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES["user_left"], {"tenant": tenant, "user_id": user})
        row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - it has no FROM
    return {kind: int(count) for kind, count in row.items()}
