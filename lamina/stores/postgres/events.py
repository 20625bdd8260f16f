"""Events, written in the transaction of the change that they report."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from lamina.core.events import IDS_OF_EVENT, Event, EventFilter, EventPage, StoredEvent
from lamina.core.memories import new_id
from lamina.stores.postgres.connection import Connection, connect
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("events.sql")

CHANNEL = "lamina_events"


async def record_event(connection: Connection, event: Event) -> None:
    """Write an event inside the transaction of its change; see :func:`record_events`."""
    await record_events(connection, [event])


async def record_events(connection: Connection, events: Sequence[Event]) -> None:
    """Write events inside the transaction of their changes, and wake readers at its commit.

    Call it after the epochs are raised: then events of a namespace are in the order of its epochs. Until the
    transaction ends, readers wait for it with all events that were recorded later.
    """
    parts = [part for event in events for part in _parts(event)]
    if not parts:
        return
    columns = {
        "ids": [new_id() for _ in parts],
        "tenants": [event.tenant for event in parts],
        "workspaces": [event.workspace for event in parts],
        "namespaces": [event.namespace for event in parts],
        "users": [event.user for event in parts],
        "agents": [event.agent for event in parts],
        "sessions": [event.session for event in parts],
        "kinds": [str(event.kind) for event in parts],
        "memory_ids": [Jsonb([str(id_) for id_ in event.ids]) for event in parts],
        "facts": [Jsonb(dict(event.facts)) for event in parts],
    }
    await connection.execute(QUERIES["record_events"], columns)


def _parts(event: Event) -> list[Event]:
    """Cut an event with many ids into several."""
    if len(event.ids) <= IDS_OF_EVENT:
        return [event]
    starts = range(0, len(event.ids), IDS_OF_EVENT)
    return [replace(event, ids=event.ids[start : start + IDS_OF_EVENT]) for start in starts]


async def settled_position(connection: Connection) -> int:
    """Return the position up to which every event is committed, for a statement that begins after this one."""
    row = await (await connection.execute(QUERIES["settled_events"])).fetchone()
    return int(row["seq"]) if row else 0


async def erase_memory_ids(connection: Connection, tenant: str, ids: Sequence[UUID]) -> None:
    """Take the ids of erased memories out of the tenant's events."""
    if ids:
        await connection.execute(QUERIES["erase_memory_ids"], {"tenant": tenant, "ids": list(ids)})


class Events(PostgresStore):
    """Reads events that are settled: no earlier one can come any more."""

    async def settled(self) -> int:
        """Return the position up to which every event is committed."""
        async with connect(self._pool) as connection:
            return await settled_position(connection)

    async def find(self, tenant: str, id_: UUID) -> int | None:
        """Return the position of a tenant's event."""
        row = await self._row(QUERIES["find_event"], tenant=tenant, id=id_)
        return None if row is None else int(row["seq"])

    async def oldest_at(self, tenant: str) -> datetime | None:
        """Return the time of a tenant's oldest event."""
        row = await self._row(QUERIES["find_oldest_event"], tenant=tenant)
        return None if row is None else row["created_at"]

    async def page(self, tenant: str, wanted: EventFilter, after: int, limit: int) -> EventPage:
        """Return the next events after a position."""
        parameters = {
            "tenant": tenant,
            "workspace": wanted.workspace,
            "namespace": wanted.namespace,
            "user_id": wanted.user,
            "agent_id": wanted.agent,
            "kinds": [str(kind) for kind in wanted.kinds] or None,
            "after": after,
            "limit": limit,
        }
        async with connect(self._pool) as connection:
            settled = await settled_position(connection)
            cursor = await connection.execute(QUERIES["read_events"], {**parameters, "until": settled})
            found = tuple([_stored_event(row) async for row in cursor])
        is_full = len(found) == limit
        return EventPage(found, found[-1].position if is_full else max(after, settled), is_full)

    async def new(self, tenants: Collection[str], after: int, until: int, limit: int) -> list[StoredEvent]:
        """Return events of tenants between two positions."""
        return [
            _stored_event(row)
            for row in await self._rows(
                QUERIES["read_new_events"], tenants=sorted(tenants), after=after, until=until, limit=limit
            )
        ]


def _stored_event(row: DictRow) -> StoredEvent:
    event = Event(
        row["kind"],
        row["tenant"],
        row["workspace"],
        row["namespace"],
        row["user_id"],
        row["agent_id"],
        row["session_id"],
        tuple(row["memory_ids"]),
        row["facts"],
    )
    return StoredEvent(row["id"], row["seq"], row["created_at"], event)
