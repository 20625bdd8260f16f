"""Operations over many memories as rows: any process may go on with one."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Json, Jsonb

from lamina.core.memories import new_id
from lamina.core.operations import Operation, OperationKind, OperationState
from lamina.core.paging import Page
from lamina.core.scope import Scope
from lamina.errors import NotFound
from lamina.stores.postgres.connection import Connection, Pool, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore, fetch_row

QUERIES = load_queries("operations.sql")
STEP = timedelta(minutes=2)
"""Time after which another process takes a step over."""
MOST_FAILURES = 20
"""In a row: with the waits between them, an hour."""


async def order_operation(
    connection: Connection,
    kind: OperationKind,
    ids: Mapping[str, str | None],
    request: Mapping[str, Any],
    now: datetime,
) -> UUID:
    """Store a new operation over the memories of some ids, in the transaction of its order; return its id."""
    row = {"user_id": None, "agent_id": None, **ids, "id": new_id(), "kind": kind, "request": Json(request), "now": now}
    found = await (await connection.execute(QUERIES["order_operation"], row)).fetchone()
    assert found is not None  # noqa: S101 - it was inserted
    return _operation(found).id


async def hold_operation(connection: Connection, operation: Operation) -> bool:
    """Lock an operation until the transaction ends; report whether it stands where it was read."""
    row = await (await connection.execute(QUERIES["hold_operation"], {"id": operation.id})).fetchone()
    return row is not None and row["cursor"] == operation.cursor


async def advance_operation(connection: Connection, id_: UUID, cursor: UUID | None, counts: Mapping[str, int]) -> None:
    """Record a batch of an operation, in its transaction; one that has to be read again leaves the cursor."""
    row = {"id": id_, "cursor": cursor, "counts": Jsonb(dict(counts))}
    await connection.execute(QUERIES["advance_operation"], row)


async def complete_operation(
    connection: Connection,
    operation: Operation,
    kept: Sequence[str],
    now: datetime,
    receipt: Mapping[str, Any] | None = None,
) -> None:
    """End an operation; of its request, these fields are kept."""
    request = Json({name: operation.request[name] for name in kept if name in operation.request})
    row = {"id": operation.id, "request": request, "now": now, "receipt": receipt and Json(receipt)}
    await connection.execute(QUERIES["complete_operation"], row)


async def erase_user_operations(pool: Pool, tenant: str, user: str) -> int:
    """Delete the operations over a user's memories, and end those whose conditions name the user; count both."""
    row = await fetch_row(pool, QUERIES["erase_user_operations"], {"tenant": tenant, "user_id": user})
    return int(row["operations"]) if row else 0


class OperationTable(PostgresStore):
    """Reads operations.

    Every method raises ``Unavailable`` if Postgres does not answer.
    """

    async def get(self, tenant: str, id_: UUID) -> Operation:
        """Return an operation of a tenant.

        Raises:
            NotFound: If there is none.
        """
        row = await self._row(QUERIES["get_operation"], id=id_, tenant=tenant)
        if row is None:
            raise NotFound("operation", str(id_))
        return _operation(row)

    async def page(self, scope: Scope, page: Page) -> list[Operation]:
        """Return the latest operations of a scope, the last one first."""
        parameters = scope_parameters(scope) | page.parameters("id")
        return [_operation(row) for row in await self._rows(QUERIES["list_operations"], **parameters)]

    async def open(self) -> list[Operation]:
        """Return operations of all tenants that wait for a step, the oldest first."""
        return [_operation(row) for row in await self._rows(QUERIES["find_open_operations"])]

    async def claim(self, operation: Operation) -> bool:
        """Claim an operation for a step; report whether it stands where it was read and is nobody else's."""
        return await self._run(QUERIES["claim_operation"], id=operation.id, cursor=operation.cursor, step=STEP) > 0

    async def record_wait(self, id_: UUID, reason: str, *, is_last: bool = False) -> None:
        """Record why a step failed; one failure too many, or one that no other try mends, ends the operation."""
        most = 1 if is_last else MOST_FAILURES
        await self._run(QUERIES["record_operation_wait"], id=id_, waits_for=reason, most=most)


def _operation(row: DictRow) -> Operation:
    names = ("id", "tenant", "workspace", "namespace", "request", "cursor", "counts", "waits_for")
    times = ("requested_at", "completed_at", "receipt")
    return Operation(
        kind=OperationKind(row["kind"]),
        user=row["user_id"],
        agent=row["agent_id"],
        session=row["session_id"],
        state=OperationState(row["state"]),
        **{name: row[name] for name in (*names, *times)},
    )
