import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from lamina.core.memories import (
    MAX_TAGS,
    Category,
    Chunk,
    Message,
    Note,
    Role,
    as_utc,
    clean_message,
    clean_note,
    new_id,
)
from lamina.errors import InvalidInput

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=1)
TOKYO = timezone(timedelta(hours=9))
HELLO = Message(Role.USER, "hello")


def test_a_dated_message_delivered_twice_is_one_message() -> None:
    dated = replace(HELLO, occurred_at=NOON)

    assert dated.identity(NOON) == dated.identity(LATER)


def test_saying_the_same_thing_twice_makes_two_messages() -> None:
    assert HELLO.identity(NOON) != HELLO.identity(LATER)


def test_a_message_with_a_ref_delivered_twice_is_one_message() -> None:
    referred = replace(HELLO, ref="m1")

    assert referred.identity(NOON) == referred.identity(LATER)


@pytest.mark.parametrize(
    "other",
    [
        replace(HELLO, ref="m2", occurred_at=NOON),
        replace(HELLO, ref="m1", occurred_at=LATER),
        replace(HELLO, ref="m1", occurred_at=NOON, role=Role.ASSISTANT),
        replace(HELLO, ref="m1", occurred_at=NOON, name="Ann"),
        replace(HELLO, ref="m1", occurred_at=NOON, content="hello!"),
    ],
)
def test_a_message_is_another_one_if_any_part_differs(other: Message) -> None:
    message = replace(HELLO, ref="m1", occurred_at=NOON)

    assert message.identity(NOON) != other.identity(NOON)


def test_metadata_does_not_make_another_message() -> None:
    dated = replace(HELLO, occurred_at=NOON)

    assert dated.identity(NOON) == replace(dated, metadata={"trace": 1}).identity(NOON)


def test_the_parts_of_an_identity_cannot_run_into_each_other() -> None:
    messages = [
        Message(Role.USER, "c", name="ab", occurred_at=NOON),
        Message(Role.USER, "bc", name="a", occurred_at=NOON),
        Message(Role.USER, "c", name="a", ref="b", occurred_at=NOON),
        Message(Role.USER, "c", ref="ab", occurred_at=NOON),
    ]

    assert len({message.identity(NOON) for message in messages}) == 4


def test_search_sees_the_speaker_before_what_is_said() -> None:
    assert replace(HELLO, name="Ann").text() == "Ann: hello"
    assert HELLO.text() == "hello"


def test_a_clean_message_is_as_it_was_sent_in_utc() -> None:
    message = Message(
        Role.TOOL, "cafe\u0301", "Zoe\u0308", "e\u0301", datetime(2026, 1, 15, 21, tzinfo=TOKYO), {"k\u0301": "e\u0301"}
    )

    cleaned = clean_message(message, "messages.0")

    assert cleaned == replace(message, occurred_at=NOON)
    assert cleaned.occurred_at is not None
    assert cleaned.occurred_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (replace(HELLO, content=" "), "messages.3.content"),
        (replace(HELLO, content="a\x00"), "messages.3.content"),
        (replace(HELLO, name=""), "messages.3.name"),
        (replace(HELLO, name="a\nb"), "messages.3.name"),
        (replace(HELLO, ref="x" * 129), "messages.3.ref"),
        (replace(HELLO, metadata={"a": ["\ud800"]}), "messages.3.metadata.a.0"),
        (replace(HELLO, metadata={"a": float("nan")}), "messages.3.metadata.a"),
    ],
)
def test_an_unclean_message_is_refused_naming_the_field(message: Message, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_message(message, "messages.3")

    assert refused.value.field == field


def test_a_clean_note_is_as_it_was_sent_in_utc_and_has_each_tag_once() -> None:
    note = Note("cafe\u0301", Category.DECISION, 0, 1, ("b", "a", "b", "e\u0301", "\u00e9"), NOON.astimezone(TOKYO))

    cleaned = clean_note(note)

    assert cleaned == Note("cafe\u0301", Category.DECISION, 0, 1, ("b", "a", "\u00e9"), NOON)
    assert note.content == "cafe\u0301"


@pytest.mark.parametrize(
    ("note", "field"),
    [
        (Note("\u200b"), "content"),
        (Note("x" * 1_000_001), "content"),
        (Note("x", importance=1.01), "importance"),
        (Note("x", importance=-0.01), "importance"),
        (Note("x", importance=float("nan")), "importance"),
        (Note("x", confidence=2), "confidence"),
        (Note("x", tags=("ok", "")), "tags.1"),
        (Note("x", tags=tuple(map(str, range(MAX_TAGS + 1)))), "tags"),
        (Note("x", source="\x00"), "source"),
        (Note("x", metadata={"\x00": 1}), "metadata: key"),
    ],
)
def test_an_unclean_note_is_refused_naming_the_field(note: Note, field: str) -> None:
    with pytest.raises(InvalidInput) as alone:
        clean_note(note)
    with pytest.raises(InvalidInput) as in_a_batch:
        clean_note(note, "notes.7")

    assert alone.value.field == field
    assert in_a_batch.value.field == f"notes.7.{field}"


def test_64_tags_are_accepted() -> None:
    tags = tuple(map(str, range(MAX_TAGS)))

    assert clean_note(Note("x", tags=tags)).tags == tags


def test_a_note_is_the_same_whatever_its_white_space_and_fields() -> None:
    note = Note("I like tea")

    assert note.content_hash() == Note(" I  like tea\n", Category.DECISION, 0.9, tags=("x",)).content_hash()
    assert note.content_hash() != Note("I like coffee").content_hash()


@pytest.fixture
def server_in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("server_in_tokyo")
def test_a_time_without_an_offset_is_utc_wherever_the_server_stands() -> None:
    assert as_utc(datetime(2026, 1, 15, 12), "at") == NOON  # noqa: DTZ001 - the naive time is the case


def test_a_time_with_an_offset_keeps_its_moment() -> None:
    moment = as_utc(datetime(2026, 1, 15, 21, tzinfo=TOKYO), "at")

    assert moment == NOON
    assert moment.hour == 12
    assert moment.tzinfo is UTC


@pytest.mark.parametrize(
    "moment", [datetime(1, 1, 1, tzinfo=TOKYO), datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-9)))]
)
def test_a_time_that_utc_cannot_express_is_refused_as_input(moment: datetime) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_note(Note("x", event_at=moment))

    assert "event_at" in refused.value.field


def test_a_chunk_gives_back_its_vector() -> None:
    vector = np.asarray([0.6, 0.8], dtype=np.float32)

    assert np.array_equal(Chunk(0, 1, vector.tobytes()).vector(), vector)
    assert Chunk(0, 1, vector.tobytes()).vector().dtype == np.float32


def test_later_ids_sort_later() -> None:
    ids = [new_id() for _ in range(1000)]

    assert ids == sorted(ids)
    assert len(set(ids)) == 1000
    assert {id_.version for id_ in ids} == {7}
