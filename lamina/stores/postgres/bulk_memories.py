"""Memories of a kind that match a filter: counted, read and locked in pages; notes and documents moved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from lamina.core.queries import Filters
from lamina.core.scope import Scope
from lamina.core.trash import TrashKind
from lamina.errors import NotFound
from lamina.stores.postgres import documents, messages, notes
from lamina.stores.postgres.connection import Connection, Pool, scope_parameters
from lamina.stores.postgres.filters import Columns, apply_filters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_row, fetch_rows

QUERIES = load_queries("bulk_memories.sql")
TRIES = 3


@dataclass(frozen=True, slots=True)
class _Statements:
    """The statements over one kind, and the columns that filters name in them."""

    count: bytes
    page: bytes
    lock: bytes
    columns: Columns


_STATEMENTS: Mapping[TrashKind, _Statements] = {
    TrashKind.NOTE: _Statements(
        QUERIES["count_selected_notes"],
        QUERIES["select_notes"],
        QUERIES["lock_selected_notes"],
        notes.COLUMNS,
    ),
    TrashKind.MESSAGE: _Statements(
        QUERIES["count_selected_messages"],
        QUERIES["select_messages"],
        QUERIES["lock_selected_messages"],
        messages.COLUMNS,
    ),
    TrashKind.DOCUMENT: _Statements(
        QUERIES["count_selected_documents"],
        QUERIES["select_documents"],
        QUERIES["lock_selected_documents"],
        documents.COLUMNS,
    ),
}


async def preview_selected(
    pool: Pool, kind: TrashKind, scope: Scope, filters: Filters, now: datetime, *, sample: int
) -> tuple[int, list[DictRow]]:
    """Count the memories of exactly the ids of a scope that match, and return the rows of the first ones."""
    statements = _STATEMENTS[kind]
    text, values = apply_filters(statements.count, filters, statements.columns)
    row = await fetch_row(pool, text, scope_parameters(scope) | values)
    rows = await select_rows(pool, kind, scope, filters, stored_by=now, after=None, limit=sample) if sample else []
    return int(row["matched"]) if row else 0, rows


async def select_rows(
    pool: Pool, kind: TrashKind, scope: Scope, filters: Filters, *, stored_by: datetime, after: UUID | None, limit: int
) -> list[DictRow]:
    """Return a page of their rows, by id, of those that were stored by a time; of most kinds the ids alone."""
    statements = _STATEMENTS[kind]
    text, values = apply_filters(statements.page, filters, statements.columns)
    page = {"stored_by": stored_by, "after": after, "limit": limit}
    return await fetch_rows(pool, text, scope_parameters(scope) | values | page)


async def lock_selected(
    connection: Connection, kind: TrashKind, scope: Scope, filters: Filters, ids: Sequence[UUID]
) -> list[DictRow]:
    """Lock those of some that match still, until the transaction ends; return their rows, by id."""
    statements = _STATEMENTS[kind]
    text, values = apply_filters(statements.lock, filters, statements.columns)
    cursor = await connection.execute(text, scope_parameters(scope) | values | {"ids": list(ids)})
    return await cursor.fetchall()


async def hold_selected(connection: Connection, kind: TrashKind, scope: Scope, filters: Filters, id_: UUID) -> None:
    """Lock one that matches still, until the transaction ends.

    Raises:
        NotFound: If it does not match any more, or is gone.
    """
    if not await lock_selected(connection, kind, scope, filters, [id_]):
        raise NotFound(kind, str(id_))


async def tag_documents(
    connection: Connection, tenant: str, tags: Mapping[UUID, Sequence[str]], now: datetime
) -> list[UUID]:
    """Give locked documents other tags, each as a version of its own; return their passages, which bear them, too."""
    if not tags:
        return []
    rows = {"tenant": tenant, "ids": list(tags), "tags": [Jsonb(list(found)) for found in tags.values()], "now": now}
    await connection.execute(QUERIES["tag_documents"], rows)
    return await list_passages(connection, list(tags))


async def list_passages(connection: Connection, ids: Sequence[UUID]) -> list[UUID]:
    """Return the passages of documents, which stay so if they are locked."""
    cursor = await connection.execute(QUERIES["list_passages_of_documents"], {"ids": list(ids)})
    return [row["id"] async for row in cursor]


async def read_to_move(pool: Pool, tenant: str, ids: Sequence[UUID]) -> list[DictRow]:
    """Return the passages of documents that can be moved, with what the graph reads of their documents."""
    return await fetch_rows(pool, QUERIES["read_documents_to_move"], {"tenant": tenant, "ids": list(ids)})


async def move_documents(connection: Connection, ids: Sequence[UUID], target: Scope) -> dict[UUID, list[UUID]]:
    """Move locked documents to a namespace; return the passages of each that moved.

    Files stay, and documents whose key their user has there.
    """
    rows = await _move(connection, QUERIES["move_documents"], scope_parameters(target) | {"ids": list(ids)})
    return {row["id"]: row["passages"] for row in rows}


async def move_notes(connection: Connection, ids: Sequence[UUID], target: Scope) -> list[UUID]:
    """Move locked notes to a namespace, but for those whose text their user has there; return those that moved."""
    rows = await _move(connection, QUERIES["move_notes"], scope_parameters(target) | {"ids": list(ids)})
    return await _move_chunks(connection, rows, target)


async def read_merged(pool: Pool, tenant: str, ids: Sequence[UUID]) -> list[DictRow]:
    """Return the notes that were merged into these, directly or not."""
    return await fetch_rows(pool, QUERIES["read_merged_notes"], {"tenant": tenant, "ids": list(ids)})


async def move_merged(connection: Connection, ids: Sequence[UUID], target: Scope) -> list[UUID]:
    """Move the notes that were merged into moved ones after them; return them."""
    cursor = await connection.execute(QUERIES["move_merged_notes"], scope_parameters(target) | {"ids": list(ids)})
    return await _move_chunks(connection, await cursor.fetchall(), target)


async def _move(connection: Connection, statement: bytes, parameters: Mapping[str, Any]) -> list[DictRow]:
    async def move() -> list[DictRow]:
        async with connection.transaction():
            return await (await connection.execute(statement, parameters)).fetchall()

    # The same may be written there while they move; the next try sees it.
    is_equal = retry_if_exception_type(psycopg.errors.UniqueViolation)
    return await AsyncRetrying(retry=is_equal, stop=stop_after_attempt(TRIES), reraise=True)(move)


async def _move_chunks(connection: Connection, moved: Sequence[DictRow], target: Scope) -> list[UUID]:
    ids = [row["id"] for row in moved]
    await connection.execute(QUERIES["move_note_chunks"], scope_parameters(target) | {"ids": ids})
    return ids
