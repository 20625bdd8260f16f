"""Notes that jobs make from other notes: prepared with their vectors first, then written in one transaction."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from lamina.areas import Area
from lamina.errors import Misconfigured
from lamina.extraction.linking import read
from lamina.maintenance.changing import Changes
from lamina.memories import Note, clean_note
from lamina.ports import Embedder, ModelIdentity
from lamina.queries import Tier
from lamina.recording.knowledge import Knowledge, PreparedKnowledge, Told
from lamina.scope import Scope
from lamina.stores.postgres.connection import Pool, lent, statement
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.notes import PreparedNote, insert_notes, prepare_note
from lamina.stores.postgres.outbox import enqueue


@dataclass(frozen=True, slots=True)
class Derived:
    """A note that is to be made from others.

    Args:
        id: Follows from what it is made of, so that whoever makes it again makes the same.
        user: Who alone may see it; ``None``: everybody.
        note: With ``derived_from`` and ``event_at``.
    """

    id: UUID
    user: str | None
    note: Note


@dataclass(frozen=True, slots=True)
class PreparedDerived:
    """The same with its vectors and words, and what it tells the graph."""

    derived: Derived
    prepared: PreparedNote
    knowledge: PreparedKnowledge
    generation: int


class Deriver:
    """Makes notes from notes.

    Args:
        pool: Connections to Postgres.
        embedder: Embeds what is made.
        identity: Of its model.
        deadline_s: Seconds after which it gives up on the embedder.
    """

    def __init__(self, pool: Pool, embedder: Embedder, identity: ModelIdentity, *, deadline_s: float) -> None:
        self._pool = pool
        self._embedder = embedder
        self._identity = identity
        self._deadline_s = deadline_s

    async def known(self, ids: Sequence[UUID]) -> set[UUID]:
        """Return those that were made before, also if somebody deleted them or took them back: they stay away."""
        async with lent(self._pool) as connection:
            cursor = await connection.execute(statement("derived_ids"), {"ids": list(ids)})
            return {row["id"] async for row in cursor}

    async def prepare(self, derived: Sequence[Derived]) -> list[PreparedDerived]:
        """Return notes with everything that models have to say about them; nothing is written.

        Raises:
            Unavailable: If the embedder does not answer.
            Misconfigured: If the stores hold vectors of another model.
        """
        generation = await self._generation()
        cleaned = [Derived(item.id, item.user, clean_note(item.note)) for item in derived]
        chunks = await self._embedder.embed_chunks([item.note.content for item in cleaned])
        prepared = await asyncio.to_thread(
            lambda: [prepare_note(item.id, item.note, of) for item, of in zip(cleaned, chunks, strict=True)]
        )
        knowledge = [await _told(item) for item in cleaned]
        rows = zip(cleaned, prepared, knowledge, strict=True)
        return [PreparedDerived(*row, generation) for row in rows]

    async def _generation(self) -> int:
        async with lent(self._pool) as connection:
            row = await (await connection.execute(statement("active_generation"))).fetchone()
        stored = row and ModelIdentity(row["model"], row["dimension"], row["normalised"])
        if row is None or stored != self._identity:
            raise Misconfigured(
                f"embedding.model is {self._identity.model}, the stores hold vectors of "
                f"{stored.model if stored else 'none'}",
                "run the job with the settings of the service",
            )
        return int(row["generation"])

    async def write(self, changes: Changes, area: Area, item: PreparedDerived) -> bool:
        """Write a note with its links to what it was made from; tell whether it was new."""
        scope = area.scope().narrowed(user=item.derived.user)
        [put] = await insert_notes(changes.connection, scope, [item.prepared], item.generation, changes.moment)
        if put.existed:
            return False
        await self._link(changes, scope, item)
        await enqueue(changes.connection, "notes", [item.derived.id])
        hidden, shown = {"deleted_at": changes.moment}, {"deleted_at": None}
        await changes.journal("notes", hidden, shown, [item.derived.id])
        await bump_epoch(changes.connection, scope, teaches=True)
        return True

    async def _link(self, changes: Changes, scope: Scope, item: PreparedDerived) -> None:
        sources = {"note_id": item.derived.id, "source_ids": list(item.derived.note.derived_from)}
        await changes.connection.execute(statement("insert_note_sources"), sources)
        knowledge = Knowledge(self._embedder, generation=item.generation, deadline_s=self._deadline_s)
        await knowledge.write(changes.connection, scope, item.knowledge, [item.derived.id])


async def _told(item: Derived) -> PreparedKnowledge:
    """Return the note as the graph reads it: it mentions what is known, and makes nothing known itself."""
    note = item.note
    assert note.event_at is not None  # noqa: S101 - what is derived has a time
    told = Told(item.id, Tier.NOTES, note.content, note.source, item.user, note.event_at)
    return PreparedKnowledge((told,), (await asyncio.to_thread(read, note.content),))
