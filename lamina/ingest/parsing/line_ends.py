"""Join the words that a printed page breaks at the end of a line."""

from collections.abc import Sequence

import regex

from lamina.text.english import FUNCTION_WORDS, NUMBER_WORDS, listed

# Possessive, and never from within a word: linear in the longest text.
_BROKEN = regex.compile(
    r"(?<![\p{L}\p{M}'\u2019])(-?)([\p{L}\p{M}'\u2019]++)([-\u2010\u00ad])[ \t]*+\n[ \t]*+([\p{L}\p{M}]++)(\S*+)"
    r"[ \t]*+\n?+"
)
_WORD = regex.compile(r"[\p{L}\p{M}]++(?:[-\u2010][\p{L}\p{M}]++)*+")
_SOFT_HYPHEN = "\u00ad"
# After "pre-" in "pre- and post-war" another word follows.
_JOINING = listed("and or to nor und oder bis bzw sowie et ou y o e u en of och og eller i ja tai и или")
# Words that others are joined to with a hyphen that stays, and first parts of words that are written either way.
_FIRST_WORDS = listed(
    "well self long short high low half full large small hard deep wide left right single cross user cost risk tax"
)
_EITHER_WAY = listed("pre post non anti multi semi co counter ultra pseudo neo quasi vice e")
_LEAST_WORD = 4  # "long-er" is no compound.


def join_broken_words(pages: Sequence[str]) -> list[str]:
    """Return pages on which words that a hyphen breaks at the end of a line stand in one piece on the first line.

    What else there is on the pages decides: the word in one piece, or with its hyphen. Otherwise a hyphen stays before
    a capital, in a chain of words and after the usual first words of compounds. Where the second half is a word by
    itself, and after parts that are written either way, a soft hyphen takes the place: such a word is found in one
    piece and in parts.
    """
    unbroken = (match.group() for page in pages for match in _WORD.finditer(_BROKEN.sub(" ", page)))
    whole = frozenset(word.casefold().replace("\u2010", "-") for word in unbroken)
    return [_BROKEN.sub(lambda broken: _joined(broken, whole), page) for page in pages]


def _joined(broken: "regex.Match[str]", whole: frozenset[str]) -> str:
    chain, left, hyphen, right, rest = broken.groups()
    is_chain = hyphen != _SOFT_HYPHEN and (chain or rest.startswith("-"))
    if hyphen != _SOFT_HYPHEN and right.casefold() in _JOINING:
        return f"{chain}{left}{hyphen} {right}{rest}\n"
    kept = hyphen if is_chain else _hyphen_of(left, hyphen, right, whole)
    return f"{chain}{left}{kept}{right}{rest}\n"


def _hyphen_of(left: str, hyphen: str, right: str, whole: frozenset[str]) -> str:
    """Return the hyphen that belongs between the halves of a word."""
    one, other = left.casefold(), right.casefold()
    if hyphen == _SOFT_HYPHEN or one + other in whole:
        return ""
    if f"{one}-{other}" in whole or not right.islower():
        return hyphen
    if (one in _FIRST_WORDS and len(other) >= _LEAST_WORD) or {one, other} <= NUMBER_WORDS.keys():
        return hyphen
    return _SOFT_HYPHEN if one in _EITHER_WAY or other in whole or other in FUNCTION_WORDS else ""
