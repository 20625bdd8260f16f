"""The job dedup: of near-duplicate notes the newest survives and absorbs the others."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.runs import RunCounts
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.policies.retention.duplicate_groups import Merge, MergeCandidate, decide_merges
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.feedback import pinned
from lamina.stores.postgres.job_changes import RowChange
from lamina.stores.postgres.note_duplicates import read_merge_page
from lamina.stores.postgres.notes import count_notes, lock_unchanged

# Each page also reads the window before it, so small pages would read most notes many times.
PAGE_NOTES = 20_000
# Notes in memory: those of a page, and the newest of the window before it.
MOST_NOTES = 100_000


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The merges of a page.

    Args:
        states: Version, hits and last hit of every note of a merge, as they were read.
    """

    merges: tuple[Merge, ...]
    states: dict[UUID, tuple[int, int, datetime]]


class DedupJob:
    """Merges near-duplicates of a scope, the newest notes first.

    A page is many notes, since it is compared with the notes of the window before it.

    Args:
        pool: Connections to Postgres.
        min_jaccard: Least Jaccard similarity of the words of two notes.
        window: Most time between the writing of two notes.
        page_notes: Notes of a page.
    """

    def __init__(self, pool: Pool, *, min_jaccard: float, window: timedelta, page_notes: int = PAGE_NOTES) -> None:
        self._pool = pool
        self._min_jaccard = min_jaccard
        self._window = window
        self._page_notes = page_notes

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[MergePlan]:
        """Read one page with the notes of the window before it, and decide."""
        return await self.decide_without(area, after, moment, frozenset())

    async def decide_without(
        self,
        area: Area,
        after: PageCursor,
        moment: datetime,  # noqa: ARG002 - no clock
        gone: Collection[UUID],
    ) -> Page[MergePlan]:
        """Decide a page as if these notes, which pages before it absorb, were merged already."""
        found = await read_merge_page(
            self._pool, area, after, window=self._window, page_notes=self._page_notes, most_notes=MOST_NOTES
        )
        if found is None:
            return Page(None)
        last, rows = found
        return await asyncio.to_thread(self._page, [row for row in rows if row["id"] not in gone], last)

    def _page(self, rows: Sequence[DictRow], last: DictRow) -> Page[MergePlan]:
        end = (last["created_at"], last["id"])
        inside = {row["id"] for row in rows if (row["created_at"], row["id"]) >= end}
        found = decide_merges(map(_candidate, rows), min_jaccard=self._min_jaccard, window=self._window)
        merges = tuple(merge for merge in found if merge.survivor_id in inside)
        leaving = frozenset(id_ for merge in merges for id_ in merge.absorbed_ids)
        after = {"created_at": end[0].isoformat(), "id": str(end[1])}
        members = {id_ for merge in merges for id_ in (merge.survivor_id, *merge.absorbed_ids)}
        states = {row["id"]: (row["version"], row["hits"], row["last_hit_at"]) for row in rows if row["id"] in members}
        return Page(
            MergePlan(merges, states) if merges else None,
            after,
            seen=len(inside),
            planned=len(leaving) + len(merges),
            removals=len(leaving),
            leaving=leaving,
        )

    async def act(self, writer: RowWriter, area: Area, plan: MergePlan) -> RunCounts:
        """Carry out the merges whose notes have not changed since, nor been pinned; others wait for the next run."""
        locked = await lock_unchanged(writer.connection, area.tenant, plan.states)
        left = locked - await pinned(writer.connection, area.tenant, sorted(locked))
        merges = [merge for merge in plan.merges if {merge.survivor_id, *merge.absorbed_ids} <= left]
        columns = ("hits", "importance", "confidence", "last_hit_at")
        survivors = [
            RowChange(merge.survivor_id, {name: getattr(merge, name) for name in columns} | {"tags": list(merge.tags)})
            for merge in merges
        ]
        kept = await writer.change("notes", survivors, tenant=area.tenant)
        absorbed = [
            RowChange(id_, {"deleted_at": writer.moment, "merged_into": merge.survivor_id})
            for merge in merges
            for id_ in merge.absorbed_ids
        ]
        gone = await writer.change("notes", absorbed, tenant=area.tenant)
        return RunCounts(changed=len(kept) + len(gone), removed=len(gone))

    async def size(self, area: Area) -> int:
        """Count the notes of the scope."""
        return await count_notes(self._pool, area)


def _candidate(row: DictRow) -> MergeCandidate:
    return MergeCandidate(
        id=row["id"],
        user=row["user_id"],
        content=row["content"],
        created_at=row["created_at"],
        hits=row["hits"],
        importance=row["importance"],
        confidence=row["confidence"],
        last_hit_at=row["last_hit_at"],
        tags=tuple(row["tags"]),
        speakers=tuple(row["speakers"] or ()),
    )
