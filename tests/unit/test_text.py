import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import InvalidInput
from lamina.text.folding import fold
from lamina.text.hygiene import MAX_CONTENT_CHARS, clean, clean_id, clean_json, clean_text, first_visible_line, is_blank
from lamina.text.words import content_hash, estimated_tokens, index_words, name_key, question_words, words
from tests.support.spellings import SPELLINGS, SPELLINGS_OF_NAMES

DECOMPOSED, COMPOSED = "cafe\u0301", "caf\u00e9"
DEEPEST = 900  # The JSON parser still reads it.


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "a\x00", "🎉\x00"])
def test_a_nul_is_refused_naming_the_field(text: str) -> None:
    with pytest.raises(InvalidInput, match="NUL") as refused:
        clean(text, "messages.0.content")

    assert refused.value.field == "messages.0.content"


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_a_lone_surrogate_is_refused_and_its_error_can_be_printed(text: str) -> None:
    with pytest.raises(InvalidInput, match="surrogate") as refused:
        clean(text, "content")

    assert str(refused.value).encode()


def test_clean_text_stays_as_it_was_sent() -> None:
    cleaned = clean(DECOMPOSED, "content")

    assert cleaned == DECOMPOSED


@pytest.mark.parametrize("text", ["", " ", "tab\tand\r\nlines", "\u200b", "emoji 👩‍👩‍👧 with joiners", "\x1b[31m"])
def test_clean_keeps_everything_else_as_it_is(text: str) -> None:
    cleaned = clean(text, "content")

    assert cleaned == text


def test_a_text_of_exactly_the_limit_is_accepted_and_one_more_is_refused() -> None:
    longest = "a" * MAX_CONTENT_CHARS

    assert clean(longest, "content") == longest
    with pytest.raises(InvalidInput, match=rf"{MAX_CONTENT_CHARS + 1} characters; at most {MAX_CONTENT_CHARS}"):
        clean(longest + "a", "content")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=50))
def test_cleaning_changes_nothing_of_a_text_that_it_accepts(text: str) -> None:
    assert clean(text, "content") == text


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\t\r\n", "\u200b", "\ufeff", "\u00a0\u2003\u3000", "\u2028\u2029", "\u200d\u2060\u00ad", "\x07"],
)
def test_a_text_that_shows_nothing_is_blank(text: str) -> None:
    with pytest.raises(InvalidInput, match="blank"):
        clean_text(text, "query")

    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "\u200ba", "\ufeff.", "你", "🎉", "-", "0", "\u0301", "﷽"])
def test_one_visible_character_is_enough(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize("text", ["\U0001fae8", "\U0001fae9", "\uf8ff"])
def test_a_character_that_this_python_does_not_know_yet_is_visible(text: str) -> None:
    assert not is_blank(text)


@given(st.text(st.sampled_from("ab \n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029\u200b\ufeff\t"), max_size=9))
def test_the_first_visible_line_is_the_first_that_is_not_blank(text: str) -> None:
    assert first_visible_line(text) == next((line for line in text.splitlines() if not is_blank(line)), "")


@pytest.mark.parametrize("value", ["a", "_", "%", "a&agent=b", "Ünïcode", "two words", "日本", "a/b:c", "x" * 128])
def test_an_id_of_any_printable_characters_stays_as_it_is(value: str) -> None:
    assert clean_id(value, "user") == value


@pytest.mark.parametrize(
    "value", ["", " ", "\u200b", "x" * 129, "a\nb", "a\tb", "a\x7fb", "a\x85b", "a\x00b", "a\ud800"]
)
def test_an_id_that_is_empty_too_long_or_not_printable_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_id(value, "user")

    assert refused.value.field == "user"


def test_an_id_has_at_most_128_characters_after_it_is_composed() -> None:
    grows_when_composed = "\u0958" * 128

    with pytest.raises(InvalidInput, match="128"):
        clean_id(grows_when_composed, "user")


def test_json_stays_as_it_was_sent() -> None:
    value = {DECOMPOSED: [DECOMPOSED, {"deep": DECOMPOSED}], "number": 1.5, "flag": True, "none": None, "empty": {}}

    cleaned = clean_json(value, "metadata")

    assert cleaned == value
    assert list(value) == [DECOMPOSED, "number", "flag", "none", "empty"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": "x\x00"}, "metadata.a"),
        ({"a": [1, {"b": "\ud800"}]}, "metadata.a.1.b"),
        ({"a": {"x\x00y": 1}}, "metadata.a: key"),
        ({"\udfff": 1}, "metadata: key"),
        ({"a": [0.0, float("nan")]}, "metadata.a.1"),
        ({"a": float("inf")}, "metadata.a"),
        ({"a": float("-inf")}, "metadata.a"),
    ],
)
def test_json_that_cannot_be_stored_is_refused_naming_its_path(value: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_json(value, "metadata")

    assert refused.value.field == field


def test_json_that_is_nested_too_deeply_is_refused_as_input() -> None:
    value: object = "bottom"
    for _ in range(DEEPEST):
        value = [value]

    with pytest.raises(InvalidInput):
        clean_json(value, "metadata")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Quick  brown-fox", ["the", "quick", "brown", "fox"]),
        ("Café déjà-vu", ["café", "déjà", "vu"]),
        (DECOMPOSED, [COMPOSED]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("Мой кот Ёж", ["мой", "кот", "ёж"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("Γειά σου Κόσμε ΟΔΟΣ", ["γειά", "σου", "κόσμε", "οδοσ"]),  # noqa: RUF001 - Greek it is
        ("don't Don’t O'Neil", ["don't", "don't", "o'neil"]),
        ("'quoted' the cats' rock'n'roll", ["quoted", "the", "cats", "rock'n'roll"]),
        (
            "search_top_k ERR-4711 v2.10 user@example.com",
            ["search_top_k", "err", "4711", "v2", "10", "user", "example", "com"],
        ),
        ("ﬁne ＦＵＬＬ ①", ["fine", "full", "1"]),  # noqa: RUF001 - wide letters
        ("", []),
        ("... !? 🎉 —", []),
    ],
)
def test_words_are_folded_and_in_order(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("しりとり", ["しり", "りと", "とり"]),
        ("猫", ["猫"]),
        ("成語", ["成語"]),
        ("ｶﾀｶﾅ", ["カタ", "タカ", "カナ"]),
        ("한국어", ["한국", "국어"]),
        ("我用Python写code", ["我用", "python", "写", "code"]),
        ("东京。大阪", ["东京", "大阪"]),
        ("𠮷野家", ["𠮷野", "野家"]),
    ],
)
def test_a_run_without_spaces_is_its_bigrams(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(alphabet="ab cZ_0'\u2019-.?!\n\u2014\U0001f600", max_size=30))
def test_a_text_has_the_same_words_beside_those_of_another_script(text: str) -> None:
    assert words(f"{text} я") == [*words(text), "я"]
    assert sorted(question_words(f"x {text} я")) == sorted([*question_words(f"x {text}"), "я"])
    assert sorted(index_words(f"x {text} я")) == sorted([*index_words(f"x {text}"), "я"])


def test_a_japanese_word_is_found_inside_a_sentence_without_spaces() -> None:
    sentence = words("今日は成語しりとりをした")

    assert set(words("しりとり")) <= set(sentence)
    assert not set(words("しりとり")) <= set(words("今日は成語をした"))


@pytest.mark.parametrize("text", ["नमस्ते दुनिया", "สวัสดี ครับ", "שָׁלוֹם עוֹלָם", "مَرْحَبًا بِكُم"])
def test_a_vowel_sign_does_not_cut_its_word(text: str) -> None:
    assert len(words(text)) == 2


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_words_of_two_lines_are_those_of_the_first_then_of_the_second(first: str, second: str) -> None:
    assert words(f"{first}\n{second}") == words(first) + words(second)


@pytest.mark.parametrize("other", ["I  like\ttea", " I like tea\n", "I like\u00a0tea", "I\r\nlike tea"])
def test_white_space_does_not_make_another_memory(other: str) -> None:
    assert content_hash(other) == content_hash("I like tea")


def test_composition_does_not_make_another_memory() -> None:
    assert content_hash(DECOMPOSED) == content_hash(COMPOSED)


@pytest.mark.parametrize("other", ["i like tea", "I like tea.", "I liketea", "I like tea tea", "I don't like tea"])
def test_anything_visible_makes_another_memory(other: str) -> None:
    assert content_hash(other) != content_hash("I like tea")


def test_the_content_hash_is_a_sha_256() -> None:
    assert content_hash("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("   ", 0), ("tea", 1), ("teas", 1), ("green", 2), ("green tea.", 4), ("2026", 4), ("a\nb", 3)],
)
def test_tokens_are_counted_by_letters_digits_and_marks(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


@pytest.mark.parametrize("text", ["成語しりとり", "привет", "שלום", "🎉🎉"])
def test_another_script_counts_at_least_one_token_a_character(text: str) -> None:
    assert estimated_tokens(text) >= len(text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_joining_two_texts_costs_no_more_than_both_and_the_break(first: str, second: str) -> None:
    joined = estimated_tokens(f"{first}\n\n{second}")

    assert joined == estimated_tokens(first) + estimated_tokens(second) + 2


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(("text", "question"), SPELLINGS)
def test_an_index_holds_every_word_that_it_is_asked_for(text: str, question: str) -> None:
    assert set(question_words(question)) <= set(index_words(text))


@given(st.text())
def test_a_text_is_found_by_itself_and_by_each_of_its_words(text: str) -> None:
    held = set(index_words(text))

    assert set(question_words(text)) <= held
    assert set(words(fold(text))) <= held


@pytest.mark.parametrize(("one", "other"), SPELLINGS_OF_NAMES)
def test_spellings_of_one_name_have_one_key(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize(("one", "other"), [("Rosa", "Rosä"), ("Kos", "Koş"), ("Ада", "Ася"), ("C", "C++ 17")])
def test_different_names_have_different_keys(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)
