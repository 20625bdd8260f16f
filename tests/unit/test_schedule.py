from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lamina.core.runs import JOB_NAMES
from lamina.errors import Misconfigured
from lamina.maintenance.schedule import Schedule, schedules
from lamina.settings.jobs import ScheduleSettings

NOON = datetime(2026, 7, 30, 12, 0, tzinfo=UTC)  # a Thursday
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
MOMENTS = st.integers(0, 15 * 365 * 24 * 3600).map(
    lambda seconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
EXPRESSIONS = st.sampled_from(
    [getattr(ScheduleSettings(), name) for name in JOB_NAMES if name in schedules(ScheduleSettings())]
)


@pytest.mark.parametrize(
    ("expression", "due"),
    [
        ("30 * * * *", datetime(2026, 7, 30, 12, 30, tzinfo=UTC)),
        ("0 12 * * *", datetime(2026, 7, 31, 12, 0, tzinfo=UTC)),
        ("5 */6 * * *", datetime(2026, 7, 30, 12, 5, tzinfo=UTC)),
        ("15 1 * * *", datetime(2026, 7, 31, 1, 15, tzinfo=UTC)),
        ("0 0 1 * *", datetime(2026, 8, 1, tzinfo=UTC)),
        ("30 4 * * sun", datetime(2026, 8, 2, 4, 30, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2028, 2, 29, tzinfo=UTC)),
    ],
)
def test_a_schedule_tells_when_it_is_due_next(expression: str, due: datetime) -> None:
    assert Schedule("sweep", expression).next_at(NOON) == due


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("0", "Sun"),
        ("7", "Sun"),
        ("1", "Mon"),
        ("6", "Sat"),
        ("SUN", "Sun"),
        ("1-5", "Mon Tue Wed Thu Fri"),
        ("mon-fri", "Mon Tue Wed Thu Fri"),
        ("0-2", "Sun Mon Tue"),
        ("5-7", "Fri Sat Sun"),
        ("0,3", "Sun Wed"),
        ("*/2", "Sun Tue Thu Sat"),
        ("1-5/2", "Mon Wed Fri"),
        ("*", "Sun Mon Tue Wed Thu Fri Sat"),
    ],
)
def test_days_of_the_week_count_from_sunday_as_in_every_crontab(field: str, days: str) -> None:
    schedule, at = Schedule("archival", f"30 4 * * {field}"), NOON
    found = set()
    for _ in range(7):
        due = schedule.next_at(at)
        assert due is not None
        found.add(due.strftime("%a"))
        at = due

    assert found == set(days.split())


def test_times_are_utc_whatever_the_zone_of_the_question() -> None:
    asked = NOON.astimezone(timezone(timedelta(hours=9)))
    due = Schedule("decay", "15 1 * * *").next_at(asked)

    assert due == datetime(2026, 7, 31, 1, 15, tzinfo=UTC)
    assert due.tzinfo is UTC


def test_what_never_comes_is_never_due_nor_missed() -> None:
    never = Schedule("sweep", "0 0 31 2 *")

    assert never.next_at(NOON) is None
    assert not never.is_missed(NOON, NOON + 3650 * DAY)


@pytest.mark.parametrize(
    ("last", "now", "is_missed"),
    [
        (NOON - DAY, NOON, True),
        (NOON, NOON, False),
        (NOON, datetime(2026, 7, 31, 1, 14, 59, tzinfo=UTC), False),
        (NOON, datetime(2026, 7, 31, 1, 15, tzinfo=UTC), True),
        (datetime(2026, 7, 31, 1, 15, 0, 40_000, tzinfo=UTC), datetime(2026, 7, 31, 1, 16, tzinfo=UTC), False),
        (NOON + DAY, NOON, False),
    ],
)
def test_it_is_missed_if_it_was_due_since_the_last_time(last: datetime, now: datetime, *, is_missed: bool) -> None:
    assert Schedule("decay", "15 1 * * *").is_missed(last, now) is is_missed


@given(EXPRESSIONS, MOMENTS, st.timedeltas(timedelta(0), 40 * DAY))
def test_it_is_missed_exactly_from_its_next_time_on(expression: str, last: datetime, later: timedelta) -> None:
    schedule = Schedule("sweep", expression)
    due = schedule.next_at(last)

    assert due is not None
    assert due > last
    assert due.second == due.microsecond == 0
    assert schedule.is_missed(last, last + later) is (last + later >= due)
    assert schedule.is_missed(last, due)
    assert not schedule.is_missed(due + MINUTE / 60, due + MINUTE / 2)


def test_every_job_that_is_not_off_has_a_time_of_its_own_by_default() -> None:
    found, chosen = schedules(ScheduleSettings()), ScheduleSettings()

    assert set(found) == {name for name in JOB_NAMES if getattr(chosen, name) != "off"}
    assert len({schedule.expression for schedule in found.values()}) == len(found), "two begin at the same minute"


def test_what_is_off_has_no_time() -> None:
    assert "sweep" not in schedules(ScheduleSettings(sweep="off"))


@pytest.mark.parametrize(
    "expression",
    [
        "99 * * * *",
        "* 24 * * *",
        "a b c d e",
        "* * * * funday",
        "*/0 * * * *",
        "* * * * 8",
        "* * * * 3-1",
        "* * * * */0",
        "* * * * -1",
    ],
)
def test_an_expression_that_cannot_be_read_names_its_setting_and_the_remedy(expression: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        schedules(ScheduleSettings(dedup=expression))

    assert f"jobs.schedule.dedup is {expression!r}" in str(raised.value)
    assert "write five cron fields" in str(raised.value)


@pytest.mark.parametrize("expression", ["hourly", "* * * *", "0 0 0 1 * *", "OFF"])
def test_what_has_not_five_fields_is_refused_with_the_settings(expression: str) -> None:
    with pytest.raises(ValidationError, match="write five cron fields"):
        ScheduleSettings(sweep=expression)
