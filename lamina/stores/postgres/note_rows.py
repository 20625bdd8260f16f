"""Rows of the table of notes as the records that are made of them."""

from datetime import datetime
from typing import Any

import numpy as np
from psycopg.rows import DictRow, TupleRow
from psycopg.types.json import Json

from lamina.core.memories import Category, Note, StoredNote
from lamina.core.ports import Record
from lamina.core.queries import Candidate
from lamina.core.tiers import Tier


def note_traits(row: DictRow) -> dict[str, Any]:
    """Return the fields that every record of a note shares: how much it matters, its tags and its source."""
    return {
        "importance": row["importance"],
        "confidence": row["confidence"],
        "tags": tuple(row["tags"]),
        "source": row["source"],
    }


def note_owner(row: DictRow) -> dict[str, Any]:
    """Return the user, agent and session of a note."""
    return {"user": row["user_id"], "agent": row["agent_id"], "session": row["session_id"]}


def stored_note(row: DictRow) -> StoredNote:
    """Map a whole row to the note as it is stored."""
    note = Note(
        content=row["content"],
        category=Category(row["category"]),
        event_at=row["event_at"],
        metadata=row["metadata"],
        expires_at=row["expires_at"],
        speakers=tuple(row["speakers"] or ()),
        **note_traits(row),
    )
    return StoredNote(
        id=row["id"],
        note=note,
        workspace=row["workspace"],
        namespace=row["namespace"],
        version=row["version"],
        hits=row["hits"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        last_hit_at=row["last_hit_at"],
        temperature=row["temperature"],
        weight=row["weight"],
        **note_owner(row),
    )


def note_candidate(row: TupleRow) -> Candidate:
    """Map the beginning of a row of a search to a found note."""
    return Candidate(row[0], Tier.NOTES, *row[1:10])


def note_record(row: DictRow) -> Record:
    """Map a row, with the bounds and vectors of its chunks, to the record that an index keeps of the note."""
    return Record(
        tenant=row["tenant"],
        workspace=row["workspace"],
        namespace=row["namespace"],
        occurred_at=row["event_at"],
        category=row["category"],
        texts=chunk_texts(row, row["content"]),
        embeddings=chunk_embeddings(row),
        **note_traits(row),
        **note_owner(row),
    )


def chunk_texts(row: DictRow, text: str) -> tuple[str, ...]:
    """Cut the text of a row at the bounds of its chunks."""
    return tuple(text[start:end] for start, end in zip(row["starts"], row["ends"], strict=True))


def chunk_embeddings(row: DictRow) -> tuple[bytes, ...]:
    """Return the vectors of a row's chunks as float32 bytes."""
    return tuple(np.asarray(vector, dtype=np.float32).tobytes() for vector in row["embeddings"])


def note_columns(note: Note, now: datetime) -> dict[str, Any]:
    """Return the columns to write for a note."""
    return {
        "category": note.category.value,
        "content": note.content,
        "content_hash": note.content_hash(),
        "importance": note.importance,
        "confidence": note.confidence,
        "tags": list(note.tags),
        "metadata": Json(note.metadata),
        "event_at": note.event_at or now,
        "expires_at": note.expires_at,
        "now": now,
    }
