"""Changes that job runs make to rows, recorded with the values before, so that a run can be undone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
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
    """A change of one row.

    Args:
        after: The columns that change, with their new values.
        guard: Columns that must still have these values; otherwise the row stays as it is.
    """

    id: UUID
    after: Columns
    guard: Columns = field(default_factory=dict)


async def change_rows(
    connection: Connection,
    relation: Relation,
    changes: Sequence[RowChange],
    *,
    tenant: str | None = None,
    run: UUID | None = None,
) -> list[DictRow]:
    """Change rows together, and record their values before for the run's undo.

    Args:
        connection: In the transaction of the change.
        relation: Table of the rows.
        changes: Rows whose guard does not hold stay as they are.
        tenant: Owner that the rows must have; any if not given.
        run: The run that may be undone; nothing is recorded without one.

    Returns:
        ``id``, ``tenant``, ``workspace``, ``namespace`` and some columns of the relation, of each row that was changed.
    """
    if not changes:
        return []
    parameters = {
        "ids": [change.id for change in changes],
        "guards": [_json(change.guard) for change in changes],
        "afters": [_json(change.after) for change in changes],
        "tenant": tenant,
        "run_id": run,
        "relation": relation,
    }
    await connection.execute(_LOCK_ROWS[relation], {"ids": parameters["ids"]})
    cursor = await connection.execute(_CHANGE_ROWS[relation], parameters)
    return await cursor.fetchall()


async def record_changes(
    connection: Connection, run: UUID, relation: Relation, before: Columns, after: Columns, ids: Sequence[UUID]
) -> None:
    """Record one change that another statement made to all of these rows, for the run's undo."""
    if ids:
        parameters = {
            "run_id": run,
            "relation": relation,
            "ids": list(ids),
            "befores": [_json(before)] * len(ids),
            "afters": [_json(after)] * len(ids),
        }
        await connection.execute(QUERIES["record_changes"], parameters)


async def take_undone(connection: Connection, run: UUID, relation: Relation, limit: int) -> list[RowChange]:
    """Remove some of a run's changes from the record, and return the changes that reverse them.

    Each is guarded by the run's values: a row that was changed since stays as it is.
    """
    parameters = {"run_id": run, "relation": relation, "limit": limit}
    cursor = await connection.execute(QUERIES["take_changes"], parameters)
    return [RowChange(row["id"], row["before"], guard=row["after"]) async for row in cursor]


async def take_rows(connection: Connection, run: UUID, relation: str, limit: int) -> list[UUID]:
    """Remove some rows that a run made from its record, under a relation of its own, and return their ids."""
    parameters = {"run_id": run, "relation": relation, "limit": limit}
    cursor = await connection.execute(QUERIES["take_changes"], parameters)
    return [row["id"] async for row in cursor]


async def delete_old_changes(connection: Connection, before: datetime) -> int:
    """Delete the changes of runs that finished before this time: these cannot be undone any more."""
    return (await connection.execute(QUERIES["delete_old_changes"], {"before": before})).rowcount


def _json(columns: Columns) -> Jsonb:
    def as_text(value: object) -> str:
        return value.isoformat() if isinstance(value, datetime) else str(value)

    return Jsonb(columns, dumps=partial(json.dumps, default=as_text))
