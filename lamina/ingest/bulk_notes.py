"""Delete, change and move the notes that match a filter, a batch in a transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lamina.api.bulk import BulkChangeIn, BulkDeleteIn
from lamina.core.events import Event, EventKind
from lamina.core.memories import MAX_TAGS, MetadataLimit, Note, StoredNote, clean_note
from lamina.core.operations import Operation, OperationKind
from lamina.core.ports import Clock
from lamina.core.queries import Filters
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.core.trash import TrashKind
from lamina.ingest.batch_effects import BatchEffects, ids_by_user
from lamina.ingest.memory_linking import MemoryLinker, MemoryText, PreparedLinks
from lamina.ingest.turns import unlink_deleted
from lamina.stores.postgres.bulk_memories import (
    lock_selected,
    move_merged,
    move_notes,
    preview_selected,
    read_merged,
    select_rows,
)
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction, scope_parameters
from lamina.stores.postgres.entities import ToldGraph, read_told
from lamina.stores.postgres.feedback import move_feedback
from lamina.stores.postgres.note_rows import stored_note
from lamina.stores.postgres.note_temperature import warm_up
from lamina.stores.postgres.notes import delete_notes, expire_derived, update_note
from lamina.stores.postgres.operations import advance_operation, complete_operation, hold_operation
from lamina.stores.postgres.outbox import enqueue_entries, note_entries, outbox_entries
from lamina.stores.postgres.renaming import keep_former_names
from lamina.stores.postgres.trash import TrashPolicy, discard

BATCH = 100
KEPT_FIELDS = ("add_tags", "remove_tags", "to_workspace", "to_namespace")
"""Of a request, once it is complete: the others may hold names of users, or texts."""


class BulkNotes:
    """Works on operations over the notes of a scope.

    Args:
        pool: Connections to Postgres.
        linker: Links moved notes in the graph of the other namespace.
        trash: How long deleted notes can be brought back.
        kept_versions: Most earlier versions of a note.
        clock: The time of day.
    """

    def __init__(
        self,
        pool: Pool,
        linker: MemoryLinker,
        *,
        trash: TrashPolicy,
        kept_versions: int,
        metadata_limit: MetadataLimit,
        clock: Clock,
    ) -> None:
        self._pool = pool
        self._linker = linker
        self._trash = trash
        self._kept_versions = kept_versions
        self._metadata_limit = metadata_limit
        self._clock = clock

    def check(self, body: BulkChangeIn) -> None:
        """Check the fields that notes would get.

        Raises:
            InvalidInput: For one that is not right.
        """
        body.check(self._clock())
        self._changes(body)

    async def preview(self, scope: Scope, filters: Filters, *, sample: int) -> tuple[int, list[StoredNote]]:
        """Return how many notes match, and the first of them by id."""
        now = self._clock()
        matched, rows = await preview_selected(self._pool, TrashKind.NOTE, scope, filters, now, sample=sample)
        return matched, [stored_note(row) for row in rows]

    async def step(self, operation: Operation) -> None:
        """Work on the next batch of an operation, or complete it, in one transaction.

        Raises:
            Unavailable: If the embedder or Postgres does not answer; the batch is not worked on.
        """
        body = BulkDeleteIn if operation.kind is OperationKind.DELETE_NOTES else BulkChangeIn
        scope, filters = operation.scope(), body.model_validate(operation.request).selection()
        stored_by, after, kind = operation.requested_at, operation.cursor, TrashKind.NOTE
        rows = await select_rows(self._pool, kind, scope, filters, stored_by=stored_by, after=after, limit=BATCH)
        page = [stored_note(row) for row in rows]
        is_move, links = operation.kind is OperationKind.MOVE_NOTES, PreparedLinks()
        if is_move:
            merged = await read_merged(self._pool, operation.tenant, [note.id for note in page])
            links = await self._links([*page, *map(stored_note, merged)])

        async def act(connection: Connection) -> None:
            if not await hold_operation(connection, operation):
                return  # Another process was here.
            if not page:
                await complete_operation(connection, operation, KEPT_FIELDS, self._clock())
                return
            locked = await lock_selected(connection, kind, scope, filters, [note.id for note in page])
            notes = [stored_note(row) for row in locked]
            read = {(item.memory, item.text) for item in links.memories}
            if is_move and not read.issuperset((note.id, note.note.content) for note in notes):
                # One was changed since it was read: the next step reads the batch again.
                await advance_operation(connection, operation.id, operation.cursor, {})
                return
            effects = await self._apply(connection, operation, notes, links)
            await effects.write(connection, operation, page[-1].id)
            if effects.counts.get("moved"):  # Behind the others, which lock the rows of both places.
                target = {name: operation.request[name] for name in ("to_workspace", "to_namespace")}
                await keep_former_names(connection, {**scope_parameters(scope), **target})

        await in_transaction(self._pool, act)

    async def _apply(
        self, connection: Connection, operation: Operation, notes: Sequence[StoredNote], links: PreparedLinks
    ) -> BatchEffects:
        match operation.kind:
            case OperationKind.DELETE_NOTES:
                return await self._delete(connection, operation, notes)
            case OperationKind.CHANGE_NOTES:
                return await self._change(connection, operation, notes)
            case OperationKind.MOVE_NOTES:
                return await self._move(connection, operation, notes, links)
            case _ as other:
                raise ValueError(f"{other} is no operation over notes")

    async def _delete(self, connection: Connection, operation: Operation, notes: Sequence[StoredNote]) -> BatchEffects:
        effects, now = BatchEffects(), self._clock()
        for user, ids in ids_by_user((note.id, note.user) for note in notes).items():
            for id_ in ids:
                entry = (TrashKind.NOTE, operation.tenant, id_, now)
                await discard(connection, self._trash, *entry, operation=operation.id)
            deletion = await delete_notes(connection, operation.tenant, ids, now)
            effects.entries += await unlink_deleted(connection, self._linker, deletion)
            owner = operation.scope().narrowed(user=user, agent=None, session=None)
            effects.events.append(Event.of(owner, EventKind.NOTE_DELETED, *deletion.deleted))
            effects.count("deleted", len(ids))
            effects.touch(owner)
        return effects

    async def _change(self, connection: Connection, operation: Operation, notes: Sequence[StoredNote]) -> BatchEffects:
        body = BulkChangeIn.model_validate(operation.request)
        # Seconds to live count from the order, however long the operation takes.
        changes = self._changes(body, operation.requested_at)
        effects, now = BatchEffects(), self._clock()
        for stored in notes:
            new = replace(stored.note, **changes)
            new = replace(new, tags=tagged(new.tags, body.add_tags, body.remove_tags))
            if new == stored.note or len(new.tags) > MAX_TAGS:
                effects.count("unchanged" if new == stored.note else "too_many_tags")
                continue
            if stored.temperature == "cold":
                await warm_up(connection, [stored.id], now)
            written = await update_note(connection, stored.id, new, now, kept_versions=self._kept_versions)
            if new.expires_at is not None:
                await expire_derived(connection, [stored.id])
            effects.entries += [*note_entries([stored.id]), *outbox_entries("graph", [stored.id])]
            owner = Scope(operation.tenant, stored.workspace, stored.namespace, stored.user, stored.agent)
            effects.events.append(Event.of(owner, EventKind.NOTE_CHANGED, stored.id, version=written.version))
            effects.count("changed")
            effects.touch(owner)
        return effects

    async def _move(
        self, connection: Connection, operation: Operation, notes: Sequence[StoredNote], links: PreparedLinks
    ) -> BatchEffects:
        effects, source = BatchEffects(), operation.scope().narrowed(user=None, agent=None, session=None)
        target = source.narrowed(
            workspace=operation.request["to_workspace"], namespace=operation.request["to_namespace"]
        )
        ids = [note.id for note in notes]
        # Before the move: the entries of cold notes say where they were.
        await enqueue_entries(connection, note_entries(ids))
        moved = set(await move_notes(connection, ids, target))
        effects.count("moved", len(moved))
        effects.count("existing", len(ids) - len(moved))
        carried = moved.union(await move_merged(connection, sorted(moved), target))
        await move_feedback(connection, sorted(carried), target)
        nodes = await self._linker.forget(connection, sorted(carried))
        linked = await self._linker.write(connection, target, links, carried)
        effects.entries = [*note_entries(sorted(moved)), *outbox_entries("graph", sorted({*moved, *nodes, *linked}))]
        for user, own in ids_by_user((note.id, note.user) for note in notes if note.id in moved).items():
            effects.events.append(Event.of(source.narrowed(user=user), EventKind.NOTE_DELETED, *own))
            effects.events.append(Event.of(target.narrowed(user=user), EventKind.NOTE_CREATED, *own, notes=len(own)))
        if moved:
            effects.touch(source, target)
        return effects

    async def _links(self, notes: Iterable[StoredNote]) -> PreparedLinks:
        texts = [
            MemoryText(
                item.id,
                Tier.NOTES,
                item.note.content,
                item.note.source,
                item.user,
                item.note.event_at or item.updated_at,
            )
            for item in notes
        ]
        async with connect(self._pool) as connection:
            told = await read_told(connection, [text.memory for text in texts])
        return await self._linker.prepare_told(texts, ToldGraph.of(told))

    def _changes(self, body: BulkChangeIn, now: datetime | None = None) -> Mapping[str, Any]:
        changes = {} if body.changes is None else body.changes.changes(now or self._clock())
        checked = clean_note(replace(Note(content="-"), **changes), "changes", limit=self._metadata_limit)
        return {name: getattr(checked, name) for name in changes}


def tagged(tags: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> tuple[str, ...]:
    """Return tags with some added, each once, and some taken away."""
    return tuple(tag for tag in dict.fromkeys((*tags, *added)) if tag not in removed)
