"""Read each kind of words that name a time to a stretch of days, seen from when they were said."""

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import partial

from lamina.text import time_words as names
from lamina.text.patterns import regex
from lamina.text.time_words import CJK_STEPS, COUNTS, MONTHS, SEASONS, STEPS_OF_DAYS, UNITS, WEEKDAYS, plain

_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True)
class Said:
    """When and how something was said, in local time."""

    at: datetime
    is_future: bool
    is_question: bool

    @property
    def day(self) -> date:
        """Return the local day."""
        return self.at.date()


Days = tuple[datetime, datetime, bool]
Reader = Callable[["regex.Match[str]", Said], Days | None]


def whole_days(start: date, count: int = 1, *, has_year: bool = True) -> Days:
    """Return so many whole days."""
    begin = datetime.combine(start, time())
    return begin, begin + timedelta(days=count), has_year


def _months(year: int, month: int, count: int = 1, *, has_year: bool = True) -> Days:
    after = year * 12 + month - 1 + count
    return datetime(year, month, 1), datetime(after // 12, after % 12 + 1, 1), has_year  # noqa: DTZ001 - local time


def _unit_around(said: Said, unit: str, step: int) -> Days:
    """Return the day, week, month … that lies so many after the one in which something was said."""
    day = said.day
    match unit:
        case "hour":
            hour = said.at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=step)
            return hour, hour + timedelta(hours=1), True
        case "day":
            return whole_days(day + timedelta(days=step))
        case "week":
            return whole_days(day - timedelta(days=day.weekday()) + timedelta(weeks=step), 7)
        case "weekend":
            return whole_days(day - timedelta(days=day.weekday()) + timedelta(days=5, weeks=step), 2)
        case _:
            length = _MONTHS_OF[unit]
            first = (day.year * 12 + day.month - 1) // length * length + step * length
            return _months(first // 12, first % 12 + 1, length)


def _near(day: date, unit: str, count: int) -> Days:
    """Return the day so many units from another; of a year or a month ago it is the month that is meant."""
    if unit == "day":
        return whole_days(day + timedelta(days=count))
    if unit == "week":
        return (
            whole_days(day + timedelta(weeks=count, days=-1), 3)
            if abs(count) > 1
            else whole_days(day + timedelta(weeks=count))
        )
    months = day.year * 12 + day.month - 1 + count * _MONTHS_OF[unit]
    if unit == "year":
        return _months(months // 12, 1, 12)
    return _months(months // 12, months % 12 + 1)


def _month_of(said: Said, month: int) -> Days:
    """Return a month without a year: the last that has begun, or the next where the words tell of what will be."""
    year = said.day.year
    if not said.is_question:
        year = min((year - 1, year, year + 1), key=lambda other: abs((other - year) * 12 + month - said.day.month))
    elif said.is_future:
        year += month < said.day.month
    else:
        year -= month > said.day.month
    return _months(year, month, has_year=False)


def _day_of(said: Said, month: int, day: int) -> Days | None:
    """Return a day without a year: in questions the last or next one, in what is said the nearest."""
    years = (said.day.year + step for step in (-4, -3, -2, -1, 0, 1, 2, 3, 4))
    days = [date(year, month, day) for year in years if day <= calendar.monthrange(year, month)[1]]
    if said.is_question:
        days = [one for one in days if (one >= said.day if said.is_future else one <= said.day)]
    return whole_days(min(days, key=lambda one: abs(one - said.day)), has_year=False) if days else None


def _season_of(year: int, season: str) -> Days:
    return _months(year, names.SEASON_STARTS[season], 3)


def _season_near(said: Said, season: str, step: int) -> Days:
    """Return the last season that is over, the one of this year, or the next to begin."""
    around = [_season_of(said.day.year + years, season) for years in (-2, -1, 0, 1)]
    if step < 0:
        return next(one for one in reversed(around) if one[1] <= said.at)
    if step > 0:
        return next(one for one in around if one[0] > said.at)
    running = [one for one in around if one[0] <= said.at < one[1]]
    # In January "this winter" is the one that began last December.
    return running[0] if running else around[2]


def _weekday_near(said: Said, weekday: int, step: int) -> Days:
    ahead = (weekday - said.day.weekday()) % 7
    if step < 0:
        return whole_days(said.day - timedelta(days=(7 - ahead) % 7 or 7))
    return whole_days(said.day + timedelta(days=(ahead or 7) if step > 0 else ahead))


def iso_days(match: "regex.Match[str]", _said: Said) -> Days:
    """Read ``2026-03-12`` or ``2026-03``."""
    year, month = int(match["year"]), int(match["month"])
    return _months(year, month) if match["day"] is None else whole_days(date(year, month, int(match["day"])))


def day_month(match: "regex.Match[str]", said: Said) -> Days | None:
    """Read a day of a month, with or without its year."""
    month, day = MONTHS[plain(match["month"])], int(match["day"])
    if match["year"]:
        return whole_days(date(int(match["year"]), month, day))
    return _day_of(said, month, day)


def month_year(match: "regex.Match[str]", _said: Said) -> Days:
    """Read a month of a year."""
    return _months(int(match["year"]), MONTHS[plain(match["month"])])


def month_alone(match: "regex.Match[str]", said: Said) -> Days | None:
    """Read a month by its name alone, or with last, this or next."""
    month = MONTHS[plain(match["month"])]
    step = _step_of(match)
    if step is None:
        return _month_of(said, month) if said.is_question else None
    if step == 0:
        return _months(said.day.year, month)
    years = said.day.year, said.day.year + step
    return _months(years[(month - said.day.month) * step <= 0], month)


def _step_of(match: "regex.Match[str]") -> int | None:
    """Return -1, 0 or 1 for last, this and next; ``None`` where the match says none of them."""
    groups = match.groupdict()
    for step, group in ((-1, "last"), (0, "this"), (1, "next"), (-1, "last_after"), (1, "next_after")):
        if groups.get(group):
            return step
    return None


def by_unit(match: "regex.Match[str]", said: Said) -> Days:
    """Read last, this or next week, weekend, month, quarter or year."""
    unit, step = UNITS[plain(match["unit"])], _step_of(match) or 0
    if unit == "weekend" and step < 0 and said.day.weekday() == 6:  # noqa: PLR2004 - on a Sunday the weekend lasts
        return _unit_around(said, unit, -1)
    return _unit_around(said, unit, step)


def by_weekday(match: "regex.Match[str]", said: Said) -> Days | None:
    """Read a weekday, alone or with last, this or next."""
    weekday, step = WEEKDAYS[plain(match["weekday"])], _step_of(match)
    if step is None:
        return _weekday_near(said, weekday, 1 if said.is_future else -1) if said.is_question else None
    return _weekday_near(said, weekday, step)


def by_season(match: "regex.Match[str]", said: Said) -> Days | None:
    """Read a season, of a year, with last, this or next, or alone."""
    season, step = SEASONS[plain(match["season"])], _step_of(match)
    if match.groupdict().get("year"):
        return _season_of(int(match["year"]), season)
    if step is not None:
        return _season_near(said, season, step)
    if not said.is_question:
        return None
    if said.is_future:
        return _season_near(said, season, 1)
    begun = [one for step in (0, -1) if (one := _season_near(said, season, step))[0] <= said.at]
    return begun[0]


def near_day(match: "regex.Match[str]", said: Said) -> Days:
    """Read yesterday, today, tomorrow and the days around them."""
    return whole_days(
        said.day + timedelta(days=STEPS_OF_DAYS[plain(match["near"]).replace("-", " ").replace("’", "'")])
    )


def tomorrow(_match: "regex.Match[str]", said: Said) -> Days:
    """Return the next day."""
    return whole_days(said.day + timedelta(days=1))


def _by_count(match: "regex.Match[str]", said: Said, sign: int) -> Days:
    unit, count = UNITS[plain(match["unit"])], _count_of(match)
    if unit in ("hour", "weekend", "quarter"):
        return _unit_around(said, unit, sign * count)
    return _near(said.day, unit, sign * count)


ago, ahead = partial(_by_count, sign=-1), partial(_by_count, sign=1)


def _count_of(match: "regex.Match[str]") -> int:
    text = plain(match.groupdict().get("count") or "1")
    return int(text) if text.isdecimal() else COUNTS[text]


def lasting(match: "regex.Match[str]", said: Said) -> Days:
    """Return the last so many days, weeks …, today included."""
    unit, count = UNITS[plain(match["unit"])], _count_of(match)
    end = whole_days(said.day)[1]
    match unit:
        case "hour":
            return said.at - timedelta(hours=count), end, True
        case "day":
            return end - timedelta(days=count), end, True
        case "week" | "weekend":
            return end - timedelta(weeks=count), end, True
        case _:
            months = said.day.year * 12 + said.day.month - 1 - count * _MONTHS_OF[unit]
            last = min(said.day.day, calendar.monthrange(months // 12, months % 12 + 1)[1])
            return datetime(months // 12, months % 12 + 1, last), end, True  # noqa: DTZ001 - local time


def year(match: "regex.Match[str]", _said: Said) -> Days:
    """Read a year."""
    return _months(int(match["year"]), 1, 12)


def quarter(match: "regex.Match[str]", said: Said) -> Days:
    """Read a quarter, of this year if no other is named."""
    year = int(match["year"]) if match["year"] else said.day.year
    return _months(year, 3 * int(match["quarter"]) - 2, 3, has_year=bool(match["year"]))


def cjk_date(match: "regex.Match[str]", said: Said) -> Days | None:
    """Read a date whose parts are marked by characters."""
    month, day = (_cjk_number(match[part]) for part in ("month", "day"))
    if match["year"]:
        year = int(match["year"])
        if month is None:
            return _months(year, 1, 12)
        return _months(year, month) if day is None else whole_days(date(year, month, day))
    if month is None:
        return None
    if day is not None:
        return _day_of(said, month, day)
    return _month_of(said, month) if said.is_question else None


def _cjk_number(text: str | None) -> int | None:
    """Return a number up to 39 in digits or in Chinese characters."""
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    tens, _, ones = text.rpartition("十")
    if "十" not in text:
        return COUNTS[text]
    return (COUNTS[tens] if tens else 1) * 10 + (COUNTS[ones] if ones else 0)


def cjk_unit(match: "regex.Match[str]", said: Said) -> Days:
    """Read last, this or next week, month or year in one word."""
    return _unit_around(said, *CJK_STEPS[match["stepped"].replace(" ", "")])


def cjk_weekday(match: "regex.Match[str]", said: Said) -> Days:
    """Read a weekday of last, this or next week."""
    start, _, _ = _unit_around(said, *CJK_STEPS[match["stepped"].replace(" ", "")])
    day = match["weekday"]
    return whole_days(start.date() + timedelta(days={**names.CJK_WEEKDAYS, **names.KOREAN_WEEKDAYS}[day]))


def cjk_season(match: "regex.Match[str]", said: Said) -> Days:
    """Read a season of last, this or next year."""
    _, step = CJK_STEPS[match["stepped"].replace(" ", "")]
    return _season_of(said.day.year + step, SEASONS[match["season"]])


def cjk_ago(match: "regex.Match[str]", said: Said) -> Days:
    """Read so many units ago."""
    count = _cjk_number(match["count"]) or 0
    return _near(said.day, UNITS[match["unit"]], -count)


def yesterday(_match: "regex.Match[str]", said: Said) -> Days:
    """Return the day before."""
    return whole_days(said.day - timedelta(days=1))
