"""Calls on archived notes: restore them, or erase them for good."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from lamina.core.events import Event, EventKind
from lamina.core.links import LinkKind
from lamina.core.memories import RestoreStatus
from lamina.core.scope import Scope
from lamina.errors import Unavailable
from lamina.maintenance.archive_cleanup import (
    find_excess,
    folder_path,
    raise_damaged,
    remove_unlisted,
    require_folder_of,
)
from lamina.maintenance.archive_restore import restore_entries, restored_ids
from lamina.stores.archive import Archive, UnreadableArchive
from lamina.stores.postgres.archive_catalog import (
    ArchiveCatalog,
    ArchivedEntry,
    RestoreOutcome,
    delete_entries,
    find_entries,
    find_folder,
    lock_folder,
)
from lamina.stores.postgres.archive_transfer import restore_links
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.links import remove_from_graph
from lamina.stores.postgres.notes import delete_notes
from lamina.stores.postgres.outbox import enqueue, enqueue_notes, enqueue_returned

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArchiveKeeper:
    """Restores and erases archived notes.

    Args:
        pool: Connections to Postgres.
        archive: Holds the files.
    """

    pool: Pool
    archive: Archive

    async def restore(self, tenant: str, ids: Sequence[UUID]) -> list[RestoreOutcome]:
        """Restore notes as they were, cold; an unreadable file does not hold up the others.

        Returns:
            The outcome of each, in the order of ``ids``.

        Raises:
            Unavailable: If Postgres or the archive does not answer; some may be restored, the call can be repeated.
        """
        found = await ArchiveCatalog(self.pool).find(tenant, ids)
        outcomes: dict[UUID, RestoreOutcome] = {}
        for file, entries in groupby(sorted(found, key=lambda entry: entry.file), key=lambda entry: entry.file):
            outcomes |= {item.id: item for item in await self._restore(tenant, file, [entry.id for entry in entries])}
        return [outcomes.get(id_, RestoreOutcome(id_, RestoreStatus.NOT_ARCHIVED)) for id_ in dict.fromkeys(ids)]

    async def _restore(self, tenant: str, file: str, ids: Sequence[UUID]) -> list[RestoreOutcome]:
        async def act(connection: Connection) -> list[RestoreOutcome]:
            await lock_folder(connection, file)
            listed = [entry for entry in await find_entries(connection, tenant, ids) if entry.file == file]
            return await restore_entries(connection, self.archive, file, listed)

        try:
            outcomes = await in_transaction(self.pool, act)
        except UnreadableArchive as error:
            return [RestoreOutcome(id_, RestoreStatus.UNREADABLE, error=str(error)) for id_ in ids]
        if restored_ids(outcomes):
            await self._clean_file(file)
        return outcomes

    async def _clean_file(self, file: str) -> None:
        async def act(connection: Connection) -> None:
            await lock_folder(connection, file)
            await remove_unlisted(connection, self.archive, file)

        try:
            await in_transaction(self.pool, act)
        except (Unavailable, UnreadableArchive) as error:
            logger.warning("archive: %s still has what was restored, until the next run of archival: %s", file, error)

    async def erase_all(self, tenant: str, entries: Sequence[ArchivedEntry], now: datetime) -> int:
        """Erase archived notes of one file for good, and the leftovers of unfinished writes in their scope.

        Returns:
            The number of notes that were still archived.

        Raises:
            UnreadableArchive: If a file is damaged that may have some of them.
            Unavailable: If Postgres or the archive does not answer, or the file's folder is missing.
        """
        erased = await erase_archived(self.pool, self.archive, tenant, entries, now)
        raise_damaged(await self._clean_folder(entries[0].scope()))
        return erased

    async def erase_user(self, tenant: str, user: str, now: datetime) -> int:
        """Erase a user's archived notes for good, and all notes in the tenant's files that the catalog does not list.

        Returns:
            The number of the user's notes.

        Raises:
            UnreadableArchive: If a file is damaged that may have some of them; all others are erased.
            Unavailable: If Postgres or the archive does not answer, or a folder of the tenant is missing.
        """
        catalog = ArchiveCatalog(self.pool)
        for folder in await catalog.folders(tenant):
            await asyncio.to_thread(self.archive.require, folder_path(folder))
        erased, damaged = await self._erase_listed(catalog, tenant, user, now)
        for folder in await catalog.folders(tenant):
            damaged += await self._clean_folder(folder.scope)
        raise_damaged(damaged)
        return erased

    async def _erase_listed(
        self, catalog: ArchiveCatalog, tenant: str, user: str, now: datetime
    ) -> tuple[int, list[UnreadableArchive]]:
        erased = 0
        damaged: dict[str, UnreadableArchive] = {}
        while entries := await catalog.find_of_user(tenant, user, but=damaged):
            try:
                erased += await erase_archived(self.pool, self.archive, tenant, entries, now)
            except UnreadableArchive as error:
                damaged[entries[0].file] = error
        return erased, list(damaged.values())

    async def _clean_folder(self, scope: Scope) -> list[UnreadableArchive]:
        """Remove notes that the catalog does not list from a scope's files; return the errors of unreadable ones."""

        async def act(connection: Connection) -> list[UnreadableArchive]:
            folder = await find_folder(connection, scope)
            await lock_folder(connection, f"{folder_path(folder)}/")
            names, unreadable = await find_excess(connection, self.archive, folder)
            for name in names:
                try:
                    await remove_unlisted(connection, self.archive, name)
                except UnreadableArchive as error:
                    unreadable.append(error)
            return unreadable

        return await in_transaction(self.pool, act)


async def erase_archived(
    pool: Pool, archive: Archive, tenant: str, entries: Sequence[ArchivedEntry], now: datetime
) -> int:
    """Erase archived notes of one file: the file's copies, the facts that only they stated, the notes merged into them.

    If it raises, nothing was changed, unless the process crashed while it committed; it can be called again.

    Args:
        pool: Connections to Postgres.
        archive: Holds the files.
        tenant: The owner of the notes.
        entries: At least one, all of one file.
        now: For the tombstones and the rewritten manifest.

    Returns:
        The number of them that were still archived there.

    Raises:
        UnreadableArchive: If the file is damaged.
        Unavailable: If Postgres or the archive does not answer, or the file's folder is missing.
    """
    file, wanted = entries[0].file, [entry.id for entry in entries]

    async def act(connection: Connection) -> int:
        await lock_folder(connection, file)
        present = [entry for entry in await find_entries(connection, tenant, wanted) if entry.file == file]
        if present:
            await _erase(connection, archive, tenant, present, now)
        return len(present)

    return await in_transaction(pool, act)


async def _erase(
    connection: Connection, archive: Archive, tenant: str, present: Sequence[ArchivedEntry], now: datetime
) -> None:
    ids = [entry.id for entry in present]
    await require_folder_of(archive, present[0].file)
    await _link_again(connection, archive, present)
    deletion = await delete_notes(connection, tenant, ids, now)
    changed = await remove_from_graph(connection, [*ids, *deletion.deleted])
    await enqueue_notes(connection, [*ids, *deletion.deleted, *deletion.restored])
    await enqueue(connection, "graph", [*deletion.deleted, *sorted(changed)])
    await enqueue_returned(connection, deletion.restored)
    await delete_entries(connection, ids)
    # After the deletions: a file is not rolled back with them.
    await asyncio.to_thread(archive.rewrite_without, present[0].file, ids, now=now)
    await bump_epoch(connection, present[0].scope(), teaches=True)
    scope = present[0].scope().narrowed(user=present[0].user)
    await record_event(connection, Event.of(scope, EventKind.NOTE_DELETED, *ids))


async def _link_again(connection: Connection, archive: Archive, entries: Sequence[ArchivedEntry]) -> None:
    """Link notes to their entities, so that erasing them also removes entities that nothing else mentions."""
    # A file that cannot be read cannot be rewritten either, which raises; one that is gone was emptied before.
    with suppress(UnreadableArchive):
        notes = await asyncio.to_thread(archive.read, entries[0].file, [entry.id for entry in entries])
        links = [(note, link) for note in notes for link in note.links if link.kind != LinkKind.SIMILAR]
        await restore_links(connection, entries[0], links)
