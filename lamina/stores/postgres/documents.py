"""Documents and their passages."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

import numpy as np
from psycopg.rows import DictRow
from psycopg.types.json import Json, Jsonb

from lamina.core.documents import Document, FileMark, Span, StoredDocument, StoredPassage, passage_text
from lamina.core.memories import Chunk
from lamina.core.paging import Page
from lamina.core.ports import Record
from lamina.core.preconditions import UNCONDITIONAL, Precondition
from lamina.core.queries import Candidate, FilterField, Filters, Place, Query
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.errors import Conflict, NotFound, OutsideBounds
from lamina.policies.ranking.scores import widening
from lamina.stores.index.ports import ChunkHit, HybridIndex, Visible
from lamina.stores.postgres.connection import Connection, Pool, connect, read_tuples, scope_parameters
from lamina.stores.postgres.filters import Columns, apply_filters, place_parameters, query_parameters
from lamina.stores.postgres.messages import chunk_columns
from lamina.stores.postgres.note_rows import chunk_embeddings, chunk_texts
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore
from lamina.stores.postgres.tier_rows import (
    EmbeddingStatements,
    ErasureStatements,
    FoundStatement,
    LinkStatements,
    ProjectionStatements,
    TierRows,
    VectorTable,
)
from lamina.stores.postgres.vector_indexes import typed
from lamina.text.hygiene import composed

QUERIES = load_queries("documents.sql")

# A document has no category, belongs to no session, and certainly says its text.
COLUMNS: Columns = {
    FilterField.CATEGORY: "NULL::text",
    FilterField.OCCURRED_AT: "d.event_at",
    FilterField.TAGS: "d.tags",
    FilterField.SOURCE: "d.source",
    FilterField.USER: "d.user_id",
    FilterField.AGENT: "d.agent_id",
    FilterField.SESSION: "NULL::text",
    FilterField.CONFIDENCE: "1.0",
    FilterField.IMPORTANCE: "d.importance",
}
PASSAGES_AT_ONCE = 100
DOCUMENTS_AT_ONCE = 100
Status = Literal["created", "replaced", "existed"]


@dataclass(frozen=True, slots=True)
class PreparedPassage:
    """A passage with its id, vectors and words, ready for one transaction.

    Args:
        text: The text that is embedded and indexed; the chunks are stretches of it.
        words: The words of each chunk, joined by spaces.
    """

    id: UUID
    span: Span
    text: str
    chunks: tuple[Chunk, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document with its id and passages, ready for one transaction."""

    id: UUID
    document: Document
    passages: tuple[PreparedPassage, ...]


@dataclass(frozen=True, slots=True)
class DocumentState:
    """The stored document of a key, without its text."""

    id: UUID
    content_hash: bytes
    version: int
    passages: int


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """The outcome of storing a document.

    Args:
        id: Its id; it stays when the document is replaced.
        passages: Number of its passages.
        new: Passages that were written.
        deleted: Passages of the document that was replaced.
    """

    id: UUID
    key: str
    status: Status
    version: int
    passages: int
    new: tuple[UUID, ...] = ()
    deleted: tuple[UUID, ...] = ()


async def find_documents(connection: Connection, scope: Scope, keys: Sequence[str]) -> dict[str, DocumentState]:
    """Return the documents that a scope has under these keys, by their composed keys."""
    parameters = scope_parameters(scope) | {"keys": [composed(key) for key in keys]}
    cursor = await connection.execute(QUERIES["find_documents"], parameters)
    return {
        row["key"]: DocumentState(row["id"], bytes(row["content_hash"]), row["version"], row["passages"])
        async for row in cursor
    }


async def put_documents(
    connection: Connection,
    scope: Scope,
    prepared: Sequence[PreparedDocument],
    generation: int,
    now: datetime,
    agents: Collection[str] = (),
) -> list[DocumentResult]:
    """Store documents, each in place of the one under its key; return the results in their order.

    The constraint decides between concurrent writers. Of several with one key, each replaces the one before.

    Args:
        connection: In a transaction.
        scope: Where they belong.
        prepared: The documents.
        generation: Of their vectors.
        now: The present time.
        agents: Whose documents alone may be replaced, if there are any.

    Raises:
        OutsideBounds: If one would replace a document of another agent.
    """
    results: dict[UUID, DocumentResult] = {}
    left = list(prepared)
    while left:
        first = {composed(item.document.key): item for item in reversed(left)}
        # By key, so that two writers of the same documents seldom deadlock.
        together = [first[key] for key in sorted(first)]
        for start in range(0, len(together), DOCUMENTS_AT_ONCE):
            part = together[start : start + DOCUMENTS_AT_ONCE]
            results |= await _put_distinct(connection, scope, part, generation, now, agents)
        left = [item for item in left if item.id not in results]
    return [results[item.id] for item in prepared]


async def _put_distinct(
    connection: Connection,
    scope: Scope,
    prepared: Sequence[PreparedDocument],
    generation: int,
    now: datetime,
    agents: Collection[str],
) -> dict[UUID, DocumentResult]:
    """Store documents of different keys; return the results by the ids that they were prepared with."""
    rows = scope_parameters(scope) | _columns(prepared, now) | {"agents": list(agents)}
    written = {row["key"]: row async for row in await connection.execute(QUERIES["put_documents"], rows)}
    replaced = [row["id"] for row in written.values() if row["version"] > 1]
    deleted = await _delete_passages(connection, replaced)
    changed = [item for item in prepared if composed(item.document.key) in written]
    await _insert_passages(
        connection, scope, [(written[composed(item.document.key)]["id"], item) for item in changed], generation
    )
    results = {}
    for item in changed:
        row, key = written[composed(item.document.key)], item.document.key
        results[item.id] = DocumentResult(
            id=row["id"],
            key=key,
            status="created" if row["version"] == 1 else "replaced",
            version=row["version"],
            passages=len(item.passages),
            new=tuple(passage.id for passage in item.passages),
            deleted=deleted.get(row["id"], ()),
        )
    equal = [item for item in prepared if item.id not in results]
    existing = await find_documents(connection, scope, [item.document.key for item in equal]) if equal else {}
    for item in equal:
        state = existing[composed(item.document.key)]
        if state.content_hash != item.document.content_hash():
            reason = f"is {item.document.key}, a document of another agent; send it under another key"
            raise OutsideBounds("key", reason)
        results[item.id] = DocumentResult(state.id, item.document.key, "existed", state.version, state.passages)
    return results


def _columns(prepared: Sequence[PreparedDocument], now: datetime) -> dict[str, Any]:
    documents = [item.document for item in prepared]
    keys = [composed(document.key) for document in documents]
    return {
        "now": now,
        "ids": [item.id for item in prepared],
        "keys": keys,
        "sent_keys": [
            None if document.key == key else document.key for document, key in zip(documents, keys, strict=True)
        ],
        "titles": [document.title for document in documents],
        "media_types": [document.media_type for document in documents],
        "contents": [document.content for document in documents],
        "hashes": [document.content_hash() for document in documents],
        "characters": [len(document.content) for document in documents],
        "tags": [Jsonb(list(document.tags)) for document in documents],
        "metadata": [Json(document.metadata) for document in documents],
        "sources": [document.source for document in documents],
        "times": [document.event_at or now for document in documents],
        "importances": [document.importance for document in documents],
        **_file_columns([document.file for document in documents]),
    }


def _file_columns(files: Sequence[FileMark | None]) -> dict[str, list[Any]]:
    return {
        "paths": [file and file.path for file in files],
        "text_hashes": [file and file.text_hash for file in files],
        "always": [file is not None and file.is_always for file in files],
        "mirrors": [file and file.mirror for file in files],
    }


async def _delete_passages(connection: Connection, documents: Sequence[UUID]) -> dict[UUID, tuple[UUID, ...]]:
    """Delete the passages of documents; return their ids by document."""
    if not documents:
        return {}
    deleted: defaultdict[UUID, list[UUID]] = defaultdict(list)
    async for row in await connection.execute(QUERIES["delete_passages"], {"ids": list(documents)}):
        deleted[row["document_id"]].append(row["id"])
    return {document: tuple(ids) for document, ids in deleted.items()}


async def _insert_passages(
    connection: Connection, scope: Scope, documents: Sequence[tuple[UUID, PreparedDocument]], generation: int
) -> None:
    placed = [
        _PlacedPassage(id_, position, item.document, passage)
        for id_, item in documents
        for position, passage in enumerate(item.passages, start=1)
    ]
    # In parts: the arrays of a long document take the time of many requests to write.
    for start in range(0, len(placed), PASSAGES_AT_ONCE):
        part = placed[start : start + PASSAGES_AT_ONCE]
        chunks = chunk_columns({item.passage.id: item.passage.chunks for item in part}, generation)
        chunks["words"] = [words for item in part for words in item.passage.words]
        values = _passage_columns(part) | chunks
        await connection.execute(QUERIES["insert_passages"], {**scope_parameters(scope), **values})


class _PlacedPassage(NamedTuple):
    """A passage at its place in a document that is stored under an id."""

    document_id: UUID
    position: int
    document: Document
    passage: PreparedPassage


def _passage_columns(placed: Sequence[_PlacedPassage]) -> dict[str, list[Any]]:
    spans = [item.passage.span for item in placed]
    lines = [item.document.file and item.document.file.lines[item.position - 1] for item in placed]
    return {
        "ids": [item.passage.id for item in placed],
        "document_ids": [item.document_id for item in placed],
        "positions": [item.position for item in placed],
        "contents": [item.document.passage(item.passage.span) for item in placed],
        "headings": [span.heading for span in spans],
        "pages": [span.page for span in spans],
        "text_starts": [span.start for span in spans],
        "text_ends": [span.end for span in spans],
        "line_starts": [pair and pair[0] for pair in lines],
        "line_ends": [pair and pair[1] for pair in lines],
    }


async def delete_document(
    connection: Connection, tenant: str, id_: UUID, condition: Precondition = UNCONDITIONAL
) -> tuple[Scope, tuple[UUID, ...]]:
    """Delete a document with all its passages; return where it was, and the passages.

    Raises:
        NotFound: If the tenant has no such document.
        Conflict: If it is a passage of one.
        PreconditionFailed: If it has another version.
    """
    name = {"id": id_, "tenant": tenant}
    row = await (await connection.execute(QUERIES["lock_document"], name)).fetchone()
    if row is None:
        whole = await (await connection.execute(QUERIES["find_document_of_passage"], name)).fetchone()
        if whole is not None:
            raise Conflict(f"{id_} is a passage of document {whole['id']}; delete or replace the document as a whole")
        raise NotFound("document", str(id_))
    condition.check(f"document {id_}", str(row["version"]))
    deleted = await _delete_passages(connection, [id_])
    await connection.execute(QUERIES["delete_document"], name)
    return Scope(tenant, row["workspace"], row["namespace"], row["user_id"]), deleted.get(id_, ())


class Documents(PostgresStore):
    """Reads documents."""

    async def find(self, scope: Scope, keys: Sequence[str]) -> dict[str, DocumentState]:
        """Return the documents that a scope has under these keys, by their composed keys."""
        async with connect(self._pool) as connection:
            return await find_documents(connection, scope, keys)

    async def embedded(
        self, scope: Scope, documents: Sequence[Document], generation: int
    ) -> dict[str, tuple[Chunk, ...]]:
        """Return the chunks of the documents' texts that a scope has already under the same keys, by text."""
        contents = {document.passage(span) for document in documents for span in document.passages}
        parameters = {
            **scope_parameters(scope),
            "generation": generation,
            "keys": [composed(document.key) for document in documents],
            "hashes": [hashlib.sha256(content.encode()).digest() for content in contents],
        }
        found: dict[UUID, tuple[str, tuple[Chunk, ...]]] = {}
        async with connect(self._pool) as connection:
            async for row in await connection.execute(QUERIES["find_embedded_passages"], parameters):
                text, chunks = found.get(row["id"], (_text(row), ()))
                vector = np.asarray(row["embedding"].to_numpy(), dtype=np.float32).tobytes()
                found[row["id"]] = text, (*chunks, Chunk(row["text_start"], row["text_end"], vector))
        return dict(found.values())

    async def get(self, tenant: str, id_: UUID, *, with_content: bool = True) -> StoredDocument:
        """Return the document.

        Raises:
            NotFound: If the tenant has no such document.
        """
        row = await self._row(QUERIES["get_document"], id=id_, tenant=tenant, with_content=with_content)
        if row is None:
            raise NotFound("document", str(id_))
        return _stored(row)

    async def page(self, scope: Scope, filters: Filters, key: str | None, page: Page) -> list[StoredDocument]:
        """Return the scope's documents without their text, the latest event first."""
        text, values = apply_filters(QUERIES["list_documents"], filters, COLUMNS)
        parameters = scope_parameters(scope) | values | {"key": key} | page.parameters("time", "id")
        return [_stored(row) for row in await self._rows(text, **parameters)]

    async def passages(self, tenant: str, id_: UUID, page: Page) -> list[StoredPassage]:
        """Return the document's passages in order.

        Raises:
            NotFound: If the tenant has no such document.
        """
        await self.get(tenant, id_, with_content=False)
        return [
            _passage(row)
            for row in await self._rows(QUERIES["list_passages"], id=id_, tenant=tenant, **page.parameters("position"))
        ]

    async def passage(self, tenant: str, id_: UUID) -> StoredPassage:
        """Return one passage.

        Raises:
            NotFound: If the tenant has no such passage.
        """
        row = await self._row(QUERIES["get_passage"], id=id_, tenant=tenant)
        if row is None:
            raise NotFound("passage", str(id_))
        return _passage(row)

    async def fetch(self, query: Query, places: Sequence[Place]) -> Visible:
        """Return the passages at these (id, chunk) places that exist and that the query may see."""
        if not places:
            return Visible({})
        text, values = apply_filters(QUERIES["fetch_documents"], query.filters, COLUMNS)
        parameters = query_parameters(query) | values | place_parameters(places)
        rows = await read_tuples(self._pool, text, parameters, by_key=True)
        memories = {
            (row[0], row[4]): Candidate(row[0], Tier.DOCUMENTS, row[1], importance=row[3], user=row[2]) for row in rows
        }
        return Visible(memories, next((row[5] for row in rows if row[5] is not None), ""))


class PassageVectors:
    """An index of passages whose vectors are those of Postgres, and whose words are another index's.

    Args:
        words: Finds passages by their words.
        pool: Connections to Postgres.

    Source:
        Open Astra, Tiered Search.
    """

    def __init__(self, words: HybridIndex, pool: Pool) -> None:
        self._words = words
        self._pool = pool

    async def by_both(self, query: Query) -> tuple[list[ChunkHit], list[ChunkHit]]:
        """Return the best chunks by their words, with their cosines, and the nearest ones, each best first.

        Raises:
            Unavailable: If the index or Postgres does not answer; the other one is not asked any longer then.
        """
        try:
            async with asyncio.TaskGroup() as group:
                # With the vector: chunks that are far by meaning get their cosines from the index alone.
                words = group.create_task(self._words.by_both(query))
                nearest = group.create_task(self._nearest(query))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        return words.result()[0], nearest.result()

    async def _nearest(self, query: Query) -> list[ChunkHit]:
        if query.embedding is None:
            return []
        text, values = apply_filters(QUERIES["nearest_passages"], query.filters, COLUMNS)
        text = typed(text, query.generation, query.dimension)
        found: list[ChunkHit] = []
        for limit in widening(query.limit):
            rows = await read_tuples(self._pool, text, query_parameters(query) | values | {"limit": limit})
            found = [ChunkHit((row[0], row[1]), cosine=row[2]) for row in rows]
            if len(found) < limit or len({hit.place[0] for hit in found}) >= query.limit:
                break
        # The index's order is nearly that of the distance.
        return sorted(found, key=lambda hit: (-(hit.cosine or 0.0), hit.place))


def _stored(row: DictRow) -> StoredDocument:
    fields = {name: row[name] for name in row if name not in ("user_id", "agent_id", "tags")}
    return StoredDocument(user=row["user_id"], agent=row["agent_id"], tags=tuple(row["tags"]), **fields)


def _passage(row: DictRow) -> StoredPassage:
    return StoredPassage(
        id=row["id"],
        position=row["position"],
        content=row["content"],
        start=row["text_start"],
        end=row["text_end"],
        heading=row["heading"],
        page=row["page"],
    )


def _passage_record(row: DictRow) -> Record:
    return Record(
        tenant=row["tenant"],
        workspace=row["workspace"],
        namespace=row["namespace"],
        user=row["user_id"],
        session=None,
        tags=tuple(row["tags"]),
        occurred_at=row["event_at"],
        confidence=1.0,
        agent=row["agent_id"],
        source=row["source"],
        importance=row["importance"],
        texts=chunk_texts(row, _text(row)),
        embeddings=chunk_embeddings(row),
    )


def _text(row: DictRow) -> str:
    return passage_text(row["title"], row["heading"], row["content"])


TIER_ROWS = TierRows(
    found=FoundStatement(QUERIES["read_found_passages"], COLUMNS, lambda row, _: row.content.strip()),
    present=QUERIES["find_present_documents"],
    projected={
        "documents": ProjectionStatements(
            QUERIES["read_passage_records"],
            QUERIES["list_passage_ids"],
            QUERIES["enqueue_all_documents"],
            _passage_record,
        )
    },
    embedded={
        "passages": EmbeddingStatements(
            table="passages",
            vectors=(VectorTable("passage_chunks", "passage_id"),),
            unembedded=QUERIES["find_unembedded_passages"],
            embed=QUERIES["embed_passages"],
            count=QUERIES["count_unembedded_passages"],
            text=_text,
        )
    },
    linked=LinkStatements(QUERIES["read_linked_passages"], COLUMNS, QUERIES["link_similar_passages"]),
    # A document goes once its passages are gone.
    erased={
        "passages": ErasureStatements(QUERIES["erase_user_passages"], "documents"),
        "documents": ErasureStatements(QUERIES["erase_user_documents"]),
    },
    count_user=QUERIES["count_user_documents"],
)
