"""The job sweep: notes past their lifespan, then rows kept only for a while after they were replaced or deleted."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from lamina.core.areas import Area
from lamina.core.runs import RunCounts
from lamina.maintenance.job import Job, Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.retention import (
    EndedRows,
    VersionKey,
    VersionsOf,
    end_rows,
    end_versions,
    ended_rows,
    ended_versions,
)


class VersionsJob:
    """Ends versions that were replaced long ago; an undo does not bring them back.

    Args:
        pool: Connections to Postgres.
        of: The kind of versions.
        kept: How long a version is kept after it was replaced.
        page_rows: Most versions of a page.
    """

    def __init__(self, pool: Pool, of: VersionsOf, *, kept: timedelta, page_rows: int) -> None:
        self._pool = pool
        self._of = of
        self._kept = kept
        self._page_rows = page_rows

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[list[VersionKey]]:
        """Read one page of them."""
        last = None if after is None else after["version"]
        versions = await ended_versions(
            self._pool, self._of, area, cutoff=moment - self._kept, after=last, limit=self._page_rows
        )
        is_last = len(versions) < self._page_rows
        next_after = None if is_last else {"version": [str(part) for part in versions[-1]]}
        return Page(versions or None, next_after, seen=len(versions), planned=len(versions))

    async def act(self, writer: RowWriter, area: Area, plan: list[VersionKey]) -> RunCounts:
        """Delete them."""
        return RunCounts(changed=await end_versions(writer.connection, self._of, area, plan))


class EndedRowsJob:
    """Deletes rows for good that were deleted long ago, so that no run can bring them back, and old outcomes.

    Args:
        pool: Connections to Postgres.
        rows: The kind of rows.
        kept: How long such a row is kept.
        page_rows: Most rows of a page.
    """

    def __init__(self, pool: Pool, rows: EndedRows, *, kept: timedelta, page_rows: int) -> None:
        self._pool = pool
        self._rows = rows
        self._kept = kept
        self._page_rows = page_rows

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[list[UUID]]:
        """Read one page of them."""
        last = None if after is None else after["id"]
        ids = await ended_rows(
            self._pool, self._rows, area, cutoff=moment - self._kept, after=last, limit=self._page_rows
        )
        is_last = len(ids) < self._page_rows
        return Page(ids or None, None if is_last else {"id": str(ids[-1])}, seen=len(ids), planned=len(ids))

    async def act(self, writer: RowWriter, area: Area, plan: list[UUID]) -> RunCounts:
        """Delete those to which it still applies."""
        cutoff = writer.moment - self._kept
        return RunCounts(changed=await end_rows(writer.connection, self._rows, area, plan, cutoff=cutoff))


class SweepJob:
    """Works through its parts, one after the other.

    Args:
        parts: The parts, by a name that the cursor of a page has.
    """

    def __init__(self, parts: Mapping[str, Job[Any]]) -> None:
        self._parts = dict(parts)

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[tuple[str, Any]]:
        """Decide the next page of a part; a part without rows costs no page."""
        names = list(self._parts)
        # Earlier releases had one part, and no name of it in the cursor.
        begun = names[0] if after is None else after.get("part", names[0])
        within = after if after is None or "part" not in after else after["after"]
        for place, name in enumerate(names[names.index(begun) :], start=names.index(begun)):
            page = await self._parts[name].decide(area, within, moment)
            within = None
            following: PageCursor = None
            if page.after is not None:
                following = {"part": name, "after": page.after}
            elif place + 1 < len(names):
                following = {"part": names[place + 1], "after": None}
            if page.seen or following is None:
                break
        return replace(page, plan=None if page.plan is None else (name, page.plan), after=following)

    async def act(self, writer: RowWriter, area: Area, plan: tuple[str, Any]) -> RunCounts:
        """Carry out the page of its part."""
        name, part_plan = plan
        return await self._parts[name].act(writer, area, part_plan)
