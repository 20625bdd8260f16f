"""Write documents: parse, split, embed, then one transaction."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from weakref import WeakValueDictionary

from pydantic import TypeAdapter

from lamina.core.documents import Document, Upload, clean_upload, document_of
from lamina.core.events import Event, EventKind
from lamina.core.memories import Chunk, Extraction, MetadataLimit, new_id
from lamina.core.ports import Clock, Embedder
from lamina.core.preconditions import UNCONDITIONAL, Precondition
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.core.trash import TrashKind
from lamina.errors import InvalidInput
from lamina.ingest.embedding import EmbeddingBudget, embed_in_time
from lamina.ingest.memory_linking import MemoryLinker, MemoryText, PreparedLinks
from lamina.ingest.parsing.parse import known_media_type
from lamina.ingest.parsing.processes import ReadDocument, ReadingLimits, ReadingOrder, reader_processes
from lamina.ingest.write_once import write_once
from lamina.stores.postgres.connection import Before, Connection, Pool, in_transaction
from lamina.stores.postgres.documents import (
    DocumentResult,
    Documents,
    PreparedDocument,
    PreparedPassage,
    Status,
    delete_document,
    find_documents,
    put_documents,
)
from lamina.stores.postgres.epochs import bump_epoch, read_epoch
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.idempotency import Once
from lamina.stores.postgres.outbox import enqueue_entries, outbox_entries
from lamina.stores.postgres.trash import TrashPolicy, discard
from lamina.text.hygiene import composed
from lamina.text.words import index_words

TEXTS_PER_CALL = 32  # A query waits behind one call at most, some tenths of a second.
PARSERS = 2


@dataclass(frozen=True, slots=True)
class DocumentPolicy:
    """How documents are read and cut.

    Args:
        limits: What the reading of one may take.
        passage_chars: Most characters of a passage.
        parse_deadline_s: Seconds after which a document counts as unreadable.
        metadata: Limit of the metadata that its owner sends.
    """

    limits: ReadingLimits
    passage_chars: int
    parse_deadline_s: float
    metadata: MetadataLimit


@dataclass(frozen=True, slots=True)
class RecordedDocument:
    """A document after a write."""

    id: UUID
    key: str
    status: Status
    version: int
    passages: int

    @property
    def etag_before(self) -> str | None:
        """Return the version that it had before the write; ``None`` if it was not there."""
        match self.status:
            case "created":
                return None
            case "replaced":
                return str(self.version - 1)
            case "existed":
                return str(self.version)


@dataclass(frozen=True, slots=True)
class RecordedDocuments:
    """The results of a write in the caller's order, and the scope's epoch after it."""

    documents: tuple[RecordedDocument, ...]
    epoch: int


_DOCUMENTS = TypeAdapter(RecordedDocuments)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Documents that are written together.

    Args:
        prepared: In the same order; ``None`` for those that the scope held already when the write began.
        links: Of their passages into the graph.
        agents: Whose documents alone they may replace, if there are any.
    """

    documents: Sequence[Document]
    prepared: Sequence[PreparedDocument | None]
    links: PreparedLinks
    agents: Collection[str]


class _ChangedMeanwhileError(Exception):
    """A document that was there when the write began is another one now, or gone."""


class DocumentRecorder:
    """Writes documents: each is stored, replaced and deleted as a whole.

    No connection is held while a document is parsed or a model works. What the scope holds already is not embedded
    again: neither an equal document, nor the equal passages of a changed one.

    Args:
        pool: Connections to Postgres.
        embedder: Embeds passages.
        linker: Links passages into the graph.
        policy: How documents are read and cut.
        generation: The active generation of vectors.
        clock: The time of day.
        embed_deadline_s: Seconds after which a write gives up on the embedder's answer to one call.
        budget: Most time of the embedder for one request.
        trash: How long deleted documents can be brought back.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder,
        linker: MemoryLinker,
        policy: DocumentPolicy,
        *,
        generation: int,
        clock: Clock,
        embed_deadline_s: float,
        budget: EmbeddingBudget,
        trash: TrashPolicy,
    ) -> None:
        self._pool = pool
        self._documents = Documents(pool)
        self._embedder = embedder
        self._linker = linker
        self._policy = policy
        self._generation = generation
        self._clock = clock
        self._embed_deadline_s = embed_deadline_s
        self._budget = budget
        self._trash = trash
        self._processes = reader_processes(policy.limits)
        # Threads of their own, which only wait for a process: those of other writes stay free.
        self._threads = ThreadPoolExecutor(PARSERS, thread_name_prefix="document")
        self._places = asyncio.Semaphore(PARSERS)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, tenant: str, upload: Upload, field_path: str = "") -> Document:
        """Parse an upload and cut it into passages; nothing is written. A tenant's uploads are read one by one.

        Raises:
            InvalidInput: Naming the field under ``field_path``: an unclean one, an unknown media
                type, or content that is too large, broken, encrypted, without text, or takes too long to read.
        """
        cleaned = clean_upload(upload, field_path, limit=self._policy.metadata)
        kind, _ = known_media_type(upload.media_type, f"{field_path}.media_type" if field_path else "media_type")
        order = ReadingOrder(cleaned.content, cleaned.media_type, field_path, self._policy.passage_chars)
        async with self._turns.setdefault(tenant, asyncio.Lock()), self._places:
            found = await self._read(order)
        return document_of(cleaned, found.parsed, found.passages, kind)

    async def _read(self, order: ReadingOrder) -> ReadDocument:
        process = self._processes.take()
        try:
            reading = asyncio.get_running_loop().run_in_executor(self._threads, process.read, order)
            found = await asyncio.wait_for(reading, self._policy.parse_deadline_s)
        except TimeoutError as error:
            process.kill()
            reason = f"was not read within {self._policy.parse_deadline_s} s; send it in parts, or its text"
            raise InvalidInput(order.field, reason) from error
        except InvalidInput:
            self._processes.give_back(process)
            raise
        except BaseException:
            process.kill()
            raise
        self._processes.give_back(process)
        return found

    async def put(
        self,
        scope: Scope,
        documents: Sequence[Document],
        once: Once | None = None,
        *,
        witness: str | None = None,
        before: Before | None = None,
        condition: Precondition = UNCONDITIONAL,
        agents: Collection[str] = (),
    ) -> RecordedDocuments:
        """Store documents, each in place of the scope's one of its key; return the results in their order.

        Equal documents are left as they are: nothing is written for them, and the epoch stays.

        Args:
            scope: Where they belong.
            documents: The documents.
            once: Identity of the write.
            witness: Who vouches for them.
            before: Runs in the transaction before anything is written, and may refuse the write.
            condition: The version that each of them has to have before.
            agents: Whose documents alone they may replace, if there are any.

        Raises:
            TooLarge: If the documents would take more of the embedder than one request may.
            Unavailable: If the embedder or Postgres does not answer; none is stored.
            PreconditionFailed: If one has another version; none is stored.
            OutsideBounds: If one would replace a document of another agent; none is stored.
        """
        known = await self._documents.find(scope, [document.key for document in documents])
        hashes = {key: item.content_hash for key, item in known.items()}
        # Equal documents are not embedded again; the transaction looks again. Of several with one key the last stays.
        changed = {
            composed(document.key)
            for document in documents
            if hashes.get(composed(document.key)) != document.content_hash()
        }
        news = [document for document in documents if composed(document.key) in changed]
        field = "content" if len(documents) == 1 else "documents"
        await self._budget.check([document.content for document in news], field)
        try:
            replaced = [document for document in news if composed(document.key) in known]
            return await self._put(scope, documents, news, replaced, once, witness, before, condition, agents)
        except _ChangedMeanwhileError:
            # What was left out as unchanged is embedded now, too.
            return await self._put(scope, documents, documents, documents, once, witness, before, condition, agents)

    async def delete(
        self,
        tenant: str,
        id_: UUID,
        condition: Precondition = UNCONDITIONAL,
        *,
        before: Before | None = None,
        operation: UUID | None = None,
    ) -> None:
        """Delete a document with all its passages; they leave every index.

        Args:
            tenant: Whose document.
            id_: Its id.
            condition: The version that it has to have.
            before: Runs in the transaction before anything is deleted, and may refuse it.
            operation: The deletion of a scope that takes it.

        Raises:
            NotFound: If the tenant has no such document.
            Conflict: If it is a passage of one.
            PreconditionFailed: If it has another version.
        """

        async def act(connection: Connection) -> None:
            if before is not None:
                await before(connection)
            now = self._clock()
            await discard(connection, self._trash, TrashKind.DOCUMENT, tenant, id_, now, operation=operation)
            scope, gone = await delete_document(connection, tenant, id_, condition)
            nodes = await self._linker.forget(connection, gone)
            await enqueue_entries(connection, [*outbox_entries("documents", gone), *outbox_entries("graph", nodes)])
            await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, Event.of(scope, EventKind.DOCUMENT_DELETED, id_))

        await in_transaction(self._pool, act)

    async def _put(
        self,
        scope: Scope,
        documents: Sequence[Document],
        news: Sequence[Document],
        replaced: Sequence[Document],
        once: Once | None,
        witness: str | None,
        before: Before | None,
        condition: Precondition,
        agents: Collection[str],
    ) -> RecordedDocuments:
        now = self._clock()
        known = await self._documents.embedded(scope, replaced, self._generation) if replaced else {}
        prepared, links = await self._prepared(scope, news, now, witness, known)
        by_document = {id(item.document): item for item in prepared}
        batch = _Batch(documents, [by_document.get(id(document)) for document in documents], links, agents)

        async def write(connection: Connection) -> RecordedDocuments:
            if before is not None:
                await before(connection)
            recorded = await self._write(connection, scope, batch, now)
            for item in recorded.documents:  # The rows are locked now; whoever came between is before them.
                condition.check(f"document {item.key}", item.etag_before)
            return recorded

        return await write_once(self._pool, once, _DOCUMENTS, write)

    async def _prepared(
        self,
        scope: Scope,
        documents: Sequence[Document],
        now: datetime,
        witness: str | None,
        known: Mapping[str, tuple[Chunk, ...]],
    ) -> tuple[list[PreparedDocument], PreparedLinks]:
        """Read documents and embed all passages not known yet; the names in them are embedded with their passages."""
        ids = [[new_id() for _ in document.passages] for document in documents]
        draft = await self._linker.draft(
            [item for pair in zip(documents, ids, strict=True) for item in _passage_texts(*pair, scope, now, witness)],
            Extraction(),
        )
        texts = [document.texts() for document in documents]
        new = [text for text in dict.fromkeys(text for found in texts for text in found) if text not in known]
        chunks = await self._embed([*new, *draft.new_names()])
        of_text = {**known, **dict(zip(new, chunks, strict=False))}
        embedded = [[of_text[text] for text in found] for found in texts]
        prepared = await asyncio.to_thread(lambda: list(map(_prepare, documents, ids, texts, embedded)))
        return prepared, self._linker.complete(draft, chunks[len(new) :])

    async def _embed(self, texts: Sequence[str]) -> list[tuple[Chunk, ...]]:
        found: list[tuple[Chunk, ...]] = []
        for start in range(0, len(texts), TEXTS_PER_CALL):
            batch = texts[start : start + TEXTS_PER_CALL]
            found += await embed_in_time(self._embedder.embed_chunks, batch, self._embed_deadline_s)
        return found

    async def _write(self, connection: Connection, scope: Scope, batch: _Batch, now: datetime) -> RecordedDocuments:
        unchanged = [place for place, prepared in enumerate(batch.prepared) if prepared is None]
        put = await _find_unchanged(connection, scope, {place: batch.documents[place] for place in unchanged})
        changed = {place: prepared for place, prepared in enumerate(batch.prepared) if prepared is not None}
        stored = await put_documents(connection, scope, list(changed.values()), self._generation, now, batch.agents)
        put |= zip(changed, stored, strict=True)
        results = [put[place] for place in range(len(batch.documents))]
        recorded = tuple(
            RecordedDocument(item.id, item.key, item.status, item.version, item.passages) for item in results
        )
        if all(item.status == "existed" for item in results):
            return RecordedDocuments(recorded, await read_epoch(connection, scope))
        gone = [id_ for item in results for id_ in item.deleted]
        new = {id_ for item in results for id_ in item.new}.difference(gone)
        unlinked = await self._linker.forget(connection, gone)
        linked = await self._linker.write(connection, scope, batch.links, new)
        entries = [
            *outbox_entries("documents", [*gone, *sorted(new)]),
            *outbox_entries("graph", [*unlinked, *linked]),
        ]
        await enqueue_entries(connection, entries)
        epoch = await bump_epoch(connection, scope, teaches=True)
        written = [item.id for item in recorded if item.status != "existed"]
        await record_event(connection, Event.of(scope, EventKind.DOCUMENT_WRITTEN, *written))
        return RecordedDocuments(recorded, epoch)


async def _find_unchanged(
    connection: Connection, scope: Scope, documents: Mapping[int, Document]
) -> dict[int, DocumentResult]:
    """Return the results of documents that the scope holds already, by their places.

    Raises:
        _ChangedMeanwhileError: If one is another one now, or gone.
    """
    if not documents:
        return {}
    known = await find_documents(connection, scope, [document.key for document in documents.values()])
    results: dict[int, DocumentResult] = {}
    for place, document in documents.items():
        stored = known.get(composed(document.key))
        if stored is None or stored.content_hash != document.content_hash():
            raise _ChangedMeanwhileError
        results[place] = DocumentResult(stored.id, document.key, "existed", stored.version, stored.passages)
    return results


def _prepare(
    document: Document, ids: Sequence[UUID], texts: Sequence[str], embedded: Sequence[tuple[Chunk, ...]]
) -> PreparedDocument:
    passages = (
        PreparedPassage(
            id_, span, text, chunks, tuple(" ".join(index_words(text[chunk.start : chunk.end])) for chunk in chunks)
        )
        for id_, span, text, chunks in zip(ids, document.passages, texts, embedded, strict=True)
    )
    return PreparedDocument(new_id(), document, tuple(passages))


def _passage_texts(
    document: Document, ids: Sequence[UUID], scope: Scope, now: datetime, witness: str | None
) -> Iterator[MemoryText]:
    seen_at, source, title = document.event_at or now, document.source, document.name()
    for id_, span in zip(ids, document.passages, strict=True):
        text = document.passage(span)
        yield MemoryText(id_, Tier.DOCUMENTS, text, source, scope.user, seen_at, title, witness=witness)
