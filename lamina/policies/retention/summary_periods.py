"""The choice of periods that are due for a summary: days, then ISO weeks of days, then months of weeks, in UTC."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import partial
from uuid import UUID

from lamina.core.scope import Scope
from lamina.policies.retention.provenance import Origin, derived_id
from lamina.text.english import MONTHS

_THURSDAY = 3  # Of date.weekday().
_DAY = timedelta(days=1)


class Level(StrEnum):
    """The length of a period."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


@dataclass(frozen=True, slots=True)
class DatedNote:
    """A note that is no summary, whether or not a summary covers it already.

    Args:
        user: Its owner; ``None``: everybody's.
        moment: Its event time, in UTC.
        content_hash: Of its text.
    """

    id: UUID
    user: str | None
    moment: datetime
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class PresentSummary:
    """A summary that exists already.

    Args:
        start: Of its period.
        content_hash: Of its text.
        is_pinned: Whether it stays as it is.
    """

    id: UUID
    user: str | None
    level: Level
    start: datetime
    content_hash: bytes
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class DueSummary:
    """A summary that is due.

    Args:
        key: Its id, a UUID of version 5 of its scope, user, period and sources in their state.
        user: The owner of its notes; ``None``: everybody's.
        start: Of its period.
        end: Of its period; the first moment after it.
        sources: Its notes, or summaries of the level below, in the order of time.
        replaces: The present summary of the same period, made from other sources.
        former_keys: The ids that it would have had under former names of its scope.
    """

    key: UUID
    level: Level
    user: str | None
    start: datetime
    end: datetime
    title: str
    sources: tuple[UUID, ...]
    replaces: UUID | None
    former_keys: tuple[UUID, ...] = ()

    @property
    def keys(self) -> tuple[UUID, ...]:
        """Return every id under which it may have been made."""
        return (self.key, *self.former_keys)


@dataclass(frozen=True, slots=True)
class SummaryPolicy:
    """When a period is due.

    Args:
        after: Least age of the end of a period.
        settle: A period waits so long for late notes after its end, however small ``after`` is.
        least_notes: Fewest notes of a day's summary.
        least_summaries: Fewest summaries of the level below in a week's or a month's.
    """

    after: timedelta = timedelta(days=7)
    settle: timedelta = timedelta(days=1)
    least_notes: int = 3
    least_summaries: int = 2


@dataclass(frozen=True, slots=True)
class _Period:
    """One period of one user; ``settled_from`` is the end of the last day that counts to it."""

    level: Level
    user: str | None
    start: date
    end: date
    settled_from: date
    title: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Source:
    """A note or summary of a period."""

    moment: datetime
    origin: Origin


def due_summaries(
    scope: Scope,
    notes: Sequence[DatedNote],
    present: Sequence[PresentSummary],
    now: datetime,
    policy: SummaryPolicy,
    *,
    former: Sequence[Scope] = (),
    without: Collection[UUID] = frozenset(),
) -> tuple[DueSummary, ...]:
    """List the summaries that are due now, days before weeks before months, older periods first.

    A week is due once no day of it is, a month once no week of it is: once the due ones are written, a further call
    may find the next level due. A week belongs to the month of its Thursday. A period whose summary was made from
    exactly these sources, in the same state, is not due, nor one whose summary is pinned.

    Args:
        scope: Where the notes are.
        notes: Every note of whole days, also those with a summary, and no summary.
        present: Summaries that exist, of the same periods.
        now: In UTC.
        policy: When a period is due.
        former: The scope under its former names: what was made there from these sources is not due, either.
        without: Keys of summaries that are not to be made; nothing waits for them.
    """
    scopes = (scope, *former)
    known = {(summary.level, summary.user, _day(summary.start)): summary for summary in present}
    due = partial(_due, scopes, known=known, now=now, policy=policy, without=without)
    daily = list(due(_days_of(notes), least=policy.least_notes))
    # A week waits for its days and a month for its weeks: their sources are about to change.
    weeks = _grouped(present, Level.DAILY, _week_period)
    for item in daily:
        weeks.pop(_week_period(item.user, _day(item.start)), None)
    weekly = list(due(weeks, least=policy.least_summaries))
    months = _grouped(present, Level.WEEKLY, _month_period)
    for item in (*daily, *weekly):
        months.pop(_month_period(item.user, _day(item.start)), None)
    monthly = list(due(months, least=policy.least_summaries))
    return (*_in_order(daily), *_in_order(weekly), *_in_order(monthly))


def _due(
    scopes: Sequence[Scope],
    periods: Mapping[_Period, Sequence[_Source]],
    *,
    known: Mapping[tuple[Level, str | None, date], PresentSummary],
    now: datetime,
    policy: SummaryPolicy,
    without: Collection[UUID],
    least: int,
) -> Iterator[DueSummary]:
    for period, sources in periods.items():
        summary = known.get((period.level, period.user, period.start))
        due = _due_summary(scopes, period, sources, summary)
        is_new = summary is None or (summary.id not in due.keys and not summary.is_pinned)
        is_settled = now - _midnight(period.settled_from) >= max(policy.after, policy.settle)
        if len(sources) >= least and is_settled and is_new and due.key not in without:
            yield due


def _due_summary(
    scopes: Sequence[Scope], period: _Period, sources: Sequence[_Source], summary: PresentSummary | None
) -> DueSummary:
    ordered = [item.origin for item in sorted(sources, key=lambda item: (item.moment, item.origin.id))]
    kind = (period.level, period.start.isoformat())
    key, *former_keys = (derived_id(scope, period.user, kind, ordered) for scope in scopes)
    return DueSummary(
        key=key,
        level=period.level,
        user=period.user,
        start=_midnight(period.start),
        end=_midnight(period.end),
        title=period.title,
        sources=tuple(origin.id for origin in ordered),
        replaces=summary.id if summary else None,
        former_keys=tuple(former_keys),
    )


def _days_of(notes: Sequence[DatedNote]) -> dict[_Period, list[_Source]]:
    days: dict[_Period, list[_Source]] = defaultdict(list)
    for note in notes:
        source = _Source(note.moment, Origin(note.id, note.content_hash))
        days[_day_period(note.user, _day(note.moment))].append(source)
    return days


def _grouped(
    present: Sequence[PresentSummary], level: Level, period_of: Callable[[str | None, date], _Period]
) -> dict[_Period, list[_Source]]:
    """Group the present summaries of one level by the period of the next level that they belong to."""
    periods: dict[_Period, list[_Source]] = defaultdict(list)
    for summary in present:
        if summary.level is level:
            source = _Source(summary.start, Origin(summary.id, summary.content_hash))
            periods[period_of(summary.user, _day(summary.start))].append(source)
    return periods


def _day_period(user: str | None, day: date) -> _Period:
    return _Period(Level.DAILY, user, day, day + _DAY, day + _DAY, f"Summary of {day.isoformat()}")


def _week_period(user: str | None, day: date) -> _Period:
    monday = day - timedelta(days=day.weekday())
    year, week, _ = day.isocalendar()
    end = monday + timedelta(weeks=1)
    return _Period(Level.WEEKLY, user, monday, end, end, f"Summary of week {year}-W{week:02}")


def _month_period(user: str | None, day: date) -> _Period:
    """Return the month that the week of this day belongs to; the last of its weeks may end in the next one."""
    thursday = day + timedelta(days=_THURSDAY - day.weekday())
    first = thursday.replace(day=1)
    following = (first + timedelta(days=31)).replace(day=1)  # 31 days after a first lie in the next month.
    last = following - _DAY
    # ISO weeks belong to the month of their Thursday, so the last one ends on the Sunday after the last Thursday.
    last_thursday = last - timedelta(days=(last.weekday() - _THURSDAY) % 7)
    settled_from = last_thursday + timedelta(days=4)
    title = f"Summary of {MONTHS[first.month - 1].capitalize()} {first.year}"
    return _Period(Level.MONTHLY, user, first, following, settled_from, title)


def _in_order(due: Sequence[DueSummary]) -> list[DueSummary]:
    return sorted(due, key=lambda item: (item.start, item.user is not None, item.user or ""))


def _day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
