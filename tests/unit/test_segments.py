"""The segments of a text in any script, and which texts differ in their case alone."""

# ruff: noqa: RUF001 - letters of many scripts are what is tested.

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.text.segments import are_spelled_alike, segments


def alike(first: str, second: str) -> bool:
    found = are_spelled_alike(segments(first), segments(second))
    assert are_spelled_alike(segments(second), segments(first)) == found
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don’t panic: it's 9:30, at -10 degrees.", ("Don't", "panic", "it's", "9:30", "at", "-10", "degrees")),
        ("C++ is not C#, 2+2", ("C", "++", "is", "not", "C", "#", "2", "+", "2")),
        ("SK-0377 costs €1,500", ("SK", "0377", "costs", "€", "1,500")),
        ("2010–12", ("2010", "-", "12")),
        ("我对花生过敏。", ("我", "对", "花", "生", "过", "敏")),
        ("ฉันแพ้ถั่ว", ("ฉั", "น", "แ", "พ้", "ถั่", "ว")),
        ("회의는 월요일", ("회의는", "월요일")),
        ("٣٠ قطط", ("30", "قطط")),
        ("👩🏽‍🚀🇩🇪1️⃣ :(", ("👩🏽‍🚀", "🇩🇪", "1\u20e3", ":(")),
        ("soft\u00adhyphen, ｆｕｌｌ", ("softhyphen", "full")),
        ("x² is not x2", ("x²", "is", "not", "x2")),
        (" …!? ", ()),
    ],
)
def test_a_text_is_cut_into_words_numbers_symbols_and_emoji(text: str, expected: tuple[str, ...]) -> None:
    assert segments(text) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Straße", "STRASSE"),
        ("ΔΡΌΜΟΣ", "δρόμος"),
        ("ısparta", "Isparta"),
        ("İzmir", "izmir"),
        ("IN", "in"),
        ("შეხვედრა", "ᲨᲔᲮᲕᲔᲓᲠᲐ"),
        ("iPhone", "iphone"),
        ("ᄒ\u1161\u11ab", "한"),
        ("ｶﾞ", "ガ"),
        ("كتـــاب", "كتاب"),
        ("کتاب‌ها", "کتابها"),
        ("❤️", "❤"),
    ],
)
def test_case_composition_width_and_invisible_marks_change_nothing(first: str, second: str) -> None:
    assert alike(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Maße", "Masse"),
        ("ılık", "ilik"),
        ("कि", "की"),
        ("א", "אַ"),
        ("νόμος", "νομός"),
        ("ano", "año"),
        ("aB3xQ9", "Ab3Xq9"),
        ("👍🏽", "👍🏿"),
        ("👨‍👩‍👧", "👨‍👩‍👦"),
        ("🇩🇪", "🇫🇷"),
        ("1️⃣", "2️⃣"),
        ("x²", "x2"),
        ("ビル", "ビール"),
        ("ක්\u200dර", "ක්ර"),
    ],
)
def test_marks_accents_signs_and_keys_count(first: str, second: str) -> None:
    assert not alike(first, second)


@given(st.text(max_size=40))
def test_every_text_is_spelled_as_itself_and_as_its_capitals_where_case_is_one_to_one(text: str) -> None:
    assert alike(text, text)
    assert alike(text, text.upper()) or text.upper().lower() != text.lower()


@pytest.mark.parametrize(
    "unit",
    [
        "I like tea. ",
        "ฉันแพ้ถั่ว",
        "😀",
        "👩\u200d",
        "🇩",
        "\u0301",
        " ",
        "+",
        "a'",
        "-",
        "1,",
        "_",
        "#a",
        ":) ",
        "\u200c",
    ],
)
def test_the_time_grows_with_the_length_alone(unit: str) -> None:
    def seconds(length: int) -> float:
        begin = time.process_time()
        segments(unit * (length // len(unit)))
        return time.process_time() - begin

    # A pattern that goes back over what it read takes minutes here.
    assert seconds(200_000) < 12 * seconds(50_000) + 10
