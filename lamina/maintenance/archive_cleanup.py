"""The removal of notes and files from an archive that its catalog does not list."""

import asyncio
from collections.abc import Sequence

from lamina.core.scope import Scope
from lamina.stores.archive import Archive, UnreadableArchive, scope_folder
from lamina.stores.postgres.archive_catalog import (
    ArchivedEntry,
    ArchiveFolder,
    count_by_file,
    end_folder,
    find_folder,
    list_file,
    lock_folder,
)
from lamina.stores.postgres.connection import Connection, Pool, in_transaction


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


async def end_empty_folder(pool: Pool, archive: Archive, scope: Scope) -> bool:
    """Forget the folder of a namespace if it holds nothing any more, and remove it; report whether it was forgotten.

    First the row goes, then the mark, each under the lock: a row without a mark would pass for an unmounted volume. A
    crash in between leaves the mark, which is an empty folder's.

    Raises:
        Unavailable: If Postgres or the archive does not answer, or the folder is missing.
    """

    async def forget(connection: Connection) -> bool:
        folder = await find_folder(connection, scope)
        await lock_folder(connection, f"{folder_path(folder)}/")
        if not folder.is_begun or await count_by_file(connection, scope):
            return False
        await asyncio.to_thread(archive.require, folder_path(folder))
        if await asyncio.to_thread(archive.names, f"{folder_path(folder)}/"):
            return False
        await end_folder(connection, scope)
        return True

    async def remove(connection: Connection) -> None:
        path = folder_path(await find_folder(connection, scope))
        await lock_folder(connection, f"{path}/")
        if not (await find_folder(connection, scope)).is_begun:  # Nobody began it anew meanwhile.
            await asyncio.to_thread(archive.unmark, path)

    is_forgotten = await in_transaction(pool, forget)
    if is_forgotten:
        await in_transaction(pool, remove)
    return is_forgotten


def raise_damaged(errors: Sequence[UnreadableArchive]) -> None:
    """Raise the first error, if any, with the files of all others in its remedy."""
    others = sorted({error.file for error in errors} - {error.file for error in errors[:1]})
    for first in errors[:1]:
        remedy = ", and ".join([first.remedy, *(f"look at {file} too" for file in others)])
        raise UnreadableArchive(first.file, first.expected, first.found, remedy)
