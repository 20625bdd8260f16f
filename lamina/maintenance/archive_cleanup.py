"""The removal of notes and files from an archive that its catalog does not list."""

import asyncio
from collections.abc import Sequence

from lamina.stores.archive import Archive, UnreadableArchive, scope_folder
from lamina.stores.postgres.archive_catalog import ArchivedEntry, ArchiveFolder, count_by_file, list_file
from lamina.stores.postgres.connection import Connection


def folder_path(folder: ArchiveFolder) -> str:
    """Return the path of a folder from the archive's root."""
    scope = folder.scope
    return f"{folder.database.hex}/{scope_folder(scope.tenant, scope.workspace, scope.namespace)}"


async def require_folder_of(archive: Archive, file: str) -> None:
    """Refuse to go on without the folder of a file: a missing one would pass for erased.

    Raises:
        Unavailable: If it is missing.
    """
    await asyncio.to_thread(archive.require, file.rpartition("/")[0])


async def find_excess(
    connection: Connection, archive: Archive, folder: ArchiveFolder
) -> tuple[list[str], list[UnreadableArchive]]:
    """Return the files of a folder with more notes than the catalog lists, and the errors of unreadable ones."""
    await asyncio.to_thread(archive.require, folder_path(folder))
    rows = await count_by_file(connection, folder.scope)
    return await asyncio.to_thread(archive.excess, f"{folder_path(folder)}/", rows)


async def remove_unlisted(connection: Connection, archive: Archive, file: str) -> None:
    """Remove the notes from a file that the catalog does not list there; the scope is locked."""
    await require_folder_of(archive, file)
    await asyncio.to_thread(_keep_only, archive, file, await list_file(connection, file))


def _keep_only(archive: Archive, file: str, listed: Sequence[ArchivedEntry]) -> None:
    if not listed:
        archive.remove(file)
        return
    unlisted = {note.id for note in archive.read(file)} - {entry.id for entry in listed}
    # Also without a note to remove: rewriting deletes the files of an unfinished write.
    archive.rewrite_without(file, unlisted, now=listed[0].archived_at)


def raise_damaged(errors: Sequence[UnreadableArchive]) -> None:
    """Raise the first error, if any, with the files of all others in its remedy."""
    others = sorted({error.file for error in errors} - {error.file for error in errors[:1]})
    for first in errors[:1]:
        remedy = ", and ".join([first.remedy, *(f"look at {file} too" for file in others)])
        raise UnreadableArchive(first.file, first.expected, first.found, remedy)
