"""Whose the statements of a turn are."""

import time
from uuid import UUID

import pytest

from lamina.core.memories import Message, Role
from lamina.ingest.speakers import sources_of_user, speakers_of
from lamina.stores.postgres.messages import PreparedMessage


def told(
    user: str, *speakers: str | None, names: tuple[str, ...] = (), others: tuple[str | None, ...] = ()
) -> list[str | None]:
    """Return the speakers who are the user."""
    said = [
        PreparedMessage(UUID(int=place), Message(Role.USER, "I live in Graz.", name=speaker), ())
        for place, speaker in enumerate(speakers)
    ]
    own = sources_of_user(speakers_of(said), user, names, others)
    return [speaker for speaker, item in zip(speakers, said, strict=True) if f"message:{item.id}" in own]


@pytest.mark.parametrize(
    ("user", "speaker", "names"),
    [
        ("ann", "Ann", ()),
        ("ann", "  ANN  Lee ", ()),
        ("ann_lee", "Ann", ()),
        ("annlee", "Ann Lee", ()),
        ("ann.lee@example.org", "Ann Lee", ()),
        ("zoë", "ZOE\u0308", ()),
        ("jose.garcia@example.com", "José García", ()),
        ("andré", "Andre", ()),
        ("somchai", "สมชาย วงศ์ดี", ("สมชาย",)),
        ("bob", "Robert Hall", ("Robert",)),
        ("u-4711", "Ann Novak", ("Ann Lee",)),
    ],
)
def test_the_user_is_known_by_id_and_by_the_name_of_the_profile(
    user: str, speaker: str, names: tuple[str, ...]
) -> None:
    assert told(user, speaker, "Ben", names=names) == [speaker]
    assert told(user, speaker, None, names=names) == [speaker, None]


@pytest.mark.parametrize(
    ("user", "speaker", "names"),
    [
        ("u-4711", "Ann", ()),
        ("alee", "Ann Lee", ()),
        ("robert", "Bob", ()),
        ("tanaka", "田中", ()),
        ("default", "customer", ()),
        ("u-4711", "Samuel", ("Sam",)),
        ("u-4711", "李安", ("Ann",)),
        ("", "🙂", ()),
    ],
)
def test_who_speaks_alone_is_the_user_by_whatever_name(user: str, speaker: str, names: tuple[str, ...]) -> None:
    assert told(user, speaker, names=names) == [speaker]
    assert told(user, speaker, speaker.upper(), names=names, others=(speaker, "Zed")) == [speaker, speaker.upper()]


@pytest.mark.parametrize(
    ("user", "speaker", "names"),
    [
        ("ann", "Ben", ()),
        ("ann", "Ben", ("Ann Lee",)),
        ("u-4711", "Ben", ("Ann",)),
        ("ann", "Annabel", ()),
        ("lee@example.org", "Example", ()),
    ],
)
def test_beside_the_user_another_speaker_says_nothing_of_the_user(
    user: str, speaker: str, names: tuple[str, ...]
) -> None:
    own = names[0] if names else user.partition("@")[0]
    assert told(user, speaker, own, names=names) == [own]
    assert told(user, speaker, None, names=names) == [None]
    assert told(user, speaker, names=names, others=(own,)) == []
    assert told(user, speaker, names=names, others=(None,)) == []


def test_a_profile_of_thousands_of_names_takes_no_longer_than_one_of_some() -> None:
    speakers = {f"message:{place}": f"Speaker {place} of the town" for place in range(256)}
    many = ["Ann", "x " * 30_000, *(f"n{place}" for place in range(7_000))]

    begin = time.process_time()
    own = sources_of_user(speakers | {"message:ann": "Ann"}, "u-4711", many)

    assert own == {"message:ann"}
    assert time.process_time() - begin < 2  # Each with each takes ten seconds.


def test_of_several_strangers_nobody_is_the_user() -> None:
    assert told("u-4711", "Ann", "Ben") == []
    assert told("u-4711", "Ann", "ANN") == ["Ann", "ANN"]
    assert told("ann", "Ann", "Ben", None) == ["Ann", None]
