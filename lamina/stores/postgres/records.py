"""Rows of the `…_records` statements as what the projections take over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.documents import passage_text
from lamina.core.links import Link, Node, NodeLabel
from lamina.core.memories import Message, Role
from lamina.core.ports import Placed, Record
from lamina.stores.postgres.note_rows import chunk_embeddings, chunk_texts, note_record
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("records.sql")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def message_record(row: DictRow) -> Record:
    """Return what the index of words takes over of a message."""
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
        texts=chunk_texts(row, Message(Role.USER, row["content"], name=row["name"]).text()),
        embeddings=(),
    )


def cold_record(row: DictRow) -> Placed:
    """Return what the index of its namespace takes over of a note."""
    record = note_record(row) if row["is_cold"] else None
    return Placed(row["tenant"], row["workspace"], row["namespace"], record)


def graph_node(row: DictRow) -> Node:
    """Return what the graph takes over of a memory or an entity."""
    links = [_link(row["id"], *fields) for fields in row["links"]]
    return Node(
        label=NodeLabel(row["label"]),
        tenant=row["tenant"],
        workspace=row["workspace"],
        namespace=row["namespace"],
        tier=row["tier"],
        user=row["user_id"],
        name=row["name"],
        seen_at=row["seen_at"],
        links=tuple(links),
    )


def _link(source: UUID, target: str, kind: str, strength: float, users: list[str] | None, seen_us: int) -> Link:
    seen_at = _EPOCH + timedelta(microseconds=seen_us)
    return Link(source, UUID(target), kind, float(strength), None if users is None else tuple(users), seen_at)


def passage_record(row: DictRow) -> Record:
    """Return what an index of words and vectors takes over of a document's passage."""
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
        texts=chunk_texts(row, passage_text(row["title"], row["heading"], row["content"])),
        embeddings=chunk_embeddings(row),
    )


@dataclass(frozen=True, slots=True)
class Reader:
    """How a projection's records are read from Postgres.

    Args:
        records: The statement that reads memories by their ids.
        ids: The statement that reads the ids of a tenant's memories, a page at a time.
        record: Maps a row of the first to what the projection stores.
    """

    records: bytes
    ids: bytes
    record: Callable[[DictRow], Any]


READERS: Mapping[str, Reader] = {
    "messages": Reader(QUERIES["messages_records"], QUERIES["messages_ids"], message_record),
    "notes": Reader(QUERIES["notes_records"], QUERIES["notes_ids"], note_record),
    "cold": Reader(QUERIES["cold_records"], QUERIES["cold_ids"], cold_record),
    "documents": Reader(QUERIES["documents_records"], QUERIES["documents_ids"], passage_record),
    "graph": Reader(QUERIES["graph_records"], QUERIES["graph_ids"], graph_node),
}
"""By projection."""
