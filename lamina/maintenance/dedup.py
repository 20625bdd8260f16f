"""The merge of near-duplicates: of notes that say the same, the newest stands for all."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.runs import Counts
from lamina.maintenance.changes import Changes
from lamina.maintenance.pages import After, Page
from lamina.policies.retention.duplicate_groups import Merge, MergeCandidate, decide_merges
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.job_changes import RowChange
from lamina.stores.postgres.note_duplicates import read_merge_page
from lamina.stores.postgres.notes import count_notes, lock_unchanged

PAGE_NOTES = 20_000
MOST_NOTES = 100_000
"""Notes that are held in memory: those of a page, and the newest of the window before it."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What a merge was decided upon.

    Args:
        states: Version, hits and last hit of every note that takes part.
    """

    merges: tuple[Merge, ...]
    states: dict[UUID, tuple[int, int, datetime]]


class MergeJob:
    """Merges near-duplicates of a scope, the newest notes first.

    A page is many notes, since it is compared with the notes of the window before it.

    Args:
        pool: Connections to Postgres.
        min_jaccard: Least share of their words that two notes have in common.
        window: How far apart they may have been written.
        page_notes: Notes of a page.
    """

    def __init__(self, pool: Pool, *, min_jaccard: float, window: timedelta, page_notes: int = PAGE_NOTES) -> None:
        self._pool = pool
        self._min_jaccard = min_jaccard
        self._window = window
        self._page_notes = page_notes

    async def decide(self, area: Area, after: After, moment: datetime) -> Page[Decided]:  # noqa: ARG002 - no clock
        """Read one page with what may be near to it, and decide."""
        found = await read_merge_page(
            self._pool, area, after, window=self._window, page_notes=self._page_notes, most_notes=MOST_NOTES
        )
        if found is None:
            return Page(None)
        last, rows = found
        return await asyncio.to_thread(self._page, rows, last)

    def _page(self, rows: Sequence[DictRow], last: DictRow) -> Page[Decided]:
        end = (last["created_at"], last["id"])
        inside = {row["id"] for row in rows if (row["created_at"], row["id"]) >= end}
        found = decide_merges(map(_told, rows), min_jaccard=self._min_jaccard, window=self._window)
        merges = tuple(merge for merge in found if merge.survivor_id in inside)
        removals = sum(len(merge.absorbed_ids) for merge in merges)
        after = {"created_at": end[0].isoformat(), "id": str(end[1])}
        plan = Decided(merges, _states(rows, merges)) if merges else None
        return Page(plan, after, seen=len(inside), planned=removals + len(merges), removals=removals)

    async def act(self, changes: Changes, area: Area, plan: Decided) -> Counts:
        """Merge what still is as it was; a merge one of whose notes changed meanwhile waits for the next run."""
        locked = await lock_unchanged(changes.connection, area.tenant, plan.states)
        merges = [merge for merge in plan.merges if {merge.survivor_id, *merge.absorbed_ids} <= locked]
        kept = await changes.notes([_survival(merge) for merge in merges], tenant=area.tenant)
        gone = await changes.notes(
            [change for merge in merges for change in _absorptions(merge, changes.moment)], tenant=area.tenant
        )
        return Counts(changed=len(kept) + len(gone), removed=len(gone))

    async def size(self, area: Area) -> int:
        """Return how many notes the scope has."""
        return await count_notes(self._pool, area)


def _told(row: DictRow) -> MergeCandidate:
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
    )


def _states(rows: Iterable[DictRow], merges: Sequence[Merge]) -> dict[UUID, tuple[int, int, datetime]]:
    taking_part = {id_ for merge in merges for id_ in (merge.survivor_id, *merge.absorbed_ids)}
    return {row["id"]: (row["version"], row["hits"], row["last_hit_at"]) for row in rows if row["id"] in taking_part}


def _survival(merge: Merge) -> RowChange:
    columns = ("hits", "importance", "confidence", "last_hit_at")
    return RowChange(merge.survivor_id, {**{name: getattr(merge, name) for name in columns}, "tags": list(merge.tags)})


def _absorptions(merge: Merge, moment: datetime) -> list[RowChange]:
    after = {"deleted_at": moment, "merged_into": merge.survivor_id}
    return [RowChange(id_, after) for id_ in merge.absorbed_ids]
