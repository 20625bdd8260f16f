"""When jobs are due: cron expressions, in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from apscheduler.triggers.cron import CronTrigger

from lamina.errors import Misconfigured
from lamina.runs import JOB_NAMES, JobName
from lamina.settings import OFF, ScheduleSettings

DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""Days of the week by their numbers in a crontab, where 0 and 7 are Sunday."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When one job runs by itself.

    Args:
        expression: Minute, hour, day of the month, month, day of the week.
    """

    job: JobName
    expression: str

    def trigger(self) -> CronTrigger:
        """Return what tells its times.

        Raises:
            Misconfigured: If the expression cannot be read.
        """
        try:
            minute, hour, day, month, weekday = self.expression.split()
            return CronTrigger(
                minute=minute, hour=hour, day=day, month=month, day_of_week=_named_days(weekday), timezone=UTC
            )
        except ValueError as error:
            raise Misconfigured(
                f"jobs.schedule.{self.job} is {self.expression!r}: {error}",
                "write five cron fields (minute hour day month weekday), or off",
            ) from error

    def next_at(self, after: datetime) -> datetime | None:
        """Return the first time after this one, in UTC; ``None`` if there is none."""
        found = self.trigger().get_next_fire_time(after, after)
        return None if found is None else found.astimezone(UTC)

    def is_missed(self, last: datetime, now: datetime) -> bool:
        """Tell whether it should have run between the last time and now."""
        due = self.next_at(last)
        return due is not None and due <= now


def _named_days(field: str) -> str:
    """Return a crontab's days of the week by their names: APScheduler counts from Monday, a crontab from Sunday."""
    return field if field == "*" else ",".join(DAYS[day] for part in field.split(",") for day in _days(part))


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


def schedules(settings: ScheduleSettings) -> Mapping[JobName, Schedule]:
    """Return when each job runs; those that are off are left out.

    Raises:
        Misconfigured: If an expression cannot be read.
    """
    found = {name: Schedule(name, getattr(settings, name)) for name in JOB_NAMES if getattr(settings, name) != OFF}
    for schedule in found.values():
        schedule.trigger()
    return found
