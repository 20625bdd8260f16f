import pytest

from lamina.text.numbers import depends_on_moment, figures, numbers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("On 2026-11-20 at 9:30 we paid 1,500 EUR.", {"2026-11-20", "9:30", "1500"}),
        ("Version 1.2.3, then 4.", {"1.2.3", "4"}),
        ("Five of the twenty", {"5", "20"}),
        ("one of them, no one else", set()),
        ("Room 007", {"7"}),
        ("nothing here", set()),
    ],
)
def test_figures_are_whole_numbers_dates_and_times(text: str, found: set[str]) -> None:
    assert figures(text) == found


def test_numbers_of_a_date_count_one_by_one() -> None:
    assert numbers("2026-11-05: 1,500.50 EUR") == {"2026", "11", "5", "1500.50"}


@pytest.mark.parametrize(
    "sentence",
    [
        "We met yesterday.",
        "See you on Monday",
        "It ships next week.",
        "three days ago",
        "Back in two weeks",
        "NOW!",
        "Wir trafen uns vorgestern.",
        "Le serveur tombe demain.",
        "Встретимся завтра.",
        "先週は休みでした。",
    ],
)
def test_a_sentence_that_counts_from_its_moment_depends_on_it(sentence: str) -> None:
    assert depends_on_moment(sentence)


@pytest.mark.parametrize(
    "sentence", ["Ann moved to Graz.", "We met on 2026-11-20.", "In the last line", "snow", "Ann wohnt in Graz."]
)
def test_a_sentence_that_does_not_is_true_whenever_it_is_read(sentence: str) -> None:
    assert not depends_on_moment(sentence)
