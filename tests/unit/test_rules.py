import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from lamina.core.memories import Category, Extraction, Message, Role, new_id
from lamina.extraction.echo import without_recalled
from lamina.extraction.rules import LONG_TEXT_CHARS, MAX_NOTE_CHARS, RuleExtractor, extract_by_rules
from lamina.policies.ranking.context_block import format_memory
from lamina.text.sentences import sentences
from tests.unit.builders import fused

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


def extracted(*messages: Message | str) -> Extraction:
    said = [Message(Role.USER, item) if isinstance(item, str) else item for item in messages]
    return extract_by_rules(said, [new_id() for _ in said])


def notes_of(*messages: Message | str) -> list[str]:
    return [note.content for note in extracted(*messages).notes]


def profile_of(*messages: Message | str) -> dict[str, Any]:
    return extracted(*messages).profile


@pytest.mark.parametrize(
    ("sentence", "category"),
    [
        ("We decided to use Postgres.", Category.DECISION),
        ("Let's go with the blue one.", Category.DECISION),
        ("I've settled on Lisbon.", Category.DECISION),
        ("The migration? It worked.", Category.OUTCOME),
        ("We shipped the beta on Friday.", Category.OUTCOME),
        ("The outage turned out to be DNS.", Category.OUTCOME),
        ("We plan to rewrite the parser.", Category.STRATEGY),
        ("From now on, deploy on Mondays.", Category.STRATEGY),
        ("Always run the linter first.", Category.STRATEGY),
        ("I'm allergic to peanuts.", Category.NOTE),
        ("My birthday is in May.", Category.NOTE),
        ("Remember the milk.", Category.NOTE),
        ("i really love hiking", Category.NOTE),
    ],
)
def test_a_sentence_is_kept_under_its_category(sentence: str, category: Category) -> None:
    (note,) = extracted(sentence).notes

    assert note.category is category
    assert note.content in sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "Hello there!",
        "How are you?",
        "Do I like tea?",
        "Should we always use tabs?",
        "Did you know that we decided to use Postgres?",
        "The weather is nice today.",
        "Сегодня хорошая погода.",
        "今日は成語しりとりをした",
        "",
        "...",
    ],
)
def test_questions_and_small_talk_are_not_kept(sentence: str) -> None:
    found = extracted(sentence)

    assert (found.notes, found.profile, found.edges) == ((), {}, ())


def test_a_message_of_one_sentence_is_kept_word_for_word() -> None:
    text = "We decided to use Postgres, because it's boring (and proven)!"

    assert notes_of(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "We decided to use example.com for mail.",
        "We chose v1.2 for the release.",
        "I prefer 2.5 spoons of sugar.",
        "We agreed to meet at 10.30 on Monday",
        "I use lamina.text.words every day!",
    ],
)
def test_a_dot_inside_a_word_does_not_end_a_sentence(text: str) -> None:
    assert sentences(text) == [text]


def test_only_the_sentence_that_teaches_is_kept() -> None:
    assert notes_of("Good morning! We chose Rust. How are you?") == ["We chose Rust."]


def test_sentences_end_at_marks_and_line_breaks() -> None:
    text = "One. Two!  Three?!\nFour\n\n  Five... six"

    assert sentences(text) == ["One.", "Two!", "Three?!", "Four", "Five...", "six"]


@pytest.mark.parametrize("text", ["", " \n\t", "\n\n\n"])
def test_nothing_said_is_no_sentence(text: str) -> None:
    assert sentences(text) == []


def test_a_note_tells_where_it_comes_from() -> None:
    id_ = UUID(int=7)
    message = Message(Role.USER, "We chose Rust.", name="Ann", occurred_at=NOON)

    (note,) = extract_by_rules([message], [id_]).notes

    assert note.source == f"message:{id_}"
    assert note.event_at == NOON
    assert note.metadata == {"speaker": "Ann"}
    assert 0 < note.confidence < 1
    assert 0 < note.importance < 1


@pytest.mark.parametrize(("role", "count"), [(Role.USER, 1), (Role.ASSISTANT, 1), (Role.SYSTEM, 0), (Role.TOOL, 0)])
def test_only_what_somebody_says_is_kept(role: Role, count: int) -> None:
    assert len(notes_of(Message(role, "We decided to use Postgres."))) == count


def test_the_same_sentence_in_two_messages_is_one_note() -> None:
    assert len(notes_of("We chose Rust today.", "Again: hello.", "We chose  Rust today.")) == 1


def test_a_sentence_too_long_for_a_note_is_not_cut_but_left_out() -> None:
    long = "We decided " + "x" * MAX_NOTE_CHARS

    assert notes_of(long) == []
    assert notes_of(long[:MAX_NOTE_CHARS]) == [long[:MAX_NOTE_CHARS]]


@pytest.mark.parametrize(
    ("sentence", "profile"),
    [
        ("My name is Ann.", {"name": "Ann"}),
        ("My name is Ann Lee.", {"name": "Ann Lee"}),
        ("my name is Zoë", {"name": "Zoë"}),
        ("My name is Ann and I am a doctor.", {"name": "Ann"}),
        ("Please call me Bob!", {"name": "Bob"}),
        ("I'm based in New York, mostly.", {"location": "New York"}),
        ("My timezone is Europe/Lisbon.", {"timezone": "Europe/Lisbon"}),
        ("I work at Acme Labs.", {"employer": "Acme Labs"}),
        ("I prefer window seats, please.", {"preferences": ["window seats"]}),
        ("I live in a yellow house.", {}),
        ("The weather is nice.", {}),
    ],
)
def test_users_state_facts_about_themselves(sentence: str, profile: dict[str, Any]) -> None:
    assert profile_of(sentence) == profile


def test_a_turn_teaches_all_its_facts_and_the_latest_of_each() -> None:
    said = ["I live in Rome.", "My name is Ann. I prefer tea. I prefer trains!", "I live in Oslo."]

    assert profile_of(*said) == {"location": "Oslo", "name": "Ann", "preferences": ["tea", "trains"]}


def test_preferences_of_two_messages_of_a_turn_are_both_kept() -> None:
    assert profile_of("I prefer tea.", "I prefer trains.") == {"preferences": ["tea", "trains"]}


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM, Role.TOOL])
def test_nobody_but_the_user_states_facts_about_the_user(role: Role) -> None:
    assert profile_of(Message(role, "My name is Claude. I live in Rome.")) == {}


@pytest.mark.parametrize(
    "question", ["My name is Ann?", "Did I say that I live in Rome?", "Do you think I prefer tea?"]
)
def test_a_question_states_no_fact(question: str) -> None:
    assert profile_of(question) == {}


def test_a_recalled_block_is_not_learned_again() -> None:
    profile = '[Profile: ann]\n{"name": "My name is Ann"}'
    echoed = f"{profile}\n\n[Memory: decision | 2026-01-15]\nWe chose Rust.\nconfidence: 0.95"

    assert extracted(echoed) == Extraction()


def test_what_is_said_around_a_recalled_block_is_learned() -> None:
    text = "We chose Go.\n\n[Memory: decision | 2026-01-15]\nWe chose Rust.\nconfidence: 0.95\n\nI prefer tea."

    found = extracted(text)

    assert [note.content for note in found.notes] == ["We chose Go.", "I prefer tea."]
    assert found.profile == {"preferences": ["tea"]}


def test_a_recalled_memory_of_several_paragraphs_is_not_learned_again() -> None:
    echoed = format_memory(fused(1, "We chose Rust.\n\nI prefer tea.\n\nMy name is Ann."))

    assert without_recalled(echoed).strip() == ""
    assert extracted(echoed) == Extraction()


def test_a_bracket_of_ones_own_is_not_a_recalled_block() -> None:
    assert notes_of("[Memo] We chose Rust.") == ["[Memo] We chose Rust."]


def test_extraction_is_deterministic() -> None:
    messages = [Message(Role.USER, "We chose Rust. I prefer tea.")]
    ids = [UUID(int=1)]

    assert extract_by_rules(messages, ids) == extract_by_rules(messages, ids)


def test_every_message_needs_its_id() -> None:
    with pytest.raises(ValueError, match="zip"):
        extract_by_rules([Message(Role.USER, "hello")], [])


@pytest.mark.parametrize("length", [1, LONG_TEXT_CHARS])
async def test_the_extractor_finds_what_the_rules_find_in_short_and_long_texts(length: int) -> None:
    messages = [Message(Role.USER, "We chose Rust. I prefer tea." + " Yes." * length)]
    ids = [UUID(int=1)]

    assert await RuleExtractor().extract(messages, ids) == extract_by_rules(messages, ids)


@pytest.mark.parametrize("text", ["?" * 50_000, "a." * 25_000, "\n" * 50_000, "I " * 25_000, "[Memory: x\n\n" * 5_000])
def test_no_text_takes_more_than_a_moment(text: str) -> None:
    begin = time.process_time()

    extracted(text)

    assert time.process_time() - begin < 20  # Quadratic work takes minutes.
