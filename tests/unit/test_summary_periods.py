from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.scope import Scope
from lamina.policies.retention.provenance import Origin, derived_id
from lamina.policies.retention.summary_periods import (
    DatedNote,
    DueSummary,
    Level,
    PresentSummary,
    SummaryPolicy,
    due_summaries,
)

ACME = Scope("acme")
POLICY = SummaryPolicy()
LATER = datetime(2027, 3, 1, tzinfo=UTC)


def at(month: int, day: int, hour: int = 9, year: int = 2026) -> datetime:
    return datetime(year, month, day, hour, tzinfo=UTC)


def note(number: int, moment: datetime, user: str | None = "ann", text: str = "") -> DatedNote:
    return DatedNote(UUID(int=number), user, moment, (text or str(number)).encode())


def three(moment: datetime, first: int = 1, user: str | None = "ann") -> list[DatedNote]:
    return [note(first + place, moment + timedelta(hours=place), user) for place in range(3)]


def summary(number: int, level: Level, start: datetime, user: str | None = "ann", text: str = "x") -> PresentSummary:
    return PresentSummary(UUID(int=number), user, level, start.replace(hour=0), text.encode())


def made(due: DueSummary) -> PresentSummary:
    return PresentSummary(due.key, due.user, due.level, due.start, str(due.key).encode())


def due(
    notes: Sequence[DatedNote] = (), present: Sequence[PresentSummary] = (), now: datetime = LATER
) -> tuple[DueSummary, ...]:
    return due_summaries(ACME, notes, present, now, POLICY)


def test_three_notes_of_a_day_become_a_daily_summary_with_its_sources_in_the_order_of_time() -> None:
    notes = [note(3, at(11, 20, 8)), note(1, at(11, 20, 22)), note(2, at(11, 20, 8))]

    (found,) = due(notes)

    assert (found.level, found.user, found.title) == (Level.DAILY, "ann", "Summary of 2026-11-20")
    assert (found.start, found.end) == (at(11, 20, 0), at(11, 21, 0))
    assert found.sources == (UUID(int=2), UUID(int=3), UUID(int=1))
    assert found.replaces is None


def test_a_day_is_due_a_week_after_its_end_and_not_a_moment_sooner() -> None:
    notes = three(at(11, 20))

    assert due(notes, now=at(11, 28, 0))
    assert not due(notes, now=at(11, 28, 0) - timedelta(microseconds=1))


def test_a_day_settles_even_where_young_notes_are_summarised() -> None:
    policy = SummaryPolicy(after=timedelta(0))

    assert due_summaries(ACME, three(at(11, 20)), (), at(11, 22, 0), policy)
    assert not due_summaries(ACME, three(at(11, 20)), (), at(11, 21, 23), policy)


def test_two_notes_or_three_of_different_users_make_no_day() -> None:
    assert not due(three(at(11, 20))[:2])
    assert not due([note(1, at(11, 20)), note(2, at(11, 20), "bob"), note(3, at(11, 20), None)])


def test_users_and_everybody_have_days_of_their_own() -> None:
    found = due([*three(at(11, 20), 1, "bob"), *three(at(11, 20), 4, None), *three(at(11, 19), 7, "ann")])

    assert [(item.user, item.start.day) for item in found] == [("ann", 19), (None, 20), ("bob", 20)]
    assert len({item.key for item in found}) == 3


def test_days_are_those_of_utc() -> None:
    vienna = timezone(timedelta(hours=1))
    notes = [note(number, datetime(2026, 11, 21, 0, 30, tzinfo=vienna)) for number in (1, 2, 3)]

    assert [item.title for item in due(notes)] == ["Summary of 2026-11-20"]


def test_a_summary_of_the_same_sources_is_not_due_again() -> None:
    notes = three(at(11, 20))
    present = [made(item) for item in due(notes)]

    assert due(notes, present) == ()
    assert due(notes[::-1], present) == ()


@pytest.mark.parametrize(
    "notes",
    [
        [*three(at(11, 20)), note(9, at(11, 20))],
        [*three(at(11, 20))[:2], note(9, at(11, 20))],
        [*three(at(11, 20))[:2], note(3, at(11, 20, 11), text="edited")],
    ],
    ids=["one more", "another one", "another text"],
)
def test_a_summary_whose_sources_changed_is_due_and_names_what_it_replaces(notes: list[DatedNote]) -> None:
    (first,) = due(three(at(11, 20)))

    (found,) = due(notes, [made(first)])

    assert found.replaces == first.key != found.key


def test_a_week_is_made_of_its_days_once_they_are_done() -> None:
    notes = [*three(at(11, 16), 1), *three(at(11, 20), 4)]
    daily = due(notes)

    (week,) = due(notes, [made(item) for item in daily])

    assert [item.level for item in daily] == [Level.DAILY, Level.DAILY]
    assert (week.level, week.title) == (Level.WEEKLY, "Summary of week 2026-W47")
    assert (week.start, week.end) == (at(11, 16, 0), at(11, 23, 0))
    assert week.sources == tuple(item.key for item in daily)
    assert due(notes, [made(item) for item in (*daily, week)]) == ()


def test_a_week_waits_for_a_day_that_is_due_and_for_the_days_that_may_still_become_so() -> None:
    days = [summary(1, Level.DAILY, at(11, 16)), summary(2, Level.DAILY, at(11, 17))]
    undone = three(at(11, 18), 10)

    assert [item.level for item in due(undone, days)] == [Level.DAILY]
    assert not due((), days, now=at(11, 29, 23))
    assert due((), days, now=at(11, 30, 0))


def test_another_users_undone_day_holds_nobody_up() -> None:
    days = [summary(1, Level.DAILY, at(11, 16)), summary(2, Level.DAILY, at(11, 17))]

    found = due(three(at(11, 18), 10, "bob"), days)

    assert [(item.level, item.user) for item in found] == [(Level.DAILY, "bob"), (Level.WEEKLY, "ann")]


def test_one_day_makes_no_week_and_one_week_no_month() -> None:
    assert due((), [summary(1, Level.DAILY, at(11, 16)), summary(2, Level.WEEKLY, at(11, 9))]) == ()


def test_a_week_whose_day_was_made_anew_is_due() -> None:
    days = [summary(1, Level.DAILY, at(11, 16)), summary(2, Level.DAILY, at(11, 17))]
    (week,) = due((), days)

    (found,) = due((), [days[0], summary(3, Level.DAILY, at(11, 17)), made(week)])

    assert found.replaces == week.key != found.key


def test_a_month_is_made_of_the_weeks_whose_thursday_it_has() -> None:
    # 2026: the weeks from 26 October (Thursday 29 October) to 30 November (Thursday 3 December).
    weeks = [summary(number, Level.WEEKLY, at(10, 26) + timedelta(weeks=number)) for number in range(6)]

    found = due((), weeks)

    (month,) = [item for item in found if item.title == "Summary of November 2026"]
    assert month.sources == tuple(UUID(int=number) for number in (1, 2, 3, 4))
    assert (month.level, month.start, month.end) == (Level.MONTHLY, at(11, 1, 0), at(12, 1, 0))
    assert len(found) == 1


def test_a_month_waits_for_the_end_of_its_last_week() -> None:
    # The last Thursday of December 2026 is the 31st; its week ends with 3 January.
    weeks = [summary(1, Level.WEEKLY, at(12, 21)), summary(2, Level.WEEKLY, at(12, 28))]

    assert not due((), weeks, now=datetime(2027, 1, 10, 23, tzinfo=UTC))
    assert [item.title for item in due((), weeks, now=datetime(2027, 1, 11, tzinfo=UTC))] == [
        "Summary of December 2026"
    ]


@pytest.mark.parametrize("undone", ["day", "week"])
def test_a_month_waits_for_its_days_and_weeks(undone: str) -> None:
    weeks = [summary(1, Level.WEEKLY, at(11, 9)), summary(2, Level.WEEKLY, at(11, 16))]
    days = [summary(3, Level.DAILY, at(11, 25)), summary(4, Level.DAILY, at(11, 26))]
    notes = three(at(11, 25), 10)

    found = due(notes if undone == "day" else (), [*weeks, *(days if undone == "week" else ())])

    assert Level.MONTHLY not in {item.level for item in found}


@given(st.permutations(range(6)), st.integers(0, 5))
def test_the_order_of_notes_does_not_matter_and_every_call_gives_the_same(order: list[int], some: int) -> None:
    notes = [*three(at(11, 20), 1), *three(at(11, 19), 4)]

    assert due([notes[place] for place in order]) == due(notes)
    assert due(notes[:some]) == due(notes[:some])


def test_everything_done_level_by_level_leaves_nothing_due() -> None:
    notes = [item for day in range(1, 29) for item in three(at(11, day), 10 * day)]
    present: list[PresentSummary] = []

    levels = []
    while found := due(notes, present):
        levels.append({item.level for item in found})
        present += [made(item) for item in found]

    assert levels == [{Level.DAILY}, {Level.WEEKLY}, {Level.MONTHLY}]


def test_what_was_made_under_a_former_name_of_the_scope_is_not_due() -> None:
    notes, renamed = three(at(11, 20)), Scope("acme", "boreas")
    (day,) = due(notes)

    assert due_summaries(renamed, notes, [made(day)], LATER, POLICY, former=[Scope("acme", "other"), ACME]) == ()
    (changed,) = due_summaries(
        renamed, [*notes[:2], note(3, at(11, 20), text="x")], [made(day)], LATER, POLICY, former=[ACME]
    )
    assert changed.replaces == day.key
    assert changed.keys == (changed.key, *changed.former_keys)
    assert len(set(changed.keys)) == 2


def test_nothing_waits_for_a_summary_that_is_not_to_be_made() -> None:
    days = [summary(1, Level.DAILY, at(11, 16)), summary(2, Level.DAILY, at(11, 17))]
    undone = three(at(11, 18), 10)
    (day,) = due(undone, days)

    found = due_summaries(ACME, undone, days, LATER, POLICY, without={day.key})

    assert [item.level for item in found] == [Level.WEEKLY]


def test_ids_of_what_is_derived_depend_on_each_part_and_on_no_order() -> None:
    one, two = Origin(UUID(int=1), b"1"), Origin(UUID(int=2), b"2")
    ids = [
        derived_id(ACME, "ann", ("daily", "x"), (one, two)),
        derived_id(Scope("acme", "ann"), None, ("daily", "x"), (one, two)),
        derived_id(ACME, None, ("daily", "x"), (one, two)),
        derived_id(ACME, "ann", ("dailyx",), (one, two)),
        derived_id(ACME, "ann", ("daily", "x"), (one,)),
        derived_id(ACME, "ann", ("daily", "x"), (one, Origin(UUID(int=2), b"3"))),
        derived_id(Scope("acme", namespace="n"), "ann", ("daily", "x"), (one, two)),
    ]

    assert len(set(ids)) == len(ids)
    assert derived_id(ACME, "ann", ("daily", "x"), (two, one)) == ids[0]
    assert ids[0].version == 5
    assert derived_id(ACME, None, ("a",), ()) == UUID("200424d9-d2c4-5385-9377-578388d1f7b5")
