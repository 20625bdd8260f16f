"""The schedule of the jobs: cron expressions, in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from apscheduler.triggers.cron import CronTrigger

from lamina.core.cron import trigger_of
from lamina.core.runs import JOB_NAMES, JobName
from lamina.errors import Misconfigured
from lamina.host.extras import are_installed
from lamina.settings.jobs import OFF, ScheduleSettings


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of one job.

    Args:
        expression: Minute, hour, day of the month, month, day of the week.
    """

    job: JobName
    expression: str

    def trigger(self) -> CronTrigger:
        """Return the parsed expression.

        Raises:
            Misconfigured: If the expression cannot be read.
        """
        try:
            return trigger_of(self.expression)
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
        """Report whether a run was due between the last time and now."""
        due = self.next_at(last)
        return due is not None and due <= now


def schedules(settings: ScheduleSettings) -> Mapping[JobName, Schedule]:
    """Return the schedules of the jobs that are not off; archival is off where the extra `archive` is not installed.

    Raises:
        Misconfigured: If an expression cannot be read.
    """
    found = {name: Schedule(name, getattr(settings, name)) for name in JOB_NAMES if getattr(settings, name) != OFF}
    for schedule in found.values():
        schedule.trigger()
    if not are_installed("pyarrow", "fsspec"):
        found.pop("archival", None)
    return found
