"""The importance of messages and passages, by rule: 0..1, where a memory that nothing is said of has 0.5."""

import re
from collections.abc import Sequence

from lamina.core.memories import Message, Role

USUAL = 0.5
OF_A_FACT = 0.7
OF_LITTLE = 0.3
FEW_WORDS = 4
_WORD = re.compile(r"\w+")
# Scripts without spaces say as much in one "word".
_LONG = 16


def message_importance(message: Message, drawn: Sequence[float], *, states_facts: bool) -> float:
    """Return the importance of a message.

    Args:
        message: What was said.
        drawn: The importance of the notes that were drawn from it, which it has at least.
        states_facts: Whether a user states something of themselves in it.
    """
    if drawn or states_facts:
        return max(USUAL, *drawn, OF_A_FACT if states_facts else 0.0)
    return OF_LITTLE if message.role is Role.TOOL or says_little(message.content) else USUAL


def passage_importance(position: int, text: str) -> float:
    """Return the importance of a passage; a document begins with what it is about.

    Args:
        position: Its place in the document, from 1.
        text: Its text.
    """
    if says_little(text):
        return OF_LITTLE
    return OF_A_FACT if position == 1 else USUAL


def says_little(text: str) -> bool:
    """Report whether a text is a few words without a number or a name in them: thanks, a greeting, a heading."""
    words = _WORD.findall(text[: FEW_WORDS * 64])
    is_long = len(words) >= FEW_WORDS or any(len(word) > _LONG for word in words)
    return not is_long and not any(character.isdigit() for character in text) and not _names(words)


def _names(words: Sequence[str]) -> bool:
    """Report whether a word behind the first begins with a capital."""
    return any(word[0].isupper() for word in words[1:])
