from datetime import UTC, datetime

import pytest

from lamina.core.memories import Message, Role, new_id
from lamina.extraction.rules import extract_by_rules
from lamina.text.dates import event_time

SAID = datetime(2026, 3, 12, 15, 30, tzinfo=UTC)  # a Thursday


@pytest.mark.parametrize(
    ("sentence", "day"),
    [
        ("We chose Rust on 12 January 2026.", "2026-01-12"),
        ("We chose Rust on the 3rd of May, 2025.", "2025-05-03"),
        ("We chose Rust on March 9th, 2026.", "2026-03-09"),
        ("We chose Rust on Sep 9, 2025", "2025-09-09"),
        ("We chose Rust in March 2024.", "2024-03-01"),
        ("We chose Rust on 2025-12-31.", "2025-12-31"),
        ("The log says 2025-12-31T10:00:00Z.", "2025-12-31"),
        ("We chose Rust on 29 February 2024.", "2024-02-29"),
        ("We meet on 20 March.", "2026-03-20"),
        ("We met on December 30.", "2025-12-30"),
        ("We chose Rust yesterday.", "2026-03-11"),
        ("I saw it the day before yesterday.", "2026-03-10"),
        ("We meet tomorrow.", "2026-03-13"),
        ("We meet the day after tomorrow.", "2026-03-14"),
        ("We slept last night.", "2026-03-11"),
        ("We shipped it last Friday.", "2026-03-06"),
        ("We shipped it last Thursday.", "2026-03-05"),
        ("We meet next Friday.", "2026-03-13"),
        ("We meet next Thursday.", "2026-03-19"),
        ("We meet this Sunday.", "2026-03-15"),
        ("We left last week.", "2026-03-05"),
        ("We leave next week.", "2026-03-19"),
        ("We left last month.", "2026-02-12"),
        ("We leave next year.", "2027-03-12"),
        ("We left three days ago.", "2026-03-09"),
        ("We left a week ago.", "2026-03-05"),
        ("We left a couple of months ago.", "2026-01-12"),
        ("We leave in two weeks.", "2026-03-26"),
        ("YESTERDAY we left.", "2026-03-11"),
    ],
)
def test_a_date_in_a_sentence_is_the_midnight_at_which_that_day_begins(sentence: str, day: str) -> None:
    assert event_time(sentence, SAID) == datetime.fromisoformat(day).replace(tzinfo=UTC)


@pytest.mark.parametrize("sentence", ["We chose Rust today.", "We ate this morning.", "On 12 March 2026 we chose."])
def test_the_day_of_saying_is_the_moment_of_saying(sentence: str) -> None:
    assert event_time(sentence, SAID) == SAID


@pytest.mark.parametrize(
    "sentence",
    [
        "We chose Rust.",
        "I may 12 times do it",
        "Meet on Friday.",
        "It was 03/04/2026.",
        "31 February 2026",
        "2026-13-40",
        "in 2019",
        "in 99999 years",
        "9999 years ago",
        "Version 2026-03-12-rc1",
        "昨日行った",
        "",
    ],
)
def test_what_is_no_date_or_has_two_readings_is_none(sentence: str) -> None:
    assert event_time(sentence, SAID) is None


@pytest.mark.parametrize(
    "sentence",
    ["\u017fix days ago", "3 \u017fep 2026", "la\u017ft \u017funday", "in \u017feven weeks", "next fr\u0131day"],
)
def test_letters_that_only_a_pattern_takes_for_others_raise_nothing(sentence: str) -> None:
    event_time(sentence, SAID)


def test_the_first_date_that_exists_counts() -> None:
    assert event_time("Not 31 June 2026 but tomorrow, or 1 May 2026.", SAID) == datetime(2026, 3, 13, tzinfo=UTC)


def test_a_month_ago_from_a_long_month_ends_with_the_short_one() -> None:
    said = datetime(2026, 3, 31, tzinfo=UTC)

    assert event_time("one month ago", said) == datetime(2026, 2, 28, tzinfo=UTC)


def test_without_the_time_of_saying_only_whole_dates_are_understood() -> None:
    assert event_time("We chose Rust yesterday, 12 March.", None) is None
    assert event_time("We chose Rust on 12 March 2026.", None) == datetime(2026, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(("sentence", "day"), [("We chose Rust yesterday.", 11), ("We chose Go.", 12)])
def test_a_note_happened_when_its_sentence_says_or_else_when_it_was_said(sentence: str, day: int) -> None:
    (note,) = extract_by_rules([Message(Role.USER, sentence, occurred_at=SAID)], [new_id()]).notes

    assert note.event_at is not None
    assert note.event_at.day == day
