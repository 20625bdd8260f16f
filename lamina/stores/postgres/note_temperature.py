"""Temperatures of notes: hits keep notes warm, and make cold ones warm again."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.events import Event, EventKind
from lamina.core.ports import NoteHits
from lamina.core.scope import Scope
from lamina.policies.retention.lifespan import is_promoted
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_events
from lamina.stores.postgres.outbox import enqueue_notes
from lamina.stores.postgres.queries import load_queries
from lamina.text.words import index_words

QUERIES = load_queries("note_temperature.sql")

# Splitting this much takes a few milliseconds, for which the event loop may stand still; longer texts go to a thread.
LONG_TEXT_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class Temperatures:
    """Counts hits of notes, and promotes cold ones; the job ``sweep`` demotes idle ones.

    Args:
        pool: Connections to Postgres.
        days_per_doubling: Of a note's lifespan, see :func:`lifespan`.
    """

    pool: Pool
    days_per_doubling: float

    async def promote(self, ids: Sequence[UUID], now: datetime) -> list[UUID]:
        """Make cold notes warm, as a hit at this time would; return those that were cold."""
        return await in_transaction(self.pool, lambda connection: _promote(connection, ids, now))

    async def count(self, hits: Sequence[NoteHits]) -> list[UUID]:
        """Add hits to notes; promote and return those that the hits make warm.

        This depends on a note's state before the hits, not on how the hits were batched.
        """
        if not hits:
            return []
        parameters = {
            "ids": [item.id for item in hits],
            "hits": [item.hits for item in hits],
            "last": [item.last_at for item in hits],
        }

        async def act(connection: Connection) -> list[UUID]:
            cursor = await connection.execute(QUERIES["count_hits"], parameters)
            revived = _revived({item.id: item for item in hits}, await cursor.fetchall(), self.days_per_doubling)
            return await _promote(connection, revived, max(item.last_at for item in hits)) if revived else []

        return await in_transaction(self.pool, act)


def _revived(hits: Mapping[UUID, NoteHits], rows: Iterable[DictRow], days_per_doubling: float) -> list[UUID]:
    """Return the cold notes that their first hit, or a second one right after it, makes warm."""
    return [
        row["id"]
        for row in rows
        if row["temperature"] == "cold"
        and (
            hits[row["id"]].hits > 1
            or is_promoted(row["hits_before"], row["last_hit_before"], hits[row["id"]].first_at, days_per_doubling)
        )
    ]


async def _promote(connection: Connection, ids: Sequence[UUID], now: datetime) -> list[UUID]:
    rows = await warm_up(connection, ids, now)
    promoted = [row["id"] for row in rows]
    await enqueue_notes(connection, promoted)
    for scope in sorted({(row["tenant"], row["workspace"], row["namespace"]) for row in rows}):
        await bump_epoch(connection, Scope(*scope))
    of_owner: dict[Scope, list[UUID]] = {}
    for row in rows:
        owner = Scope(row["tenant"], row["workspace"], row["namespace"], row["user_id"])
        of_owner.setdefault(owner, []).append(row["id"])
    events = [Event.of(owner, EventKind.NOTE_PROMOTED, *sorted(own)) for owner, own in of_owner.items()]
    await record_events(connection, events)
    return promoted


async def warm_up(connection: Connection, ids: Sequence[UUID], now: datetime) -> list[DictRow]:
    """Make cold notes warm, their words included; the caller enqueues them and raises the epochs.

    Returns:
        ``id``, ``tenant``, ``workspace``, ``namespace`` and ``user_id`` of each note that was cold.
    """
    cursor = await connection.execute(QUERIES["lock_cold_chunks"], {"ids": list(ids)})
    chunks = await cursor.fetchall()
    if not chunks:
        return []
    await _write_words(connection, chunks)
    cursor = await connection.execute(QUERIES["promote_notes"], {"ids": [row["id"] for row in chunks], "now": now})
    return await cursor.fetchall()


async def restore_words(connection: Connection, ids: Sequence[UUID]) -> None:
    """Index the words of notes that became warm."""
    cursor = await connection.execute(QUERIES["read_chunk_texts"], {"ids": list(ids)})
    await _write_words(connection, await cursor.fetchall())


async def blank_words(connection: Connection, ids: Sequence[UUID]) -> None:
    """Remove the words of notes that became cold from the index."""
    await connection.execute(QUERIES["blank_words"], {"ids": list(ids)})


async def _write_words(connection: Connection, chunks: Sequence[DictRow]) -> None:
    texts = [row["text"] for row in chunks]
    is_long = sum(map(len, texts)) > LONG_TEXT_CHARS
    joined = await asyncio.to_thread(_join_words, texts) if is_long else _join_words(texts)
    parameters = {
        "ids": [row["id"] for row in chunks],
        "generations": [row["generation"] for row in chunks],
        "chunks": [row["chunk"] for row in chunks],
        "words": joined,
    }
    await connection.execute(QUERIES["restore_words"], parameters)


def _join_words(texts: Sequence[str]) -> list[str]:
    return [" ".join(index_words(text)) for text in texts]
