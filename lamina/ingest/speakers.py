"""Whose a statement of a turn is: the user's, or that of somebody else who speaks in it."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from lamina.core.memories import Role
from lamina.core.profiles import ProfileStatement
from lamina.extraction.edges import speaker_name, user_name
from lamina.stores.postgres.messages import PreparedMessage
from lamina.text.words import name_key

SpeakerNames = Mapping[str, str | None]
"""Who said each message of a user, by ``message:<id>``; ``None`` where it names nobody."""


def speakers_of(messages: Iterable[PreparedMessage]) -> SpeakerNames:
    """Return the speakers of the messages that users said."""
    spoken = (item for item in messages if item.message.role is Role.USER)
    return {f"message:{item.id}": speaker_name(item.message.name) for item in spoken}


def statements_of_user(
    statements: Iterable[ProfileStatement], speakers: SpeakerNames, user: str, names: Collection[str] = ()
) -> list[ProfileStatement]:
    """Return the statements that the user makes; in the first person, others speak of themselves.

    A message without a name is the user's. An id such as ``u-4711`` tells no name: as long as nothing else does, the
    only speaker of a turn is the user.

    Args:
        statements: Those of a turn.
        speakers: Of its messages.
        user: The user's id.
        names: The user's, as the profile gives them.
    """
    every = {speaker and name_key(speaker) for speaker in speakers.values()}
    is_only_speaker = len(every) == 1 and not names and not _tells_a_name(user)
    known = [_words(name) for name in (user, *names)]

    def is_user(speaker: str | None) -> bool:
        if speaker is None or is_only_speaker:
            return True
        return any(_are_of_one_name(_words(speaker), other) for other in known)

    own = {source for source, speaker in speakers.items() if is_user(speaker)}
    return [item for item in statements if item.source in own]


def _words(name: str) -> list[str]:
    return name_key(name.replace("_", " ")).split()


def _are_of_one_name(words: Sequence[str], others: Sequence[str]) -> bool:
    """Report whether one name has all words of the other ("Ann", "Ann Lee"), or only its blanks are others."""
    is_part = set(words) <= set(others) or set(others) <= set(words)
    return bool(words and others) and (is_part or "".join(words) == "".join(others))


def _tells_a_name(user: str) -> bool:
    return user_name(user) == user and not any(map(str.isdigit, user))
