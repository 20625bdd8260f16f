from collections.abc import Container, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.extraction.name_matching import (
    MAX_NAME_WORDS,
    Span,
    WordWindow,
    find_places,
    longest_names,
    name_candidates,
    split_words,
    windows,
    windows_around,
)
from lamina.text.words import name_key, words


def longest_in(text: str, known_keys: set[str]) -> tuple[str, ...]:
    return longest_names(name_candidates(text), known_keys)


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
    assert longest_in(text, known) == found


def test_the_words_of_a_name_mention_nothing_else() -> None:
    assert longest_in("New York Times Square", {"new york times", "times square"}) == ("new york times",)


def test_a_common_word_is_a_name_only_where_it_is_capitalised() -> None:
    assert longest_in("I hope so", {"hope"}) == ()
    assert longest_in("I asked Hope", {"hope"}) == ("hope",)


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


PARTS = st.lists(
    st.sampled_from(["Ann", "ann's", "met", "Bob's", "hope", "the", "in", "New", "York", "東京都", "2"]), max_size=60
)


def together(pieces: Iterable[WordWindow], openings: Container[str] | None = None) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = {}
    for piece in pieces:
        for key, where in piece.candidates(openings).items():
            spans.setdefault(key, []).extend(where)
    return spans


@given(PARTS, st.integers(1, 20))
def test_a_text_in_stretches_has_the_candidates_of_the_whole_text(parts: list[str], size: int) -> None:
    text = " ".join(parts)
    whole = together(windows(split_words(text), 1_000))

    assert together(windows(split_words(text), size)) == whole
    assert {key: tuple(where) for key, where in whole.items()} == name_candidates(text)


@given(PARTS, st.integers(1, 20))
def test_what_begins_with_a_known_word_is_found_without_looking_at_the_rest(parts: list[str], size: int) -> None:
    whole = name_candidates(" ".join(parts))
    pieces = list(windows(split_words(" ".join(parts)), size))

    openings = set().union(*(piece.openings() for piece in pieces))
    found = together(pieces, {"ann", "new"})

    assert {key.split(" ")[0] for key in whole} <= openings
    assert found.keys() >= {key for key in whole if key.split(" ")[0] in {"ann", "new"}}
    assert not any(key.startswith(("bob", "york")) for key in found)


@given(PARTS, st.lists(st.sampled_from(["ann", "ann met", "new york", "york", "bob", "hope", "京都", "the"])))
def test_the_places_of_keys_are_those_of_all_candidates(parts: list[str], keys: list[str]) -> None:
    whole = name_candidates(" ".join(parts))

    assert find_places(split_words(" ".join(parts)), keys) == {
        key: where for key, where in whole.items() if key in keys
    }


def test_only_the_first_places_of_a_key_are_kept_when_that_is_asked() -> None:
    reading = split_words("Ann met " * 5_000)

    assert find_places(reading, ["ann"], limit=3) == {"ann": ((0, 1), (2, 3), (4, 5))}


@given(PARTS)
def test_what_stands_around_a_name_decides_as_the_whole_text_does(parts: list[str]) -> None:
    known = {"new york", "ann", "york ann", "bob"}
    whole = name_candidates(" ".join(parts))
    places = {span for key in known for span in whole.get(key, ())}

    assert longest_names(together(windows_around(split_words(" ".join(parts)), places)), known) == longest_names(
        whole, known
    )


def test_a_piece_of_a_million_characters_is_no_larger_than_one_of_a_page() -> None:
    text = "".join(chr(0x4E00 + place * 7919 % 20_000) for place in range(1_000_000))

    pieces = windows(split_words(text))
    first = next(pieces)

    assert len(first.candidates()) <= 2 * MAX_NAME_WORDS * 2_000
    assert sum(piece.length for piece in pieces) + first.length == 999_999


def test_what_stands_around_a_name_is_little_of_a_long_text() -> None:
    reading = split_words("word " * 100_000 + "Ann met Bob")

    assert sum(piece.length for piece in windows_around(reading, [(100_000, 100_001)])) <= 3 * MAX_NAME_WORDS
