"""Whose the statements of a turn are."""

from uuid import UUID

import pytest

from lamina.core.memories import Message, Role
from lamina.core.profiles import ProfileStatement
from lamina.ingest.speakers import speakers_of, statements_of_user
from lamina.stores.postgres.messages import PreparedMessage


def told(user: str, *speakers: str | None, names: tuple[str, ...] = ()) -> list[str | None]:
    """Return the speakers whose statements are the user's."""
    said = [
        PreparedMessage(UUID(int=place), Message(Role.USER, "I live in Graz.", name=speaker), ())
        for place, speaker in enumerate(speakers)
    ]
    stated = [ProfileStatement({"location": "Graz"}, source=f"message:{item.id}") for item in said]
    own = statements_of_user(stated, speakers_of(said), user, names)
    return [speaker for speaker, item in zip(speakers, stated, strict=True) if item in own]


@pytest.mark.parametrize(
    ("user", "speaker", "names"),
    [
        ("ann", None, ()),
        ("ann", "Ann", ()),
        ("ann", "  ANN  Lee ", ()),
        ("ann", "user", ()),
        ("ann_lee", "Ann", ()),
        ("annlee", "Ann Lee", ()),
        ("ann.lee@example.org", "Ann Lee", ()),
        ("zoë", "ZOE\u0308", ()),
        ("bob", "Robert Hall", ("Robert",)),
        ("u-4711", "Ann", ("Ann Lee",)),
        ("u-4711", "Ann", ()),
        ("42", "Ann", ()),
    ],
)
def test_the_user_is_known_by_id_and_by_the_name_of_the_profile(
    user: str, speaker: str, names: tuple[str, ...]
) -> None:
    assert told(user, speaker, names=names) == [speaker]


@pytest.mark.parametrize(
    ("user", "speaker", "names"),
    [
        ("ann", "Ben", ()),
        ("ann", "Ben", ("Ann Lee",)),
        ("u-4711", "Ben", ("Ann",)),
        ("ann", "Annabel", ()),
    ],
)
def test_another_speaker_says_nothing_of_the_user(user: str, speaker: str, names: tuple[str, ...]) -> None:
    assert told(user, speaker, names=names) == []


def test_of_several_speakers_the_user_alone_is_heard() -> None:
    assert told("ann", "Ann", "Ben", None) == ["Ann", None]
    assert told("u-4711", None, "Ben") == [None]
    assert told("u-4711", "Ann", "Ben") == []
    assert told("u-4711", "Ann", "ANN") == ["Ann", "ANN"]
