"""Whose a statement of a turn is: the user's, or that of somebody else who speaks in it."""

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence

from lamina.core.memories import Role
from lamina.core.profiles import ProfileStatement
from lamina.extraction.edges import speaker_name
from lamina.extraction.entities import MAX_NAME_CHARS
from lamina.stores.postgres.messages import PreparedMessage
from lamina.text.normal_forms import normalised
from lamina.text.words import name_key

MOST_NAMES = 16
"""Of a user, compared with each speaker of a turn: a profile may hold thousands."""
SpeakerNames = Mapping[str, str | None]
"""Who said each message of a user, by ``message:<id>``; ``None`` where it names nobody."""


def speakers_of(messages: Iterable[PreparedMessage]) -> SpeakerNames:
    """Return the speakers of the messages that users said."""
    spoken = (item for item in messages if item.message.role is Role.USER)
    return {f"message:{item.id}": speaker_name(item.message.name) for item in spoken}


def sources_of_user(
    speakers: SpeakerNames, user: str, names: Collection[str] = (), others: Iterable[str | None] = ()
) -> set[str]:
    """Return the messages in which the user speaks; in the first person, others speak of themselves.

    A message without a name is the user's, and so is one by a name that the id or the profile tells. Many ids tell none
    (``u-4711``, ``alee``), and people have nicknames and marry: another name is somebody else's only where the user is
    seen to speak as well, or where there are several.

    Args:
        speakers: Of the messages.
        user: The user's id.
        names: The user's, as the profile gives them.
        others: Who else speaks in the session.
    """
    usual = [name for name in names if len(name) <= MAX_NAME_CHARS][:MOST_NAMES]
    known = [_words(user.partition("@")[0]), *map(_words, usual)]

    def is_user(speaker: str | None) -> bool:
        words = _words(speaker or "")
        return speaker is None or any(_are_of_one_name(words, other) for other in known)

    own = {source for source, speaker in speakers.items() if is_user(speaker)}
    if own or any(map(is_user, others)):
        return own
    first, *rest = (_words(speaker or "") for speaker in speakers.values())
    return set(speakers) if all(_are_of_one_name(first, other) for other in rest) else set()


def statements_of(statements: Iterable[ProfileStatement], sources: Collection[str]) -> list[ProfileStatement]:
    """Return the statements of these messages."""
    return [item for item in statements if item.source in sources]


def _words(name: str) -> list[str]:
    """Return the words of a name, without accents: an id seldom has them."""
    letters = normalised("NFD", name.replace("_", " "))
    return name_key("".join(letter for letter in letters if not unicodedata.combining(letter))).split()


def _are_of_one_name(words: Sequence[str], others: Sequence[str]) -> bool:
    """Report whether names have their first word in common, one all of the other's, or only their blanks differ."""
    if not words or not others:
        return False
    is_part = set(words) <= set(others) or set(others) <= set(words)
    return is_part or words[0] == others[0] or "".join(words) == "".join(others)
