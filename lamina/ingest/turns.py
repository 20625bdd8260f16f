"""The write path: clean, extract, embed, then one transaction; nothing is half written."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from pydantic import TypeAdapter

from lamina.aio.deadline import deadline
from lamina.core.memories import (
    MAX_MESSAGES,
    Chunk,
    Extraction,
    Message,
    Metadata,
    Note,
    Profile,
    StoredNote,
    clean_message,
    clean_metadata,
    clean_note,
    new_id,
)
from lamina.core.ports import Clock, Extractor, TextEmbedder
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.errors import InvalidInput, Unavailable
from lamina.extraction.knowledge import read_all
from lamina.ingest.knowledge import Knowledge, PreparedKnowledge, Told
from lamina.ingest.write_once import write_once
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.idempotency import Once
from lamina.stores.postgres.messages import AppendedMessage, PreparedMessage, append_messages
from lamina.stores.postgres.note_duplicates import put_notes
from lamina.stores.postgres.note_temperature import warm_up
from lamina.stores.postgres.notes import (
    Deletion,
    PreparedNote,
    PutNote,
    delete_expired,
    delete_note,
    derive_notes,
    expire_derived,
    lock_note,
    prepare_note,
    replace_chunks,
    update_note,
)
from lamina.stores.postgres.outbox import enqueue, enqueue_notes, enqueue_returned
from lamina.stores.postgres.profiles import patch_profile

Result = TypeVar("Result")
LONG_TEXT_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn with everything that models had to say about it."""

    messages: tuple[PreparedMessage, ...]
    notes: tuple[PreparedNote, ...]
    profile: Metadata
    knowledge: PreparedKnowledge


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """The results of a turn.

    Args:
        messages: In the caller's order.
        notes: Those that were drawn from the messages.
        profile_version: Of the user's profile, if the turn patched it.
        epoch: The scope's, after the turn.
    """

    messages: tuple[AppendedMessage, ...]
    notes: tuple[PutNote, ...]
    profile_version: int | None
    epoch: int


@dataclass(frozen=True, slots=True)
class RecordedNotes:
    """The results of a write in the caller's order, and the scope's epoch after it."""

    notes: tuple[PutNote, ...]
    epoch: int


_TURN = TypeAdapter(RecordedTurn)
_NOTES = TypeAdapter(RecordedNotes)


class Recorder:
    """Writes turns, notes and profiles.

    No connection is held while a model works: texts are embedded first, then one transaction
    writes everything together with the outbox rows and the scope's new epoch.

    Args:
        pool: Connections to Postgres.
        embedder: Embeds messages and notes.
        knowledge: Links them into the graph.
        extractor: Draws notes and profile facts from messages; ``None`` draws nothing.
        generation: The active generation of vectors.
        clock: The time of day.
        embed_deadline_s: Seconds after which a write gives up on the embedder.
        near_duplicate: Cosine from which a note that says nothing new raises the old one.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: TextEmbedder,
        knowledge: Knowledge,
        extractor: Extractor | None,
        *,
        generation: int,
        clock: Clock,
        embed_deadline_s: float,
        near_duplicate: float,
    ) -> None:
        self._pool = pool
        self._embedder = embedder
        self._knowledge = knowledge
        self._extractor = extractor
        self._generation = generation
        self._clock = clock
        self._embed_deadline_s = embed_deadline_s
        self._near_duplicate = near_duplicate

    async def record_turn(self, scope: Scope, messages: Sequence[Message], once: Once | None = None) -> RecordedTurn:
        """Append messages to the scope's session, with the notes, facts and links drawn from them.

        Raises:
            InvalidInput: For a turn without a session, without messages or with an unclean one.
            Unavailable: If the embedder or Postgres does not answer; nothing is written.
        """
        if scope.session is None:
            raise InvalidInput("session", "is missing; a turn belongs to a session")
        now = self._clock()
        turn = await self._prepare(scope, _cleaned(messages), now)
        return await write_once(
            self._pool, once, _TURN, lambda connection: self._write_turn(connection, scope, turn, now)
        )

    async def _prepare(self, scope: Scope, messages: Sequence[Message], now: datetime) -> PreparedTurn:
        ids = [new_id() for _ in messages]
        extraction = await self._extractor.extract(messages, ids) if self._extractor else Extraction()
        texts = [message.text() for message in messages] + [note.content for note in extraction.notes]
        chunks = await self._embed(scope, texts)
        said = tuple(map(PreparedMessage, ids, messages, chunks[: len(messages)]))
        notes = await _prepared(extraction.notes, chunks[len(messages) :])
        told = [*(_told_message(item, scope, now) for item in said), *(_told_note(item, scope, now) for item in notes)]
        known = await self._knowledge.prepare(told, extraction.entities, extraction.edges)
        return PreparedTurn(said, notes, extraction.profile, known)

    async def _embed(self, scope: Scope, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        async with deadline("embedder", self._embed_deadline_s):
            chunks = await self._embedder.embed_texts(scope, texts)
        if len(chunks) != len(texts):
            raise Unavailable("embedder", f"it returned {len(chunks)} results for {len(texts)} texts")
        return chunks

    async def _write_turn(
        self, connection: Connection, scope: Scope, turn: PreparedTurn, now: datetime
    ) -> RecordedTurn:
        appended = await append_messages(connection, scope, turn.messages, self._generation, now)
        new = {item.id for item in appended if not item.existed}
        taught = [note for note in turn.notes if _is_from(note, new)]
        notes = await self._put(connection, scope, taught, now)
        profile = await self._learn(connection, scope, turn.profile if new else {}, now)
        fresh = [note.id for note in notes if not note.existed]
        await enqueue(connection, "messages", sorted(new))
        await enqueue(connection, "notes", fresh)
        await self._knowledge.write(connection, scope, turn.knowledge, new.union(fresh))
        epoch = await bump_epoch(connection, scope, teaches=bool(fresh) or _is_changed(profile))
        return RecordedTurn(tuple(appended), tuple(notes), profile.version if profile else None, epoch)

    async def _put(
        self, connection: Connection, scope: Scope, notes: Sequence[PreparedNote], now: datetime
    ) -> list[PutNote]:
        if not notes:
            return []
        hashes = [item.note.content_hash() for item in notes]
        await self._forget(connection, await delete_expired(connection, scope, hashes, now))
        return await put_notes(connection, scope, notes, self._generation, now, min_cosine=self._near_duplicate)

    async def _learn(self, connection: Connection, scope: Scope, facts: Metadata, now: datetime) -> Profile | None:
        if scope.user is None or not facts:
            return None
        return await patch_profile(connection, scope, facts, now)

    async def put_notes(self, scope: Scope, notes: Sequence[Note], once: Once | None = None) -> RecordedNotes:
        """Store notes, each once per scope; return the results in their order.

        Raises:
            InvalidInput: For an unclean note; none is stored.
            Unavailable: If the embedder or Postgres does not answer; none is stored.
        """
        cleaned = [clean_note(note) for note in notes]
        prepared = await _prepared(cleaned, await self._embed(scope, [note.content for note in cleaned]))
        now = self._clock()
        knowledge = await self._read(prepared, scope, now)

        async def write(connection: Connection) -> RecordedNotes:
            put = await self._put(connection, scope, prepared, now)
            fresh = [note.id for note in put if not note.existed]
            await derive_notes(connection, scope, [item for item in prepared if item.id in fresh])
            await enqueue(connection, "notes", fresh)
            await self._knowledge.write(connection, scope, knowledge, fresh)
            epoch = await bump_epoch(connection, scope, teaches=bool(fresh))
            return RecordedNotes(tuple(put), epoch)

        return await write_once(self._pool, once, _NOTES, write)

    async def _read(self, notes: Sequence[PreparedNote], scope: Scope, now: datetime) -> PreparedKnowledge:
        """Return what explicit notes tell; reading them costs no token."""
        told = [_told_note(item, scope, now) for item in notes]
        reading = await _off_loop(_size([item.note for item in notes]), lambda: read_all([item.text for item in told]))
        return await self._knowledge.prepare(told, reading.entities, reading.edges)

    async def change_note(self, tenant: str, id_: UUID, changes: dict[str, Any]) -> StoredNote:
        """Write the next version of a note.

        A changed text is embedded before the row is locked; changes that arrive at the same time
        are applied one after another, each as a version of its own.

        Raises:
            NotFound: If the tenant has no such note.
            Conflict: If another note of the scope already has the new text.
        """
        checked = clean_note(replace(Note(content="-"), **changes))
        clean_changes = {name: getattr(checked, name) for name in changes}
        is_new_text = "content" in changes
        prepared = (
            await _prepared([checked], await self._embed(Scope(tenant), [checked.content])) if is_new_text else ()
        )
        texts = tuple(replace(text, id=id_) for text in prepared)
        now = self._clock()
        knowledge = await self._read(texts, Scope(tenant), now)

        async def act(connection: Connection) -> StoredNote:
            old = await lock_note(connection, tenant, id_)
            scope = Scope(tenant, old.workspace, old.namespace)
            if old.temperature == "cold":
                await warm_up(connection, [id_], now)
            new = replace(old.note, **clean_changes)
            if new.content != old.note.content:
                owned = scope.narrowed(user=old.user)
                await self._forget(connection, await delete_expired(connection, owned, [new.content_hash()], now))
            stored = await update_note(connection, id_, new, now)
            if new.expires_at is not None:
                await expire_derived(connection, [id_])
            for text in texts:
                await replace_chunks(connection, scope, text, self._generation)
                await self._knowledge.forget(connection, [id_])
                await self._knowledge.write(connection, scope, _of_stored(knowledge, stored), [id_])
            await enqueue_notes(connection, [id_])
            await enqueue(connection, "graph", [id_])
            await bump_epoch(connection, scope, teaches=True)
            return stored

        return await in_transaction(self._pool, act)

    async def delete_note(self, tenant: str, id_: UUID) -> None:
        """Take a note, and every note that was made from it or merged into it, out of every reader's sight.

        Raises:
            NotFound: If the tenant has no such note.
        """
        now = self._clock()

        async def act(connection: Connection) -> None:
            scope, deletion = await delete_note(connection, tenant, id_, now)
            await self._forget(connection, deletion)
            await bump_epoch(connection, scope, teaches=True)

        await in_transaction(self._pool, act)

    async def _forget(self, connection: Connection, deletion: Deletion) -> None:
        """Take deleted notes, and what they told, out of every projection."""
        await enqueue_notes(connection, [*deletion.gone, *deletion.back])
        await enqueue_returned(connection, deletion.back)
        if deletion.gone:
            await self._knowledge.forget(connection, deletion.gone)

    async def patch_profile(self, scope: Scope, patch: Metadata) -> Profile:
        """Merge a patch into the user's profile.

        Raises:
            InvalidInput: If the scope names no user or the patch is unclean.
        """
        if scope.user is None:
            raise InvalidInput("user", "is missing; a profile belongs to a user")
        cleaned = clean_metadata(patch, "patch")
        now = self._clock()

        async def act(connection: Connection) -> Profile:
            profile = await patch_profile(connection, scope, cleaned, now)
            await bump_epoch(connection, scope, teaches=_is_changed(profile))
            return profile

        return await in_transaction(self._pool, act)


def _cleaned(messages: Sequence[Message]) -> list[Message]:
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise InvalidInput("messages", f"has {len(messages)} messages; expected 1 to {MAX_MESSAGES}")
    return [clean_message(message, f"messages.{place}") for place, message in enumerate(messages)]


async def _prepared(notes: Sequence[Note], chunks: Sequence[tuple[Chunk, ...]]) -> tuple[PreparedNote, ...]:
    pairs = list(zip(notes, chunks, strict=True))
    return await _off_loop(_size(notes), lambda: tuple(prepare_note(new_id(), *pair) for pair in pairs))


async def _off_loop(size: int, work: Callable[[], Result]) -> Result:
    """Return what the work returns; work on long texts runs in a thread, so that nobody else waits for it."""
    return await asyncio.to_thread(work) if size > LONG_TEXT_CHARS else work()


def _size(texts: Sequence[Message] | Sequence[Note]) -> int:
    return sum(len(text.content) for text in texts)


def _told_message(item: PreparedMessage, scope: Scope, now: datetime) -> Told:
    message = item.message
    seen_at = message.occurred_at or now
    return Told(item.id, Tier.SESSIONS, message.text(), f"message:{item.id}", scope.user, seen_at)


def _told_note(item: PreparedNote, scope: Scope, now: datetime) -> Told:
    note = item.note
    return Told(item.id, Tier.NOTES, note.content, note.source, scope.user, note.event_at or now)


def _of_stored(knowledge: PreparedKnowledge, stored: StoredNote) -> PreparedKnowledge:
    """Return what a changed text tells as the stored note's: its owner and source were not known before."""
    seen_at = stored.note.event_at or stored.updated_at
    return knowledge.told_by(user=stored.user, source=stored.note.source, seen_at=seen_at)


def _is_changed(profile: Profile | None) -> bool:
    """Tell whether a patch changed the profile: one that did not tells no time."""
    return profile is not None and profile.updated_at is not None


def _is_from(note: PreparedNote, messages: set[UUID]) -> bool:
    return any(note.note.source == f"message:{id_}" for id_ in messages)
