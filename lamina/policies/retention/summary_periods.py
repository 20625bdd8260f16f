"""Which periods of notes are due for a summary: days, then ISO weeks of days, then months of weeks. All in UTC."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from uuid import UUID

from lamina.core.scope import Scope
from lamina.policies.retention.provenance import Origin, derived_id
from lamina.text.english import MONTHS

_THURSDAY = 3
_DAY = timedelta(days=1)


class Level(StrEnum):
    """How long a period is."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


@dataclass(frozen=True, slots=True)
class DatedNote:
    """A note that is no summary, whether or not a summary stands for it already.

    Args:
        user: Whose it is; ``None``: everybody's.
        moment: When what it says was so, in UTC.
        content_hash: Of its text.
    """

    id: UUID
    user: str | None
    moment: datetime
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class PresentSummary:
    """A summary that exists.

    Args:
        start: Of its period.
        content_hash: Of its text.
    """

    id: UUID
    user: str | None
    level: Level
    start: datetime
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class DueSummary:
    """A summary that is to be made.

    Args:
        key: Its id, a UUID of version 5 of its scope, user, period and sources in their state.
        user: Whose notes it is made from; ``None``: everybody's.
        start: Of its period.
        end: Of its period; the first moment after it.
        sources: What it is made from, in the order of time: notes, or summaries of the level below.
        replaces: The present summary of the same period, made from other sources.
    """

    key: UUID
    level: Level
    user: str | None
    start: datetime
    end: datetime
    title: str
    sources: tuple[UUID, ...]
    replaces: UUID | None


@dataclass(frozen=True, slots=True)
class SummaryPolicy:
    """When a period is due.

    Args:
        after: Age of the youngest moment of a period that is summarised.
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
class _Told:
    """A source: when, and in which state."""

    moment: datetime
    origin: Origin


def due_summaries(
    scope: Scope,
    notes: Sequence[DatedNote],
    present: Sequence[PresentSummary],
    now: datetime,
    policy: SummaryPolicy,
) -> tuple[DueSummary, ...]:
    """Return what is to be summarised now, days before weeks before months, older periods first.

    A week is due once no day of it is, a month once no week of it is: after what is due was made, a further call
    may find the next level due. A week belongs to the month of its Thursday. A period whose summary was made from
    exactly these sources, in the same state, is not due.

    Args:
        scope: Where the notes are.
        notes: Whole days: every note of them, those that a summary stands for included, and no summary.
        present: Summaries that exist, of the same periods.
        now: In UTC.
        policy: What a period needs.
    """
    known = {(summary.level, summary.user, _day(summary.start)): summary for summary in present}
    daily = list(_due(scope, _days_of(notes), known, now, policy, policy.least_notes))
    weeks = _without(_weeks_of(present), _weeks_in(daily))
    weekly = list(_due(scope, weeks, known, now, policy, policy.least_summaries))
    months = _without(_months_of(present), _months_in(daily, weekly))
    monthly = list(_due(scope, months, known, now, policy, policy.least_summaries))
    return (*_in_order(daily), *_in_order(weekly), *_in_order(monthly))


def _due(
    scope: Scope,
    periods: Mapping[_Period, Sequence[_Told]],
    known: Mapping[tuple[Level, str | None, date], PresentSummary],
    now: datetime,
    policy: SummaryPolicy,
    least: int,
) -> Iterator[DueSummary]:
    for period, told in periods.items():
        summary = known.get((period.level, period.user, period.start))
        due = _made(scope, period, told, summary)
        is_new = summary is None or summary.id != due.key
        if len(told) >= least and _is_settled(period, now, policy) and is_new:
            yield due


def _is_settled(period: _Period, now: datetime, policy: SummaryPolicy) -> bool:
    return now - _midnight(period.settled_from) >= max(policy.after, policy.settle)


def _made(scope: Scope, period: _Period, told: Sequence[_Told], summary: PresentSummary | None) -> DueSummary:
    ordered = [item.origin for item in sorted(told, key=lambda item: (item.moment, item.origin.id))]
    return DueSummary(
        key=derived_id(scope, period.user, (period.level, period.start.isoformat()), ordered),
        level=period.level,
        user=period.user,
        start=_midnight(period.start),
        end=_midnight(period.end),
        title=period.title,
        sources=tuple(origin.id for origin in ordered),
        replaces=summary.id if summary else None,
    )


def _days_of(notes: Sequence[DatedNote]) -> dict[_Period, list[_Told]]:
    days: dict[_Period, list[_Told]] = defaultdict(list)
    for note in notes:
        told = _Told(note.moment, Origin(note.id, note.content_hash))
        days[_day_period(note.user, _day(note.moment))].append(told)
    return days


def _weeks_of(present: Sequence[PresentSummary]) -> dict[_Period, list[_Told]]:
    weeks: dict[_Period, list[_Told]] = defaultdict(list)
    for summary in present:
        if summary.level is Level.DAILY:
            weeks[_week_period(summary.user, _day(summary.start))].append(_told(summary))
    return weeks


def _months_of(present: Sequence[PresentSummary]) -> dict[_Period, list[_Told]]:
    months: dict[_Period, list[_Told]] = defaultdict(list)
    for summary in present:
        if summary.level is Level.WEEKLY:
            months[_month_period(summary.user, _day(summary.start))].append(_told(summary))
    return months


def _told(summary: PresentSummary) -> _Told:
    return _Told(summary.start, Origin(summary.id, summary.content_hash))


def _weeks_in(daily: Sequence[DueSummary]) -> set[_Period]:
    return {_week_period(due.user, _day(due.start)) for due in daily}


def _months_in(daily: Sequence[DueSummary], weekly: Sequence[DueSummary]) -> set[_Period]:
    return {_month_period(due.user, _day(due.start)) for due in (*daily, *weekly)}


def _without(periods: Mapping[_Period, list[_Told]], others: set[_Period]) -> dict[_Period, list[_Told]]:
    return {period: told for period, told in periods.items() if period not in others}


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
    following = (first + timedelta(days=31)).replace(day=1)
    last = following - _DAY
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
