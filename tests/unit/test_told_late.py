from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamina.core.memories import Message, Role, new_id
from lamina.extraction.edges import extract_graph
from lamina.extraction.rules import extract_by_rules
from lamina.extraction.told_late import LONG_AGO, time_of_change

TODAY = datetime(2026, 5, 4, 10, tzinfo=UTC)
END_OF_2015 = datetime(2015, 12, 31, tzinfo=UTC)


def read(*texts: str) -> Any:
    messages = [Message(Role.USER, text, name="Ann", occurred_at=TODAY) for text in texts]
    return extract_by_rules(messages, [new_id() for _ in texts])


def edges_of(text: str) -> list[tuple[str, str]]:
    return [(edge.type, edge.object) for edge in read(text).edges]


@pytest.mark.parametrize(
    ("text", "happened"),
    [
        ("I moved to Linz in 2015.", END_OF_2015),
        ("Back in 2015 I joined Initech.", END_OF_2015),
        ("I joined Initech in May 2015.", datetime(2015, 5, 1, tzinfo=UTC)),
        ("Ich bin 2015 nach Linz gezogen.", END_OF_2015),
        ("I moved to Linz two years ago.", TODAY - timedelta(days=730)),
        ("I moved to Linz a year ago.", TODAY - timedelta(days=365)),
        ("I moved to Linz decades ago.", TODAY - timedelta(days=3650 * 3)),
        ("I moved to Linz when I was six.", LONG_AGO),
        ("I moved to Linz as a child.", LONG_AGO),
        ("That was the summer I moved to Linz.", LONG_AGO),
        ("I joined Initech in 2009 and left in 2012.", LONG_AGO),
        ("I moved to Linz for a year in 2015.", LONG_AGO),
        ("I moved to Linz and then back to Graz.", LONG_AGO),
        ("Ich bin nach Linz gezogen, als ich sechs war.", LONG_AGO),
        ("Me mudé a Vigo cuando tenía seis años.", LONG_AGO),
    ],
)
def test_what_is_told_late_is_of_its_own_time(text: str, happened: datetime) -> None:
    assert time_of_change(text, TODAY) == happened


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Linz last week.",
        "I moved to Linz for two years.",
        "I moved to Linz in May 2026.",
        "I have lived in Linz since 2015.",
        "I left Initech and joined Hooli.",
        "I moved to Linz in 2015 and still live there.",
        "I joined Initech as a teenager and never left.",
        "I moved to Linz when I was offered a job there.",
        "I moved to Linz, where rent is $2000.",
    ],
)
def test_what_is_told_when_it_happens_is_of_that_time(text: str) -> None:
    assert time_of_change(text, TODAY) is None


def test_nothing_is_dated_before_the_first_year() -> None:
    said_at = datetime(7, 1, 1, tzinfo=UTC)
    assert time_of_change("I moved to Linz ninety decades ago.", said_at) == LONG_AGO


def test_without_a_time_of_telling_a_year_alone_dates_a_change() -> None:
    assert time_of_change("I moved to Linz in 2015.", None) == END_OF_2015
    assert time_of_change("I moved to Linz two years ago.", None) is None


def test_a_change_of_a_year_before_is_a_statement_of_that_year_and_says_not_how_it_is_now() -> None:
    (told,) = read("I moved to Linz in 2015.").statements
    (note,) = read("I moved to Linz in 2015.").notes

    assert (told.patch, told.stated_at) == ({"location": "Linz"}, END_OF_2015)
    assert note.content == "I moved to Linz in 2015."


@pytest.mark.parametrize(
    "text",
    ["I moved to Linz when I was six.", "I joined Initech but left after a week.", "I joined Initech as a teenager."],
)
def test_a_change_that_nothing_dates_or_that_is_over_sets_no_field(text: str) -> None:
    assert read(text).statements == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I moved to Linz in 2015.", [("lived_in", "Linz")]),
        ("I moved to Linz as a child.", [("lived_in", "Linz")]),
        ("I joined Initech in 2009 and left in 2012.", [("worked_at", "Initech")]),
        ("Ich bin 2015 nach Linz gezogen.", [("lived_in", "Linz")]),
        ("I moved to Linz last week.", [("moved_to", "Linz")]),
        ("I live in Graz. I moved to Linz.", [("lived_in", "Graz"), ("moved_to", "Linz")]),
        (
            "Last year I moved to Linz, but this year I moved to Graz.",
            [("lived_in", "Linz"), ("moved_to", "Graz")],
        ),
    ],
)
def test_what_began_long_ago_or_before_the_last_of_a_text_is_no_present_state(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert edges_of(text) == expected


def test_a_text_without_a_speaker_is_dated_by_its_own_time() -> None:
    told = extract_graph(["Ann moved to Linz in 2025."], said_at=[datetime(2025, 12, 1, tzinfo=UTC)])
    late = extract_graph(["Ann moved to Linz in 2025."], said_at=[TODAY])

    assert [edge.type for edge in told.edges] == ["moved_to"]
    assert [edge.type for edge in late.edges] == ["lived_in"]
