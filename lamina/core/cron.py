"""Cron expressions of five fields, in UTC, as a crontab has them."""

from datetime import UTC

from apscheduler.triggers.cron import CronTrigger

# Days of the week by their numbers in a crontab, where 0 and 7 are Sunday.
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")


def trigger_of(expression: str) -> CronTrigger:
    """Return the trigger of minute, hour, day of the month, month and day of the week.

    Raises:
        ValueError: If the expression cannot be read, or a field is out of its range.
    """
    minute, hour, day, month, weekday = expression.split()
    # By their names: APScheduler counts from Monday, a crontab from Sunday.
    days = weekday if weekday == "*" else ",".join(DAYS[day] for part in weekday.split(",") for day in _days(part))
    return CronTrigger(minute=minute, hour=hour, day=day, month=month, day_of_week=days, timezone=UTC)


def _days(part: str) -> range:
    base, has_step, step = part.partition("/")
    first, is_range, last = ("0", "-", "6") if base == "*" else base.partition("-")
    until = last if is_range else "6" if has_step else first
    found = range(_day(first), _day(until) + 1, int(step) if has_step else 1)
    if not found:
        raise ValueError(f"{part} names no day of the week")
    return found


def _day(named: str) -> int:
    if named.isdecimal() and int(named) < len(DAYS):
        return int(named)
    if named.lower() in DAYS:
        return DAYS.index(named.lower())
    raise ValueError(f"{named} is no day of the week")
