"""Rows of notes on their way into the archive's files and back."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import Vector
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from lamina.core.areas import Area
from lamina.core.links import LinkKind
from lamina.core.scope import Scope
from lamina.stores.archive import ArchivedChunk, ArchivedLink, ArchivedNote, ArchivedVersion
from lamina.stores.postgres.archive_catalog import ArchivedEntry
from lamina.stores.postgres.connection import Connection, scope_parameters
from lamina.stores.postgres.entities import keep_entities
from lamina.stores.postgres.generations import read_active_generation
from lamina.stores.postgres.links import delete_links
from lamina.stores.postgres.note_rows import note_owner, note_traits
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("archive_transfer.sql")

_FLOAT32 = np.dtype("<f4")
Json = dict[str, Any]
# Columns of a note that the archive keeps as they are.
_COLUMNS = (
    *("id", "tenant", "workspace", "namespace", "category", "content", "metadata", "version", "hits"),
    *("event_at", "last_hit_at", "created_at", "updated_at"),
)


async def find_candidates(
    connection: Connection,
    area: Area,
    *,
    most_hits: int,
    idle: timedelta,
    moment: datetime,
    after: str | None,
    limit: int,
) -> list[DictRow]:
    """Return cold notes that are due for the archive, by id.

    Args:
        connection: Any.
        area: A namespace.
        most_hits: Most times that searches found them.
        idle: Least time since a search last found them.
        moment: The run's present.
        after: Only notes with a greater id.
        limit: Most notes.

    Returns:
        ``id``, ``version``, ``hits``, ``last_hit_at`` and ``size_bytes`` of each.
    """
    parameters = area.ids() | {
        "most_hits": most_hits,
        "idle": idle,
        "moment": moment,
        "after": after,
        "limit": limit,
    }
    return await (await connection.execute(QUERIES["find_archive_candidates"], parameters)).fetchall()


async def read_notes(connection: Connection, ids: Sequence[UUID]) -> list[ArchivedNote]:
    """Return locked notes with their parts, by id, but for those that may not be archived any more."""
    cursor = await connection.execute(QUERIES["read_notes_to_archive"], {"ids": ids})
    rows = {row["id"]: row async for row in cursor}
    chosen = {"ids": list(rows)}
    chunks = await (await connection.execute(QUERIES["read_chunks_to_archive"], chosen)).fetchall()
    versions = await (await connection.execute(QUERIES["read_versions_to_archive"], chosen)).fetchall()
    links = await (await connection.execute(QUERIES["read_links_to_archive"], chosen)).fetchall()
    parts = {
        "chunks": _by_note(chunks, "id"),
        "versions": _by_note(versions, "id"),
        "links": _by_note(links, "from_id"),
        "linked_from": _by_note(links, "to_id"),
    }
    return await asyncio.to_thread(
        lambda: [_note(row, **{name: of.get(id_, []) for name, of in parts.items()}) for id_, row in rows.items()]
    )


def _by_note(rows: Sequence[DictRow], column: str) -> dict[UUID, list[DictRow]]:
    found: dict[UUID, list[DictRow]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found


def _note(
    row: DictRow,
    chunks: Sequence[DictRow],
    versions: Sequence[DictRow],
    links: Sequence[DictRow],
    linked_from: Sequence[DictRow],
) -> ArchivedNote:
    return ArchivedNote(
        **{name: row[name] for name in _COLUMNS},
        content_hash=bytes(row["content_hash"]),
        swarm=row["swarm_id"],
        **note_traits(row),
        **note_owner(row),
        chunks=tuple(map(_chunk, chunks)),
        versions=tuple(map(_version, versions)),
        links=tuple(
            ArchivedLink(link["to_id"], link["kind"], link["strength"], link["source"], link["seen_at"])
            for link in links
        ),
        extra={
            "weight": row["weight"],
            "temperature_changed_at": row["temperature_changed_at"].isoformat(),
            # Only the strength of a link from another note: the rest is that note's, which may be deleted meanwhile.
            "linked_from": [[str(link["from_id"]), link["strength"]] for link in linked_from],
            "speakers": row["speakers"],
        },
    )


def _chunk(row: DictRow) -> ArchivedChunk:
    embedding = row["embedding"].to_numpy().astype(_FLOAT32).tobytes()
    return ArchivedChunk(row["chunk"], row["text_start"], row["text_end"], row["generation"], embedding)


def _version(row: DictRow) -> ArchivedVersion:
    columns = {name: value for name, value in row.items() if name != "id"}
    return ArchivedVersion(**columns | {"tags": tuple(row["tags"])})


async def move_out(
    connection: Connection, ids: Sequence[UUID], *, file: str, run: UUID | None, moment: datetime
) -> set[UUID]:
    """Delete locked notes that a file holds, with their chunks, versions and links, and list them in the catalog.

    The evidence of edges stays: facts that only these notes stated are still known.

    Returns:
        Other memories of the graph that were linked to them.
    """
    chosen = {"ids": list(ids)}
    await connection.execute(QUERIES["insert_archived"], chosen | {"file": file, "run_id": run, "moment": moment})
    linked = {row["from_id"] for row in await delete_links(connection, ids)}
    await connection.execute(QUERIES["delete_archived_notes"], chosen)
    return linked - set(ids)


async def find_tellers(
    connection: Connection, scope: Scope, notes: Sequence[ArchivedNote]
) -> dict[UUID, tuple[UUID, list[str] | None]]:
    """Return the first message of its session that has the text of each note, from a speaker of it, and its speakers.

    A note without one is missing.
    """
    speakers = [note.extra.get("speakers") for note in notes]
    wanted = {
        "ids": [note.id for note in notes],
        "sessions": [note.session for note in notes],
        "users": [note.user for note in notes],
        "contents": [note.content for note in notes],
        "speakers": [names and Jsonb(names) for names in speakers],
    }
    cursor = await connection.execute(QUERIES["find_tellers"], scope_parameters(scope) | wanted)
    return {row["id"]: (row["message"], row["speakers"] or None) async for row in cursor}


async def restore_notes(connection: Connection, notes: Sequence[ArchivedNote]) -> set[UUID]:
    """Insert notes without their parts, cold from now on; return those whose text the scope did not have again."""
    rows = await asyncio.to_thread(lambda: _as_json([_row(note) for note in notes]))
    cursor = await connection.execute(QUERIES["restore_notes"], {"rows": rows})
    return {row["id"] async for row in cursor}


def _row(note: ArchivedNote) -> Json:
    return {name: getattr(note, name) for name in (*_COLUMNS, "importance", "confidence", "tags", "source")} | {
        "content_hash": f"\\x{note.content_hash.hex()}",
        "user_id": note.user,
        "agent_id": note.agent,
        "session_id": note.session,
        "swarm_id": note.swarm,
        "weight": note.extra["weight"],
        "temperature_changed_at": note.extra["temperature_changed_at"],
        "speakers": note.extra.get("speakers"),
        "tells_speakers": "speakers" in note.extra,
    }


async def restore_versions(connection: Connection, notes: Sequence[ArchivedNote]) -> None:
    """Insert the versions of restored notes."""
    rows = [{"note_id": note.id, **version._asdict()} for note in notes for version in note.versions]
    await connection.execute(QUERIES["restore_versions"], {"rows": _as_json(rows)})


async def restore_chunks(connection: Connection, notes: Sequence[ArchivedNote]) -> set[UUID]:
    """Insert the chunks of restored notes that have vectors of the active generation; return these notes."""
    active = await read_active_generation(connection)
    generation = None if active is None else active.number
    chunks = [(note.id, chunk) for note in notes for chunk in note.chunks if chunk.generation == generation]
    parameters = {
        "generation": generation,
        "ids": [id_ for id_, _ in chunks],
        "chunks": [chunk.chunk for _, chunk in chunks],
        "starts": [chunk.start for _, chunk in chunks],
        "ends": [chunk.end for _, chunk in chunks],
        "embeddings": [Vector(np.frombuffer(chunk.embedding, _FLOAT32)) for _, chunk in chunks],
    }
    if chunks:
        await connection.execute(QUERIES["restore_chunks"], parameters)
    return {id_ for id_, _ in chunks}


async def restore_links(
    connection: Connection, entry: ArchivedEntry, links: Sequence[tuple[ArchivedNote, ArchivedLink]]
) -> None:
    """Insert links of notes to entities and notes that still exist; these entities stay until the transaction ends.

    Args:
        connection: In a transaction.
        entry: Where the notes belong. A target that was written after it was archived is another one.
        links: Each with the note that it goes from.
    """
    rows = [{"from_id": note.id, "user_id": note.user, **link._asdict()} for note, link in links]
    scope = entry.scope()
    await keep_entities(connection, scope, sorted({link.to_id for _, link in links if link.kind != LinkKind.SIMILAR}))
    parameters = scope_parameters(scope) | {"rows": _as_json(rows), "archived_at": entry.archived_at}
    await connection.execute(QUERIES["restore_links"], parameters)


async def restore_links_from(connection: Connection, entry: ArchivedEntry, notes: Sequence[ArchivedNote]) -> set[UUID]:
    """Link other notes to restored ones again, unless these were rewritten since; return the linked ones."""
    links = [(UUID(from_id), note.id, strength) for note in notes for from_id, strength in note.extra["linked_from"]]
    parameters = {
        "tenant": entry.tenant,
        "from_ids": [from_id for from_id, _, _ in links],
        "to_ids": [to_id for _, to_id, _ in links],
        "strengths": [strength for _, _, strength in links],
        "archived_at": entry.archived_at,
    }
    cursor = await connection.execute(QUERIES["restore_links_from"], parameters)
    return {row["from_id"] async for row in cursor}


def _as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(rows, default=lambda value: value.isoformat() if isinstance(value, datetime) else str(value))
