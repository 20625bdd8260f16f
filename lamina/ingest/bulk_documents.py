"""Tag and move the documents that match a filter, a batch in a transaction."""

from collections.abc import Sequence
from uuid import UUID

from psycopg.rows import DictRow

from lamina.api.bulk import DocumentsChangeIn
from lamina.core.documents import Document
from lamina.core.events import Event, EventKind
from lamina.core.memories import MAX_TAGS, Extraction
from lamina.core.operations import Operation, OperationKind
from lamina.core.ports import Clock
from lamina.core.tiers import Tier
from lamina.core.trash import TrashKind
from lamina.ingest.batch_effects import BatchEffects, ids_by_user
from lamina.ingest.bulk_notes import KEPT_FIELDS, tagged
from lamina.ingest.memory_linking import MemoryLinker, MemoryText, PreparedLinks
from lamina.stores.postgres.bulk_memories import (
    list_passages,
    lock_selected,
    move_documents,
    read_to_move,
    select_rows,
    tag_documents,
)
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.feedback import move_feedback
from lamina.stores.postgres.operations import advance_operation, complete_operation, hold_operation
from lamina.stores.postgres.outbox import outbox_entries

BATCH = 20
"""Documents may have hundreds of passages each."""


class BulkDocuments:
    """Works on operations that tag and move the documents of a scope; files of a workspace stay as they are.

    Args:
        pool: Connections to Postgres.
        linker: Links moved documents in the other namespace.
        clock: The time of day.
    """

    def __init__(self, pool: Pool, linker: MemoryLinker, *, clock: Clock) -> None:
        self._pool = pool
        self._linker = linker
        self._clock = clock

    async def step(self, operation: Operation) -> None:
        """Work on the next batch of an operation, or complete it, in one transaction.

        Raises:
            Unavailable: If the embedder or Postgres does not answer; the batch is not worked on.
        """
        body, scope = DocumentsChangeIn.model_validate(operation.request), operation.scope()
        filters, kind = body.selection(), TrashKind.DOCUMENT
        stored_by, after = operation.requested_at, operation.cursor
        rows = await select_rows(self._pool, kind, scope, filters, stored_by=stored_by, after=after, limit=BATCH)
        page = [row["id"] for row in rows]
        is_move = operation.kind is OperationKind.MOVE_DOCUMENTS
        links = await self._links(operation.tenant, page) if is_move else PreparedLinks()

        async def act(connection: Connection) -> None:
            if not await hold_operation(connection, operation):
                return  # Another process was here.
            if not page:
                await complete_operation(connection, operation, KEPT_FIELDS, self._clock())
                return
            rows = await lock_selected(connection, kind, scope, filters, page)
            if is_move:
                passages = await list_passages(connection, [row["id"] for row in rows if not row["is_file"]])
                if not {item.memory for item in links.memories}.issuperset(passages):
                    # One was replaced since it was read: the next step reads the batch again.
                    await advance_operation(connection, operation.id, operation.cursor, {})
                    return
            effects = (
                await self._move(connection, operation, rows, links)
                if is_move
                else await self._tag(connection, operation, body, rows)
            )
            await effects.write(connection, operation, page[-1])

        await in_transaction(self._pool, act)

    async def _tag(
        self, connection: Connection, operation: Operation, body: DocumentsChangeIn, rows: Sequence[DictRow]
    ) -> BatchEffects:
        effects, changed = BatchEffects(), dict[UUID, tuple[str, ...]]()
        place = operation.scope().narrowed(user=None, agent=None, session=None)
        for row in rows:
            new = tagged(row["tags"], body.add_tags, body.remove_tags)
            if row["is_file"]:
                effects.count("files")
            elif new == tuple(row["tags"]) or len(new) > MAX_TAGS:
                effects.count("unchanged" if new == tuple(row["tags"]) else "too_many_tags")
            else:
                changed[row["id"]] = new
        passages = await tag_documents(connection, operation.tenant, changed, self._clock())
        effects.entries += outbox_entries("documents", passages)
        effects.count("changed", len(changed))
        for user, ids in ids_by_user((row["id"], row["user_id"]) for row in rows if row["id"] in changed).items():
            effects.events.append(Event.of(place.narrowed(user=user), EventKind.DOCUMENT_WRITTEN, *ids))
            effects.touch(place)
        return effects

    async def _move(
        self, connection: Connection, operation: Operation, rows: Sequence[DictRow], links: PreparedLinks
    ) -> BatchEffects:
        effects, source = BatchEffects(), operation.scope().narrowed(user=None, agent=None, session=None)
        target = source.narrowed(
            workspace=operation.request["to_workspace"], namespace=operation.request["to_namespace"]
        )
        files = sum(row["is_file"] for row in rows)
        moved = await move_documents(connection, [row["id"] for row in rows], target)
        passages = sorted(id_ for ids in moved.values() for id_ in ids)
        await move_feedback(connection, [*moved, *passages], target)
        nodes = await self._linker.forget(connection, passages)
        linked = await self._linker.write(connection, target, links, set(passages))
        graph = sorted({*passages, *nodes, *linked})
        effects.entries = [*outbox_entries("documents", passages), *outbox_entries("graph", graph)]
        effects.count("moved", len(moved))
        effects.count("files", files)
        effects.count("existing", len(rows) - len(moved) - files)
        for user, ids in ids_by_user((row["id"], row["user_id"]) for row in rows if row["id"] in moved).items():
            effects.events.append(Event.of(source.narrowed(user=user), EventKind.DOCUMENT_DELETED, *ids))
            effects.events.append(Event.of(target.narrowed(user=user), EventKind.DOCUMENT_WRITTEN, *ids))
            effects.touch(source, target)
        return effects

    async def _links(self, tenant: str, ids: Sequence[UUID]) -> PreparedLinks:
        rows = await read_to_move(self._pool, tenant, ids) if ids else []
        texts = [
            MemoryText(
                row["id"],
                Tier.DOCUMENTS,
                row["content"],
                row["source"],
                row["user_id"],
                row["event_at"],
                Document("", row["title"], "", row["whole"], ()).name(),
            )
            for row in rows
        ]
        draft = await self._linker.draft(texts, Extraction())
        return await self._linker.embed_names(draft)
