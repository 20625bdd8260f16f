"""Cold notes that nobody finds: into the files of an archive, back from them, and out of them for good.

A note is in Postgres or in a file that ``archived_notes`` names. A file is written while its notes are locked and
before they are deleted, so that it holds these and no others; restored notes leave it once they are in Postgres again.
What a process that died leaves over in a file is taken out by the next run, and by every erasure. Whoever writes files
of a scope holds its lock. Each database has folders of its own, marked before their first file: from one without its
mark nothing is concluded.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, count, groupby
from typing import Any
from uuid import UUID

import numpy as np
from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.links import LinkKind
from lamina.core.memories import RestoreStatus
from lamina.core.runs import RunCounts
from lamina.core.scope import Scope
from lamina.errors import LaminaError, Unavailable
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.stores.archive import (
    Archive,
    ArchivedNote,
    UnreadableArchive,
    scope_folder,
)
from lamina.stores.postgres.archive_catalog import (
    ArchiveCatalog,
    ArchivedEntry,
    ArchiveFolder,
    RestoreOutcome,
    begin_folder,
    count_by_file,
    delete_entries,
    detach_from_run,
    find_entries,
    find_file_of_run,
    find_folder,
    list_file,
    lock_folder,
)
from lamina.stores.postgres.archive_transfer import (
    find_candidates,
    move_out,
    read_notes,
    restore_chunks,
    restore_links,
    restore_links_from,
    restore_notes,
    restore_versions,
)
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.links import remove_from_graph
from lamina.stores.postgres.notes import count_notes, delete_notes, lock_unchanged
from lamina.stores.postgres.outbox import enqueue, enqueue_notes, enqueue_returned

logger = logging.getLogger(__name__)
MOST_BYTES = 32 * 2**20
"""Text of a page, which is in memory at once; a single note may have more."""
_FLOAT32 = np.dtype("<f4")
_INTERRUPTED = "its file does not have it: somebody was deleting it; delete it again"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ArchivalPolicy:
    """Which cold notes are archived.

    Args:
        idle: How long nobody found them, at least.
        most_hits: How often they were found, at most.
    """

    idle: timedelta
    most_hits: int


@dataclass(frozen=True, slots=True)
class ArchivalPlan:
    """A page of notes to archive.

    Args:
        rows: ``id``, ``version``, ``hits`` and ``last_hit_at`` of each, in the order of ids.
        strays: Files with more in them than is archived there.
    """

    rows: tuple[DictRow, ...] = ()
    strays: tuple[str, ...] = ()


class ArchivalJob:
    """Moves cold notes that nobody finds into files; what they told of entities stays known.

    Args:
        pool: Connections to Postgres.
        archive: Where the files are.
        policy: Which notes go.
        page_rows: Most notes of a file.
    """

    def __init__(self, pool: Pool, archive: Archive, policy: ArchivalPolicy, *, page_rows: int) -> None:
        self._pool = pool
        self._archive = archive
        self._policy = policy
        self._page_rows = page_rows
        self._undone: set[str] = set()
        self._unreadable: dict[str, UnreadableArchive] = {}

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[ArchivalPlan]:
        """Read which notes of one page are due; the first page also looks for files that have too much in them."""
        found = await self._candidates(area, after, moment)
        rows = tuple(_within(found, MOST_BYTES))
        strays, problems = ((), ()) if after else await self._strays(area)
        is_last = len(rows) == len(found) < self._page_rows
        return Page(
            plan=ArchivalPlan(rows, strays) if rows or strays else None,
            after=None if is_last else {"id": str(rows[-1]["id"])},
            seen=len(rows),
            planned=len(rows),
            removals=len(rows),
            problems=problems,
        )

    async def _candidates(self, area: Area, after: PageCursor, moment: datetime) -> list[DictRow]:
        async with connect(self._pool) as connection:
            return await find_candidates(
                connection,
                area,
                most_hits=self._policy.most_hits,
                idle=self._policy.idle,
                moment=moment,
                after=None if after is None else after["id"],
                limit=self._page_rows,
            )

    async def _strays(self, area: Area) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the files that have more notes than are archived there, and what could not be read."""
        async with connect(self._pool) as connection:
            folder = await find_folder(connection, area.scope())
            if not folder.is_begun:
                return (), ()
            names, unreadable = await _excess(connection, self._archive, folder)
        return tuple(names), tuple(f"{area}: {error}" for error in unreadable)

    async def act(self, writer: RowWriter, area: Area, plan: ArchivalPlan) -> RunCounts:
        """Write a file of the notes that still are as they were, and delete them."""
        connection, folder = writer.connection, await find_folder(writer.connection, area.scope())
        await lock_folder(connection, base := _base(folder, writer.moment, plan))
        await self._tidied(connection, folder, plan.strays)
        notes = await _due(connection, area, plan.rows) if plan.rows else []
        if not notes:
            return RunCounts()
        await self._begin(folder)
        await self._write(file := await _free(connection, base), notes, writer.moment)
        await _leave(writer, area.scope(), [note.id for note in notes], file)
        return RunCounts(changed=len(notes), removed=len(notes))

    async def _tidied(self, connection: Connection, folder: ArchiveFolder, strays: Sequence[str]) -> None:
        """Take out of the folder what the plan tells, and files of which nothing is archived."""
        if not folder.is_begun:
            return
        await _reach(self._archive, _path(folder))
        names = await asyncio.to_thread(self._archive.names, f"{_path(folder)}/")
        unlisted = set(names) - (await count_by_file(connection, folder.scope)).keys()
        for name in sorted(unlisted | set(strays)):
            with suppress(UnreadableArchive):  # Archive.verify tells of it; it must not stop what is due.
                await _tidy(connection, self._archive, name)

    async def _begin(self, folder: ArchiveFolder) -> None:
        """Mark a folder and note it, once, in a transaction of its own: both outlast that of the page."""
        if not folder.is_begun:
            await asyncio.to_thread(self._archive.mark, _path(folder))
            await in_transaction(self._pool, lambda connection: begin_folder(connection, folder.scope))

    async def _write(self, file: str, notes: Sequence[ArchivedNote], moment: datetime) -> None:
        try:
            await asyncio.to_thread(self._archive.write, file, notes, now=moment)
        except LaminaError:
            with suppress(LaminaError):  # No row names it.
                await asyncio.to_thread(self._archive.remove, file)
            raise

    async def size(self, area: Area) -> int:
        """Return how many notes the scope has."""
        return await count_notes(self._pool, area)

    async def undo(self, connection: Connection, run: UUID) -> RunCounts:
        """Restore what one file of a run has; what the scope has again meanwhile stays archived.

        The files that earlier calls have emptied, whose transactions are over, go in the next one.

        Raises:
            UnreadableArchive: When no file is left but damaged ones.
            Unavailable: If the archive does not answer, or the file's folder is away.
        """
        for emptied in sorted(self._undone):
            await lock_folder(connection, emptied)
            await _tidy(connection, self._archive, emptied)
        self._undone.clear()
        file = await find_file_of_run(connection, run, but=self._unreadable)
        if file is None:
            damaged, self._unreadable = list(self._unreadable.values()), {}
            _raise_one_of(damaged)
            return RunCounts()
        return await self._undo_file(connection, run, file)

    async def _undo_file(self, connection: Connection, run: UUID, file: str) -> RunCounts:
        await lock_folder(connection, file)
        listed = [entry for entry in await list_file(connection, file) if entry.run == run]
        try:
            outcomes = await _restore(connection, self._archive, file, listed)
        except UnreadableArchive as error:  # Nothing was changed; the other files come back.
            self._unreadable[file] = error
            return RunCounts(seen=len(listed))
        await detach_from_run(connection, [entry.id for entry in listed])
        self._undone.add(file)
        return RunCounts(seen=len(listed), changed=len(_restored(outcomes)))


class ArchiveKeeper:
    """Brings archived notes back, or deletes them, one by one.

    Args:
        pool: Connections to Postgres.
        archive: Where the files are.
    """

    def __init__(self, pool: Pool, archive: Archive) -> None:
        self._pool = pool
        self._archive = archive

    async def restore(self, tenant: str, ids: Sequence[UUID]) -> list[RestoreOutcome]:
        """Bring notes back as they were, cold; one that cannot be read holds up no other.

        Returns:
            What became of each, in the order that was asked.

        Raises:
            Unavailable: If Postgres or the archive does not answer; some may be restored, the call can be repeated.
        """
        found = await ArchiveCatalog(self._pool).find(tenant, ids)
        outcomes: dict[UUID, RestoreOutcome] = {}
        for file, entries in groupby(sorted(found, key=lambda entry: entry.file), key=lambda entry: entry.file):
            outcomes |= {item.id: item for item in await self._restore(tenant, file, [entry.id for entry in entries])}
        return [outcomes.get(id_, RestoreOutcome(id_, RestoreStatus.NOT_ARCHIVED)) for id_ in dict.fromkeys(ids)]

    async def _restore(self, tenant: str, file: str, ids: Sequence[UUID]) -> list[RestoreOutcome]:
        async def act(connection: Connection) -> list[RestoreOutcome]:
            await lock_folder(connection, file)
            listed = [entry for entry in await find_entries(connection, tenant, ids) if entry.file == file]
            return await _restore(connection, self._archive, file, listed)

        try:
            outcomes = await in_transaction(self._pool, act)
        except UnreadableArchive as error:
            return [RestoreOutcome(id_, RestoreStatus.UNREADABLE, error=str(error)) for id_ in ids]
        if _restored(outcomes):
            await self._tidied(file)
        return outcomes

    async def _tidied(self, file: str) -> None:
        async def act(connection: Connection) -> None:
            await lock_folder(connection, file)
            await _tidy(connection, self._archive, file)

        try:
            await in_transaction(self._pool, act)
        except (Unavailable, UnreadableArchive) as error:
            logger.warning("archive: %s still has what was restored, until the next run of archival: %s", file, error)

    async def erase_all(self, tenant: str, entries: Sequence[ArchivedEntry], now: datetime) -> int:
        """Delete archived notes of one file for good, and what unfinished writes left of their scope.

        Returns:
            How many were still there.

        Raises:
            UnreadableArchive: If a file is damaged that may have some of them.
            Unavailable: If Postgres or the archive does not answer, or the file's folder is away.
        """
        erased = await erase_archived(self._pool, self._archive, tenant, entries, now)
        _raise_one_of(await self._tidied_folder(entries[0].scope()))
        return erased

    async def erase_user(self, tenant: str, user: str, now: datetime) -> int:
        """Delete a user's archived notes for good, and what no row of the tenant's scopes tells to be in a file.

        Returns:
            How many notes.

        Raises:
            UnreadableArchive: If a file is damaged that may have some of them; all others are deleted.
            Unavailable: If Postgres or the archive does not answer, or a folder of the tenant is away.
        """
        notes = ArchiveCatalog(self._pool)
        for folder in await notes.folders(tenant):
            await _reach(self._archive, _path(folder))
        erased, damaged = await self._erase_listed(notes, tenant, user, now)
        for folder in await notes.folders(tenant):
            damaged += await self._tidied_folder(folder.scope)
        _raise_one_of(damaged)
        return erased

    async def _erase_listed(
        self, notes: ArchiveCatalog, tenant: str, user: str, now: datetime
    ) -> tuple[int, list[UnreadableArchive]]:
        erased = 0
        damaged: dict[str, UnreadableArchive] = {}
        while entries := await notes.find_of_user(tenant, user, but=damaged):
            try:
                erased += await erase_archived(self._pool, self._archive, tenant, entries, now)
            except UnreadableArchive as error:
                damaged[entries[0].file] = error
        return erased, list(damaged.values())

    async def _tidied_folder(self, scope: Scope) -> list[UnreadableArchive]:
        """Take out of a scope's files what is not archived there; return what could not be read."""

        async def act(connection: Connection) -> list[UnreadableArchive]:
            folder = await find_folder(connection, scope)
            await lock_folder(connection, f"{_path(folder)}/")
            names, unreadable = await _excess(connection, self._archive, folder)
            for name in names:
                try:
                    await _tidy(connection, self._archive, name)
                except UnreadableArchive as error:
                    unreadable.append(error)
            return unreadable

        return await in_transaction(self._pool, act)


async def erase_archived(
    pool: Pool, archive: Archive, tenant: str, entries: Sequence[ArchivedEntry], now: datetime
) -> int:
    """Delete archived notes of one file, what they told, what was merged into them, and their copies in the file.

    Nothing has happened if it raises, but for a crash in its last moment: then it can be called again.

    Args:
        pool: Connections to Postgres.
        archive: Where the files are.
        tenant: Whose notes they are.
        entries: Which notes, at least one, of one file.
        now: The time of day.

    Returns:
        How many of them were still archived there.

    Raises:
        UnreadableArchive: If the file is damaged.
        Unavailable: If Postgres or the archive does not answer, or the file's folder is away.
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
    await _reach(archive, _folder_of(present[0].file))
    await _link_again(connection, archive, present)
    deletion = await delete_notes(connection, tenant, ids, now)
    changed = await remove_from_graph(connection, [*ids, *deletion.deleted])
    await enqueue_notes(connection, [*ids, *deletion.deleted, *deletion.restored])
    await enqueue(connection, "graph", [*deletion.deleted, *sorted(changed)])
    await enqueue_returned(connection, deletion.restored)
    await delete_entries(connection, ids)
    await asyncio.to_thread(archive.rewrite_without, present[0].file, ids, now=now)
    await bump_epoch(connection, present[0].scope(), teaches=True)


async def _link_again(connection: Connection, archive: Archive, entries: Sequence[ArchivedEntry]) -> None:
    """Link notes to their entities, so that they can be forgotten as any other: with what nothing else mentions."""
    # A file that cannot be read cannot be rewritten either, which raises; one that is gone was emptied before.
    with suppress(UnreadableArchive):
        notes = await asyncio.to_thread(archive.read, entries[0].file, [entry.id for entry in entries])
        links = [(note, link) for note in notes for link in note.links if link.kind != LinkKind.SIMILAR]
        await restore_links(connection, entries[0], links)


async def _tidy(connection: Connection, archive: Archive, file: str) -> None:
    """Take out of a file what is not archived there, or not any more; the scope is locked."""
    await _reach(archive, _folder_of(file))
    await asyncio.to_thread(_keep_only, archive, file, await list_file(connection, file))


def _keep_only(archive: Archive, file: str, listed: Sequence[ArchivedEntry]) -> None:
    if not listed:
        archive.remove(file)
        return
    more = {note.id for note in archive.read(file)} - {entry.id for entry in listed}
    archive.rewrite_without(file, more, now=listed[0].archived_at)  # without any, it ends what was left unfinished


async def _excess(
    connection: Connection, archive: Archive, folder: ArchiveFolder
) -> tuple[list[str], list[UnreadableArchive]]:
    """Return the files of a folder that have more notes than are archived there, and what could not be told."""
    await _reach(archive, _path(folder))
    rows = await count_by_file(connection, folder.scope)
    return await asyncio.to_thread(archive.excess, f"{_path(folder)}/", rows)


async def _reach(archive: Archive, folder: str) -> None:
    """Refuse to go on without the folder: what is away would pass for erased.

    Raises:
        Unavailable: If it is not there.
    """
    await asyncio.to_thread(archive.require, folder)


def _raise_one_of(damaged: Sequence[UnreadableArchive]) -> None:
    """Raise the first, which then names the files of all."""
    others = sorted({error.file for error in damaged} - {error.file for error in damaged[:1]})
    for first in damaged[:1]:
        remedy = ", and ".join([first.remedy, *(f"look at {file} too" for file in others)])
        raise UnreadableArchive(first.file, first.expected, first.found, remedy)


def _within(rows: Sequence[DictRow], most_bytes: int) -> list[DictRow]:
    """Return the first of the rows, as many as fit, at least one."""
    sizes = accumulate(row["size_bytes"] for row in rows)
    return [row for place, (row, size) in enumerate(zip(rows, sizes, strict=True)) if size <= most_bytes or place == 0]


def _path(folder: ArchiveFolder) -> str:
    scope = folder.scope
    return f"{folder.database.hex}/{scope_folder(scope.tenant, scope.workspace, scope.namespace)}"


def _folder_of(file: str) -> str:
    return file.rpartition("/")[0]


def _base(folder: ArchiveFolder, moment: datetime, plan: ArchivalPlan) -> str:
    """Return the name of a page's file: a run that is resumed writes the same one."""
    first = plan.rows[0]["id"].hex if plan.rows else "none"
    return f"{_path(folder)}/{moment.astimezone(UTC):%Y%m%dt%H%M%S%fz}_{first}"


async def _free(connection: Connection, base: str) -> str:
    """Return a name under which nothing is archived: that of a page whose first note was restored is taken."""
    for number in count():
        name = f"{base}_{number}" if number else base
        if not await list_file(connection, name):
            return name
    raise AssertionError  # the loop returns


async def _due(connection: Connection, area: Area, rows: Sequence[DictRow]) -> list[ArchivedNote]:
    """Return the notes that still are as they were, with all that goes with them; they stay so."""
    states = {row["id"]: (row["version"], row["hits"], row["last_hit_at"]) for row in rows}
    return await read_notes(connection, sorted(await lock_unchanged(connection, area.tenant, states)))


async def _leave(writer: RowWriter, scope: Scope, ids: Sequence[UUID], file: str) -> None:
    connection = writer.connection
    linked = await move_out(connection, ids, file=file, run=writer.run, moment=writer.moment)
    await enqueue_notes(connection, ids)
    await enqueue(connection, "graph", [*ids, *sorted(linked)])
    writer.bump(scope, teaches=True)


async def _restore(
    connection: Connection, archive: Archive, file: str, listed: Sequence[ArchivedEntry]
) -> list[RestoreOutcome]:
    """Insert what is listed of a file again, in the transaction; the scope is locked.

    Raises:
        UnreadableArchive: If the file is damaged; nothing is changed.
        Unavailable: If the file's folder is away.
    """
    if not listed:
        return []
    await _reach(archive, _folder_of(file))
    notes = await asyncio.to_thread(archive.read, file, [entry.id for entry in listed])
    new = await restore_notes(connection, notes)
    back = [note for note in notes if note.id in new]
    embedded = await restore_chunks(connection, back)
    await restore_versions(connection, back)
    await restore_links(connection, listed[0], [(note, link) for note in back for link in note.links])
    await delete_entries(connection, sorted(new))
    await _tell(connection, listed[0], back)
    return [_outcome(entry.id, {note.id for note in notes}, new, embedded) for entry in listed]


async def _tell(connection: Connection, entry: ArchivedEntry, notes: Sequence[ArchivedNote]) -> None:
    """Link others to the notes again, have the projections take them over, and raise the epoch."""
    if not notes:
        return
    ids = [note.id for note in notes]
    linked = await restore_links_from(connection, entry, notes)
    await enqueue_notes(connection, ids)
    await enqueue(connection, "graph", [*ids, *sorted(linked - set(ids))])
    await bump_epoch(connection, entry.scope(), teaches=True)


def _outcome(id_: UUID, readable: set[UUID], new: set[UUID], embedded: set[UUID]) -> RestoreOutcome:
    if id_ not in readable:
        return RestoreOutcome(id_, RestoreStatus.UNREADABLE, error=_INTERRUPTED)
    if id_ not in new:
        return RestoreOutcome(id_, RestoreStatus.EXISTED)
    return RestoreOutcome(id_, RestoreStatus.RESTORED, lacks_vectors=id_ not in embedded)


def _restored(outcomes: Sequence[RestoreOutcome]) -> list[UUID]:
    return [item.id for item in outcomes if item.status is RestoreStatus.RESTORED]
