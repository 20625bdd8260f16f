"""The job summaries: older notes by day, the days by week, the weeks by month."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.memories import Note, as_utc
from lamina.core.runs import RunCounts
from lamina.core.scope import Scope
from lamina.errors import Conflict, InvalidInput, LaminaError
from lamina.extraction.extractive_summaries import SourceText, Summarizer
from lamina.maintenance.derived_notes import DerivedNote, Deriver, PreparedDerivedNote, lock_if_unchanged
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.policies.retention.summary_periods import (
    DatedNote,
    DueSummary,
    Level,
    PresentSummary,
    SummaryPolicy,
    due_summaries,
)
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.derived_notes import find_derived, read_dated_notes, read_sources, read_summaries
from lamina.stores.postgres.epochs import read_former_scopes
from lamina.stores.postgres.feedback import pinned
from lamina.stores.postgres.job_changes import RowChange

SOURCE = "job:summaries"
# Whole days, so that a busy day may make a slice larger; its texts are read only for due summaries.
SLICE_NOTES = 2_000
PATIENCE = timedelta(days=14)
"""A week waits so long for a day that is due, and a month for a week: its summary may fail each time."""
_LEVELS = tuple(Level)


Find = Callable[[Sequence[DatedNote], Level], Awaitable[list[DueSummary]]]


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary that is ready to be written.

    Args:
        hashes: Of its sources, by id: if one has another text by now, the summary is not written.
        replaces: The earlier summary of the same period.
    """

    made: PreparedDerivedNote
    hashes: Mapping[UUID, bytes]
    replaces: UUID | None


class SummaryJob:
    """Summarises older notes; the notes themselves stay as they are.

    A page is a slice of days, then the weeks of a scope, then its months. A failed summary leaves no mark: the next
    run finds it due again. A week waits for its days and a month for its weeks, though not for ever.

    Args:
        pool: Connections to Postgres.
        summarizer: Condenses texts.
        deriver: Makes the notes.
        policy: When a period is due.
        tokens: Most tokens of a summary's text.
        slice_notes: Notes of a slice of days.
    """

    def __init__(
        self,
        pool: Pool,
        summarizer: Summarizer,
        deriver: Deriver,
        policy: SummaryPolicy,
        *,
        tokens: int,
        slice_notes: int = SLICE_NOTES,
    ) -> None:
        self._pool = pool
        self._summarizer = summarizer
        self._deriver = deriver
        self._policy = policy
        self._tokens = tokens
        self._slice_notes = slice_notes

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[list[Summary]]:
        """Find the due summaries of one page, and write their texts."""
        due, page = await self._due(area, after, moment)
        made, problems = await self._write_texts(area, due)
        return Page(made or None, page.after, page.seen, planned=len(made), problems=tuple(problems))

    async def preview(self, area: Area, after: PageCursor, moment: datetime) -> Page[None]:
        """Count the due summaries of one page; a week of days that are due too is not counted yet."""
        return (await self._due(area, after, moment))[1]

    async def _due(self, area: Area, after: PageCursor, moment: datetime) -> tuple[list[DueSummary], Page[None]]:
        at = after or {"level": Level.DAILY.value, "since": None}
        level = Level(at["level"])
        rows = await read_summaries(self._pool, area, SOURCE)
        present = [summary for row in rows if (summary := present_summary(row)) is not None]
        former = await read_former_scopes(self._pool, area.scope())
        find = partial(self._find, area.scope(), former=former, present=present, moment=moment)
        if level is Level.DAILY:
            notes, until = await self._slice(area, at["since"], moment)
            due, seen = await find(notes, level), len(notes)
        else:
            undone = await self._undone(area, find, moment)
            due, until, seen = await find(undone, level), None, 0
        return due, Page(None, _next_cursor(level, until), seen=seen, planned=len(due))

    async def _find(
        self,
        scope: Scope,
        notes: Sequence[DatedNote],
        level: Level,
        *,
        former: Sequence[Scope],
        present: Sequence[PresentSummary],
        moment: datetime,
    ) -> list[DueSummary]:
        """List the due summaries of a level; they wait for none that was deleted, nor for ever for another."""
        without: set[UUID] = set()
        latest = moment - max(self._policy.after, self._policy.settle) - PATIENCE
        while True:
            found = due_summaries(scope, notes, present, moment, self._policy, former=former, without=without)
            keys = [item.key for item in found]
            former_keys = [key for item in found for key in item.former_keys]
            area = Area(scope.tenant, scope.workspace, scope.namespace)
            known = await find_derived(self._pool, area, keys, former_keys) if keys else set()
            deleted = {item.key for item in found if known.intersection(item.keys)}
            overdue = {item.key for item in found if item.level is not level and item.end <= latest}
            if not deleted | overdue:
                return [item for item in found if item.level is level]
            without |= deleted | overdue

    async def _undone(self, area: Area, find: Find, moment: datetime) -> list[DatedNote]:
        """Read the notes of the last days that are due and have no summary yet."""
        first = moment - max(self._policy.after, self._policy.settle) - PATIENCE
        since: str | None = first.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0).isoformat()
        undone: list[DatedNote] = []
        while since is not None:
            notes, until = await self._slice(area, since, moment)
            ids = {id_ for item in await find(notes, Level.DAILY) for id_ in item.sources}
            undone += [note for note in notes if note.id in ids]
            since = None if until is None else until.isoformat()
        return undone

    async def _slice(
        self, area: Area, since: str | None, moment: datetime
    ) -> tuple[Sequence[DatedNote], datetime | None]:
        """Read the notes of whole days, and the start of the next slice, if there is one."""
        before = moment - max(self._policy.after, self._policy.settle)
        rows, until = await read_dated_notes(self._pool, area, since=since, before=before, limit=self._slice_notes)
        notes = [DatedNote(row["id"], row["user_id"], row["event_at"], bytes(row["content_hash"])) for row in rows]
        return notes, until

    async def _write_texts(self, area: Area, due: Sequence[DueSummary]) -> tuple[list[Summary], list[str]]:
        made, problems = [], []
        for item in due:
            try:
                made.append(await self._write_text(area, item))
            except LaminaError as error:
                problems.append(f"{item.title} of {area}: {error}")
        return made, problems

    async def _write_text(self, area: Area, due: DueSummary) -> Summary:
        sources = await read_sources(self._pool, area, due.sources)
        if len(sources) < len(due.sources):
            raise Conflict("its notes are changing")
        texts = [
            SourceText(row["content"], row["event_at"], row["importance"], row["speaker"], tuple(row["quoted"]))
            for row in sources
        ]
        text = await self._summarizer.summarize(texts, most_tokens=self._tokens)
        derived = DerivedNote(due.key, due.user, _note(due, text, sources))
        prepared = await self._deriver.prepare(derived)
        return Summary(prepared, {row["id"]: bytes(row["content_hash"]) for row in sources}, due.replaces)

    async def act(self, writer: RowWriter, area: Area, plan: list[Summary]) -> RunCounts:
        """Write the summaries whose sources still have the same texts."""
        changed = 0
        for item in plan:
            if item.replaces and await pinned(writer.connection, area.tenant, [item.replaces]):
                continue
            is_unchanged = await lock_if_unchanged(writer, area, item.hashes)
            if is_unchanged and await self._deriver.write(writer, area, item.made):
                changed += 1 + await _delete_replaced(writer, area, item)
        return RunCounts(changed=changed)


def _next_cursor(level: Level, until: datetime | None) -> PageCursor:
    if until is not None:
        return {"level": level.value, "since": until.isoformat()}
    later = _LEVELS[_LEVELS.index(level) + 1 :]
    return {"level": later[0].value, "since": None} if later else None


def present_summary(row: DictRow) -> PresentSummary | None:
    """Read an existing summary; ``None`` if its metadata, which callers may change, names no period any more."""
    try:
        start = as_utc(datetime.fromisoformat(row["start"] or ""), "metadata.summary.start")
        content_hash, level = bytes(row["content_hash"]), Level(row["level"])
        return PresentSummary(row["id"], row["user_id"], level, start, content_hash, row["is_pinned"])
    except (ValueError, InvalidInput):
        return None


def _note(due: DueSummary, text: str, sources: Sequence[DictRow]) -> Note:
    period: dict[str, Any] = {"level": due.level.value, "start": due.start.isoformat(), "end": due.end.isoformat()}
    return Note(
        content=f"{due.title}\n{text}",
        importance=max(row["importance"] for row in sources),
        confidence=min(row["confidence"] for row in sources),
        tags=("summary", due.level.value),
        event_at=max(row["event_at"] for row in sources),
        source=SOURCE,
        metadata={"summary": {**period, "sources": len(sources)}},
        derived_from=due.sources,
    )


async def _delete_replaced(writer: RowWriter, area: Area, item: Summary) -> int:
    if item.replaces is None:
        return 0
    after = {"deleted_at": writer.moment, "merged_into": item.made.derived.id}
    replaced = RowChange(item.replaces, after, {"deleted_at": None})
    return len(await writer.change("notes", [replaced], tenant=area.tenant))
