"""Fold text for comparison: spellings that a reader takes for one word become one.

Folded text is compared and indexed; nothing of it is ever returned.
"""

import unicodedata

from lamina.text.normal_forms import normalised
from lamina.text.patterns import regex

# Soft hyphens, joiners, zero-width blanks, variation selectors, marks of direction: no reader sees them.
UNSEEN = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
# Vowel signs of Arabic and Hebrew, which most writers leave out, and the tatweel, which only stretches a word.
_OPTIONAL = regex.compile(
    r"[\p{Default_Ignorable_Code_Point}\u0640\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8"
    r"\u06ea-\u06ed\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]+"
)
_DOTTED = regex.compile(r"[ij]\p{M}++")
_DOT = "\u0307"
# Turkish has a dotted and a dotless i in both cases; in other languages' keyboards and lower-casing they become one.
_LETTERS = {
    "\u0131": "i",
    **dict.fromkeys("\u2018\u2019\u201b\u2032\u02bb\u02bc\u02b9\ua78c", "'"),
    # As Arabic and Persian keyboards have them.
    **dict.fromkeys("\u0623\u0625\u0622\u0671", "\u0627"),
    **dict.fromkeys("\u06cc\u0649", "\u064a"),
    "\u06a9": "\u0643",
    "\u0629": "\u0647",
}
# Digits of all scripts stand in the first two planes; to look through all seventeen takes .2 s at each start.
_DIGITS = {char: str(unicodedata.decimal(char)) for char in map(chr, range(0x80, 0x20000)) if char.isdecimal()}
_FOLDED = str.maketrans(_LETTERS | _DIGITS)


def fold(text: str) -> str:
    """Return the text without differences of case, width, composition, invisible marks, vowel signs and digits' script.

    >>> fold("Donau\u00addampf ﬁn İZMİR ẞ ς") == fold("donaudampf fin izmir ss Σ")
    True
    """
    if text.isascii():
        return text.casefold()
    # Composed first: a hamza or madda belongs to its letter, and is no vowel sign.
    composed = normalised("NFKC", text).casefold()
    folded = _OPTIONAL.sub("", composed).translate(_FOLDED)
    if _DOT in folded:
        folded = _DOTTED.sub(lambda letter: letter.group().replace(_DOT, ""), normalised("NFKD", folded))
    return normalised("NFKC", folded)
