"""The return of archived notes into Postgres."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from lamina.core.events import Event, EventKind
from lamina.core.memories import RestoreStatus
from lamina.maintenance.archive_cleanup import require_folder_of
from lamina.stores.archive import Archive, ArchivedNote
from lamina.stores.postgres.archive_catalog import ArchivedEntry, RestoreOutcome, delete_entries
from lamina.stores.postgres.archive_transfer import (
    find_tellers,
    restore_chunks,
    restore_links,
    restore_links_from,
    restore_notes,
    restore_versions,
)
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.outbox import enqueue, enqueue_notes

_DELETED_MEANWHILE = "its file does not have it: somebody was deleting it; delete it again"


async def restore_entries(
    connection: Connection, archive: Archive, file: str, listed: Sequence[ArchivedEntry]
) -> list[RestoreOutcome]:
    """Insert notes of a file into Postgres again, in the caller's transaction; the scope is locked.

    Raises:
        UnreadableArchive: If the file is damaged; nothing is changed.
        Unavailable: If the file's folder is missing.
    """
    if not listed:
        return []
    await require_folder_of(archive, file)
    read = await asyncio.to_thread(archive.read, file, [entry.id for entry in listed])
    sessions = {entry.id: entry.session for entry in listed if entry.session is not None}
    # Its session may have been renamed since the file was written.
    notes = [replace(note, session=sessions[note.id] or None) if note.id in sessions else note for note in read]
    corrected = {entry.id for entry in listed if entry.is_corrected}
    tellers = await find_tellers(connection, listed[0].scope(), [note for note in notes if note.id in corrected])
    # What another message says is drawn from that one; what none says any more stays in the archive.
    untold = corrected - tellers.keys()
    notes = [
        _told_by(note, *tellers[note.id]) if note.id in tellers else note for note in notes if note.id not in untold
    ]
    new = await restore_notes(connection, notes)
    back = [note for note in notes if note.id in new]
    embedded = await restore_chunks(connection, back)
    await restore_versions(connection, back)
    await restore_links(connection, listed[0], [(note, link) for note in back for link in note.links])
    await delete_entries(connection, sorted(new))
    if back:
        await _announce(connection, listed[0], back)
    readable = {note.id for note in read}
    return [
        RestoreOutcome(entry.id, RestoreStatus.CORRECTED)
        if entry.id in untold & readable
        else _outcome(entry.id, readable, new, embedded)
        for entry in listed
    ]


def _told_by(note: ArchivedNote, message: UUID, speakers: list[str] | None) -> ArchivedNote:
    """Return a note as drawn from another message than before."""
    return replace(note, source=f"message:{message}", extra=note.extra | {"speakers": speakers})


async def _announce(connection: Connection, entry: ArchivedEntry, notes: Sequence[ArchivedNote]) -> None:
    """Link other notes to the restored ones, queue these for the projections, and raise the epoch."""
    ids = [note.id for note in notes]
    linked = await restore_links_from(connection, entry, notes)
    await enqueue_notes(connection, ids)
    await enqueue(connection, "graph", [*ids, *sorted(linked - set(ids))])
    await bump_epoch(connection, entry.scope(), teaches=True)
    await record_event(connection, Event.of(entry.scope(), EventKind.NOTE_RESTORED, *ids))


def _outcome(id_: UUID, readable: set[UUID], new: set[UUID], embedded: set[UUID]) -> RestoreOutcome:
    if id_ not in readable:
        return RestoreOutcome(id_, RestoreStatus.UNREADABLE, error=_DELETED_MEANWHILE)
    if id_ not in new:
        return RestoreOutcome(id_, RestoreStatus.EXISTED)
    return RestoreOutcome(id_, RestoreStatus.RESTORED, lacks_vectors=id_ not in embedded)


def restored_ids(outcomes: Sequence[RestoreOutcome]) -> list[UUID]:
    """Return the ids of the notes that were restored."""
    return [item.id for item in outcomes if item.status is RestoreStatus.RESTORED]
