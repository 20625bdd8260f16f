"""Write turns and notes: clean, extract, read, embed, then one transaction; nothing is half written."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter

from lamina.aio.yielding import map_in_steps
from lamina.core.agent_turns import NO_WORK, AgentWork, ToolCall, clean_work
from lamina.core.areas import Area
from lamina.core.events import Event, EventKind
from lamina.core.memories import (
    MAX_MESSAGES,
    NAMELESS,
    Chunk,
    Extraction,
    Message,
    Metadata,
    MetadataLimit,
    Note,
    Profile,
    Role,
    StoredNote,
    clean_message,
    clean_metadata,
    clean_note,
    new_id,
)
from lamina.core.ports import Clock, Extractor, TextEmbedder
from lamina.core.preconditions import UNCONDITIONAL, Precondition
from lamina.core.profiles import ProfileStatement, taken_back
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.core.trash import TrashKind
from lamina.core.workspace_settings import ProfileScope
from lamina.errors import Conflict, InvalidInput
from lamina.extraction.edges import speaker_name
from lamina.extraction.rules import extract_by_rules
from lamina.ingest.embedding import EmbeddingBudget, embed_in_time
from lamina.ingest.memory_linking import LinkDraft, MemoryLinker, MemoryText, PreparedLinks
from lamina.ingest.speakers import sources_of_user, speakers_of, statements_of
from lamina.ingest.write_once import write_once
from lamina.stores.postgres.agent_turns import insert_turn
from lamina.stores.postgres.archive_catalog import mark_corrected
from lamina.stores.postgres.connection import Before, Connection, Pool, connect, in_transaction
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_event, record_events
from lamina.stores.postgres.idempotency import Once, find_answer
from lamina.stores.postgres.messages import (
    AppendedMessage,
    PlacedMessage,
    PreparedMessage,
    append_messages,
    change_message,
    delete_message,
    find_appended,
    read_placed,
    read_speakers,
    replace_message_chunks,
)
from lamina.stores.postgres.note_duplicates import put_notes
from lamina.stores.postgres.note_temperature import warm_up
from lamina.stores.postgres.notes import (
    Deletion,
    NoteResult,
    PreparedNote,
    delete_expired,
    delete_note,
    delete_notes,
    derive_notes,
    expire_derived,
    hand_over,
    lock_drawn,
    lock_note,
    prepare_note,
    replace_chunks,
    update_note,
    withdraw_speaker,
)
from lamina.stores.postgres.outbox import (
    OutboxEntry,
    enqueue_entries,
    enqueue_returned,
    note_entries,
    outbox_entries,
)
from lamina.stores.postgres.profiles import (
    ProfileWrite,
    add_statements,
    find_statements,
    patch_profile,
    read_user_names,
    revert_profile,
)
from lamina.stores.postgres.trash import (
    TrashPolicy,
    discard,
    erase_from_trash,
    find_discarded,
    revive_compacted,
    revive_notes,
    rewrite_notes,
)
from lamina.stores.postgres.vectors import EmbeddedRow, write_vectors
from lamina.stores.postgres.workspace_settings import read_settings
from lamina.text.hygiene import clean, composed

LONG_TEXT_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn ready for one transaction: extracted, read and embedded.

    Args:
        messages: In the order of the session, those of the tool calls among them.
        calls_at: Place of the first tool call among the messages.
    """

    messages: tuple[PreparedMessage, ...]
    notes: tuple[PreparedNote, ...]
    statements: tuple[ProfileStatement, ...]
    links: PreparedLinks
    work: AgentWork = NO_WORK
    calls_at: int = 0


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """The results of a turn.

    Args:
        messages: In the caller's order.
        notes: Those that were drawn from the messages.
        profile_version: Of the user's profile, if the turn patched it.
        epoch: The scope's, after the turn.
        tool_calls: The messages of the tool calls, in the caller's order.
        is_new_work: Whether the turn tells of an agent's work that was not known.
    """

    messages: tuple[AppendedMessage, ...]
    notes: tuple[NoteResult, ...]
    profile_version: int | None
    epoch: int
    tool_calls: tuple[AppendedMessage, ...] = ()
    is_new_work: bool = False


@dataclass(frozen=True, slots=True)
class RecordedNotes:
    """The results of a write in the caller's order, and the scope's epoch after it."""

    notes: tuple[NoteResult, ...]
    epoch: int


@dataclass(frozen=True, slots=True)
class KeptVersions:
    """Most earlier versions of a note and of a profile; the oldest ones end with the next write."""

    of_note: int
    of_profile: int


_TURN = TypeAdapter(RecordedTurn)
_NOTES = TypeAdapter(RecordedNotes)


class Recorder:
    """Writes turns, notes and profiles.

    No connection is held while a model works: texts are embedded first, in one call, then one transaction writes
    everything together with the outbox entries and the scope's new epoch.

    Args:
        pool: Connections to Postgres.
        embedder: Embeds messages and notes, and the names in them.
        linker: Links them into the graph.
        extractor: Draws notes and profile facts from messages; ``None`` draws nothing.
        generation: The active generation of vectors.
        clock: The time of day.
        embed_deadline_s: Seconds after which a write gives up on the embedder, beside those that its texts take.
        budget: Most time of the embedder for one request.
        near_duplicate: Cosine from which a note that says nothing new raises the old one.
        metadata_limit: Of the metadata of a memory, and of a patch of a profile.
        kept_versions: Of notes and profiles.
        trash: How long deleted notes come back when they are written again.
        profile_scope: Which profile of a user turns write where a workspace's settings say nothing.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: TextEmbedder,
        linker: MemoryLinker,
        extractor: Extractor | None,
        *,
        generation: int,
        clock: Clock,
        embed_deadline_s: float,
        budget: EmbeddingBudget,
        near_duplicate: float,
        metadata_limit: MetadataLimit,
        kept_versions: KeptVersions,
        trash: TrashPolicy,
        profile_scope: ProfileScope,
    ) -> None:
        self.metadata_limit = metadata_limit
        self._pool = pool
        self._embedder = embedder
        self._linker = linker
        self._extractor = extractor
        self._generation = generation
        self._clock = clock
        self._embed_deadline_s = embed_deadline_s
        self._budget = budget
        self._near_duplicate = near_duplicate
        self._kept_versions = kept_versions
        self._profile_scope = profile_scope
        self._trash = trash

    async def record_turn(
        self,
        scope: Scope,
        messages: Sequence[Message],
        once: Once | None = None,
        *,
        is_verified: bool = False,
        reaches_user: bool = False,
        witness: str | None = None,
        work: AgentWork = NO_WORK,
    ) -> RecordedTurn:
        """Append messages to the scope's session, with the notes, facts and links drawn from them.

        Tool calls become messages of the session: before the last message of the turn, if the assistant says it, else
        after all of them.

        Args:
            scope: Of the session.
            messages: What was said.
            once: Identity of the write.
            is_verified: Whether the user of the scope, or an admin, sends them.
            reaches_user: Whether the sender may write the user's profile of the whole tenant.
            witness: Who vouches for them.
            work: Tool calls, usage and outcome of the turn.

        Raises:
            InvalidInput: For a turn without a session, without anything in it or with an unclean message or call.
            TooLarge: If the messages would take more of the embedder than one request may.
            Unavailable: If the embedder or Postgres does not answer; nothing is written.
        """
        if scope.session is None:
            raise InvalidInput("session", "is missing; a turn belongs to a session")
        if not messages and work.is_empty():
            raise InvalidInput("messages", f"has 0 messages; expected 1 to {MAX_MESSAGES}")
        if len(messages) + len(work.tool_calls) > MAX_MESSAGES:
            beside = f" and {len(work.tool_calls)} tool calls" if work.tool_calls else ""
            reason = f"has {len(messages)} messages{beside}; expected 1 to {MAX_MESSAGES}"
            raise InvalidInput("messages", reason)
        paths = [f"messages.{place}" for place in range(len(messages))]
        clean = partial(clean_message, limit=self.metadata_limit)
        cleaned = await map_in_steps(lambda placed: clean(*placed), zip(messages, paths, strict=True))
        done = (
            await asyncio.to_thread(clean_work, work, limit=self.metadata_limit)
            if work.tool_calls
            else clean_work(work)
        )
        calls = await map_in_steps(_tool_message, zip(done.tool_calls, count(), strict=False))
        at = len(cleaned) - 1 if cleaned and cleaned[-1].role is Role.ASSISTANT else len(cleaned)
        said = [*cleaned[:at], *calls, *cleaned[at:]]
        await self._budget.check([message.content for message in said], "messages")
        now = self._clock()
        told = await self._told_before(scope, said, now, once)
        turn = replace(await self._prepare(scope, said, now, witness, told=told), work=done, calls_at=at)
        return await write_once(
            self._pool,
            once,
            _TURN,
            lambda connection: self._write_turn(
                connection, scope, turn, now, is_verified=is_verified, reaches_user=reaches_user, witness=witness
            ),
        )

    async def _told_before(
        self, scope: Scope, messages: Sequence[Message], now: datetime, once: Once | None
    ) -> frozenset[int]:
        """Return the places of the messages that the session has already, for which no tokens are to be spent again.

        The transaction looks again: one that is deleted in between is stored, but nothing is drawn from it.
        """
        places = [place for place, message in enumerate(messages) if message.ref or message.occurred_at]
        if self._extractor is None or not self._extractor.costs_tokens or not (places or once):
            return frozenset()
        async with connect(self._pool) as connection:
            if once is not None and await find_answer(connection, once) is not None:
                return frozenset(range(len(messages)))
            hashes = {place: messages[place].identity(now) for place in places}
            stored = await find_appended(connection, scope, list(hashes.values()))
        return frozenset(place for place, digest in hashes.items() if digest in stored)

    async def _prepare(
        self,
        scope: Scope,
        messages: Sequence[Message],
        now: datetime,
        witness: str | None,
        *,
        ids: Sequence[UUID] | None = None,
        told: Collection[int] = (),
    ) -> PreparedTurn:
        ids = ids or [new_id() for _ in messages]
        readable = [replace(message, content=composed(message.content)) for message in messages]
        places = [place for place in range(len(messages)) if place not in told]
        before = readable[: places[0]] if places else []
        extraction = (
            await self._extractor.extract(
                [readable[place] for place in places], [ids[place] for place in places], scope.user, before=before
            )
            if self._extractor
            else Extraction()
        )
        # Ids before vectors: the names in the texts are embedded by the same call as the texts.
        notes = [(new_id(), note) for note in extraction.notes]
        memories = [
            *(_message_text(id_, message, scope, now, witness) for id_, message in zip(ids, messages, strict=True)),
            *(_note_text(id_, note, scope, now, witness) for id_, note in notes),
        ]
        draft = await self._linker.draft(memories, extraction)
        chunks, links = await self._embed(scope, draft, "messages")
        prepared = tuple(map(PreparedMessage, ids, messages, chunks))
        read = await _prepare_each(notes, chunks[len(ids) :])
        return PreparedTurn(prepared, read, extraction.statements, links)

    async def _embed(
        self, scope: Scope, draft: LinkDraft, field: str
    ) -> tuple[Sequence[tuple[Chunk, ...]], PreparedLinks]:
        """Embed the texts and the new names in them by one call; return the chunks of the texts, and the links."""
        texts = [item.text for item in draft.memories]
        embed = partial(self._embedder.embed_texts, scope)
        wanted = [*texts, *draft.new_names()]
        deadline_s = self._embed_deadline_s + self._budget.seconds(wanted)
        chunks = await embed_in_time(embed, wanted, deadline_s, field=field)
        return chunks[: len(texts)], self._linker.complete(draft, chunks[len(texts) :])

    async def _write_turn(
        self,
        connection: Connection,
        scope: Scope,
        turn: PreparedTurn,
        now: datetime,
        *,
        is_verified: bool,
        reaches_user: bool,
        witness: str | None,
    ) -> RecordedTurn:
        appended = await append_messages(connection, scope, turn.messages, self._generation, now)
        new = {item.id for item in appended if not item.existed}
        sources = {f"message:{id_}" for id_ in new}
        drawn = [item for item in turn.notes if item.note.source in sources]
        notes, entries, back = await self._put(connection, scope, drawn, now, witness)
        # A turn that is sent again has no new message: it must not overwrite later values of the profile.
        facts = await _facts_of_user(connection, scope, turn, sources)
        is_tenant_wide = bool(facts) and reaches_user and await self._gathers_by_user(connection, scope)
        write = ProfileWrite(self._kept_versions.of_profile, is_verified, is_tenant_wide)
        profile = await add_statements(connection, scope, facts, now, write) if facts else None
        fresh = [note.id for note in notes if not note.existed]
        links = turn.links.renamed(_stored_as(drawn, notes, back))
        nodes = await self._linker.write(connection, scope, links, new.union(fresh, back))
        entries = [*outbox_entries("messages", sorted(new)), *entries, *outbox_entries("graph", nodes)]
        await enqueue_entries(connection, entries)
        turn_id = await insert_turn(connection, scope, turn.work, appended, now, witness=witness)
        # Last: it locks the row of the namespace until the commit.
        epoch = await bump_epoch(connection, scope, teaches=bool(fresh or back) or _is_changed(profile))
        events = [
            *([Event.of(scope, EventKind.TURN_RECORDED, *sorted(new), messages=len(new))] if new else []),
            *([] if turn_id is None else [Event.of(scope, EventKind.AGENT_METRICS, turn_id, **turn.work.metrics())]),
            *_note_events(scope, notes, back),
        ]
        await record_events(connection, events)
        if profile is not None:
            await _announce(connection, scope, profile, write)
        first, last = turn.calls_at, turn.calls_at + len(turn.work.tool_calls)
        return RecordedTurn(
            messages=(*appended[:first], *appended[last:]),
            notes=tuple(notes),
            profile_version=(profile.version or None) if profile else None,
            epoch=epoch,
            tool_calls=tuple(appended[first:last]),
            is_new_work=turn_id is not None,
        )

    async def _gathers_by_user(self, connection: Connection, scope: Scope) -> bool:
        """Report whether turns of the workspace write the user's profile of the whole tenant."""
        chosen = await read_settings(connection, scope.tenant, scope.workspace)
        return (chosen.profile_scope or self._profile_scope) == "user"

    async def _put(
        self, connection: Connection, scope: Scope, notes: Sequence[PreparedNote], now: datetime, witness: str | None
    ) -> tuple[list[NoteResult], list[OutboxEntry], set[UUID]]:
        """Store the notes.

        Returns:
            The results; the entries of all notes that changed, for the caller to enqueue; and the ids of those that
            were brought back from the trash, since they are written again.
        """
        if not notes:
            return [], [], set()
        hashes = [item.note.content_hash() for item in notes]
        expired = await unlink_deleted(connection, self._linker, await delete_expired(connection, scope, hashes, now))
        cutoff = self._trash.cutoff(now)
        found = await find_discarded(connection, scope, TrashKind.NOTE, hashes, cutoff) if self._trash.keeps else {}
        back = await revive_notes(connection, scope.tenant, sorted(found.values()), now) if found else []
        await erase_from_trash(connection, scope.tenant, back)
        written = {found.get(hash_): item.note for hash_, item in zip(hashes, notes, strict=True)}
        await rewrite_notes(connection, scope.tenant, {id_: written[id_] for id_ in back})
        put = await put_notes(
            connection, scope, notes, self._generation, now, min_cosine=self._near_duplicate, witness=witness
        )
        if back:  # Those that they have may be of another model by now.
            vectors = [
                EmbeddedRow(found[hash_], hash_, item.chunks, item.words)
                for hash_, item in zip(hashes, notes, strict=True)
                if found.get(hash_) in back
            ]
            area = Area(scope.tenant, scope.workspace, scope.namespace)
            await write_vectors(connection, "notes", area, self._generation, vectors)
        fresh = outbox_entries("notes", (note.id for note in put if not note.existed))
        raised = note_entries(dict.fromkeys(note.id for note in put if note.merged))
        return put, [*expired, *fresh, *raised, *note_entries(back)], set(back)

    async def put_notes(
        self, scope: Scope, notes: Sequence[Note], once: Once | None = None, *, witness: str | None = None
    ) -> RecordedNotes:
        """Store notes, each once per scope; return the results in their order.

        Args:
            scope: Where they belong.
            notes: The notes.
            once: Identity of the write.
            witness: Who vouches for them.

        Raises:
            InvalidInput: For an unclean note; none is stored.
            TooLarge: If the notes would take more of the embedder than one request may.
            Unavailable: If the embedder or Postgres does not answer; none is stored.
        """
        now = self._clock()
        cleaned = await map_in_steps(partial(clean_note, limit=self.metadata_limit), notes)
        # Who stores a note says it without a name, whoever said the same before.
        cleaned = [replace(note, speakers=(NAMELESS,)) for note in cleaned]
        await self._budget.check([note.content for note in cleaned], "content" if len(cleaned) == 1 else "notes")
        prepared, links = await self._prepare_notes(scope, [(new_id(), note) for note in cleaned], now, witness)

        async def write(connection: Connection) -> RecordedNotes:
            put, entries, back = await self._put(connection, scope, prepared, now, witness)
            fresh = {note.id for note in put if not note.existed}
            stored = {id_: id_ for id_ in fresh} | _stored_as(prepared, put, back)
            # One that is written again rests on these sources, too; a note that says the same in other words does not.
            derived = [replace(item, id=note.id) for item, note in zip(prepared, put, strict=True) if not note.merged]
            await derive_notes(connection, scope, derived)
            renamed = links.renamed(stored)
            nodes = await self._linker.write(connection, scope, renamed, fresh | back)
            again = {item.id: note.id for item, note in zip(prepared, put, strict=True) if note.existed}
            nodes += await self._linker.back(connection, scope, links, again)
            await enqueue_entries(connection, [*entries, *outbox_entries("graph", nodes)])
            epoch = await bump_epoch(connection, scope, teaches=bool(fresh or back))
            await record_events(connection, _note_events(scope, put, back))
            return RecordedNotes(tuple(put), epoch)

        return await write_once(self._pool, once, _NOTES, write)

    async def _prepare_notes(
        self, scope: Scope, notes: Sequence[tuple[UUID, Note]], now: datetime, witness: str | None
    ) -> tuple[tuple[PreparedNote, ...], PreparedLinks]:
        """Read and embed explicit notes; the rules read them, so that no token is spent."""
        draft = await self._linker.draft([_note_text(id_, note, scope, now, witness) for id_, note in notes])
        chunks, links = await self._embed(scope, draft, "content")
        return await _prepare_each(notes, chunks), links

    async def change_note(
        self,
        tenant: str,
        id_: UUID,
        changes: dict[str, Any],
        condition: Precondition = UNCONDITIONAL,
        *,
        witness: str | None = None,
    ) -> StoredNote:
        """Write the next version of a note.

        A changed text is embedded before the row is locked; changes that arrive at the same time
        are applied one after another, each as a version of its own.

        Raises:
            NotFound: If the tenant has no such note.
            Conflict: If another note of the scope already has the new text.
            PreconditionFailed: If the note has another version than the one on which the caller insists.
        """
        # Checked before the note is read: only the given fields count, the text stands for any.
        checked = clean_note(replace(Note(content="-"), **changes), limit=self.metadata_limit)
        clean_changes = {name: getattr(checked, name) for name in changes}
        now = self._clock()
        new_texts = [(id_, checked)] if "content" in changes else []
        await self._budget.check([note.content for _, note in new_texts], "content")
        prepared, links = await self._prepare_notes(Scope(tenant), new_texts, now, witness)

        async def act(connection: Connection) -> StoredNote:
            old = await lock_note(connection, tenant, id_)
            condition.check(f"note {id_}", str(old.version))
            scope = Scope(tenant, old.workspace, old.namespace)
            if old.temperature == "cold":
                await warm_up(connection, [id_], now)
            new = replace(old.note, **clean_changes)
            entries: list[OutboxEntry] = []
            if new.content != old.note.content:
                owned = scope.narrowed(user=old.user)
                expired = await delete_expired(connection, owned, [new.content_hash()], now)
                entries += await unlink_deleted(connection, self._linker, expired)
            stored = await update_note(connection, id_, new, now, kept_versions=self._kept_versions.of_note)
            if new.expires_at is not None:
                await expire_derived(connection, [id_])
            for text in prepared:
                await replace_chunks(connection, scope, text, self._generation)
                unlinked = await self._linker.forget(connection, [id_])
                linked = await self._linker.write(connection, scope, _links_of_stored(links, stored), [id_])
                entries += outbox_entries("graph", [*unlinked, *linked])
            await enqueue_entries(connection, [*entries, *note_entries([id_]), *outbox_entries("graph", [id_])])
            await bump_epoch(connection, scope, teaches=True)
            changed = scope.narrowed(user=stored.user, agent=stored.agent)
            await record_event(connection, Event.of(changed, EventKind.NOTE_CHANGED, id_, version=stored.version))
            return stored

        return await in_transaction(self._pool, act)

    async def delete_note(
        self, tenant: str, id_: UUID, condition: Precondition = UNCONDITIONAL, *, operation: UUID | None = None
    ) -> None:
        """Delete a note, and every note that was made from it or merged into it: no reader sees them any more.

        Args:
            tenant: Whose note.
            id_: Its id.
            condition: The version that it has to have.
            operation: The deletion of a scope that takes it.

        Raises:
            NotFound: If the tenant has no such note.
            PreconditionFailed: If the note has another version than the one on which the caller insists.
        """
        now = self._clock()

        async def act(connection: Connection) -> None:
            if condition.match is not None:
                condition.check(f"note {id_}", str((await lock_note(connection, tenant, id_)).version))
            scope, deletion = await delete_note(connection, tenant, id_, now)
            await discard(connection, self._trash, TrashKind.NOTE, tenant, id_, now, operation=operation)
            await enqueue_entries(connection, await unlink_deleted(connection, self._linker, deletion))
            await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, Event.of(scope, EventKind.NOTE_DELETED, *deletion.deleted))

        await in_transaction(self._pool, act)

    async def change_message(
        self,
        tenant: str,
        id_: UUID,
        changes: Mapping[str, Any],
        *,
        is_verified: bool = False,
        reaches_user: bool = False,
        witness: str | None = None,
    ) -> None:
        """Change fields of a message. A new text is read again, for the memories drawn from it that nobody edited.

        Notes that neither the new text nor another message of the session states go into the trash, unless pinned.
        A field of the profile that the old text stated ends unless it was stated again later.

        Args:
            tenant: Whose message.
            id_: Its id.
            changes: Of `content`, `metadata` and `importance`.
            is_verified: Whether its user, or an admin, changes it.
            reaches_user: Whether the sender may write the user's profile of the whole tenant.
            witness: Who vouches for the new text.

        Raises:
            NotFound: If the tenant has no such message.
            Conflict: If it is a summary, or one stands for it; if its session has the same one; or if another change of
                its text came between.
            TooLarge: If the text would take more of the embedder than one request may.
            Unavailable: If the embedder or Postgres does not answer; nothing is changed.
        """
        async with connect(self._pool) as connection:
            old = await read_placed(connection, tenant, id_)
        _refuse_summarised(id_, old)
        new = clean_message(replace(old.message, **changes), "", limit=self.metadata_limit)
        now, turn = self._clock(), None
        drawn_before: set[bytes] = set()
        if new.content != old.message.content:
            drawn_before = await asyncio.to_thread(_texts_drawn_from, old.message, id_)
            await self._budget.check([new.content], "content")
            turn = await self._prepare(old.scope, [new], now, witness, ids=[id_])

        async def act(connection: Connection) -> None:
            found = await read_placed(connection, tenant, id_, is_locked=True)
            _refuse_summarised(id_, found)
            if turn is None and "content" in changes and found.message.content != new.content:
                raise Conflict(f"message {id_} was changed meanwhile; read it, and send the change again")
            message = replace(found.message, **{name: getattr(new, name) for name in changes})
            at = message.occurred_at or now
            await change_message(connection, id_, message, message.identity_after(found.message, found.hash, at))
            entries = outbox_entries("messages", [id_])
            events = [Event.of(found.scope, EventKind.MESSAGE_CHANGED, id_)]
            if turn is not None:
                await replace_message_chunks(connection, id_, turn.messages[0].chunks, self._generation)
                await withdraw_speaker(connection, found.scope, found.message, drawn_before)
                drawn, told = await self._draw_again(connection, found.scope, id_, turn, now, witness)
                entries, events = [*entries, *drawn], [*events, *told]
            await enqueue_entries(connection, entries)
            profiles = (
                await self._state_again(
                    connection, found.scope, id_, turn, at, now, is_verified=is_verified, reaches_user=reaches_user
                )
                if turn is not None and found.scope.user is not None
                else []
            )
            await bump_epoch(connection, found.scope, teaches=True)
            await record_events(connection, events)
            for profile, write in profiles:
                await _announce(connection, found.scope, profile, write)

        await in_transaction(self._pool, act)

    async def _state_again(
        self,
        connection: Connection,
        scope: Scope,
        id_: UUID,
        turn: PreparedTurn,
        at: datetime,
        now: datetime,
        *,
        is_verified: bool,
        reaches_user: bool,
    ) -> list[tuple[Profile, ProfileWrite]]:
        """Replace the profile facts of a corrected message; return the changed profiles with how each was written."""
        gathers = reaches_user and await self._gathers_by_user(connection, scope)
        source = f"message:{id_}"
        # The old text may have been written before the setting was another, or by a key with another reach.
        old_of = {
            is_wide: await find_statements(connection, scope, source, is_tenant_wide=is_wide)
            for is_wide in ((False, True) if reaches_user else (False,))
        }
        # Who spoke of himself as the user before does so now, whatever name the message has.
        facts = statements_of(turn.statements, {source})
        if not any(old_of.values()):
            facts = await _facts_of_user(connection, scope, turn, {source}, is_change=True)
        profiles = []
        for is_wide, old_facts in old_of.items():
            write = ProfileWrite(self._kept_versions.of_profile, is_verified, is_wide)
            stated = facts if is_wide == gathers else ()
            if changed := [*taken_back(old_facts, at, source), *stated]:
                profiles.append((await add_statements(connection, scope, changed, now, write), write))
        return profiles

    async def _draw_again(
        self, connection: Connection, scope: Scope, id_: UUID, turn: PreparedTurn, now: datetime, witness: str | None
    ) -> tuple[list[OutboxEntry], list[Event]]:
        """Replace the notes and the links that were drawn from a message by those of its new text."""
        stated = {item.note.content_hash() for item in turn.notes}
        known = await lock_drawn(connection, scope, f"message:{id_}")
        stale = [note for note, content_hash in known.items() if content_hash not in stated]
        kept = await hand_over(connection, stale, id_) if stale else set()
        stale = [note for note in stale if note not in kept]
        for note in stale:
            await discard(connection, self._trash, TrashKind.NOTE, scope.tenant, note, now)
        deletion = await delete_notes(connection, scope.tenant, stale, now)
        entries = await unlink_deleted(connection, self._linker, deletion)
        notes, put, back = await self._put(connection, scope, turn.notes, now, witness)
        fresh = {note.id for note in notes if not note.existed}
        # Facts of archived notes stay in the graph.
        archived = await mark_corrected(connection, scope, f"message:{id_}", stated, now)
        unlinked = await self._linker.forget(connection, [id_, *archived])
        links = turn.links.renamed(_stored_as(turn.notes, notes, back))
        linked = await self._linker.write(connection, scope, links, {id_} | fresh | back)
        deleted = [Event.of(scope, EventKind.NOTE_DELETED, *deletion.deleted)] if deletion.deleted else []
        graph = outbox_entries("graph", dict.fromkeys([*unlinked, *linked]))
        return [*entries, *put, *graph], [*deleted, *_note_events(scope, notes, back)]

    async def delete_message(
        self, tenant: str, id_: UUID, *, before: Before | None = None, operation: UUID | None = None
    ) -> None:
        """Delete a message. Memories drawn from it stay; of a summary, the messages it replaced are live again.

        Args:
            tenant: Whose message.
            id_: Its id.
            before: Runs in the transaction before anything is deleted, and may refuse it.
            operation: The deletion of many that takes it.

        Raises:
            NotFound: If the tenant has no such message.
        """

        async def act(connection: Connection) -> None:
            if before is not None:
                await before(connection)
            now = self._clock()
            await discard(connection, self._trash, TrashKind.MESSAGE, tenant, id_, now, operation=operation)
            scope, replaced = await delete_message(connection, tenant, id_)
            alone = await revive_compacted(connection, replaced)
            nodes = await self._linker.forget(connection, [id_])
            touched = [*outbox_entries("messages", [id_, *alone]), *outbox_entries("graph", [*nodes, *alone])]
            await enqueue_entries(connection, touched)
            await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, Event.of(scope, EventKind.MESSAGE_DELETED, id_))

        await in_transaction(self._pool, act)

    async def patch_profile(
        self, scope: Scope, patch: Metadata, *, is_verified: bool = False, is_tenant_wide: bool = False
    ) -> Profile:
        """Merge a patch into the user's profile, which the user or an admin sends if it is verified.

        Args:
            scope: Of the user.
            patch: As :func:`lamina.core.profiles.merge` takes it.
            is_verified: Whether the user itself, or an admin, sends it.
            is_tenant_wide: Whether the profile of the whole tenant is meant, and not that of the scope's namespace.

        Raises:
            InvalidInput: If the scope names no user or the patch is unclean or too large.
        """
        cleaned = clean_metadata(patch, "patch", self.metadata_limit)
        write = ProfileWrite(self._kept_versions.of_profile, is_verified, is_tenant_wide)
        return await self._change_profile(
            scope, write, lambda connection: patch_profile(connection, scope, cleaned, self._clock(), write)
        )

    async def revert_profile(
        self, scope: Scope, version: int, *, is_verified: bool = False, is_tenant_wide: bool = False
    ) -> Profile:
        """Give the user's profile the document of an earlier version again.

        Raises:
            InvalidInput: If the scope names no user.
            NotFound: If that version is not kept.
        """
        write = ProfileWrite(self._kept_versions.of_profile, is_verified, is_tenant_wide)
        return await self._change_profile(
            scope, write, lambda connection: revert_profile(connection, scope, version, self._clock(), write)
        )

    async def _change_profile(
        self, scope: Scope, write: ProfileWrite, change: Callable[[Connection], Awaitable[Profile]]
    ) -> Profile:
        if scope.user is None:
            raise InvalidInput("user", "is missing; a profile belongs to a user")

        async def act(connection: Connection) -> Profile:
            profile = await change(connection)
            if not write.is_tenant_wide:
                await bump_epoch(connection, scope, teaches=_is_changed(profile))
            await _announce(connection, scope, profile, write)
            return profile

        return await in_transaction(self._pool, act)


async def unlink_deleted(connection: Connection, linker: MemoryLinker, deletion: Deletion) -> list[OutboxEntry]:
    """Remove the links of deleted notes; return the entries that take the notes out of every projection."""
    await enqueue_returned(connection, deletion.restored)
    nodes = await linker.forget(connection, deletion.deleted)
    return [*note_entries([*deletion.deleted, *deletion.restored]), *outbox_entries("graph", nodes)]


def _refuse_summarised(id_: UUID, placed: PlacedMessage) -> None:
    """Refuse to change a summary, or a message that one replaced, for the summary would keep the old text.

    Raises:
        Conflict: If the message is so.
    """
    if placed.is_summary:
        raise Conflict(f"message {id_} is a summary of others; delete it, or store a note that says otherwise")
    if placed.is_compacted:
        remedy = "delete that one first, so that its messages stand for themselves, or store a note that says otherwise"
        raise Conflict(f"message {id_} is part of the summary {placed.compacted_into}; {remedy}")


def _texts_drawn_from(message: Message, id_: UUID) -> set[bytes]:
    """Return the hashes of the texts of a message that notes hold in its own words."""
    readable = replace(message, content=composed(message.content))
    return {note.content_hash() for note in extract_by_rules([readable], [id_]).notes}


async def _facts_of_user(
    connection: Connection,
    scope: Scope,
    turn: PreparedTurn,
    sources: Collection[str],
    *,
    is_change: bool = False,
) -> list[ProfileStatement]:
    """Return the statements of these messages that are the user's own.

    Args:
        connection: Within the turn's transaction.
        scope: Of the turn.
        turn: What was read in it.
        sources: Its new messages.
        is_change: Whether it is one message out of a turn whose others stand in the session.
    """
    facts = statements_of(turn.statements, sources)
    if scope.user is None or not facts:
        return []
    speakers = speakers_of(turn.messages)
    if not any(speakers.values()):
        return statements_of(facts, speakers)
    names = await read_user_names(connection, scope)
    session = map(speaker_name, await read_speakers(connection, scope))
    others = [name for name in session if name is not None or is_change]
    return statements_of(facts, sources_of_user(speakers, scope.user, names, others))


async def _prepare_each(
    notes: Sequence[tuple[UUID, Note]], chunks: Sequence[tuple[Chunk, ...]]
) -> tuple[PreparedNote, ...]:
    def prepare() -> tuple[PreparedNote, ...]:
        return tuple(prepare_note(id_, note, parts) for (id_, note), parts in zip(notes, chunks, strict=True))

    # In a thread, so that other requests need not wait for the words of long texts.
    is_long = sum(len(note.content) for _, note in notes) > LONG_TEXT_CHARS
    return await asyncio.to_thread(prepare) if is_long else prepare()


def _tool_message(placed: tuple[ToolCall, int]) -> Message:
    """Return a clean tool call as a message.

    Raises:
        InvalidInput: If its name, arguments and result together are too long.
    """
    call, place = placed
    message = call.message()
    clean(message.content, f"tool_calls.{place}")
    return message


def _message_text(id_: UUID, message: Message, scope: Scope, now: datetime, witness: str | None) -> MemoryText:
    seen_at, said = message.occurred_at or now, message.content
    return MemoryText(
        id_, Tier.SESSIONS, message.text(), f"message:{id_}", scope.user, seen_at, said=said, witness=witness
    )


def _note_text(id_: UUID, note: Note, scope: Scope, now: datetime, witness: str | None) -> MemoryText:
    seen_at = note.event_at or now
    return MemoryText(id_, Tier.NOTES, note.content, note.source, scope.user, seen_at, witness=witness)


def _links_of_stored(links: PreparedLinks, stored: StoredNote) -> PreparedLinks:
    """Return the links of a changed text as the stored note's: its owner and source were not known before."""
    seen_at = stored.note.event_at or stored.updated_at
    return links.with_origin(user=stored.user, source=stored.note.source, seen_at=seen_at)


def _stored_as(prepared: Sequence[PreparedNote], put: Sequence[NoteResult], back: Collection[UUID]) -> dict[UUID, UUID]:
    """Return the ids under which notes are stored that were brought back."""
    return {item.id: note.id for item, note in zip(prepared, put, strict=True) if note.id in back}


def _note_events(scope: Scope, notes: Sequence[NoteResult], back: Collection[UUID]) -> list[Event]:
    """Return the events of notes that were stored or brought back, and of those that a text in other words raised."""
    fresh = [note.id for note in notes if not note.existed]
    raised = list(dict.fromkeys(note.id for note in notes if note.merged))
    created = [Event.of(scope, EventKind.NOTE_CREATED, *fresh, notes=len(fresh))] if fresh else []
    restored = [Event.of(scope, EventKind.NOTE_RESTORED, *sorted(back))] if back else []
    return [*created, *restored, *([Event.of(scope, EventKind.NOTE_CHANGED, *raised)] if raised else [])]


async def _announce(connection: Connection, scope: Scope, profile: Profile, write: ProfileWrite) -> None:
    """Record the change of a profile."""
    if not _is_changed(profile):
        return
    event = Event.of(scope, EventKind.PROFILE_CHANGED, version=profile.version)
    await record_event(connection, replace(event, workspace=None, namespace=None) if write.is_tenant_wide else event)


def _is_changed(profile: Profile | None) -> bool:
    """Tell whether a patch changed the profile; one that did not has no time."""
    return profile is not None and profile.updated_at is not None
