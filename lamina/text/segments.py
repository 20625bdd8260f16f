"""Cut a text of any script into the segments that two texts are compared by.

A segment is a word, a number, a symbol or an emoji; where a script writes no spaces, as Thai, Khmer or Chinese do, each
character a reader sees is one. Punctuation, white space and invisible marks are none.
"""

import unicodedata
from collections.abc import Sequence

from lamina.text.normal_forms import normalised
from lamina.text.patterns import regex

# Written apart only by width, ligature or position in a word; superscripts, circled digits and fractions mean more.
_FORMS = regex.compile(r"[\u0587\ufb00-\ufb06\ufb13-\ufb17\ufb20-\ufdff\ufe70-\ufefc\uff01-\uffee\u3000]+")
# Soft hyphens, zero-width spaces, marks of direction, variation selectors, the Arabic stroke that stretches a word;
# joiners between Arabic letters. Joiners of emoji and of Indian scripts mean something.
_UNSEEN = regex.compile(
    r"[\u00ad\u061c\u0640\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]"
    r"|(?<=\p{Arabic})[\u200c\u200d]|[\u200c\u200d](?=\p{Arabic})"
)
# Line_Break tells the scripts without spaces: SA is South-East Asian, ID and CJ are ideographs and kana.
_UNSPACED = r"\p{Line_Break=SA}\p{Line_Break=ID}\p{Line_Break=CJ}\p{Han}\p{Hiragana}\p{Katakana}\u30fc"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}\u200c\u200d_]--[{_UNSPACED}]]"
# With skin tones, flags, keycaps and the tags of England's flag; families are joined of several.
_EMOJI = (
    r"(?:\p{Regional_Indicator}{1,2}|[0-9#*]\u20e3"
    r"|\p{Extended_Pictographic}[\U0001f3fb-\U0001f3ff\u20e3\U000e0020-\U000e007f]*+)"
)
_SYMBOL = (
    # What says something at words: C++ and C#, 2+2 and 2*2, 3 > 5 and 3 < 5, 10-12, &str, a grade of A-;
    # not "#" of a tag, "men/women".
    r"[\p{Sc}\p{So}\p{Co}\p{Cn}%‰]|(?<=\w)[#*^\p{Sm}]++|(?<![*^\p{Sm}])[*^\p{Sm}]++(?=\w)|(?<=\w\s)[*^\p{Sm}]++(?=\s[\w−-])|(?<=\b\p{L})-(?![\w-])"
    r"|(?<=\w)@(?=\w)|(?<=\d\s?)[/%](?=\s?\d)|(?<!\w)&(?=\w)|(?<=\d)[-–—−](?=\d)|(?<!\w)[-−](?=\p{Sc}\d)"
)
_SEGMENT = regex.compile(
    rf"(?V1)(?P<emoji>{_EMOJI}(?:\u200d{_EMOJI})*+)"
    r"|(?P<emoticon>(?<!\S)[:;=]['-]?[()\[\]/\\|DPp*](?![^\s\p{P}]))"
    r"|(?P<number>(?:(?<![\w%)\]−–-])[−-](?=\p{Nd}))?\p{Nd}++(?:[.,:/]\p{Nd}++)*+"
    rf"(?!{_LETTER}))"
    rf"|(?P<unspaced>[{_UNSPACED}]\p{{M}}*+)"
    rf"|(?P<word>{_LETTER}+(?:'{_LETTER}+)*)"
    rf"|(?P<symbol>{_SYMBOL})"
)

_DASHES = str.maketrans(dict.fromkeys("–—−", "-"))
_DOTTED_CAPITAL = "\u0130"
_DIGIT = regex.compile(r"(?V1)[\p{Nd}--[0-9]]")
_SIGNS = str.maketrans({"\u2019": "'", "\u066b": ".", "\u066c": ","})


def segments(text: str) -> tuple[str, ...]:
    """Return the segments of a text in order, as they are written but for width, composition and the digits' script.

    >>> segments("Don’t pay ٣٠ €, 花子 \N{WAVING HAND SIGN}!")
    ("Don't", 'pay', '30', '€', '花', '子', '\N{WAVING HAND SIGN}')
    """
    return tuple(_written(match) for match in _SEGMENT.finditer(plainly_written(text)))


def plainly_written(text: str) -> str:
    """Return a text in NFC without invisible marks, width and joined forms, with digits and their signs in ASCII."""
    if text.isascii():
        return text
    formed = _FORMS.sub(lambda match: normalised("NFKC", match[0]), text)
    seen = _UNSEEN.sub("", normalised("NFC", formed))
    return _DIGIT.sub(lambda match: _ascii_digit(match[0]), seen).translate(_SIGNS)


def _ascii_digit(digit: str) -> str:
    # The pattern may know digits of a later Unicode than Python.
    value = unicodedata.decimal(digit, None)
    return digit if value is None else str(value)


def _written(match: "regex.Match[str]") -> str:
    segment = match[0]
    if match.lastgroup == "word":
        return segment.strip("_") or segment
    return segment.translate(_DASHES) if match.lastgroup in ("number", "symbol") else segment


def are_spelled_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether two texts in segments differ in upper and lower case alone, in any language.

    Case is no equivalence: a Turkish "I" is the capital of a dotless "i", an English one that of "i", and "SS" may be
    that of a sharp "s"; the small letters are not each other's. Where both mix cases within a word, as keys do, case
    counts.
    """
    return len(first) == len(second) and all(
        one == other or _differ_in_case(one, other) for one, other in zip(first, second, strict=True)
    )


def _differ_in_case(one: str, other: str) -> bool:
    if len(one) != len(other):
        return (one.isupper() or other.isupper()) and one.upper() == other.upper()
    if is_key(one) and is_key(other):
        return False
    return all(a == b or _is_capital(a, b) or _is_capital(b, a) for a, b in zip(one, other, strict=True))


def _is_capital(capital: str, small: str) -> bool:
    if capital == _DOTTED_CAPITAL:
        return small == "i"
    return capital.isupper() and (capital.lower() == small or capital == small.upper())


def is_key(word: str) -> bool:
    """Tell whether a word has capitals and small letters otherwise than a title, as keys have: kQzvW, aB3x, Ab3x."""
    if word in (word.lower(), word.upper()):
        return False
    return any(char.isupper() for char in word[1:]) or (word[0].isupper() and any(char.isdigit() for char in word))
