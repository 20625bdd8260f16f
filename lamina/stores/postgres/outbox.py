"""The outbox: which memories a projection still has to take over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

import numpy as np
import psycopg
from psycopg.rows import DictRow

from lamina.memories import Message, Role
from lamina.ports import Change, Record
from lamina.stores.postgres.connection import Connection, Pool, lent, statement

ProjectionName = Literal["notes", "messages"]
PROJECTIONS: tuple[ProjectionName, ...] = ("notes", "messages")
CHANNEL = "lamina_outbox"


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a projection is behind.

    Args:
        pending: Memories still to apply.
        oldest_s: Age of the oldest of them, in seconds.
    """

    pending: int
    oldest_s: float


async def enqueue(connection: Connection, projection: ProjectionName, ids: Sequence[UUID]) -> None:
    """Mark memories as changed, inside the transaction that changes them, and wake the indexer at its commit."""
    if ids:
        await connection.execute(statement("enqueue"), {"projection": projection, "ids": list(ids)})
        await connection.execute(f"NOTIFY {CHANNEL}".encode())


class Outbox:
    """Reads and clears the outbox of one projection at a time."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def take(self, projection: ProjectionName, limit: int, applied: Sequence[int] = ()) -> list[tuple[int, UUID]]:
        """Return the oldest (sequence number, memory id) pairs beside those applied; they stay until :meth:`finish`."""
        async with lent(self._pool) as connection:
            cursor = await connection.execute(
                statement("take_outbox"), {"projection": projection, "limit": limit, "applied": list(applied)}
            )
            return [(row["seq"], row["memory_id"]) async for row in cursor]

    async def changes(self, projection: ProjectionName, ids: Sequence[UUID]) -> list[Change]:
        """Return the present state of each memory, each once; a deleted one has no record."""
        name = "note_records" if projection == "notes" else "message_records"
        read = _note_record if projection == "notes" else _message_record
        distinct = list(dict.fromkeys(ids))
        async with lent(self._pool) as connection:
            cursor = await connection.execute(statement(name), {"ids": distinct})
            records = {row["id"]: read(row) async for row in cursor}
        return [Change(id_, records.get(id_)) for id_ in distinct]

    async def finish(self, seqs: Sequence[int]) -> None:
        """Remove applied rows."""
        async with lent(self._pool) as connection:
            await connection.execute(statement("finish_outbox"), {"seqs": list(seqs)})

    async def lag(self) -> Mapping[str, Lag]:
        """Return the lag of every projection."""
        async with lent(self._pool) as connection:
            cursor = await connection.execute(statement("outbox_lag"))
            found = {row["projection"]: Lag(row["pending"], max(0.0, row["oldest_s"])) async for row in cursor}
        return {name: found.get(name, Lag(0, 0.0)) for name in PROJECTIONS}


def enqueue_all(url: str, projection: ProjectionName) -> int:
    """Mark every memory of a projection as changed, so that it is rebuilt; return how many."""
    with psycopg.connect(url) as connection:
        count = connection.execute(statement(f"enqueue_all_{projection}")).rowcount
        connection.execute(f"NOTIFY {CHANNEL}".encode())
    return count


def _note_record(row: DictRow) -> Record:
    return Record(
        tenant=row["tenant"],
        workspace=row["workspace"],
        namespace=row["namespace"],
        user=row["user_id"],
        session=row["session_id"],
        tags=tuple(row["tags"]),
        occurred_at=row["event_at"],
        confidence=row["confidence"],
        texts=_chunks(row, row["content"]),
        embeddings=tuple(np.asarray(vector, dtype=np.float32).tobytes() for vector in row["embeddings"]),
    )


def _message_record(row: DictRow) -> Record:
    return Record(
        tenant=row["tenant"],
        workspace=row["workspace"],
        namespace=row["namespace"],
        user=row["user_id"],
        session=row["session_id"],
        tags=(),
        occurred_at=row["occurred_at"],
        confidence=1.0,
        texts=_chunks(row, Message(Role.USER, row["content"], name=row["name"]).text()),
        embeddings=(),
    )


def _chunks(row: DictRow, text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in zip(row["starts"], row["ends"], strict=True))
