"""Turns in parts that the service accepts, whatever is in them."""

import json
from typing import Any

import pytest

from lamina.core.agent_turns import ToolCall, clean_tool_call
from lamina.ingest.embedding import EmbeddingBudget
from lamina.text.hygiene import clean_text, json_bytes
from lamina.text.turn_parts import fitting_question, fitting_text, in_batches, turn_parts
from lamina.text.words import language_tokens

BUDGET = EmbeddingBudget(60.0, 2_000.0, "write.embed_budget_s")
STRANGE = {
    "ten megabytes": "lighthouse " * 1_000_000,
    "thai": "สวัสดีชาวโลก" * 30_000,
    "digits": "1,2;3 " * 100_000,
    "greek": "καλημέρα " * 40_000,
    "emoji": "👩\u200d🌾" * 100_000,
    "halves": "\ud83d" * 300_000,
    "nul": "a\0" * 1_000_000,
    "blanks": " \n" * 1_000_000 + "x",
    "invisible": "\u200b" * 130_000 + "word" + "\u200b" * 130_000,
}


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("name", STRANGE)
async def test_a_text_is_cut_to_what_one_request_takes(name: str) -> None:
    text = fitting_text(STRANGE[name])

    assert clean_text(text, "content") == text
    await BUDGET.check([text], "messages")


def test_a_text_that_is_accepted_is_kept_whole() -> None:
    long = "The lighthouse keeper lit the lantern. " * 11_000  # As many tokens as 99 000 letters of Thai.

    assert fitting_text(long) == long
    assert fitting_text("ส" * 120_000) == f"{'ส' * 55_000} {'ส' * 55_000}"
    assert fitting_text(f"{' ' * 600_000}here{' ' * 600_000}") == "here"
    assert fitting_text(STRANGE["invisible"]) == "word"
    assert fitting_text("\u200b" * 600_000) == ""


def test_of_a_text_just_over_the_limit_hardly_anything_is_left_out() -> None:
    letters = "abcdefghij" * 50_000
    kept = fitting_text(letters)
    assert kept == f"{letters[:220_000]} {letters[-220_000:]}"
    assert language_tokens(kept) == 110_000

    mixed = fitting_text("lighthouse " * 30_000 + "ประภาคาร " * 10_000)
    assert 109_900 < language_tokens(mixed) <= 110_000
    assert mixed.startswith("lighthouse ")
    assert mixed.endswith("ประภาคาร")
    assert len(mixed) > 240_000  # Each end has half of the tokens: 220 000 letters, and blanks; 55 000 of Thai.


@pytest.mark.parametrize("name", STRANGE)
async def test_a_call_of_a_tool_is_accepted_whatever_it_was_told_and_answered(name: str) -> None:
    for arguments in ({"text": STRANGE[name]}, {STRANGE[name][:1_000]: deep(200)}, STRANGE[name]):
        ((_, (call,), _),) = turn_parts([], [{"name": "write", "arguments": arguments, "result": STRANGE[name]}])

        stored = ToolCall("write", call["arguments"], call["result"])
        assert clean_tool_call(stored, "tool_calls.0") == stored
        await BUDGET.check([stored.message().content], "messages")


def test_parts_keep_the_order_and_hold_as_many_tokens_as_are_read_in_time() -> None:
    texts = [{"role": "user", "content": f"{place}. " + "我们决定在星期五发布。" * 1_700} for place in range(5)]

    parts = list(turn_parts(texts))

    assert [len(part.messages) for part in parts] == [2, 2, 1]
    assert [message for part in parts for message in part.messages] == texts
    assert all(part.tokens <= 40_000 for part in parts)


def test_calls_stand_before_the_last_answer_and_a_turn_without_anything_is_one_empty_part() -> None:
    said = [{"role": "user", "content": "Weigh it."}, {"role": "assistant", "content": "3 kg."}]
    call = {"name": "weigh", "arguments": {"parcel": "B7"}, "result": "3 kg"}

    ((messages, calls, _),) = turn_parts(said, [call])

    assert (messages, calls) == (said, [call])
    assert list(turn_parts([{"role": "user", "content": "\u200b"}])) == [([], [], 0)]


def test_blanks_are_no_tokens_but_a_request_holds_no_hundred_megabytes_of_them() -> None:
    texts = [{"content": f"{' ' * 900_000}{place}"} for place in range(4)]

    assert [len(batch) for batch, _ in in_batches(texts)] == [1, 1, 1, 1]
    assert [len(batch) for batch, _ in in_batches([{"content": "x"}] * 500)] == [200, 200, 100]


def test_the_arguments_of_a_call_have_the_limit_that_is_given() -> None:
    arguments = "\u0001" * 100_000

    ((_, (call,), _),) = turn_parts([], [{"name": "w", "arguments": arguments}], most_argument_bytes=6_000)

    assert 5_900 < len(json.dumps({"arguments": call["arguments"]})) <= 6_000


def test_arguments_just_over_the_limit_are_kept_but_for_some_words_of_the_middle() -> None:
    arguments = {"path": "log.md", "text": 'He said "the lamp is lit".\n' * 300}

    ((_, (call,), _),) = turn_parts([], [{"name": "write", "arguments": arguments}], most_argument_bytes=8_500)

    assert json_bytes({"arguments": arguments}) > 8_500
    assert 8_400 < json_bytes({"arguments": call["arguments"]}) <= 8_500
    assert call["arguments"].startswith('{"path": "log.md", "text": "He said')


def test_arguments_have_as_many_tokens_as_a_text_whatever_bytes_they_may_have() -> None:
    arguments = {"digits": "12" * 100_000}

    ((_, (call,), tokens),) = turn_parts([], [{"name": "w", "arguments": arguments}], most_argument_bytes=1_000_000)

    assert language_tokens(call["arguments"]) == tokens
    assert 108_900 < tokens <= 109_000


def test_of_a_question_the_end_is_asked_and_of_blanks_nothing() -> None:
    assert fitting_question(f"{'x' * 200_000} Where\0 is it\ud83d?").endswith(" Where is it\ufffd?")
    assert len(fitting_question("ส" * 1_000_000)) == 20_000
    assert fitting_question(" \u200b\n" * 500_000) == ""


def test_letters_are_quarters_of_a_token_and_all_else_that_shows_is_one() -> None:
    assert [language_tokens(text) for text in ("abcd" * 4, "สวัสดี", "12 34", " \n\t", "é🦊")] == [4, 6, 4, 0, 2]
