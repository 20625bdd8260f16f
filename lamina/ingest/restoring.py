"""Bring deleted memories back: their rows, their links, and their places in every index."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from lamina.core.areas import Area
from lamina.core.events import Event, EventKind
from lamina.core.paging import Page
from lamina.core.ports import Clock, Embedder
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.core.trash import Discarded, TrashKind
from lamina.errors import Conflict, InvalidInput, Unavailable
from lamina.ingest.embedding import embed_in_time, embedded_rows
from lamina.ingest.graph_restoring import NodeRestorer
from lamina.ingest.memory_linking import MemoryLinker, MemoryText, PreparedLinks
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction
from lamina.stores.postgres.entities import ToldGraph
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.outbox import OutboxEntry, enqueue, enqueue_entries, note_entries, outbox_entries
from lamina.stores.postgres.tiers import EMBEDDED, EMBEDDING_PROJECTIONS
from lamina.stores.postgres.trash import (
    Trash,
    TrashPolicy,
    discarded_notes,
    erase_from_trash,
    hand_on_told,
    postpone_notes,
    revive_notes,
    revive_procedure,
    revive_rows,
    take,
)
from lamina.stores.postgres.vectors import read_unembedded_of, write_vectors

_logger = logging.getLogger(__name__)
_EMBEDDED = {
    TrashKind.NOTE: "notes",
    TrashKind.MESSAGE: "messages",
    TrashKind.PROCEDURE: "procedures",
    TrashKind.DOCUMENT: "passages",
}
_EVENTS = {
    TrashKind.NOTE: EventKind.NOTE_RESTORED,
    TrashKind.MESSAGE: EventKind.MESSAGE_RESTORED,
    TrashKind.PROCEDURE: EventKind.PROCEDURE_RESTORED,
    TrashKind.DOCUMENT: EventKind.DOCUMENT_RESTORED,
}


class Restorer:
    """Brings deleted memories back.

    Args:
        pool: Connections to Postgres.
        embedder: Embeds names in them that the graph does not have any more.
        linker: Links them into the graph again.
        nodes: Brings back entities and facts.
        policy: How long they can be brought back.
        generation: The active generation of vectors.
        clock: The time of day.
        deadline_s: Seconds after which a restoration gives up on the embedder.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        linker: MemoryLinker,
        nodes: NodeRestorer,
        policy: TrashPolicy,
        *,
        generation: int,
        clock: Clock,
        deadline_s: float,
    ) -> None:
        self._pool = pool
        self._trash = Trash(pool)
        self._embedder = embedder
        self._linker = linker
        self._nodes = nodes
        self._policy = policy
        self._generation = generation
        self._clock = clock
        self._deadline_s = deadline_s

    async def page(self, scope: Scope, kind: TrashKind | None, page: Page) -> list[Discarded]:
        """Return the deleted memories of a scope, of a kind or of all, that can be brought back, the last first."""
        return await self._trash.page(scope, kind, page, cutoff=self._policy.cutoff(self._clock()))

    async def restore(self, tenant: str, id_: UUID, *, may_wait: bool = False) -> Discarded:
        """Bring a deleted memory back, under the id that it had; into an equal entity or fact that is there meanwhile.

        Args:
            tenant: Whose memory.
            id_: Its id.
            may_wait: Whether a note that was made from a deleted one leaves the trash, to come back with that.

        Raises:
            NotFound: If it does not lie in the trash, or not any more.
            Conflict: If its scope has the same again, nothing is left that an entity or a fact rests on, or a note was
                made from a deleted one.
            Unavailable: If the embedder or Postgres does not answer; nothing is changed.
        """
        now = self._clock()
        entry = await self._trash.get(tenant, id_, cutoff=self._policy.cutoff(now))
        if entry.kind in (TrashKind.ENTITY, TrashKind.FACT):
            return await self._restore_node(tenant, entry)
        texts = await self._texts(tenant, entry)
        links = await self._links(texts, entry)
        scope = Scope(tenant, entry.workspace, entry.namespace, entry.user)

        async def act(connection: Connection) -> None:
            await take(connection, tenant, id_)
            ids = [text.memory for text in texts]
            waiting = await postpone_notes(connection, tenant, ids) if entry.kind is TrashKind.NOTE else set()
            if waiting:
                await hand_on_told(connection, tenant, entry, waiting)
            if id_ in waiting and may_wait:
                return
            if id_ in waiting:
                raise Conflict(f"note {id_} was made from notes that are deleted, too; restore these first")
            entries = await self._revive(connection, tenant, entry, [one for one in ids if one not in waiting], now)
            alive = {id_ for _, id_ in entries}
            nodes = [node for one in links for node in await self._linker.write(connection, scope, one, alive)]
            await enqueue_entries(connection, [*entries, *outbox_entries("graph", sorted({*alive, *nodes}))])
            await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, Event.of(scope, _EVENTS[entry.kind], id_))

        await in_transaction(self._pool, act)
        await self._embed(scope, entry, [text.memory for text in texts])
        return entry

    async def _embed(self, scope: Scope, entry: Discarded, ids: Sequence[UUID]) -> None:
        """Embed restored memories that lack vectors of the present model; if that fails, reembed does it."""
        kind = _EMBEDDED[entry.kind]
        try:
            await self._embed_lacking(scope, kind, ids or [entry.id])
        except (Unavailable, InvalidInput) as error:
            _logger.warning("%s %s came back without vectors, which the job reembed makes: %s", kind, entry.id, error)

    async def _embed_lacking(self, scope: Scope, kind: str, ids: Sequence[UUID]) -> None:
        area = Area(scope.tenant, scope.workspace, scope.namespace)
        rows = await read_unembedded_of(self._pool, kind, area, self._generation, ids)
        texts = [EMBEDDED[kind].text(row) for row in rows]
        chunks = await embed_in_time(self._embedder.embed_chunks, texts, self._deadline_s)
        embedded = await asyncio.to_thread(embedded_rows, EMBEDDED[kind], rows, texts, chunks)

        async def act(connection: Connection) -> None:
            made = await write_vectors(connection, kind, area, self._generation, embedded)
            for projection in EMBEDDING_PROJECTIONS[kind]:
                await enqueue(connection, projection, sorted(made))
            await bump_epoch(connection, scope, teaches=True)

        if rows:
            await in_transaction(self._pool, act)

    async def _restore_node(self, tenant: str, entry: Discarded) -> Discarded:
        returning = await self._nodes.prepare(tenant, [entry.id])

        async def act(connection: Connection) -> Discarded:
            node = await self._nodes.restore(connection, tenant, returning, entry.id)
            await bump_epoch(connection, node.scope, teaches=True)
            return replace(entry, id=node.id)

        return await in_transaction(self._pool, act)

    async def _revive(
        self, connection: Connection, tenant: str, entry: Discarded, ids: Sequence[UUID], now: datetime
    ) -> list[OutboxEntry]:
        """Bring the rows back; return the entries of the memories that are live again."""
        match entry.kind:
            case TrashKind.NOTE:
                alive = await revive_notes(connection, tenant, ids, now)
                if entry.id not in alive:
                    raise Conflict("the scope has the same text again; change or delete that note")
                # One that was made from it may have been deleted by itself, in the same moment.
                await erase_from_trash(connection, tenant, alive)
                return note_entries(alive)
            case TrashKind.PROCEDURE:
                await revive_procedure(connection, tenant, entry.id)
                return []
            case TrashKind.MESSAGE:
                await revive_rows(connection, entry.rows)
                return outbox_entries("messages", ids)
            case TrashKind.DOCUMENT:
                await revive_rows(connection, entry.rows)
                return outbox_entries("documents", ids)
            case TrashKind.ENTITY | TrashKind.FACT:
                raise AssertionError(entry.kind)  # They come back by way of the graph.

    async def _texts(self, tenant: str, entry: Discarded) -> list[MemoryText]:
        """Return the texts that the graph reads."""
        match entry.kind:
            case TrashKind.NOTE:
                async with connect(self._pool) as connection:
                    rows = await discarded_notes(connection, tenant, entry.id)
                return [
                    MemoryText(row["id"], Tier.NOTES, row["content"], row["source"], row["user_id"], row["event_at"])
                    for row in rows
                ]
            case TrashKind.PROCEDURE | TrashKind.ENTITY | TrashKind.FACT:
                return []
            case TrashKind.MESSAGE:
                return [_message_text(row, entry) for row in entry.rows["messages"]]
            case TrashKind.DOCUMENT:
                [document] = entry.rows["documents"]
                at = datetime.fromisoformat(document["event_at"])
                return [
                    MemoryText(
                        UUID(row["id"]),
                        Tier.DOCUMENTS,
                        row["content"],
                        document["source"],
                        entry.user,
                        at,
                        document["title"] or None,
                    )
                    for row in entry.rows["passages"]
                ]

    async def _links(self, texts: Sequence[MemoryText], entry: Discarded) -> list[PreparedLinks]:
        if "evidence" not in entry.rows:  # An earlier release kept none in its trash.
            return [await self._drawn(texts)]
        told = ToldGraph.of(entry.rows)
        known = {entry.id, *(item.memory for item in told.evidence)}
        # A note that was made from this one may be another user's, or may have lost its links before.
        unknown = [text for text in texts if entry.kind is TrashKind.NOTE and text.memory not in known]
        kept = [text for text in texts if text not in unknown]
        return [await self._linker.prepare_told(kept, told), *[await self._drawn([text]) for text in unknown]]

    async def _drawn(self, texts: Sequence[MemoryText]) -> PreparedLinks:
        # A name that the model refuses holds up none of them: it took it before, or was another one.
        return await self._linker.embed_names(await self._linker.draft(texts))


def _message_text(row: object, entry: Discarded) -> MemoryText:
    assert isinstance(row, dict)  # noqa: S101 - a row of JSON
    said, name = str(row["content"]), row["name"]
    text = f"{name}: {said}" if name else said
    at = datetime.fromisoformat(str(row["occurred_at"]))
    return MemoryText(entry.id, Tier.SESSIONS, text, f"message:{entry.id}", entry.user, at, said=said)
