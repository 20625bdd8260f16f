"""Near-duplicates of notes: a repeated note raises the importance of the first one instead of being stored."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector
from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.json_values import is_same_json
from lamina.core.memories import Note
from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Connection, Pool, connect, scope_parameters
from lamina.stores.postgres.notes import NoteResult, PreparedNote, ids_by_hash, insert_notes
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.vector_indexes import typed
from lamina.text.hygiene import composed
from lamina.text.paraphrase import Difference, difference_of_statements

QUERIES = load_queries("note_duplicates.sql")

CANDIDATES = 16
ANONYMOUS = "api"
MANY = 16
PAGE = 100
MOST_READ, READ_FOR_ONE = 5_000, 100
"""Stored notes, in all and for each new one, whose vectors are read at once: it costs less than as many searches."""
RAISED_BY = 0.1
MOST_WITNESSES = 32
"""Of a note, whose saying it again raises its importance: it is 0.98 by then, from 0.5."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Original:
    """A note that a later one may repeat: a stored one, or a new one before it.

    Args:
        importance: Raised, if notes of this batch repeat it.
        stated: The most that it and these notes state themselves.
        speakers: Who said it, by name.
        is_stored: Whether it is in Postgres.
        expires_at: When it expires; ``None`` means never.
    """

    id: UUID
    content: str
    importance: float
    source: str
    tags: frozenset[str]
    metadata: Mapping[str, Any]
    is_stored: bool
    expires_at: datetime | None = None
    stated: float = 0.0
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restatement:
    """The original that a new note repeats, with its importance afterwards, and how the texts differ."""

    original: Original
    difference: Difference


# An original and the cosine of a new text to it.
Near = tuple[Original, float]


async def put_notes(
    connection: Connection,
    scope: Scope,
    prepared: Sequence[PreparedNote],
    generation: int,
    now: datetime,
    *,
    min_cosine: float,
    witness: str | None = None,
) -> list[NoteResult]:
    """Store the notes that the scope does not have yet, neither word for word nor in other words.

    A note is compared with originals alone, stored ones and new ones before it, so that no two are merged by way of a
    third. Two concurrent writers may both store theirs; the daily merge finds such pairs. A note is stored all the same
    if its tags or metadata would be lost, or if the original expires earlier. The caller enqueues the stored notes, and
    the originals of the merged ones.

    Args:
        connection: In a transaction.
        scope: Compared are notes of exactly this tenant, workspace, namespace and user.
        prepared: The notes, in their order.
        generation: The active generation of vectors.
        now: The time of writing.
        min_cosine: The least cosine of near-duplicates; 1 compares nothing.
        witness: Who vouches for the notes; each raises the importance of an original once.
    """
    if min_cosine >= 1:
        return await insert_notes(connection, scope, prepared, generation, now)
    hashes = [item.note.content_hash() for item in prepared]
    existing = await ids_by_hash(connection, scope, hashes)
    fresh = [item for item, hash_ in zip(prepared, hashes, strict=True) if hash_ not in existing]
    stored = await _nearest(connection, scope, fresh, generation, min_cosine)
    if len(fresh) > MANY:  # In a thread, for many comparisons would hold up other requests.
        repeated = await asyncio.to_thread(find_restatements, fresh, stored, min_cosine=min_cosine)
    else:
        repeated = find_restatements(fresh, stored, min_cosine=min_cosine)
    originals = [item.original for item in repeated.values()]
    present = await _raise(connection, [item for item in originals if item.is_stored], now, witness)
    absent = {item.id for item in originals if item.is_stored} - present
    merged = {id_: item for id_, item in repeated.items() if item.original.id not in absent}
    raised = {item.original.id: item.original.importance for item in merged.values()}
    rest = [
        replace(item, note=replace(item.note, importance=raised[item.id])) if item.id in raised else item
        for item in prepared
        if item.id not in merged
    ]
    results = await insert_notes(connection, scope, rest, generation, now)
    put = {item.id: result for item, result in zip(rest, results, strict=True)}
    return [put[item.id] if item.id in put else _merged(merged[item.id], put) for item in prepared]


def _merged(item: Restatement, put: Mapping[UUID, NoteResult]) -> NoteResult:
    """Return the result of a note that was not stored; its new original may turn out to have been stored before."""
    id_ = put[item.original.id].id if item.original.id in put else item.original.id
    return NoteResult(id_, existed=True, merged=True, difference=item.difference)


def find_restatements(
    prepared: Sequence[PreparedNote], stored: Mapping[UUID, Sequence[Near]], *, min_cosine: float
) -> dict[UUID, Restatement]:
    """Return, for each note that repeats an original, that original with its importance afterwards.

    Args:
        prepared: New notes, in their order.
        stored: Stored originals near each new note, by its id, nearest first.
        min_cosine: The least cosine of near-duplicates.
    """
    originals: dict[UUID, Original] = {}
    again: dict[UUID, tuple[UUID, Difference]] = {}
    earlier = _near_earlier(prepared, min_cosine)
    for item in prepared:
        new = [(near, cosine) for near, cosine in earlier.get(item.id, ()) if near.id not in again]
        near = [*stored.get(item.id, ()), *new[:CANDIDATES]]
        for match, cosine in near:
            difference = _difference(item.note, match, cosine, min_cosine)
            if difference is not None:
                again[item.id] = match.id, difference
                originals[match.id] = _raised(originals.get(match.id, match), match.importance, item.note)
                break
    return {id_: Restatement(originals[original], difference) for id_, (original, difference) in again.items()}


def _difference(note: Note, original: Original, cosine: float, min_cosine: float) -> Difference | None:
    """Return the difference between a note and an original that it repeats; ``None`` if it is to be stored."""
    is_covered = original.tags.issuperset(note.tags) and (
        not note.metadata or is_same_json(note.metadata, original.metadata)
    )
    lasts_as_long = original.expires_at is None or (
        note.expires_at is not None and note.expires_at <= original.expires_at
    )
    # What Ben says of himself in nearly the words of Ann is another statement.
    is_said_by_same = not note.speakers or note.named_speakers() == original.speakers
    if cosine < min_cosine or not (is_covered and lasts_as_long and is_said_by_same):
        return None
    return difference_of_statements(composed(note.content), composed(original.content))


def _raised(original: Original, before: float, note: Note) -> Original:
    """Raise the importance of a repeated original, from the one before; its own source raises nothing.

    A batch has one witness, so that it raises once, however many of its notes repeat the original.
    """
    if note.source == original.source and note.source != ANONYMOUS:
        return original
    stated = max(original.stated, before, note.importance)
    return replace(original, importance=raised_importance(before, stated), stated=stated)


def raised_importance(importance: float, other: float) -> float:
    """Return the importance of a repeated note: above both, never above 1."""
    most = max(importance, other)
    return most + RAISED_BY * (1 - most)


def _near_earlier(prepared: Sequence[PreparedNote], min_cosine: float) -> dict[UUID, list[Near]]:
    """Return, for each note of one chunk, the near ones before it in the batch, nearest first."""
    whole = [item for item in prepared if item.is_one_chunk()]
    if len(whole) < 2:  # noqa: PLR2004 - a pair
        return {}
    vectors = np.stack([item.chunks[0].vector() for item in whole])
    # Below the diagonal: each note against those before it, none against itself.
    cosines = np.tril(vectors @ vectors.T, k=-1)
    found: dict[UUID, list[Near]] = {}
    for later, earlier in np.argwhere(cosines >= min_cosine).tolist():
        found.setdefault(whole[later].id, []).append((_original(whole[earlier]), float(cosines[later, earlier])))
    return {id_: sorted(near, key=lambda pair: -pair[1]) for id_, near in found.items()}


def _original(item: PreparedNote) -> Original:
    note = item.note
    return Original(
        id=item.id,
        content=note.content,
        importance=note.importance,
        source=note.source,
        tags=frozenset(note.tags),
        metadata=note.metadata,
        is_stored=False,
        expires_at=note.expires_at,
        speakers=note.named_speakers(),
    )


async def _nearest(
    connection: Connection, scope: Scope, prepared: Sequence[PreparedNote], generation: int, min_cosine: float
) -> dict[UUID, list[Near]]:
    whole = [item for item in prepared if item.is_one_chunk()]
    if len(whole) > MANY:
        parameters = scope_parameters(scope) | {"most": min(MOST_READ, READ_FOR_ONE * len(whole))}
        row = await (await connection.execute(QUERIES["count_comparable_notes"], parameters)).fetchone()
        if row is not None and row["notes"] <= parameters["most"]:
            return await _nearest_of_all(connection, scope, whole, generation, min_cosine)
    return await _nearest_by_index(connection, scope, whole, generation, min_cosine)


async def _nearest_of_all(
    connection: Connection, scope: Scope, whole: Sequence[PreparedNote], generation: int, min_cosine: float
) -> dict[UUID, list[Near]]:
    """Compare many notes with all that the scope has, whose vectors are read once.

    A statement that compared 2 000 with 2 000 took 45 s.
    """
    parameters = scope_parameters(scope) | {"generation": generation}
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(QUERIES["read_note_vectors"], parameters)
        stored = await cursor.fetchall()
    if not stored:
        return {}
    vectors = np.stack([row["embedding"].to_numpy() for row in stored])
    near = await asyncio.to_thread(_nearest_rows, whole, vectors, min_cosine)
    ids = sorted({stored[row]["id"] for found in near.values() for row, _ in found})
    rows = await connection.execute(QUERIES["read_originals"], {"ids": ids})
    originals = {row["id"]: _stored_original(row) async for row in rows}
    return {
        id_: [(originals[stored[row]["id"]], cosine) for row, cosine in found if stored[row]["id"] in originals]
        for id_, found in near.items()
    }


def _nearest_rows(
    whole: Sequence[PreparedNote], vectors: NDArray[np.float32], min_cosine: float
) -> dict[UUID, list[tuple[int, float]]]:
    """Return the rows nearest to each note with their cosines, nearest first, of equals the first."""
    found: dict[UUID, list[tuple[int, float]]] = {}
    for start in range(0, len(whole), PAGE):
        page = whole[start : start + PAGE]
        cosines = np.stack([item.chunks[0].vector() for item in page]) @ vectors.T
        for place, row in np.argwhere(cosines >= min_cosine).tolist():
            found.setdefault(page[place].id, []).append((row, float(cosines[place, row])))
    return {id_: sorted(rows, key=lambda pair: (-pair[1], pair[0]))[:CANDIDATES] for id_, rows in found.items()}


async def _nearest_by_index(
    connection: Connection, scope: Scope, whole: Sequence[PreparedNote], generation: int, min_cosine: float
) -> dict[UUID, list[Near]]:
    found: dict[UUID, list[Near]] = {}
    # In pages: a thousand vectors are sent in one step of the event loop.
    for start in range(0, len(whole), PAGE):
        page = whole[start : start + PAGE]
        parameters = {
            "items": [item.id for item in page],
            "embeddings": [Vector(item.chunks[0].vector()) for item in page],
            "generation": generation,
            "candidates": CANDIDATES,
            "min_cosine": min_cosine,
        }
        text = typed(QUERIES["nearest_notes"], generation, page[0].chunks[0].vector().size)
        cursor = await connection.execute(text, scope_parameters(scope) | parameters)
        async for row in cursor:
            found.setdefault(row["item"], []).append((_stored_original(row), float(row["cosine"])))
    return found


def _stored_original(row: DictRow) -> Original:
    names = ("id", "content", "importance", "source", "metadata", "expires_at")
    return Original(
        **{name: row[name] for name in names},
        tags=frozenset(row["tags"]),
        is_stored=True,
        speakers=tuple(row["speakers"] or ()),
    )


async def _raise(
    connection: Connection, originals: Iterable[Original], now: datetime, witness: str | None
) -> set[UUID]:
    """Write the importance of stored originals; return those that still exist."""
    distinct = {item.id: item for item in originals}
    given = [distinct[id_] for id_ in sorted(distinct)]
    if not given:
        return set()
    parameters = {
        "ids": [item.id for item in given],
        "importances": [item.importance for item in given],
        "stated": [item.stated for item in given],
        "witness": witness,
        "most_witnesses": MOST_WITNESSES,
        "now": now,
    }
    cursor = await connection.execute(QUERIES["raise_importance"], parameters)
    return {row["id"] async for row in cursor}


async def read_merge_page(
    pool: Pool,
    area: Area,
    after: Mapping[str, Any] | None,
    *,
    window: timedelta,
    page_notes: int,
    most_notes: int,
) -> tuple[DictRow, list[DictRow]] | None:
    """Return a page of a namespace's notes, newest first, with the older notes that are compared with them.

    Args:
        pool: Connections to Postgres.
        area: A namespace.
        after: ``created_at`` and ``id`` of the last note of the page before.
        window: How much older than the page's last note the others may be.
        page_notes: Notes of the page.
        most_notes: Most notes in all.

    Returns:
        ``created_at`` and ``id`` of the page's last note, and the notes; ``None`` after the last page.
    """
    parameters: dict[str, Any] = {**area.ids(), "created_at": None, "id": None, **(after or {})}
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES["find_page_end"], parameters | {"limit": page_notes})
        last = await cursor.fetchone()
        if last is None:
            return None
        parameters |= {"since": last["created_at"] - window, "limit": most_notes}
        cursor = await connection.execute(QUERIES["merge_candidates"], parameters)
        return last, await cursor.fetchall()
