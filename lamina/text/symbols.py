"""Words for signs that are no letters: emoji, flags, keycaps, signs of currencies and of mathematics.

No engine has words for them, so that each stands in the index as letters and digits: the numbers of its characters.
"""

from collections.abc import Iterator

from lamina.text.normal_forms import normalised
from lamina.text.patterns import regex

MAX_CHARACTERS = 100
"""Different ones by which a text without any word is held."""
_MAX_JOINED = 16
_MAX_WORD_CHARS = 200
_TONE = r"\U0001f3fb-\U0001f3ff"
# With the tags of England's flag.
_PICTURE = rf"\p{{Extended_Pictographic}}[\ufe0e\ufe0f\u20e3{_TONE}\U000e0020-\U000e007f]*+"
_EMOJI = regex.compile(
    rf"\p{{Regional_Indicator}}{{1,2}}|[0-9#*]\ufe0f?\u20e3|[{_TONE}]|{_PICTURE}(?:\u200d{_PICTURE})*+"
)
# In ASCII they are mostly marks of a language for computers; frames and shades of tables, and the stroke of a fraction,
# are no signs either.
_SIGN = regex.compile(
    r"(?V1)[[\p{Sc}\p{Sm}\p{So}\p{Co}]"
    r"--[\u0000-\u007f\u2044\u2500-\u259f\ufffc\ufffd\p{Extended_Pictographic}\p{Regional_Indicator}]]"
)
_JOINER = "\u200d"
_TONES = regex.compile(f"[{_TONE}]")
_VARIANTS = regex.compile("[\ufe0e\ufe0f]")
_UNSHOWN = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{White_Space}\p{C}]+")


def asked_symbols(text: str, folded: str) -> list[str]:
    """Return the words by which an index is asked for the symbols of a text: each as it is, and without skin tones.

    Args:
        text: The text.
        folded: Its folded form.
    """
    return [word for emoji in _emoji(text) for word in _asked(emoji)] + [_word(sign) for sign in _SIGN.findall(folded)]


def held_symbols(text: str, folded: str) -> list[str]:
    """Return the words under which an index holds the symbols of a text: a family is found by each of its members, too.

    Args:
        text: The text.
        folded: Its folded form.
    """
    held = [word for emoji in _emoji(text) for word in dict.fromkeys((*_asked(emoji), *_members(emoji)))]
    return held + [_word(sign) for sign in _SIGN.findall(folded)]


def character_words(folded: str) -> list[str]:
    """Return words for the different characters that a text without letters, digits and symbols shows: `?!`."""
    return [_word(char) for char in list(dict.fromkeys(_UNSHOWN.sub("", folded)))[:MAX_CHARACTERS]]


def with_symbols_apart(text: str) -> str:
    """Return a text with blanks around its emoji."""
    return _EMOJI.sub(lambda match: f" {match[0]} ", text)


def _emoji(text: str) -> Iterator[str]:
    if text.isascii():
        return
    for match in _EMOJI.finditer(normalised("NFC", text)):
        yield _VARIANTS.sub("", match[0])


def _asked(emoji: str) -> Iterator[str]:
    parts = emoji.split(_JOINER)
    if len(parts) > _MAX_JOINED:
        yield from _members(emoji)
        return
    yield from dict.fromkeys((_word(emoji), _word(_without_tones(emoji))))


def _members(emoji: str) -> Iterator[str]:
    yield from (_word(_without_tones(part)) for part in emoji.split(_JOINER) if part)


def _without_tones(emoji: str) -> str:
    return _TONES.sub("", emoji) or emoji


def _word(characters: str) -> str:
    """Return the word of a symbol.

    >>> _word("\N{FOX FACE}")
    'u1f98a'
    """
    return "".join(f"u{ord(char):x}" for char in characters if char != _JOINER)[:_MAX_WORD_CHARS]
