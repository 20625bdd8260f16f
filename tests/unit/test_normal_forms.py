import sys
import time
import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.text.normal_forms import _TOO_MANY_MARKS, MOST_MARKS, normalised

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD", "NFKC", "NFKD")
ABOVE, BELOW = "\u0301", "\u0327"
MARKS = {
    "two kinds of Latin": ABOVE + BELOW,
    "points of Hebrew": "\u05b4\u05bc",
    "vowels of Arabic": "\u064b\u0651",
    "vowels of Tibetan without a class": "\u0f73\u0f71",
    "narrow Japanese voicing": "\uff9e\uff9f",
    "marks of music": "\U0001d165\U0001d16e",
}


def is_of_marks(char: str) -> bool:
    return all(unicodedata.combining(part) for part in unicodedata.normalize("NFKD", char))


def test_every_character_that_is_only_marks_counts_as_one() -> None:
    every = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)

    assert [char for char in every if is_of_marks(char) and not _TOO_MANY_MARKS.search(char * 31)] == []


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from([ABOVE, BELOW, "e", "가"]))))
def test_a_text_that_no_script_overloads_is_in_the_form_of_unicode(form: Form, text: str) -> None:
    if not _TOO_MANY_MARKS.search(text):
        assert normalised(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
def test_thirty_marks_are_sorted_and_thirty_one_are_left_as_they_are(form: Form) -> None:
    most, more = "e" + (ABOVE + BELOW) * (MOST_MARKS // 2), "e" + BELOW + (ABOVE + BELOW) * (MOST_MARKS // 2)
    text = f"Zoe\u0308 {more} ﬁn {most}"

    first, overloaded, *_ = normalised(form, text).split(" ")

    assert overloaded == more
    assert first == unicodedata.normalize(form, "Zoe\u0308")
    assert normalised(form, text).endswith(unicodedata.normalize(form, most))
    assert normalised(form, normalised(form, text)) == normalised(form, text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("letter", ["", "a", "猫", "각"])
def test_a_megabyte_of_marks_takes_a_moment(form: Form, marks: str, letter: str) -> None:
    text = letter + MARKS[marks] * 250_000

    begin = time.process_time()
    found = normalised(form, text)

    assert time.process_time() - begin < 30
    assert found == text
