import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.api.openai.answers import MOST_BYTES, ModelAnswer, reader_of
from lamina.api.openai.requests import HEADING, Position, Shape, ToolResult, read_request, with_block
from lamina.text.hygiene import MAX_CONTENT_CHARS
from lamina.text.json_spans import item_spans, member_spans

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
ITEMS = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS}, optional={"x": VALUES}
)
FORMS: list[dict[str, Any]] = [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}]


def request_of(items: list[Any], **fields: Any) -> Any:
    read = read_request(Shape.CHAT, {"messages": items, **fields})
    assert read is not None
    return read


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


@given(st.dictionaries(TEXTS, VALUES, max_size=5), st.sampled_from(FORMS))
def test_each_member_and_item_stands_where_it_is_said_to(value: dict[str, Any], form: dict[str, Any]) -> None:
    text = json.dumps(value, **form)

    spans = member_spans(text)

    assert {name: json.loads(text[start:end]) for name, (start, end) in spans.items()} == value
    for name, (start, _) in spans.items():
        if isinstance(value[name], list):
            assert [json.loads(text[at:to]) for at, to in item_spans(text, start)] == value[name]


@given(
    st.lists(ITEMS, max_size=5),
    st.dictionaries(TEXTS.filter(lambda name: name != "messages"), VALUES, max_size=3),
    st.sampled_from(FORMS),
    st.sampled_from(["before_question", "after_instructions"]),
    TEXTS,
)
def test_a_block_is_put_in_and_all_else_stays(
    items: list[Any], others: dict[str, Any], form: dict[str, Any], position: Position, block: str
) -> None:
    body = json.dumps({"a": 1, "messages": items, **others}, **form)
    request = request_of(items)

    changed = with_block(body, request, block, role="system", position=position)

    added = json.dumps(said("system", f"{HEADING}{block}"), ensure_ascii=False)
    sent = json.loads(changed)["messages"]
    assert sent.pop(request.before[position])["content"] == f"{HEADING}{block}"
    assert sent == items
    # Without the item and its comma, it is the same text.
    assert body in {
        changed.replace(f"{added}, ", "", 1),
        changed.replace(f", {added}", "", 1),
        changed.replace(added, "", 1),
    }


def test_of_a_repeated_member_the_last_counts_as_for_other_readers() -> None:
    body = '{"messages": [1], "messages": [{"role": "user", "content": "x"}]}'

    changed = with_block(body, request_of([said("user", "x")]), "b", role="user", position="before_question")

    assert changed.startswith('{"messages": [1], "messages": [{"role": "user", "content": "' + HEADING[:10])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a" 1}', '{"a": 1,, "b": 2}', '{"a": [1 2]}', "nul"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        member_spans(text)


def test_new_is_what_stands_behind_the_last_answer_and_the_question_is_its_last_text() -> None:
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "x"}}]
    read = request_of(
        [said("system", "s"), said("user", "one"), said("assistant", "two"), said("user", parts), said("user", "four")]
    )

    assert [(item.text, item.parts) for item in read.said] == [("Look:", ("image_url",)), ("four", ())]
    assert (read.question, read.before) == ("four", {"before_question": 4, "after_instructions": 1})


def test_the_same_text_behind_another_history_is_another_message() -> None:
    first = request_of([said("user", "yes")])
    second = request_of([said("user", "yes"), said("assistant", "Sure?"), said("user", "yes")])

    assert first.said[0].ref != second.said[0].ref
    assert first.said[0].ref == request_of([said("user", "yes")]).said[0].ref
    assert first.opening == second.opening


def test_a_conversation_is_known_by_its_instructions_and_first_question_whatever_time_they_tell() -> None:
    def opening(instructions: Any, question: str, *more: dict[str, Any]) -> str:
        return request_of([said("system", instructions), said("user", question), *more]).opening

    noon = opening("You steer. It is 12:00.", "Which berth?")

    assert noon == opening(
        "You steer. It is 9:30.", "Which berth?", said("assistant", "Seven."), said("user", "Thanks.")
    )
    assert noon != opening("You cook. It is 12:00.", "Which berth?")
    assert noon != opening("You steer. It is 12:00.", "Which boat?")
    parts = [[{"type": "text", "text": f"It is {hour}:00."}] for hour in (9, 12)]
    assert opening(parts[0], "Which berth?") == opening(parts[1], "Which berth?")
    assert opening("You steer.", "Berth 7?") != opening("You steer.", "Berth 8?")


def test_a_result_is_told_with_the_call_that_asked_for_it() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "tides", "arguments": '{"port": "Faro"}'}}
    chat = request_of(
        [said("user", "?"), said("assistant", None, tool_calls=[call]), said("tool", "12:00", tool_call_id="c1")]
    )
    items = [
        said("user", "?"),
        {"type": "function_call", "call_id": "c1", "name": "tides", "arguments": '{"port": "Faro"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "12:00"},
    ]
    responses = read_request(Shape.RESPONSES, {"input": items})

    assert responses is not None
    assert chat.results == responses.results == (ToolResult("c1", "tides", '{"port": "Faro"}', "12:00"),)
    assert chat.said == responses.said == ()


def test_halves_of_characters_and_nul_are_taken_out_of_texts() -> None:
    read = request_of([said("user", "hi \ud83d\0there", name="a\udc00")], user="\ud83d")

    assert (read.said[0].text, read.said[0].name, read.ids) == ("hi \ufffdthere", "a\ufffd", {"user": "\ufffd"})


def test_a_text_is_held_as_far_as_a_message_may_hold_it() -> None:
    read = request_of([said("user", "a" * (MAX_CONTENT_CHARS + 5) + "z")])

    assert len(read.said[0].text) <= MAX_CONTENT_CHARS
    assert read.said[0].text.endswith("z")


def test_a_request_is_continued_while_tools_answer() -> None:
    asked = [said("user", "?")]
    called = [*asked, said("assistant", None, tool_calls=[]), said("tool", "12:00", tool_call_id="c")]

    assert not request_of(asked).is_continued
    assert request_of(called).is_continued
    assert not request_of([*called, said("assistant", "At noon."), said("user", "And then?")]).is_continued


def test_a_long_line_in_many_parts_is_read_in_time() -> None:
    reader = reader_of(Shape.CHAT, "text/event-stream")
    choice = {"index": 0, "delta": {"content": "x" * 7_000_000}, "finish_reason": "stop"}
    stream = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    begin = time.process_time()

    for start in range(0, len(stream), 1024):
        reader.feed(stream[start : start + 1024])

    assert reader.answer() is not None
    assert time.process_time() - begin < 20  # Quadratic work takes a minute.


def test_a_request_that_has_a_block_is_known_by_it() -> None:
    plain = [said("user", "?")]
    body = json.dumps({"messages": plain})
    twice = json.loads(with_block(body, request_of(plain), "b", role="system", position="before_question"))

    assert read_request(Shape.CHAT, twice) is not None
    assert request_of(twice["messages"]).is_remembered
    assert not request_of(plain).is_remembered


def test_ids_come_from_the_user_and_the_metadata() -> None:
    read = request_of([], user="ann", metadata={"lamina_workspace": "w", "lamina_session": "s", "lamina_agent": 7})

    assert read.ids == {"user": "ann", "workspace": "w", "session": "s"}
    assert (read.question, read.stores, request_of([], store=False).stores) == ("", True, False)


@pytest.mark.parametrize("body", [None, [], "x", {}, {"messages": "x"}, {"messages": [1]}, {"messages": None}])
def test_what_is_no_request_of_its_shape_is_none(body: Any) -> None:
    assert read_request(Shape.CHAT, body) is None


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_an_answer_is_the_same_in_whatever_parts_it_comes(step: int) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    events = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "Grüße, "}}]},
        {"choices": [{"index": 1, "delta": {"content": "another"}}, {"index": 0, "delta": {"content": "猫"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
    ]
    stream = b"".join(b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\r\n\r\n" for event in events)
    stream += b": a comment\n\ndata: [DONE]\n\n"
    reader = reader_of(Shape.CHAT, "text/event-stream; charset=utf-8")

    for start in range(0, len(stream), step):
        reader.feed(stream[start : start + step])

    assert reader.answer() == ModelAnswer("c", "m", "Grüße, 猫", 9, 4, 2)


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b'data: {"choices": [{"index": 0, "delta": {"content": "half"}}]}\n\n',
        b'data: {"error": {"message": "no"}}\n\ndata: {"choices": [{"index": 0, "finish_reason": "stop"}]}\n\n',
        b'data: 7\n\ndata: {"choices": [{"index": 0, "finish_reason": "stop"}]}\n\n',
        b"data: " + b"x" * MOST_BYTES,
    ],
)
def test_a_stream_that_breaks_off_or_that_nobody_can_read_is_no_answer(stream: bytes) -> None:
    reader = reader_of(Shape.CHAT, "text/event-stream")

    reader.feed(stream)

    assert reader.answer() is None


def test_a_response_counts_once_it_is_completed() -> None:
    output = [
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "a"}]},
    ]
    whole = {"id": "r", "model": "m", "status": "completed", "output": output, "usage": {"input_tokens": 3}}
    for status, expected in (("completed", ModelAnswer("r", "m", "a", 3)), ("incomplete", None)):
        reader = reader_of(Shape.RESPONSES, "text/event-stream")
        event = {"type": f"response.{status}", "response": whole | {"status": status}}

        reader.feed(b"event: x\ndata: " + json.dumps(event).encode() + b"\n\n")

        assert reader.answer() == expected
