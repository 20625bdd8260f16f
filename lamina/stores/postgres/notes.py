"""Tier 2: notes, their versions and their warm full text."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Json, Jsonb

from lamina.core.areas import Area
from lamina.core.memories import MOST_SPEAKERS, Category, Chunk, Message, Note, NoteVersion, StoredNote
from lamina.core.paging import Page
from lamina.core.ports import PlacedRecord
from lamina.core.queries import (
    AllOf,
    Candidate,
    Compare,
    FilterField,
    Filters,
    Hit,
    Operator,
    Place,
    Query,
    Ranking,
    RowScoring,
)
from lamina.core.scope import Scope
from lamina.errors import Conflict, InvalidInput, NotFound
from lamina.policies.ranking.scores import keyword_scores, similarity_score
from lamina.policies.retention.lifespan import Temperature
from lamina.stores.index.ports import Visible
from lamina.stores.postgres.connection import Connection, Pool, connect, read_tuples, scope_parameters
from lamina.stores.postgres.filters import Columns, apply_filters, place_parameters, query_parameters, union
from lamina.stores.postgres.messages import chunk_columns
from lamina.stores.postgres.note_rows import note_candidate, note_columns, note_record, stored_note
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore, fetch_row
from lamina.stores.postgres.tier_rows import (
    EmbeddingStatements,
    FoundStatement,
    LinkStatements,
    ProjectionStatements,
    TierRows,
    VectorTable,
)
from lamina.text.paraphrase import Difference
from lamina.text.words import index_words

QUERIES = load_queries("notes.sql")

NOTES_AT_ONCE = 100

COLUMNS: Columns = {
    FilterField.CATEGORY: "n.category",
    FilterField.OCCURRED_AT: "n.event_at",
    FilterField.TAGS: "n.tags",
    FilterField.SOURCE: "n.source",
    FilterField.USER: "n.user_id",
    FilterField.AGENT: "n.agent_id",
    FilterField.SESSION: "n.session_id",
    FilterField.CONFIDENCE: "n.confidence",
    FilterField.IMPORTANCE: "n.importance",
}


@dataclass(frozen=True, slots=True)
class PreparedNote:
    """A note with its id, vectors and words, ready for one transaction.

    Args:
        words: The words of each chunk, joined by spaces.
    """

    id: UUID
    note: Note
    chunks: tuple[Chunk, ...]
    words: tuple[str, ...]

    def is_one_chunk(self) -> bool:
        """Report whether a single vector stands for all of the text."""
        return [(chunk.start, chunk.end) for chunk in self.chunks] == [(0, len(self.note.content))]


def prepare_note(id_: UUID, note: Note, chunks: tuple[Chunk, ...]) -> PreparedNote:
    """Split the words of a note's chunks; a long note takes milliseconds."""
    texts = (note.content[chunk.start : chunk.end] for chunk in chunks)
    return PreparedNote(id_, note, chunks, tuple(" ".join(index_words(text)) for text in texts))


@dataclass(frozen=True, slots=True)
class NoteResult:
    """The outcome of storing a note.

    Args:
        id: Its id, or that of the equal note that the scope has.
        existed: Whether the scope had it before.
        merged: Whether the scope had it in other words, so that this text was not stored.
        difference: Between a merged text and the note that says the same.
    """

    id: UUID
    existed: bool
    merged: bool = False
    difference: Difference | None = None


async def insert_notes(
    connection: Connection, scope: Scope, prepared: Sequence[PreparedNote], generation: int, now: datetime
) -> list[NoteResult]:
    """Insert the notes that the scope does not have yet; the constraint decides between concurrent writers.

    Rows are inserted in the order of their hashes, so that two writers of the same notes cannot deadlock.

    Raises:
        psycopg.errors.SerializationFailure: If an equal note was deleted meanwhile; the transaction is to be repeated.
    """
    in_order = sorted(prepared, key=lambda item: item.note.content_hash())
    new: set[UUID] = set()
    # In parts: the arrays of a thousand notes take the time of many requests to write.
    for start in range(0, len(in_order), NOTES_AT_ONCE):
        part = in_order[start : start + NOTES_AT_ONCE]
        rows = scope_parameters(scope) | _columns(part, now)
        inserted = {row["id"] async for row in await connection.execute(QUERIES["insert_notes"], rows)}
        await insert_chunks(connection, scope, [item for item in part if item.id in inserted], generation)
        new |= inserted
    # Read after the inserts: a note that was not inserted may have been written by another transaction just now.
    ids = await ids_by_hash(connection, scope, [item.note.content_hash() for item in prepared])
    if any(item.note.content_hash() not in ids for item in prepared):
        raise psycopg.errors.SerializationFailure("notes: an equal note was deleted meanwhile")
    results = [NoteResult(ids[item.note.content_hash()], existed=item.id not in new) for item in prepared]
    pairs = zip(results, prepared, strict=True)
    repeated = [(result.id, item.note) for result, item in pairs if result.existed]
    await _prolong(connection, repeated)
    await _add_speakers(connection, repeated)
    return results


def _columns(prepared: Sequence[PreparedNote], now: datetime) -> dict[str, Any]:
    notes = [item.note for item in prepared]
    return {
        "now": now,
        "ids": [item.id for item in prepared],
        "categories": [note.category.value for note in notes],
        "contents": [note.content for note in notes],
        "hashes": [note.content_hash() for note in notes],
        "importances": [note.importance for note in notes],
        "confidences": [note.confidence for note in notes],
        "tags": [Jsonb(list(note.tags)) for note in notes],
        "metadata": [Json(note.metadata) for note in notes],
        "sources": [note.source for note in notes],
        "times": [note.event_at or now for note in notes],
        "expiries": [note.expires_at for note in notes],
        "speakers": [Jsonb(list(note.named_speakers())) for note in notes],
    }


async def _add_speakers(connection: Connection, repeated: Sequence[tuple[UUID, Note]]) -> None:
    """Count who says a note again among its speakers."""
    said = [(id_, speaker) for id_, note in repeated for speaker in note.speakers]
    if said:
        parameters = {"ids": [id_ for id_, _ in said], "speakers": [speaker for _, speaker in said]}
        await connection.execute(QUERIES["add_speakers"], parameters | {"most": MOST_SPEAKERS})


async def _prolong(connection: Connection, repeated: Sequence[tuple[UUID, Note]]) -> None:
    """Let notes that are repeated expire as late as their repetitions."""
    if repeated:
        ids, expiries = [id_ for id_, _ in repeated], [note.expires_at for _, note in repeated]
        await connection.execute(QUERIES["prolong_notes"], {"ids": ids, "expiries": expiries})


async def ids_by_hash(connection: Connection, scope: Scope, hashes: Sequence[bytes]) -> dict[bytes, UUID]:
    """Return the id of each note of exactly this scope that has one of these texts, by the hash of the text."""
    cursor = await connection.execute(QUERIES["find_notes_by_hash"], scope_parameters(scope) | {"hashes": list(hashes)})
    return {bytes(row["content_hash"]): row["id"] async for row in cursor}


async def insert_chunks(
    connection: Connection, scope: Scope, prepared: Sequence[PreparedNote], generation: int
) -> None:
    """Insert the chunks of notes with their vectors and their words."""
    if prepared:
        chunks = chunk_columns({item.id: item.chunks for item in prepared}, generation)
        words = [words for item in prepared for words in item.words]
        rows = scope_parameters(scope) | chunks | {"words": words}
        await connection.execute(QUERIES["insert_note_chunks"], rows)


async def lock_note(connection: Connection, tenant: str, id_: UUID) -> StoredNote:
    """Return the note, locked until the transaction ends.

    Raises:
        NotFound: If the tenant has no such note.
    """
    return stored_note(await _note_row(connection, QUERIES["get_note_for_update"], tenant, id_))


async def _note_row(connection: Connection, query: bytes, tenant: str, id_: UUID) -> DictRow:
    parameters = {"id": id_, "tenant": tenant}
    row = await (await connection.execute(query, parameters)).fetchone()
    if row is not None:
        return row
    # Only for the message: a second query costs nothing where the call fails anyway.
    elsewhere = await (await connection.execute(QUERIES["find_note_elsewhere"], parameters)).fetchone()
    hint = ""
    if elsewhere is not None and elsewhere["is_archived"]:
        hint = f"note {id_} is archived; POST /v1/archive/restore brings it back"
    elif elsewhere is not None:
        hint = f"note {id_} was merged into {elsewhere['merged_into']}"
    raise NotFound("note", str(id_), hint)


async def update_note(
    connection: Connection, id_: UUID, note: Note, now: datetime, *, kept_versions: int
) -> StoredNote:
    """Write the next version of a note; the present one is added to its history.

    Args:
        connection: In a transaction that has locked the note.
        id_: The note.
        note: Its next state.
        now: The time of day.
        kept_versions: Most versions of the history; the oldest ones end.

    Raises:
        Conflict: If another note of the scope already has this text.
    """
    await connection.execute(QUERIES["insert_note_version"], {"id": id_, "kept": kept_versions})
    try:
        cursor = await connection.execute(QUERIES["update_note"], {"id": id_, **note_columns(note, now)})
    except psycopg.errors.UniqueViolation as error:
        raise Conflict("another note of this scope has the same text; change or delete that one") from error
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - the row is locked
    return stored_note(row)


async def replace_chunks(connection: Connection, scope: Scope, prepared: PreparedNote, generation: int) -> None:
    """Replace the chunks of a note by those of its new text."""
    await connection.execute(QUERIES["delete_note_chunks"], {"id": prepared.id})
    await insert_chunks(connection, scope, [prepared], generation)


async def derive_notes(connection: Connection, scope: Scope, prepared: Sequence[PreparedNote]) -> None:
    """Store the sources of new notes, locked against deletion until the transaction ends.

    Raises:
        InvalidInput: If the scope lacks one of the sources.
    """
    pairs = [(item.id, source) for item in prepared for source in item.note.derived_from]
    if not pairs:
        return
    wanted = sorted({source for _, source in pairs})
    cursor = await connection.execute(QUERIES["lock_note_sources"], {**scope_parameters(scope), "ids": wanted})
    existing = {row["id"] async for row in cursor}
    for source in wanted:
        if source not in existing or (source, source) in pairs:  # One that came back could name itself.
            raise InvalidInput("derived_from", f"names {source}, which is no note of this scope")
    async with connection.cursor() as many:
        rows = [{"note_id": note, "source_id": source} for note, source in pairs]
        await many.executemany(QUERIES["insert_note_source"], rows)
    await expire_derived(connection, wanted)


async def expire_derived(connection: Connection, sources: Sequence[UUID]) -> None:
    """Let the notes that were made from these expire with the first source that does."""
    await connection.execute(QUERIES["expire_derived"], {"ids": list(sources)})


@dataclass(frozen=True, slots=True)
class Deletion:
    """The effects of deleting notes.

    Args:
        deleted: The given notes, those made from them, and those merged into them.
        restored: Notes that are live again: the note that they were merged into was made from a deleted one.
    """

    deleted: tuple[UUID, ...] = ()
    restored: tuple[UUID, ...] = ()


async def delete_expired(connection: Connection, scope: Scope, hashes: Sequence[bytes], now: datetime) -> Deletion:
    """Delete expired notes of exactly this scope with one of these texts, so that the texts can be stored again."""
    cursor = await connection.execute(QUERIES["lock_expired_notes"], scope_parameters(scope) | {"hashes": list(hashes)})
    return await delete_notes(connection, scope.tenant, [row["id"] async for row in cursor], now)


async def delete_note(connection: Connection, tenant: str, id_: UUID, now: datetime) -> tuple[Scope, Deletion]:
    """Delete a note, with every note that was made from it or merged into it.

    Returns:
        The scope of the note with its user, and the effects.

    Raises:
        NotFound: If the tenant has no such note.
    """
    note = await lock_note(connection, tenant, id_)
    scope = Scope(tenant, note.workspace, note.namespace, note.user)
    return scope, await delete_notes(connection, tenant, [id_], now)


async def lock_drawn(connection: Connection, scope: Scope, source: str) -> dict[UUID, bytes]:
    """Lock the notes of a session that were drawn from a message and not changed since; return their texts' hashes."""
    cursor = await connection.execute(QUERIES["lock_drawn_notes"], {**scope_parameters(scope), "source": source})
    return {row["id"]: bytes(row["content_hash"]) async for row in cursor}


async def hand_over(connection: Connection, ids: Sequence[UUID], message: UUID) -> set[UUID]:
    """Count locked notes as drawn from another message than this one where their session has one with their text.

    Returns:
        Those for which it has.
    """
    cursor = await connection.execute(QUERIES["hand_over_notes"], {"ids": list(ids), "message": message})
    return {row["id"] async for row in cursor}


async def withdraw_speaker(connection: Connection, scope: Scope, old: Message, hashes: Collection[bytes]) -> None:
    """Take the speaker of a message, which is locked and corrected, from notes that rest on others as well.

    Args:
        connection: Of the transaction.
        scope: Of the message, with its session.
        old: The message as it was.
        hashes: Of the texts that it stated.
    """
    if hashes and old.speakers():
        parameters = {**scope_parameters(scope), "name": old.name or None, "hashes": list(hashes)}
        await connection.execute(QUERIES["withdraw_speaker"], parameters)


async def delete_notes(connection: Connection, tenant: str, ids: Sequence[UUID], now: datetime) -> Deletion:
    """Delete locked notes, with all that depends on them."""
    if not ids:
        return Deletion()
    deleted: dict[UUID, bool] = {}
    parameters = {"ids": list(ids), "tenant": tenant, "now": now}
    # Each round deletes the notes made from those of the round before, or merged into them; chains of them are short.
    while more := await (await connection.execute(QUERIES["delete_notes"], parameters)).fetchall():
        deleted |= {row["id"]: row["is_direct"] for row in more}
    derived = [id_ for id_, is_direct in deleted.items() if not is_direct]
    released = await connection.execute(QUERIES["release_merged"], {"ids": derived, "tenant": tenant})
    return Deletion(tuple(sorted(deleted)), tuple([row["id"] async for row in released]))


async def lock_unchanged(
    connection: Connection, tenant: str | None, states: Mapping[UUID, tuple[int, int, datetime]]
) -> set[UUID]:
    """Lock those of a tenant's notes that are in the state they were read in; return them.

    Args:
        connection: In a transaction.
        tenant: Owner of the notes.
        states: Version, hits and last hit of each note.
    """
    parameters = {
        "tenant": tenant,
        "ids": list(states),
        "versions": [version for version, _, _ in states.values()],
        "hits": [hits for _, hits, _ in states.values()],
        "last": [last_hit_at for _, _, last_hit_at in states.values()],
    }
    cursor = await connection.execute(QUERIES["lock_unchanged_notes"], parameters)
    return {row["id"] async for row in cursor}


async def count_notes(pool: Pool, area: Area) -> int:
    """Return how many notes a namespace has."""
    row = await fetch_row(pool, QUERIES["count_notes"], area.ids())
    return int(row["size"]) if row else 0


class Notes(PostgresStore):
    """Reads notes."""

    async def get(self, tenant: str, id_: UUID) -> StoredNote:
        """Return the note.

        Raises:
            NotFound: If the tenant has no such note.
        """
        async with connect(self._pool) as connection:
            return stored_note(await _note_row(connection, QUERIES["get_note"], tenant, id_))

    async def history(self, tenant: str, id_: UUID) -> list[NoteVersion]:
        """Return every state of the note that is kept, oldest first.

        Raises:
            NotFound: If the tenant has no such note.
        """
        await self.get(tenant, id_)
        rows = await self._rows(QUERIES["read_note_history"], id=id_)
        return [
            NoteVersion(**{**row, "category": Category(row["category"]), "tags": tuple(row["tags"])}) for row in rows
        ]

    async def page(self, scope: Scope, filters: Filters, category: Category | None, page: Page) -> list[StoredNote]:
        """Return the scope's notes, the latest event first."""
        wanted = filters
        if category is not None:
            is_category = Compare(FilterField.CATEGORY, Operator.EQ, category.value)
            wanted = replace(
                filters, where=is_category if filters.where is None else AllOf((filters.where, is_category))
            )
        text, values = apply_filters(QUERIES["list_notes"], wanted, COLUMNS)
        parameters = scope_parameters(scope) | values | page.parameters("time", "id")
        return [stored_note(row) for row in await self._rows(text, **parameters)]


class NotesSearch(PostgresStore):
    """Finds notes for all sources of the tier in one statement."""

    async def find(
        self, query: Query, warm: Sequence[Place], cold: Sequence[Place]
    ) -> tuple[Visible, Visible, Ranking]:
        """Return the warm and the cold notes at these places, and the warm ones that have every word of the query."""
        own = query_parameters(query)
        parts = []
        for temperature, places in (("warm", warm), ("cold", cold)):
            if places:
                text, values = apply_filters(QUERIES["fetch_notes"], query.filters, COLUMNS)
                parts.append((text, own | values | place_parameters(places) | {"temperature": temperature}))
        if query.words:
            text, values = apply_filters(QUERIES["search_notes_warm"], query.filters, COLUMNS)
            parts.append((text, own | values | {"limit": query.limit}))
        rows = await read_tuples(self._pool, *union(parts), by_key=True) if parts else []
        found = [_FoundNote(note_candidate(row), *row[10:]) for row in rows]
        literal = [item for item in found if item.chunk is None]
        return _visible(found, "warm"), _visible(found, "cold"), _by_cover_density(query, literal)

    async def score_all(self, query: Query, scoring: RowScoring, *, min_similarity: float) -> Ranking:
        """Return the best of all near notes that the query may see, warm and cold, by one statement over every row.

        Source:
            Siestai, Composite scoring.
        """
        similarity, importance, recency, decay_per_day = scoring
        numbers = {
            "similarity": similarity,
            "importance": importance,
            "recency": recency,
            "decay_per_day": decay_per_day,
            "min_similarity": min_similarity,
            "as_of": query.filters.as_of,
            "limit": query.limit,
        }
        text, values = apply_filters(QUERIES["score_notes"], query.filters, COLUMNS)
        rows = await read_tuples(self._pool, text, query_parameters(query) | values | numbers)
        return tuple(Hit(note_candidate(row), similarity_score(row[10]), {"cosine": row[10]}) for row in rows)


class _FoundNote(NamedTuple):
    note: Candidate
    chunk: int | None
    ts_rank_cd: float | None
    first_text: str | None


def _visible(found: Sequence[_FoundNote], temperature: Temperature) -> Visible:
    of_index = [item for item in found if item.chunk is not None and item.note.temperature == temperature]
    memories = {(item.note.id, item.chunk): item.note for item in of_index if item.chunk is not None}
    return Visible(memories, next((item.first_text for item in of_index if item.first_text is not None), ""))


def _by_cover_density(query: Query, found: Sequence[_FoundNote]) -> Ranking:
    notes = {item.note.id: item.note for item in found}
    # In the order of the statement, whose first row has its text.
    falling = sorted(found, key=lambda item: (-(item.ts_rank_cd or 0.0), item.note.id))
    raw = {item.note.id: item.ts_rank_cd or 0.0 for item in falling}
    texts = {item.note.id: item.first_text for item in found if item.first_text is not None}
    scores = keyword_scores(raw, texts, query.words)
    ordered = sorted(notes, key=lambda id_: (-scores[id_], id_))[: query.limit]
    return tuple(Hit(notes[id_], scores[id_], {"ts_rank_cd": raw[id_]}) for id_ in ordered)


def _cold_record(row: DictRow) -> PlacedRecord:
    record = note_record(row) if row["is_cold"] else None
    return PlacedRecord(row["tenant"], row["workspace"], row["namespace"], record)


TIER_ROWS = TierRows(
    found=FoundStatement(QUERIES["read_found_notes"], COLUMNS, lambda row, found: row.content[found.start : found.end]),
    present=QUERIES["find_present_notes"],
    projected={
        "notes": ProjectionStatements(
            QUERIES["read_note_records"], QUERIES["list_note_ids"], QUERIES["enqueue_all_notes"], note_record
        ),
        "cold": ProjectionStatements(
            QUERIES["read_cold_records"], QUERIES["list_cold_ids"], QUERIES["enqueue_all_cold"], _cold_record
        ),
    },
    embedded={
        "notes": EmbeddingStatements(
            table="notes",
            vectors=(VectorTable("note_chunks", "note_id"),),
            unembedded=QUERIES["find_unembedded_notes"],
            embed=QUERIES["embed_notes"],
            count=QUERIES["count_unembedded_notes"],
            text=itemgetter("content"),
            is_live="r.deleted_at IS NULL",
        )
    },
    linked=LinkStatements(QUERIES["read_linked_notes"], COLUMNS, QUERIES["link_similar_notes"]),
    count_user=QUERIES["count_user_notes"],
)
