"""Notes that jobs make from other notes: prepared with their vectors first, then written in one transaction."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import DictRow

from lamina.aio.deadline import deadline
from lamina.core.areas import Area
from lamina.core.memories import Chunk, Note, clean_note
from lamina.core.ports import Embedder, ModelIdentity
from lamina.core.tiers import Tier
from lamina.extraction.name_matching import TextWords, split_words
from lamina.ingest.name_lookup import find_names_in
from lamina.maintenance.row_writer import RowWriter
from lamina.stores.postgres.connection import Connection, Pool
from lamina.stores.postgres.derived_notes import find_derived, insert_sources, lock_sources, read_sources
from lamina.stores.postgres.entities import keep_entities
from lamina.stores.postgres.generations import require_generation
from lamina.stores.postgres.links import copy_mentions, link_similar
from lamina.stores.postgres.notes import PreparedNote, expire_derived, insert_notes, prepare_note
from lamina.stores.postgres.outbox import enqueue


@dataclass(frozen=True, slots=True)
class DerivedNote:
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
class PreparedDerivedNote:
    """The same with its vectors and words, and its text as the graph reads it."""

    derived: DerivedNote
    prepared: PreparedNote
    reading: TextWords
    generation: int


async def still_says(writer: RowWriter, area: Area, hashes: Mapping[UUID, bytes], *, lasting: bool = False) -> bool:
    """Tell whether these notes are all there and say what they said; they stay so until the transaction ends.

    Args:
        writer: Of the transaction.
        area: Where they are.
        hashes: Of what they said, by id.
        lasting: Whether none of them may end by itself either.
    """
    locked = await lock_sources(writer.connection, area.tenant, hashes, lasting=lasting)
    return len(locked) == len(hashes)


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
        return await find_derived(self._pool, ids)

    async def sources(self, area: Area, ids: Sequence[UUID]) -> list[DictRow]:
        """Return what these notes say as it stands, in their order; what is gone by now is left out."""
        return await read_sources(self._pool, area, ids)

    async def prepare(self, derived: Sequence[DerivedNote]) -> list[PreparedDerivedNote]:
        """Return notes with everything that models have to say about them; nothing is written.

        Raises:
            Unavailable: If the embedder does not answer.
            Misconfigured: If the stores hold vectors of another model.
        """
        generation = (await require_generation(self._pool, self._identity)).number
        cleaned = [DerivedNote(item.id, item.user, clean_note(item.note, by_job=True)) for item in derived]
        chunks = await self._embed([item.note.content for item in cleaned])
        return await asyncio.to_thread(
            lambda: [_prepared(item, of, generation) for item, of in zip(cleaned, chunks, strict=True)]
        )

    async def _embed(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        async with deadline("embedder", self._deadline_s):
            return await self._embedder.embed_chunks(texts)

    async def write(self, writer: RowWriter, area: Area, item: PreparedDerivedNote) -> bool:
        """Write a note with its links to what it was made from; tell whether it was new.

        It expires with the first of its sources that does.
        """
        scope = area.scope().narrowed(user=item.derived.user)
        [put] = await insert_notes(writer.connection, scope, [item.prepared], item.generation, writer.moment)
        if put.existed:
            return False
        await _link(writer.connection, area, item)
        await expire_derived(writer.connection, item.derived.note.derived_from)
        await enqueue(writer.connection, "notes", [item.derived.id])
        hidden, shown = {"deleted_at": writer.moment}, {"deleted_at": None}
        await writer.record_changes("notes", hidden, shown, [item.derived.id])
        writer.bump(scope, teaches=True)
        return True


def _prepared(item: DerivedNote, chunks: tuple[Chunk, ...], generation: int) -> PreparedDerivedNote:
    return PreparedDerivedNote(
        item, prepare_note(item.id, item.note, chunks), split_words(item.note.content), generation
    )


async def _link(connection: Connection, area: Area, item: PreparedDerivedNote) -> None:
    made, sources = item.derived.id, list(item.derived.note.derived_from)
    await insert_sources(connection, made, sources)
    await _mention(connection, area, item)
    await link_similar(connection, Tier.NOTES, [made], item.generation)
    await enqueue(connection, "graph", [made])


async def _mention(connection: Connection, area: Area, item: PreparedDerivedNote) -> None:
    """Have the note mention what it names, as far as its sources do, and as they do: it is no evidence of its own."""
    [names] = await find_names_in(connection, area.scope(), [item.reading])
    entities = {entity for found in names.values() for entity in found}
    named = await keep_entities(connection, area.scope(), entities)
    sources = [(item.derived.id, source) for source in item.derived.note.derived_from]
    await copy_mentions(connection, area, sources, [(item.derived.id, entity) for entity in sorted(named)])
