"""Tier 1: the messages of sessions and their vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import Vector
from psycopg.rows import DictRow, TupleRow
from psycopg.types.json import Json

from lamina.core.conversations import PlacedMessages, Utterance
from lamina.core.memories import Chunk, Message, Role
from lamina.core.paging import Page
from lamina.core.ports import Record
from lamina.core.queries import Candidate, FilterField, Filters, Hit, Neighbour, Place, Query, Ranking
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.errors import Conflict, NotFound
from lamina.policies.ranking.present_order import asks_for_state
from lamina.policies.ranking.scores import similarity_score, widening
from lamina.stores.index.ports import FoundMessages, Visible
from lamina.stores.postgres.connection import Connection, Pool, read_rows, read_tuples, scope_parameters
from lamina.stores.postgres.filters import Columns, apply_filters, place_parameters, query_parameters
from lamina.stores.postgres.large_scopes import LargeScopes
from lamina.stores.postgres.note_rows import chunk_texts
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore
from lamina.stores.postgres.tier_rows import (
    EmbeddingStatements,
    ErasureStatements,
    FoundRow,
    FoundStatement,
    LinkStatements,
    ProjectionStatements,
    TierRows,
    VectorTable,
)
from lamina.stores.postgres.vector_indexes import typed

QUERIES = load_queries("messages.sql")

# About as many as an iterative scan of the index looks at before it gives up; 20 ms.
MOST_READ_EXACTLY = 20_000
MOST_COMPARED = 2_000
"""Chunks of a scope that are all compared with a question, by a statement that is planned once; none is missed."""

# A message has no category and no tags, and it was certainly said.
COLUMNS: Columns = {
    FilterField.CATEGORY: "NULL::text",
    FilterField.OCCURRED_AT: "m.occurred_at",
    FilterField.TAGS: "'{}'::text[]",
    FilterField.SOURCE: "m.role",
    FilterField.USER: "m.user_id",
    FilterField.AGENT: "m.agent_id",
    FilterField.SESSION: "m.session_id",
    FilterField.CONFIDENCE: "1.0",
    FilterField.IMPORTANCE: "m.importance",
}
CHUNK_MARKER = "/*chunk filters*/ true"
CHUNK_COLUMNS: Columns = {
    **COLUMNS,
    FilterField.OCCURRED_AT: "occurred_at",
    FilterField.SOURCE: "(SELECT m.role FROM messages m WHERE m.id = message_id)",
    FilterField.USER: "user_id",
    FilterField.AGENT: "(SELECT m.agent_id FROM messages m WHERE m.id = message_id)",
    FilterField.SESSION: "session_id",
    FilterField.IMPORTANCE: "(SELECT m.importance FROM messages m WHERE m.id = message_id)",
}


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """A message with its id and vectors, ready for one transaction."""

    id: UUID
    message: Message
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class AppendedMessage:
    """The outcome of appending a message.

    Args:
        id: Its id, or that of the equal message that the session has.
        position: Its place in the session, from 1.
        existed: Whether the session had it before.
    """

    id: UUID
    position: int
    existed: bool


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """A message as a session's history shows it.

    Args:
        is_summary: Whether it is a summary of older ones; its position is that of the last of them.
        compacted_into: The summary that replaced it, if one did.
    """

    id: UUID
    position: int
    message: Message
    user: str | None
    agent: str | None
    is_summary: bool = False
    compacted_into: UUID | None = None


async def append_messages(
    connection: Connection, scope: Scope, prepared: Sequence[PreparedMessage], generation: int, now: datetime
) -> list[AppendedMessage]:
    """Append the messages that a session does not have yet; appends to one session happen one after another."""
    parameters = scope_parameters(scope)
    # The lock comes before the look: of two equal turns at a time, the second finds the messages of the first.
    first = await _lock_session(connection, parameters)
    hashes = [item.message.identity(now) for item in prepared]
    placed = await _find_existing(connection, parameters, hashes) if first > 1 else {}
    new: dict[bytes, PreparedMessage] = {}
    for item, digest in zip(prepared, hashes, strict=True):
        if digest not in placed:
            placed[digest] = AppendedMessage(item.id, first + len(new), existed=False)
            new[digest] = item
    if new:
        values = _columns(new, first, now) | chunk_columns({item.id: item.chunks for item in new.values()}, generation)
        await connection.execute(QUERIES["insert_messages"], {**parameters, **values})
    return [placed[digest] for digest in hashes]


async def find_appended(connection: Connection, scope: Scope, hashes: Sequence[bytes]) -> dict[bytes, AppendedMessage]:
    """Return the messages that a session has under the hashes; another write may add some right behind."""
    return await _find_existing(connection, scope_parameters(scope), hashes)


async def _lock_session(connection: Connection, parameters: Mapping[str, Any]) -> int:
    cursor = await connection.execute(QUERIES["reserve_positions"], parameters)
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - the upsert returns its row
    return int(row["next_position"])


async def _find_existing(
    connection: Connection, parameters: Mapping[str, Any], hashes: Sequence[bytes]
) -> dict[bytes, AppendedMessage]:
    cursor = await connection.execute(QUERIES["find_messages"], {**parameters, "hashes": list(hashes)})
    return {
        bytes(row["content_hash"]): AppendedMessage(row["id"], row["position"], existed=True) async for row in cursor
    }


def _columns(new: Mapping[bytes, PreparedMessage], first: int, now: datetime) -> dict[str, list[Any]]:
    messages = [item.message for item in new.values()]
    return {
        "ids": [item.id for item in new.values()],
        "positions": list(range(first, first + len(messages))),
        "roles": [message.role.value for message in messages],
        "names": [message.name for message in messages],
        "refs": [message.ref for message in messages],
        "contents": [message.content for message in messages],
        "hashes": list(new),
        "metadata": [Json(message.metadata) for message in messages],
        "times": [message.occurred_at or now for message in messages],
        "importances": [message.importance for message in messages],
    }


async def delete_message(connection: Connection, tenant: str, id_: UUID) -> tuple[Scope, list[UUID]]:
    """Delete a message; return where it was, and the messages that it replaced if it is a summary.

    Raises:
        NotFound: If the tenant has no such message.
    """
    cursor = await connection.execute(QUERIES["delete_message"], {"id": id_, "tenant": tenant})
    row = await cursor.fetchone()
    if row is None:
        raise NotFound("message", str(id_))
    return Scope(tenant, row["workspace"], row["namespace"], row["user_id"], session=row["session_id"]), row["replaced"]


@dataclass(frozen=True, slots=True)
class PlacedMessage:
    """A message with all of its scope, as it is before a change.

    Args:
        hash: Under which its session holds it.
        compacted_into: The summary that stands for it, if it was compacted and that is known.
    """

    scope: Scope
    message: Message
    hash: bytes
    is_summary: bool
    is_compacted: bool
    compacted_into: UUID | None


async def read_speakers(connection: Connection, scope: Scope) -> list[str | None]:
    """Return the names in a user's last messages of a session; ``None`` where one names nobody."""
    cursor = await connection.execute(QUERIES["read_speakers"], scope_parameters(scope))
    return [row["name"] async for row in cursor]


async def read_placed(connection: Connection, tenant: str, id_: UUID, *, is_locked: bool = False) -> PlacedMessage:
    """Return a message with its scope; locked, nobody else changes it until the transaction ends.

    Raises:
        NotFound: If the tenant has no such message.
    """
    query = QUERIES["read_message"] + (b" FOR UPDATE" if is_locked else b"")
    row = await (await connection.execute(query, {"id": id_, "tenant": tenant})).fetchone()
    if row is None:
        raise NotFound("message", str(id_))
    names = ("workspace", "namespace", "user_id", "agent_id", "session_id", "swarm_id")
    return PlacedMessage(
        Scope(tenant, *(row[name] for name in names)),
        _message(row),
        bytes(row["content_hash"]),
        row["is_summary"],
        row["is_compacted"],
        row["compacted_into"],
    )


async def change_message(connection: Connection, id_: UUID, new: Message, hash_: bytes) -> None:
    """Give a locked message another text, other metadata and importance.

    Raises:
        Conflict: If its session holds the same message already.
    """
    row = {
        "id": id_,
        "content": new.content,
        "hash": hash_,
        "metadata": Json(new.metadata),
        "importance": new.importance,
    }
    try:
        await connection.execute(QUERIES["change_message"], row)
    except psycopg.errors.UniqueViolation as error:
        raise Conflict(f"the session of message {id_} has the same one already; delete one of the two") from error


async def replace_message_chunks(connection: Connection, id_: UUID, chunks: Sequence[Chunk], generation: int) -> None:
    """Replace the chunks of a message by those of its new text."""
    await connection.execute(QUERIES["delete_message_chunks"], {"id": id_})
    await connection.execute(QUERIES["insert_message_chunks"], chunk_columns({id_: chunks}, generation))


def chunk_columns(chunks: Mapping[UUID, Sequence[Chunk]], generation: int) -> dict[str, Any]:
    """Return the columns of many rows' chunks as arrays, the same for every tier."""
    placed = [(id_, place, chunk) for id_, found in chunks.items() for place, chunk in enumerate(found)]
    return {
        "generation": generation,
        "chunk_ids": [id_ for id_, _, _ in placed],
        "chunks": [place for _, place, _ in placed],
        "starts": [chunk.start for _, _, chunk in placed],
        "ends": [chunk.end for _, _, chunk in placed],
        "embeddings": [Vector(chunk.vector()) for _, _, chunk in placed],
    }


class Messages(PostgresStore):
    """Reads messages."""

    async def history(self, scope: Scope, page: Page, *, include_compacted: bool = False) -> list[SessionMessage]:
        """Return the session's messages in order, with or without compacted ones."""
        return [
            _session_message(row)
            for row in await self._rows(
                QUERIES["list_messages"],
                **scope_parameters(scope),
                **page.parameters("position", "is_summary", "id"),
                include_compacted=include_compacted,
            )
        ]

    async def get(self, tenant: str, id_: UUID) -> SessionMessage:
        """Return one message.

        Raises:
            NotFound: If the tenant has no such message.
        """
        rows = await read_rows(self._pool, QUERIES["get_message"], {"id": id_, "tenant": tenant})
        if not rows:
            raise NotFound("message", str(id_))
        return _session_message(rows[0])


class MessagesAround(PostgresStore):
    """Reads messages with their neighbours in the session."""

    async def around(self, query: Query, ids: Sequence[UUID]) -> list[Neighbour]:
        """Return these messages and those right before and after them that the query may see.

        Compacted messages are missing; their summary has the position of the last of them.
        """
        text, values = apply_filters(QUERIES["find_messages_around"], query.filters, COLUMNS)
        parameters = query_parameters(query) | values | {"ids": list(ids)}
        rows = await read_tuples(self._pool, text, parameters, by_key=True)
        return [Neighbour(message_candidate(row), *row[6:]) for row in rows]


# As search_messages packs them; a vector is sent as its length, two unused bytes and its numbers.
_PLACED = np.dtype([("id", "V16"), ("position", ">i8"), ("session", ">i4"), ("version", ">u4")])
_VECTOR_HEAD_BYTES = 4


class Conversations(PostgresStore):
    """Reads messages for the second stage."""

    async def utterances(self, query: Query, ids: Sequence[UUID]) -> dict[UUID, Utterance]:
        """Return the messages by id, with the vectors of the query's generation; of those that are gone, none."""
        parameters = {"ids": list(ids), "tenant": query.scope.tenant, "generation": query.generation}
        rows = await read_tuples(self._pool, QUERIES["read_utterances"], parameters, by_key=True)
        return {row[0]: _utterance(row) for row in rows}


def _utterance(row: TupleRow) -> Utterance:
    _, role, name, content, occurred_at, user, importance, vectors, starts, ends = row
    spans = tuple(zip(starts or (), ends or (), strict=True))
    return Utterance(role, name, content, occurred_at, _vectors(vectors or b""), spans, user, importance)


def _vectors(sent: bytes) -> NDArray[np.float16]:
    """Return the vectors that Postgres sent one after another, all of one length."""
    if not sent:
        return np.zeros((0, 0), np.float16)
    numbers = int.from_bytes(sent[:2], "big")
    each = np.dtype([("head", f"V{_VECTOR_HEAD_BYTES}"), ("numbers", ">f4", (numbers,))])
    return np.frombuffer(sent, each)["numbers"].astype(np.float16)


COMPARED_SHARE = 0.4
"""Of the least similarity, where statements are compared. A statement that took the place of another is often less like
the question: without, one in twenty questions about the present misses it (`changes`, odd half)."""


class MessagesSearch:
    """Finds messages for both sources of the tier and those around them, in one statement as a rule.

    Args:
        pool: Connections to Postgres.
        min_similarity: Messages with a lower cosine are not near; where one is, or words are found, a question about
            the present takes less similar ones to compare.
        reach: Positions before and after a found message at which others are placed.
    """

    def __init__(self, pool: Pool, *, min_similarity: float, reach: int) -> None:
        self._pool = pool
        self._min_similarity = min_similarity
        self._reach = reach
        self._large = LargeScopes()

    async def find(self, query: Query, places: Sequence[Place]) -> FoundMessages:
        """Return the messages at these places as far as the query may see them, and the nearest; none without a vector.

        Chunks of at least ``limit`` messages are compared, if there are so many.
        """
        for candidates in widening(query.limit):
            rows = await self._read(query, candidates, places)
            near, summary = [row for row in rows if row[7] is not None], _summary(rows)
            if summary[11] < candidates or len(near) >= query.limit:
                break
        of_index = [row for row in rows if row[0] is not None and row[7] is None]
        visible = Visible(
            {(row[0], row[6]): message_candidate(row) for row in of_index},
            next((row[8] for row in of_index if row[8] is not None), ""),
        )
        nearest = self._nearest(near, query, is_found=bool(of_index))
        return FoundMessages(visible, nearest, _placed(summary[9] or b""))

    async def _read(self, query: Query, candidates: int, places: Sequence[Place]) -> list[TupleRow]:
        parameters = {
            **query_parameters(query),
            **place_parameters(places),
            "candidates": candidates,
            "limit": query.limit,
            "most_compared": MOST_COMPARED,
            "most_read": MOST_READ_EXACTLY,
            # Around the least similar that any question takes.
            "min_similarity": min(self._min_similarity, COMPARED_SHARE * self._min_similarity),
            "reach": self._reach,
        }
        scope = query.scope.tenant, query.scope.workspace, query.scope.namespace, query.scope.session
        if scope not in self._large:
            text, values = find_statement(query.filters, is_large=False)
            rows = await read_tuples(self._pool, text, parameters | values, by_key=True)
            if _summary(rows)[10] <= MOST_COMPARED:
                return rows
            self._large.add(scope)
        text, values = find_statement(query.filters, is_large=True)
        text = typed(text, query.generation, query.dimension)
        return await read_tuples(self._pool, text, parameters | values)

    def _nearest(self, rows: Sequence[TupleRow], query: Query, *, is_found: bool) -> Ranking:
        least = self._min_similarity
        if (is_found or any(row[7] >= least for row in rows)) and (
            asks_for_state(query.text, as_of=query.filters.as_of is not None)
        ):
            least = min(least, COMPARED_SHARE * least)
        near = sorted((row for row in rows if row[7] >= least), key=lambda row: (-row[7], row[0]))
        return tuple(Hit(message_candidate(row), similarity_score(row[7]), {"cosine": row[7]}) for row in near)


def find_statement(filters: Filters, *, is_large: bool) -> tuple[bytes, dict[str, Any]]:
    """Return the statement of :class:`MessagesSearch` with the parameters of the filters.

    Args:
        filters: Of the query.
        is_large: Whether the nearest are found by the vector index: then it is planned for the scope each time.
    """
    nearest, sized = (
        (QUERIES["nearest_by_index"], b"SELECT 0::bigint AS chunks")
        if is_large
        else (QUERIES["nearest_compared"], QUERIES["count_chunks"])
    )
    text = QUERIES["search_messages"].replace(b"/*nearest*/", nearest).replace(b"/*sized*/", sized)
    text, _ = apply_filters(text, filters, CHUNK_COLUMNS, CHUNK_MARKER)
    return apply_filters(text, filters, COLUMNS)


def _summary(rows: Sequence[TupleRow]) -> TupleRow:
    """Return the row without an id, which holds the placed messages and the size of the scope."""
    return next(row for row in rows if row[0] is None)


def _placed(packed: bytes) -> PlacedMessages:
    placed = np.frombuffer(packed, _PLACED)
    ids = [bytes(id_) for id_ in placed["id"].tolist()]
    session, position, version = (placed[name].astype(np.int64) for name in ("session", "position", "version"))
    return PlacedMessages(ids, session, position, version)


def message_candidate(row: TupleRow) -> Candidate:
    """Map the beginning of a row of a search to a found message."""
    return Candidate(row[0], Tier.SESSIONS, row[1], row[2], row[3], importance=row[5], user=row[4])


def _message(row: DictRow) -> Message:
    return Message(
        role=Role(row["role"]),
        content=row["content"],
        name=row["name"],
        ref=row["ref"],
        occurred_at=row["occurred_at"],
        metadata=row["metadata"],
        importance=row["importance"],
    )


def _session_message(row: DictRow) -> SessionMessage:
    return SessionMessage(
        id=row["id"],
        position=row["position"],
        message=_message(row),
        user=row["user_id"],
        agent=row["agent_id"],
        is_summary=row["is_summary"],
        compacted_into=row["compacted_into"],
    )


def _message_record(row: DictRow) -> Record:
    return Record(
        tenant=row["tenant"],
        workspace=row["workspace"],
        namespace=row["namespace"],
        user=row["user_id"],
        session=row["session_id"],
        tags=(),
        occurred_at=row["occurred_at"],
        confidence=1.0,
        agent=row["agent_id"],
        source=row["role"],
        importance=row["importance"],
        texts=chunk_texts(row, _text(row)),
        embeddings=(),
    )


def _text(row: DictRow) -> str:
    return Message(Role(row["role"]), row["content"], name=row["name"]).text()


def _found_text(row: FoundRow, found: Candidate) -> str:
    text = Message(Role(row.source or Role.USER), row.content, name=row.name).text()
    covers_all = found.start == 0 and (found.end is None or found.end >= len(text))
    return row.content if covers_all else text[found.start : found.end]


TIER_ROWS = TierRows(
    found=FoundStatement(QUERIES["read_found_messages"], COLUMNS, _found_text),
    present=QUERIES["find_present_messages"],
    projected={
        "messages": ProjectionStatements(
            QUERIES["read_message_records"],
            QUERIES["list_message_ids"],
            QUERIES["enqueue_all_messages"],
            _message_record,
        )
    },
    embedded={
        "messages": EmbeddingStatements(
            table="messages",
            vectors=(VectorTable("message_chunks", "message_id"), VectorTable("compacted_chunks", "message_id")),
            unembedded=QUERIES["find_unembedded_messages"],
            embed=QUERIES["embed_messages"],
            count=QUERIES["count_unembedded_messages"],
            text=_text,
        )
    },
    linked=LinkStatements(QUERIES["read_linked_messages"], COLUMNS),
    erased={
        "messages": ErasureStatements(QUERIES["erase_user_messages"], "messages"),
        "turns": ErasureStatements(QUERIES["erase_user_turns"]),
    },
    count_user=QUERIES["count_user_messages"],
)
