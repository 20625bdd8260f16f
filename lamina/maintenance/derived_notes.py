"""Notes that jobs derive from other notes: prepared with their vectors first, then written in one transaction."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from lamina.aio.deadline import deadline
from lamina.core.areas import Area
from lamina.core.memories import Note, clean_note
from lamina.core.ports import Embedder, ModelIdentity
from lamina.core.tiers import Tier
from lamina.extraction.name_matching import TextWords, split_words
from lamina.ingest.name_lookup import find_names_in
from lamina.maintenance.row_writer import RowWriter
from lamina.stores.postgres.connection import Connection, Pool
from lamina.stores.postgres.derived_notes import insert_sources, lock_sources
from lamina.stores.postgres.entities import keep_entities
from lamina.stores.postgres.generations import require_generation
from lamina.stores.postgres.links import SimilarLinks, copy_mentions, link_similar
from lamina.stores.postgres.notes import PreparedNote, expire_derived, insert_notes, prepare_note
from lamina.stores.postgres.outbox import enqueue


@dataclass(frozen=True, slots=True)
class DerivedNote:
    """A note derived from others.

    Args:
        id: Follows from its sources, so that a second try makes the same note.
        user: Its owner; ``None``: everybody's.
        note: With ``derived_from`` and ``event_at``.
    """

    id: UUID
    user: str | None
    note: Note


@dataclass(frozen=True, slots=True)
class PreparedDerivedNote:
    """A derived note with its vectors, and its words, by which the names of entities are found in it."""

    derived: DerivedNote
    prepared: PreparedNote
    words: TextWords
    generation: int


async def lock_if_unchanged(
    writer: RowWriter, area: Area, hashes: Mapping[UUID, bytes], *, lasting: bool = False
) -> bool:
    """Lock notes until the transaction ends; report whether all of them still have the same texts.

    Args:
        writer: Of the transaction.
        area: Where they are.
        hashes: Of their texts, by id.
        lasting: Whether none of them may expire either.
    """
    locked = await lock_sources(writer.connection, area.tenant, hashes, lasting=lasting)
    return len(locked) == len(hashes)


class Deriver:
    """Derives notes from notes.

    Args:
        pool: Connections to Postgres.
        embedder: Embeds the derived notes.
        identity: Of its model.
        deadline_s: Seconds after which it gives up on the embedder.
        similar: How they are linked to their nearest neighbours.
    """

    def __init__(
        self, pool: Pool, embedder: Embedder, identity: ModelIdentity, *, deadline_s: float, similar: SimilarLinks
    ) -> None:
        self._pool = pool
        self._embedder = embedder
        self._identity = identity
        self._deadline_s = deadline_s
        self._similar = similar

    async def prepare(self, derived: DerivedNote) -> PreparedDerivedNote:
        """Embed a derived note and read its words; nothing is written.

        Raises:
            Unavailable: If the embedder does not answer.
            Misconfigured: If the stores hold vectors of another model.
        """
        generation = (await require_generation(self._pool, self._identity)).number
        note = clean_note(derived.note, by_job=True)
        async with deadline("embedder", self._deadline_s):
            [chunks] = await self._embedder.embed_chunks([note.content])
        return await asyncio.to_thread(
            lambda: PreparedDerivedNote(
                replace(derived, note=note),
                prepare_note(derived.id, note, chunks),
                split_words(note.content),
                generation,
            )
        )

    async def write(self, writer: RowWriter, area: Area, item: PreparedDerivedNote) -> bool:
        """Write a note with the links to its sources; report whether it is new.

        It expires with the first of its sources that does.
        """
        scope = area.scope().narrowed(user=item.derived.user)
        [put] = await insert_notes(writer.connection, scope, [item.prepared], item.generation, writer.moment)
        if put.existed:
            return False
        await _link(writer.connection, area, item, self._similar)
        await expire_derived(writer.connection, item.derived.note.derived_from)
        await enqueue(writer.connection, "notes", [item.derived.id])
        # An undo deletes a new note: for the journal it was deleted before.
        hidden, shown = {"deleted_at": writer.moment}, {"deleted_at": None}
        await writer.record_changes("notes", hidden, shown, [item.derived.id])
        writer.bump(scope, teaches=True)
        return True


async def _link(connection: Connection, area: Area, item: PreparedDerivedNote, similar: SimilarLinks) -> None:
    made, sources = item.derived.id, list(item.derived.note.derived_from)
    await insert_sources(connection, made, sources)
    await _mention(connection, area, item)
    await link_similar(connection, Tier.NOTES, [made], item.generation, similar)
    await enqueue(connection, "graph", [made])


async def _mention(connection: Connection, area: Area, item: PreparedDerivedNote) -> None:
    """Link the note to the entities that it names and its sources mention, as no evidence of its own."""
    [names] = await find_names_in(connection, area.scope(), [item.words])
    entities = {entity for found in names.values() for entity in found}
    named = await keep_entities(connection, area.scope(), entities)
    sources = [(item.derived.id, source) for source in item.derived.note.derived_from]
    await copy_mentions(connection, area, sources, [(item.derived.id, entity) for entity in sorted(named)])
