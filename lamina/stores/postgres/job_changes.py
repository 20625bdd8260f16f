"""What a run changes, row by row: written with what it was, so that it can be undone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("job_changes.sql")

Relation = Literal["notes", "entities", "edges", "messages"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
Columns = Mapping[str, Any]
_LOCK_ROWS: Mapping[Relation, bytes] = {
    "notes": QUERIES["lock_rows_notes"],
    "entities": QUERIES["lock_rows_entities"],
    "edges": QUERIES["lock_rows_edges"],
    "messages": QUERIES["lock_rows_messages"],
}
_CHANGE_ROWS: Mapping[Relation, bytes] = {
    "notes": QUERIES["change_notes"],
    "entities": QUERIES["change_entities"],
    "edges": QUERIES["change_edges"],
    "messages": QUERIES["change_messages"],
}


@dataclass(frozen=True, slots=True)
class RowChange:
    """Another state of one row.

    Args:
        after: The columns that change, with their new values.
        guard: Columns that must still have these values; otherwise the row stays as it is.
    """

    id: UUID
    after: Columns
    guard: Columns = field(default_factory=dict)

    def undone(self, before: Columns) -> "RowChange":
        """Return what takes this change back, if nobody changed the row since."""
        return RowChange(self.id, before, self.after)


async def change_rows(
    connection: Connection,
    relation: Relation,
    changes: Sequence[RowChange],
    *,
    tenant: str | None = None,
    run: UUID | None = None,
) -> list[DictRow]:
    """Change rows together; what they were is kept for the run's undo.

    Args:
        connection: In the transaction of the change.
        relation: Whose rows.
        changes: What to change; rows whose guard does not hold are left out.
        tenant: Whose rows they must be; anybody's if not given.
        run: The run that may be undone; nothing is kept without one.

    Returns:
        ``id``, ``tenant``, ``workspace``, ``namespace`` of each row that was changed, and what the statement tells
        beside them.
    """
    if not changes:
        return []
    parameters = {
        "ids": [change.id for change in changes],
        "guards": [_json(change.guard) for change in changes],
        "afters": [_json(change.after) for change in changes],
        "tenant": tenant,
        "run_id": run,
    }
    await connection.execute(_LOCK_ROWS[relation], {"ids": parameters["ids"]})
    cursor = await connection.execute(_CHANGE_ROWS[relation], parameters)
    return await cursor.fetchall()


async def record_changes(
    connection: Connection, run: UUID, relation: Relation, before: Columns, after: Columns, ids: Sequence[UUID]
) -> None:
    """Keep for the undo what was done to rows by another statement, the same to all of them."""
    if ids:
        parameters = {
            "run_id": run,
            "relation": relation,
            "ids": list(ids),
            "befores": [_json(before)] * len(ids),
            "afters": [_json(after)] * len(ids),
        }
        await connection.execute(QUERIES["journal_job_changes"], parameters)


async def take_undone(connection: Connection, run: UUID, relation: Relation, limit: int) -> list[RowChange]:
    """Return what takes back some of a run's changes, which are thereby no longer kept."""
    parameters = {"run_id": run, "relation": relation, "limit": limit}
    cursor = await connection.execute(QUERIES["take_job_changes"], parameters)
    return [RowChange(row["id"], row["after"]).undone(row["before"]) async for row in cursor]


async def take_rows(connection: Connection, run: UUID, relation: str, limit: int) -> list[UUID]:
    """Return the ids of some rows that a run made in a way of its own, which are thereby no longer kept."""
    parameters = {"run_id": run, "relation": relation, "limit": limit}
    cursor = await connection.execute(QUERIES["take_job_changes"], parameters)
    return [row["id"] async for row in cursor]


async def forget_changes(connection: Connection, before: datetime) -> int:
    """Drop what runs changed that finished before this time: they cannot be undone any more."""
    return (await connection.execute(QUERIES["forget_job_changes"], {"before": before})).rowcount


def _json(columns: Columns) -> Jsonb:
    return Jsonb(columns, dumps=_dumps)


def _dumps(columns: Columns) -> str:
    return json.dumps(columns, default=_as_text)


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
