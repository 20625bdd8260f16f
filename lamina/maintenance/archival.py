"""The job that moves cold notes that no search finds into files of an archive.

A note is in Postgres or in the file that its row in ``archived_notes`` names, never in both. A file is written while
its notes are locked and before they are deleted, so it holds exactly these. Restored notes are removed from their file
once they are in Postgres again. The next run, and every erasure, removes from the files what a crash left in them.

Writers of a scope's files hold its lock. Each database has folders of its own, which are marked before their first
file is written: a folder without its mark may be an unmounted volume, so its missing files are not taken for deleted.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, count
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.runs import RunCounts
from lamina.errors import LaminaError
from lamina.maintenance.archive_cleanup import (
    end_empty_folder,
    find_excess,
    folder_path,
    raise_damaged,
    remove_unlisted,
)
from lamina.maintenance.archive_restore import restore_entries, restored_ids
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.stores.archive import Archive, ArchivedNote, UnreadableArchive
from lamina.stores.postgres.archive_catalog import (
    ArchiveFolder,
    begin_folder,
    count_by_file,
    detach_from_run,
    find_file_of_run,
    find_folder,
    list_file,
    lock_folder,
)
from lamina.stores.postgres.archive_transfer import find_candidates, move_out, read_notes
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction
from lamina.stores.postgres.notes import count_notes, lock_unchanged
from lamina.stores.postgres.outbox import enqueue, enqueue_notes

# Most text of a page, which is in memory at once; a single note may have more.
MOST_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class ArchivalPolicy:
    """Which cold notes are archived.

    Args:
        idle: Least time since a search last found them.
        most_hits: Most times that searches found them.
    """

    idle: timedelta
    most_hits: int


@dataclass(frozen=True, slots=True)
class ArchivalPlan:
    """A page of notes to archive.

    Args:
        rows: ``id``, ``version``, ``hits`` and ``last_hit_at`` of each, in the order of ids.
        excess_files: Files that hold more notes than the catalog lists in them.
        ends_folder: Whether nothing is archived in the namespace any more, so that its folder goes.
    """

    rows: tuple[DictRow, ...] = ()
    excess_files: tuple[str, ...] = ()
    ends_folder: bool = False


class ArchivalJob:
    """Moves cold notes that no search finds into files; the facts that they stated stay in the graph.

    Args:
        pool: Connections to Postgres.
        archive: Holds the files.
        policy: Chooses the notes.
        page_rows: Most notes of a file.
    """

    def __init__(self, pool: Pool, archive: Archive, policy: ArchivalPolicy, *, page_rows: int) -> None:
        self._pool = pool
        self._archive = archive
        self._policy = policy
        self._page_rows = page_rows
        # Files that an undo has emptied: their deletion waits until the transaction that restored their notes is over.
        self._undone: set[str] = set()
        self._unreadable: dict[str, UnreadableArchive] = {}

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[ArchivalPlan]:
        """Choose one page of notes; the first page also lists files that hold too many notes."""
        async with connect(self._pool) as connection:
            found = await find_candidates(
                connection,
                area,
                most_hits=self._policy.most_hits,
                idle=self._policy.idle,
                moment=moment,
                after=None if after is None else after["id"],
                limit=self._page_rows,
            )
        rows = tuple(_within(found, MOST_BYTES))
        excess, problems = ((), ()) if after else await self._excess_files(area)
        is_last = len(rows) == len(found) < self._page_rows
        ends_folder = not (rows or excess or problems or after) and await self._is_empty_folder(area)
        return Page(
            plan=ArchivalPlan(rows, excess, ends_folder) if rows or excess or ends_folder else None,
            after=None if is_last else {"id": str(rows[-1]["id"])},
            seen=len(rows),
            planned=len(rows),
            removals=len(rows),
            problems=problems,
        )

    async def _excess_files(self, area: Area) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the files that hold too many notes, and the errors of those that could not be checked."""
        async with connect(self._pool) as connection:
            folder = await find_folder(connection, area.scope())
            if not folder.is_begun:
                return (), ()
            names, unreadable = await find_excess(connection, self._archive, folder)
        return tuple(names), tuple(f"{area}: {error}" for error in unreadable)

    async def _is_empty_folder(self, area: Area) -> bool:
        async with connect(self._pool) as connection:
            folder = await find_folder(connection, area.scope())
            return folder.is_begun and not await count_by_file(connection, folder.scope)

    async def act(self, writer: RowWriter, area: Area, plan: ArchivalPlan) -> RunCounts:
        """Write the notes that are unchanged since the decision into a file, and delete them."""
        if plan.ends_folder:
            await end_empty_folder(self._pool, self._archive, area.scope())
            return RunCounts()
        connection, folder = writer.connection, await find_folder(writer.connection, area.scope())
        base = _file_name(folder, writer.moment, plan)
        await lock_folder(connection, base)
        if folder.is_begun:
            await self._clean(connection, folder, plan.excess_files)
        states = {row["id"]: (row["version"], row["hits"], row["last_hit_at"]) for row in plan.rows}
        unchanged = await lock_unchanged(connection, area.tenant, states) if states else set()
        # Locked until the commit, so nobody changes a note between the file and its deletion.
        notes = await read_notes(connection, sorted(unchanged)) if unchanged else []
        if not notes:
            return RunCounts()
        if not folder.is_begun:
            await self._begin(folder)
        file = await _unused_name(connection, base)
        await self._write(file, notes, writer.moment)
        await _move_out(writer, area, [note.id for note in notes], file)
        return RunCounts(changed=len(notes), removed=len(notes))

    async def _clean(self, connection: Connection, folder: ArchiveFolder, excess: Sequence[str]) -> None:
        """Remove from the folder notes and whole files that the catalog does not list."""
        path = folder_path(folder)
        await asyncio.to_thread(self._archive.require, path)
        names = await asyncio.to_thread(self._archive.names, f"{path}/")
        unlisted = set(names) - (await count_by_file(connection, folder.scope)).keys()
        for name in sorted(unlisted | set(excess)):
            with suppress(UnreadableArchive):  # Archive.verify reports it; other notes need not wait for its repair.
                await remove_unlisted(connection, self._archive, name)

    async def _begin(self, folder: ArchiveFolder) -> None:
        """Mark a folder and record it in a transaction of its own: both stay if the page's transaction fails."""
        await asyncio.to_thread(self._archive.mark, folder_path(folder))
        await in_transaction(self._pool, lambda connection: begin_folder(connection, folder.scope))

    async def _write(self, file: str, notes: Sequence[ArchivedNote], moment: datetime) -> None:
        try:
            await asyncio.to_thread(self._archive.write, file, notes, now=moment)
        except LaminaError:
            with suppress(LaminaError):  # The catalog does not list it yet, so the next run removes what stays.
                await asyncio.to_thread(self._archive.remove, file)
            raise

    async def size(self, area: Area) -> int:
        """Count the notes of the scope."""
        return await count_notes(self._pool, area)

    async def undo(self, connection: Connection, run: UUID) -> RunCounts:
        """Restore the notes of one file of a run; those whose text the scope has again stay archived.

        Files that earlier calls emptied are deleted by the next call, when the transactions of those calls are over.

        Raises:
            UnreadableArchive: When only damaged files are left.
            Unavailable: If the archive does not answer, or the file's folder is missing.
        """
        for emptied in sorted(self._undone):
            await lock_folder(connection, emptied)
            await remove_unlisted(connection, self._archive, emptied)
        self._undone.clear()
        file = await find_file_of_run(connection, run, but=self._unreadable)
        if file is None:
            damaged, self._unreadable = list(self._unreadable.values()), {}
            raise_damaged(damaged)
            return RunCounts()
        return await self._undo_file(connection, run, file)

    async def _undo_file(self, connection: Connection, run: UUID, file: str) -> RunCounts:
        await lock_folder(connection, file)
        listed = [entry for entry in await list_file(connection, file) if entry.run == run]
        try:
            outcomes = await restore_entries(connection, self._archive, file, listed)
        except UnreadableArchive as error:  # Nothing was changed; the other files are still restored.
            self._unreadable[file] = error
            return RunCounts(seen=len(listed))
        await detach_from_run(connection, [entry.id for entry in listed])
        self._undone.add(file)
        return RunCounts(seen=len(listed), changed=len(restored_ids(outcomes)))


async def _move_out(writer: RowWriter, area: Area, ids: Sequence[UUID], file: str) -> None:
    """Delete notes that are in a file, and have the projections and caches drop them."""
    linked = await move_out(writer.connection, ids, file=file, run=writer.run, moment=writer.moment)
    await enqueue_notes(writer.connection, ids)
    await enqueue(writer.connection, "graph", [*ids, *sorted(linked)])
    writer.bump(area.scope(), teaches=True)


def _within(rows: Sequence[DictRow], most_bytes: int) -> list[DictRow]:
    """Return the first rows that fit together, at least one."""
    sizes = accumulate(row["size_bytes"] for row in rows)
    return [row for place, (row, size) in enumerate(zip(rows, sizes, strict=True)) if size <= most_bytes or place == 0]


def _file_name(folder: ArchiveFolder, moment: datetime, plan: ArchivalPlan) -> str:
    """Return the name of a page's file; a run that is resumed writes the same one."""
    first = plan.rows[0]["id"].hex if plan.rows else "none"
    return f"{folder_path(folder)}/{moment.astimezone(UTC):%Y%m%dt%H%M%S%fz}_{first}"


async def _unused_name(connection: Connection, base: str) -> str:
    """Return a name that the catalog does not list: a page whose first note was restored has taken the plain one."""
    for number in count():
        name = f"{base}_{number}" if number else base
        if not await list_file(connection, name):
            return name
    raise AssertionError  # the loop returns
