"""Notes that match a filter, counted, read and moved in pages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from lamina.core.memories import StoredNote
from lamina.core.queries import Filters
from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Connection, Pool, scope_parameters
from lamina.stores.postgres.filters import apply_filters
from lamina.stores.postgres.note_rows import stored_note
from lamina.stores.postgres.notes import COLUMNS
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_row, fetch_rows

QUERIES = load_queries("bulk_notes.sql")
TRIES = 3


async def count_selected(pool: Pool, scope: Scope, filters: Filters) -> int:
    """Count the notes of exactly the ids of a scope that match."""
    text, values = apply_filters(QUERIES["count_selected_notes"], filters, COLUMNS)
    row = await fetch_row(pool, text, scope_parameters(scope) | values)
    return int(row["matched"]) if row else 0


async def select_notes(
    pool: Pool, scope: Scope, filters: Filters, *, stored_by: datetime, after: UUID | None, limit: int
) -> list[StoredNote]:
    """Return a page of the same, by id, of those that were stored by a time."""
    text, values = apply_filters(QUERIES["select_notes"], filters, COLUMNS)
    page = {"stored_by": stored_by, "after": after, "limit": limit}
    return [stored_note(row) for row in await fetch_rows(pool, text, scope_parameters(scope) | values | page)]


async def lock_selected(
    connection: Connection, scope: Scope, filters: Filters, ids: Sequence[UUID]
) -> list[StoredNote]:
    """Lock those of a page that match still, until the transaction ends; return them."""
    text, values = apply_filters(QUERIES["lock_selected_notes"], filters, COLUMNS)
    cursor = await connection.execute(text, scope_parameters(scope) | values | {"ids": list(ids)})
    return [stored_note(row) async for row in cursor]


async def move_notes(connection: Connection, ids: Sequence[UUID], target: Scope) -> list[UUID]:
    """Move locked notes to a namespace, but for those whose text their user has there; return those that moved."""
    place = {"tenant": target.tenant, "workspace": target.workspace, "namespace": target.namespace}
    parameters = {**place, "ids": list(ids)}
    # The same text may be written there while they move; the next try sees it.
    is_equal = retry_if_exception_type(psycopg.errors.UniqueViolation)
    retrying = AsyncRetrying(retry=is_equal, stop=stop_after_attempt(TRIES), reraise=True)
    moved: list[UUID] = await retrying(_move_rows, connection, parameters)
    await connection.execute(QUERIES["move_note_chunks"], {**place, "ids": moved})
    return moved


async def read_merged(pool: Pool, tenant: str, ids: Sequence[UUID]) -> list[StoredNote]:
    """Return the notes that were merged into these, directly or not."""
    rows = await fetch_rows(pool, QUERIES["read_merged_notes"], {"tenant": tenant, "ids": list(ids)})
    return [stored_note(row) for row in rows]


async def move_merged(connection: Connection, ids: Sequence[UUID], target: Scope) -> list[UUID]:
    """Move the notes that were merged into moved ones after them; return them."""
    place = {"tenant": target.tenant, "workspace": target.workspace, "namespace": target.namespace}
    cursor = await connection.execute(QUERIES["move_merged_notes"], {**place, "ids": list(ids)})
    merged = [row["id"] async for row in cursor]
    await connection.execute(QUERIES["move_note_chunks"], {**place, "ids": merged})
    return merged


async def _move_rows(connection: Connection, parameters: Mapping[str, Any]) -> list[UUID]:
    async with connection.transaction():
        cursor = await connection.execute(QUERIES["move_notes"], parameters)
        return [row["id"] async for row in cursor]
