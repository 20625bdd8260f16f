import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.extraction.linking import MAX_NAME_WORDS, longest_matches, name_candidates
from lamina.text import name_key, words


@pytest.mark.parametrize(
    ("text", "known", "found"),
    [
        ("I read the New York Times today", {"new york", "new york times", "york"}, ("new york times",)),
        ("New York and the New York Times", {"new york", "new york times"}, ("new york", "new york times")),
        ("Ann's dog met Ann", {"ann"}, ("ann",)),
        ("Ann’s dog", {"ann"}, ("ann",)),
        ("we went to annapolis", {"ann", "annapolis"}, ("annapolis",)),
        ("ZOE\u0308 and Zoë", {name_key("zoë")}, ("zoë",)),
        ("今日は東京タワーに行った", {name_key("東京タワー")}, (name_key("東京タワー"),)),
        ("said o'brien", {"o'brien"}, ("o'brien",)),
        ("the who played", {"the who"}, ()),
        ("b before a", {"a", "b"}, ("b",)),
        ("", {"ann"}, ()),
        ("?!", {"ann"}, ()),
    ],
)
def test_the_longest_known_names_are_found_from_left_to_right(
    text: str, known: set[str], found: tuple[str, ...]
) -> None:
    assert longest_matches(text, known) == found


def test_the_words_of_a_name_mention_nothing_else() -> None:
    assert longest_matches("New York Times Square", {"new york times", "times square"}) == ("new york times",)


def test_a_common_word_is_a_name_only_where_it_is_capitalised() -> None:
    assert longest_matches("I hope so", {"hope"}) == ()
    assert longest_matches("I asked Hope", {"hope"}) == ("hope",)


def test_candidates_tell_where_they_stand() -> None:
    found = name_candidates("Ann saw Ann's boss")

    assert found["ann"] == ((0, 1), (2, 3))
    assert found["ann saw"] == ((0, 2),)
    assert found["ann saw ann's boss"] == ((0, 4),)
    assert "saw" in found


def test_runs_of_function_words_are_no_candidates() -> None:
    assert set(name_candidates("it was then")) == set()
    assert "of the" not in name_candidates("king of the hill")
    assert "king of the hill" in name_candidates("king of the hill")


def test_a_name_of_the_most_words_is_a_candidate_and_a_longer_one_is_not() -> None:
    name = [f"w{place}" for place in range(MAX_NAME_WORDS + 1)]

    found = name_candidates(" ".join(name))

    assert " ".join(name[:-1]) in found
    assert " ".join(name) not in found


@given(st.lists(st.sampled_from(["Ann", "met", "Bob", "Zoë's", "in", "東京", "2"]), max_size=30))
def test_candidates_grow_with_the_text_and_stand_within_it(parts: list[str]) -> None:
    text = " ".join(parts)
    count = len(words(text))

    found = name_candidates(text)

    assert sum(map(len, found.values())) <= 2 * MAX_NAME_WORDS * count
    assert all(0 <= start < end <= count for spans in found.values() for start, end in spans)
