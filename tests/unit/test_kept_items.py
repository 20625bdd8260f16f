"""Items of a framework in messages of a session: each comes back as it was, or not at all."""

import json
import random
from typing import Any

import pytest

from lamina.errors import InvalidInput
from lamina.integrations import _items
from lamina.integrations._items import items_of, messages_of, pack, unpack
from lamina.text.hygiene import MAX_CONTENT_CHARS, clean_text, json_bytes
from lamina.text.opaque import without_opaque

MEMBER = "item"
LONG = "".join(random.Random(0).choices("abcdefgh é日🦊\0\ud83d\n", k=1_500_000))  # noqa: S311 - no secret
ITEMS = {
    "short": "Where is it?",
    "blank": " \n",
    "halves": "\0 \ud83d \udc00",
    "thai": "สวัสดีชาวโลก" * 20_000,
    "a million blanks": " " * 1_000_000,
    "letters": LONG[:100_000],
    "of several messages": LONG,
}


def kept(item: Any, text: str) -> list[dict[str, Any]]:
    data = json.dumps(item)
    return messages_of(MEMBER, data, role="user", text=text, otherwise="(empty)", metadata={"lamina_user": None})


def stored(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**message, "id": f"id {place}"} for place, message in enumerate(messages)]


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_comes_back_as_it_was_in_messages_that_are_accepted(name: str) -> None:
    item = {"role": "user", "content": ITEMS[name]}
    messages = kept(item, ITEMS[name])

    (found,) = items_of(MEMBER, stored(messages))

    assert json.loads(found.data) == item
    assert found.message["content"] == messages[-1]["content"]
    assert len(found.part_ids) == len(messages) - 1
    for message in messages:
        assert clean_text(message["content"], "content", limit=MAX_CONTENT_CHARS) == message["content"]
        assert json_bytes(message["metadata"]) < 60_000
        assert message["metadata"]["lamina_user"] is None
    assert len({message["ref"] for message in messages}) == len(messages)


def test_an_item_of_several_messages_is_found_by_its_text_alone() -> None:
    *parts, whole = kept(LONG, "The spare key hangs behind the barometer.")

    assert len(parts) > 1
    assert whole["content"] == "The spare key hangs behind the barometer."
    assert all(without_opaque(part["content"]).strip() == "" for part in parts)


@pytest.mark.parametrize("missing", [0, 1, -1])
def test_of_an_item_that_is_not_there_whole_nothing_is_read(missing: int) -> None:
    messages = stored(kept(LONG, "long"))
    del messages[missing]

    assert list(items_of(MEMBER, [*messages, *stored(kept("short", "short"))]))[-1].data == '"short"'
    assert len(list(items_of(MEMBER, messages))) == 0


def test_items_that_were_added_at_once_are_apart() -> None:
    one, other = stored(kept(LONG, "one")), stored(kept(LONG[::-1], "other"))
    mixed = [one[0], *other, *one[1:]]

    assert [json.loads(item.data) for item in items_of(MEMBER, mixed)] == [LONG[::-1], LONG]


@pytest.mark.parametrize(
    "value",
    [{"zlib": "no base64 é"}, {"zlib": "AAAA"}, {"zlib": 3}, {"parts": 0}, {"parts": -1}, {"of": 3}, [], 7, {}],
    ids=str,
)
def test_what_somebody_else_wrote_under_the_name_is_no_item(value: Any) -> None:
    message = {"id": "x", "ref": None, "content": "Hello", "metadata": {MEMBER: value}}

    assert list(items_of(MEMBER, [message])) == []


def test_items_as_they_were_kept_at_first_are_read() -> None:
    messages = [
        {"id": "1", "ref": "a", "content": '{"role": "user"}', "metadata": {MEMBER: None}},
        {"id": "2", "ref": "b", "content": "Hello", "metadata": {MEMBER: '{"role": "assistant"}'}},
        {"id": "3", "ref": "c", "content": "Hello", "metadata": {}},
    ]

    assert [item.data for item in items_of(MEMBER, messages)] == ['{"role": "user"}', '{"role": "assistant"}']


def test_a_text_that_unpacks_to_more_than_any_item_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack("a" * 2_000)
    assert unpack(packed) == "a" * 2_000

    monkeypatch.setattr(_items, "_MOST_BYTES", 1_999)

    with pytest.raises(ValueError, match="too large"):
        unpack(packed)
    with pytest.raises(InvalidInput, match="2002 bytes"):
        kept("a" * 2_000, "a")
