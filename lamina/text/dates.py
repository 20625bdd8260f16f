"""Find the dates that English sentences name: written out, ISO, or relative to the day they were said.

Understood: ``2026-03-12``; ``12 March 2026``, ``March 12th, 2026``, either without the year (then the nearest such
day) or without the day (then the first); ``today``, ``yesterday``, ``tomorrow`` and the days before and after them;
``last``, ``this`` and ``next`` with a weekday; ``last`` and ``next`` with week, month or year; ``three days ago``,
``in two weeks``. Not: ``03/04/2026`` (two readings), a bare weekday (past or to come), a bare year, times of day.
"""

import calendar
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta

from lamina.text.english import MONTHS, NUMBER_WORDS, WEEKDAYS

# "may" is a verb unless it has its capital.
_NAMES = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS if name != "may")
_MONTH = rf"(?P<month>{_NAMES}|sept|(?-i:May|MAY))\.?"
_NO_DAY_BEFORE = r"(?<!\d )(?<!\d of )(?<!\d[a-z]{2} )(?<!\d[a-z]{2} of )"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_COUNT = rf"(?P<count>\d{{1,4}}|an?|a couple of|{'|'.join(NUMBER_WORDS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAYS)})"

DateReader = Callable[[re.Match[str], date], date]
"""Returns the day that a match names, given the day it was said; ``ValueError`` if there is no such day."""


def event_time(sentence: str, said_at: datetime | None) -> datetime | None:
    """Return the start of the first date that a sentence names: midnight UTC of that day, or ``said_at`` for today.

    Args:
        sentence: In English; other languages name no date this way, ISO dates excepted.
        said_at: When it was said, in UTC; without it, only dates with a year are understood.
    """
    found = [
        (match.start(), place, match)
        for place, (pattern, _) in enumerate(_ABSOLUTE + (_RELATIVE if said_at else ()))
        if (match := pattern.search(sentence))
    ]
    for _, place, match in sorted(found, key=lambda item: item[:2]):
        day = _day(match, (_ABSOLUTE + _RELATIVE)[place][1], said_at.date() if said_at else date.min)
        if day is not None:
            return said_at if said_at and day == said_at.date() else datetime.combine(day, time(), UTC)
    return None


def _day(match: re.Match[str], read: DateReader, said_on: date) -> date | None:
    try:
        return read(match, said_on)
    except (LookupError, ValueError, OverflowError):  # patterns that ignore case take a long s, readers do not
        return None


def _written(match: re.Match[str], _said_on: date) -> date:
    parts = match.groupdict()
    return date(int(parts["year"]), _month(match), int(parts.get("day") or 1))


def _nearest(match: re.Match[str], said_on: date) -> date:
    """Return the day of that name which is nearest to when it was said."""
    wanted = _month(match), int(match["day"])
    years = [said_on.year + step for step in (-1, 0, 1)]
    days = [date(year, *wanted) for year in years if wanted[1] <= calendar.monthrange(year, wanted[0])[1]]
    return min(days, key=lambda day: abs(day - said_on))


def _month(match: re.Match[str]) -> int:
    return [name[:3] for name in MONTHS].index(match["month"][:3].lower()) + 1


def _near_today(match: re.Match[str], said_on: date) -> date:
    steps = {"day before yesterday": -2, "yesterday": -1, "last night": -1, "day after tomorrow": 2, "tomorrow": 1}
    return said_on + timedelta(days=steps.get(match["near"].lower(), 0))


def _by_weekday(match: re.Match[str], said_on: date) -> date:
    ahead = (WEEKDAYS.index(match["weekday"].lower()) - said_on.weekday()) % 7
    match match["which"].lower():
        case "last":
            return said_on - timedelta(days=(7 - ahead) % 7 or 7)
        case "next":
            return said_on + timedelta(days=ahead or 7)
        case _:
            return said_on + timedelta(days=ahead)


def _count(match: re.Match[str]) -> int:
    text = match["count"].lower()
    if text.isdigit():
        return int(text)
    return {"a": 1, "an": 1, "a couple of": 2, **NUMBER_WORDS}[text]


def _shift(day: date, count: int, unit: str) -> date:
    match unit.lower():
        case "day":
            return day + timedelta(days=count)
        case "week":
            return day + timedelta(weeks=count)
        case _:
            months = day.year * 12 + day.month - 1 + count * (12 if unit.lower() == "year" else 1)
            year, month = months // 12, months % 12 + 1
            return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){text}(?![\w-])", re.IGNORECASE)


_ABSOLUTE: tuple[tuple[re.Pattern[str], DateReader], ...] = (
    (re.compile(r"(?<![\w-])\d{4}-\d{2}-\d{2}(?=T\d|[^\w-]|$)"), lambda match, _: date.fromisoformat(match.group())),
    (_pattern(rf"{_DAY}(?: of)? {_MONTH},? {_YEAR}"), _written),
    (_pattern(rf"{_MONTH} {_DAY},? {_YEAR}"), _written),
    (_pattern(rf"{_NO_DAY_BEFORE}{_MONTH},? {_YEAR}"), _written),
)
_RELATIVE: tuple[tuple[re.Pattern[str], DateReader], ...] = (
    (_pattern(rf"{_DAY}(?: of)? {_MONTH}(?!,? \d{{4}})"), _nearest),
    (_pattern(rf"{_MONTH} {_DAY}(?!,? \d{{4}})"), _nearest),
    (
        _pattern(
            r"(?P<near>day before yesterday|day after tomorrow|yesterday|tomorrow|today|tonight|last night|"
            r"this (?:morning|afternoon|evening))"
        ),
        _near_today,
    ),
    (_pattern(rf"(?P<which>last|this|next) {_WEEKDAY}"), _by_weekday),
    (
        _pattern(r"(?P<which>last|next) (?P<unit>week|month|year)"),
        lambda match, said_on: _shift(said_on, -1 if match["which"].lower() == "last" else 1, match["unit"]),
    ),
    (_pattern(rf"{_COUNT} {_UNIT} ago"), lambda match, said_on: _shift(said_on, -_count(match), match["unit"])),
    (_pattern(rf"in {_COUNT} {_UNIT}(?! of)"), lambda match, said_on: _shift(said_on, _count(match), match["unit"])),
)
