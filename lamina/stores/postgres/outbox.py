"""The outbox: memories whose changes a projection still has to apply."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from lamina.core.ports import Change
from lamina.core.quotas import spending_tenant
from lamina.core.tiers import PROJECTIONS, TIERS, ProjectionName
from lamina.policies.retention.decay import LEAST_STRENGTH
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction
from lamina.stores.postgres.epochs import unsettle, unsettle_all
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_row, fetch_rows, run_statement
from lamina.stores.postgres.tiers import PROJECTED

QUERIES = load_queries("outbox.sql")

CHANNEL = "lamina_outbox"
# Projections of notes: one holds warm notes, the other cold ones, and both apply every change.
NOTE_PROJECTIONS = tuple(TIERS["notes"].projections)
# Namespaces whose cold notes are applied at once: an index that is made for one takes some 150 ms.
NAMESPACES = 16
GIVEN_UP_AT_ONCE = 10_000
# A projection, and a memory that changed.
OutboxEntry = tuple[ProjectionName, UUID]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a projection that are applied together.

    Args:
        seqs: Their sequence numbers.
        ids: The memory of each.
        build: The build that stores them beside the searched store, if there is one; read together with the rows, for a
            statement of its own would be one for every application.
    """

    seqs: Sequence[int] = ()
    ids: Sequence[UUID] = ()
    build: int | None = None


@dataclass(frozen=True, slots=True)
class Lag:
    """Lag of a projection.

    Args:
        pending: Memories with changes that are still to be applied.
        oldest_s: Age of the oldest of them, in seconds.
    """

    pending: int
    oldest_s: float


def outbox_entries(projection: ProjectionName, ids: Iterable[UUID]) -> list[OutboxEntry]:
    """Return the entries of memories that changed."""
    return [(projection, id_) for id_ in ids]


def note_entries(ids: Iterable[UUID]) -> list[OutboxEntry]:
    """Return the entries of notes that changed or were deleted, warm or cold."""
    return [(projection, id_) for id_ in ids for projection in NOTE_PROJECTIONS]


async def enqueue_entries(connection: Connection, entries: Sequence[OutboxEntry]) -> None:
    """Mark memories as changed, inside the transaction that changes them, and wake the indexer at its commit."""
    if entries:
        projections, ids = zip(*entries, strict=True)
        notified = ",".join(sorted(set(projections)))
        rows = {
            "projections": list(projections),
            "ids": list(ids),
            "notified": notified,
            "tenant": spending_tenant() or None,
        }
        await connection.execute(QUERIES["enqueue"], rows)


async def enqueue(connection: Connection, projection: ProjectionName, ids: Sequence[UUID]) -> None:
    """Mark memories of one projection as changed; see :func:`enqueue_entries`."""
    await enqueue_entries(connection, outbox_entries(projection, ids))


async def enqueue_notes(connection: Connection, ids: Sequence[UUID]) -> None:
    """Mark notes as changed or deleted, warm or cold; see :func:`enqueue_entries`."""
    await enqueue_entries(connection, note_entries(ids))


async def enqueue_returned(connection: Connection, ids: Sequence[UUID]) -> None:
    """Enqueue notes that come back for the graph, with the notes linked to them: their links went with the node."""
    await enqueue(connection, "graph", ids)
    if ids:
        await connection.execute(QUERIES["enqueue_links_to"], {"ids": list(ids)})


class Outbox:
    """Reads and clears the outbox of one projection at a time.

    Args:
        pool: Connections to Postgres.
        counted: The projections whose lag counts; entries of others wait without a lag.
    """

    def __init__(self, pool: Pool, counted: Sequence[ProjectionName] = tuple(PROJECTIONS)) -> None:
        self._pool = pool
        self._counted = counted

    async def take(self, projection: ProjectionName, limit: int, applied: Sequence[int] = ()) -> Batch:
        """Return the oldest rows but for applied ones; they stay until :meth:`finish`.

        Where more wait they come in turns of the tenants, so that one with ten thousand changes holds up no other's;
        those of cold notes also of few namespaces at once.
        """
        text = QUERIES["take_outbox_of_cold"] if projection == "cold" else QUERIES["take_outbox"]
        parameters = {
            "projection": projection,
            "limit": limit,
            "applied": list(applied),
            "namespaces": NAMESPACES,
        }
        async with connect(self._pool) as connection:
            cursor = await connection.execute(text, parameters)
            if cursor.rowcount == limit and projection != "cold":
                cursor = await connection.execute(QUERIES["take_outbox_in_turns"], parameters)
            rows = await cursor.fetchall()
        build = rows[0]["build"] if rows else None
        return Batch([row["seq"] for row in rows], [row["memory_id"] for row in rows], build)

    async def changes(
        self, projection: ProjectionName, ids: Sequence[UUID], seqs: Sequence[int] = ()
    ) -> list[Change[Any]]:
        """Return the present state of each memory; a deleted one has no record, a moved one also one of where it was.

        Args:
            projection: The projection.
            ids: The memories.
            seqs: Their rows, of which some say where a deleted memory was.
        """
        distinct = list(dict.fromkeys(ids))
        parameters = {"ids": distinct, "seqs": list(seqs), "least_strength": LEAST_STRENGTH}
        async with connect(self._pool) as connection:
            cursor = await connection.execute(PROJECTED[projection].records, parameters)
            records: dict[UUID, list[Any]] = {}
            async for row in cursor:
                records.setdefault(row["id"], []).append(PROJECTED[projection].record(row))
        return [Change(id_, record) for id_ in distinct for record in records.get(id_, [None])]

    async def ids(self, projection: ProjectionName, tenant: str, after: UUID | None, limit: int) -> list[UUID]:
        """Return the next ids, after ``after``, of a tenant's memories that belong in the projection."""
        parameters = {"tenant": tenant, "after": after, "limit": limit}
        return [row["id"] for row in await fetch_rows(self._pool, PROJECTED[projection].ids, parameters)]

    async def enqueue(self, projection: ProjectionName, tenant: str, ids: Sequence[UUID]) -> None:
        """Enqueue memories of a tenant again, and raise its epochs: cached answers may lack them."""
        if not ids:
            return

        async def act(connection: Connection) -> None:
            await enqueue(connection, projection, ids)
            await unsettle(connection, tenant)

        await in_transaction(self._pool, act)

    async def finish(self, seqs: Sequence[int]) -> None:
        """Remove applied rows."""
        await run_statement(self._pool, QUERIES["finish_outbox"], {"seqs": list(seqs)})

    async def give_up(self, kept: Sequence[ProjectionName], before: datetime) -> int:
        """Delete changes from before a time of projections that are not kept; return how many.

        A store that such a projection is kept in again takes over everything (see :func:`claim_store`).
        """
        parameters = {"kept": list(kept), "before": before, "limit": GIVEN_UP_AT_ONCE}
        total = 0
        while True:
            row = await fetch_row(self._pool, QUERIES["give_up_outbox"], parameters)
            assert row is not None  # noqa: S101 - it counts
            deleted = int(row["rows"])
            total += deleted
            if deleted < GIVEN_UP_AT_ONCE:
                return total

    async def lag(self) -> Mapping[str, Lag]:
        """Return the lag of every projection that counts."""
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["measure_lag"])
            found = {row["projection"]: Lag(row["pending"], max(0.0, row["oldest_s"])) async for row in cursor}
        return {name: found.get(name, Lag(0, 0.0)) for name in self._counted}


def enqueue_all(url: str, projection: ProjectionName) -> int:
    """Mark every memory of a projection as changed, so that it is rebuilt; return how many."""
    with psycopg.connect(url) as connection:
        return enqueue_everything(connection, projection)


def enqueue_everything(connection: psycopg.Connection[Any], projection: ProjectionName) -> int:
    """Mark every memory of a projection as changed, inside a transaction; return how many."""
    count = connection.execute(PROJECTED[projection].enqueue_all).rowcount
    unsettle_all(connection)
    connection.execute(f"NOTIFY {CHANNEL}".encode())
    return count
