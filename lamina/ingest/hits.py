"""Count the notes that searches find, off their path: gathered in memory, written together."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from lamina.aio.write_behind import WriteBehind
from lamina.core.ports import Clock, HitStore, NoteHits
from lamina.errors import describe_error

logger = logging.getLogger(__name__)

MAX_NOTES = 1_000
CAPACITY = 20_000
FLUSH_DEADLINE_S = 10.0
LONGEST_FLUSH_S = FLUSH_DEADLINE_S * CAPACITY / MAX_NOTES
LONGEST_PAUSE_S = 30.0


class HitBuffer:
    """The hits that are not written yet, added up by note.

    Args:
        capacity: Most notes; beyond it the hits of further notes are dropped, and counted as such.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._hits: dict[UUID, NoteHits] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._hits)

    def add(self, hits: Iterable[NoteHits]) -> None:
        """Add hits to those of the same notes."""
        for item in hits:
            earlier = self._hits.get(item.id)
            if earlier is None and len(self._hits) >= self._capacity:
                self.dropped += item.hits
            else:
                self._hits[item.id] = item if earlier is None else _sum(earlier, item)

    def take(self, limit: int) -> list[NoteHits]:
        """Remove and return the hits of some notes, the oldest first."""
        ids = list(self._hits)[:limit]
        return [self._hits.pop(id_) for id_ in ids]


def _sum(one: NoteHits, other: NoteHits) -> NoteHits:
    return replace(
        one,
        hits=one.hits + other.hits,
        first_at=min(one.first_at, other.first_at),
        last_at=max(one.last_at, other.last_at),
    )


def one_hit_each(ids: Iterable[UUID], now: datetime) -> list[NoteHits]:
    """Return one hit of each note, however often the answer names it."""
    return [NoteHits(id_, 1, now, now) for id_ in dict.fromkeys(ids)]


class HitCounter:
    """Counts hits after the answer is sent; a failure delays the counting and nothing else.

    Args:
        store: Where the hits are kept.
        clock: The time of day.
        flush_interval_s: How long hits gather before they are written together.
        max_notes: Most notes of one write; so many are written without waiting.
    """

    def __init__(self, store: HitStore, clock: Clock, *, flush_interval_s: float, max_notes: int = MAX_NOTES) -> None:
        self._store = store
        self._clock = clock
        self._flush_interval_s = flush_interval_s
        self._max_notes = max_notes
        self._buffer = HitBuffer()
        self._turn = asyncio.Lock()
        # Only says when to write: the buffer adds up the hits of a note, and keeps those that cannot be written yet.
        self._due: WriteBehind[None] = WriteBehind(
            self._write_due, part="hits", window_s=flush_interval_s, max_items=max_notes, deadline_s=LONGEST_FLUSH_S
        )

    async def add(self, ids: Sequence[UUID]) -> None:
        """Count one hit of each note; returns at once."""
        hits = one_hit_each(ids, self._clock())
        self._buffer.add(hits)
        for _ in hits:
            self._due.add(None)

    async def flush(self) -> None:
        """Write everything gathered so far.

        Raises:
            Unavailable: If the store does not answer; the hits that are not written yet are kept.
        """
        async with self._turn:
            while batch := self._buffer.take(self._max_notes):
                try:
                    async with asyncio.timeout(FLUSH_DEADLINE_S):
                        await self._store.count(batch)
                except BaseException:
                    self._buffer.add(batch)
                    raise

    async def close(self) -> None:
        """Write the hits that are left, if the store answers, and end."""
        # The write that is under way is cancelled and gives its hits back: it may hang.
        self._due.cancel()
        try:
            await self.flush()
        except Exception as error:  # noqa: BLE001 - the process ends anyway
            logger.warning("hits: %d notes stay uncounted: %s", len(self._buffer), describe_error(error))

    async def _write_due(self, _: Sequence[None]) -> None:
        """Write; after a failure try again, after ever longer pauses."""
        try:
            await self.flush()
            self._due.window_s = self._flush_interval_s
        except Exception as error:  # noqa: BLE001 - they are tried again
            logger.warning("hits: not counted yet, retrying: %s", describe_error(error))
            self._due.window_s = min(LONGEST_PAUSE_S, self._due.window_s * 2)
            self._due.add(None)
