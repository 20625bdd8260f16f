"""Read a text as English: which words it has, and which of them another text lacks."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from lamina.text.english import NUMBER_WORDS, listed
from lamina.text.patterns import regex
from lamina.text.segments import is_key
from lamina.text.vocabulary import is_english_word, meaning_of

STATEMENT_FILLERS = listed(
    "a an the very really truly absolutely definitely currently please so indeed surely certainly"
)
_LEAST_ENGLISH = 0.5
# "9 a.m." in segments.
_HALF_DAY = re.compile(r"(?<=\d )([ap]) m(?!\S)")
_HALVES = ("am", "pm")
# "one" is mostly no number: "this one", "no one".
_WRITTEN_NUMBERS = {word: (str(number),) for word, number in NUMBER_WORDS.items() if word != "one"}
_WITH_UNIT = re.compile(
    r"\A(\d++(?:[.,:]\d++)*+)(am|pm|k|kg|g|mg|km|cm|mm|m|mph|h|hrs?|mins?|s|secs?|ms|gb|mb|tb|kb|eur|usd|px)\Z"
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?")
_MARKS = regex.compile(r"[#*^@/%&\p{Sm}\p{Sc}−-]+")
_THOUSAND = 1000
_SHORT_FORMS = {
    "can't": "can not",
    "cannot": "can not",
    "cant": "can not",
    "won't": "will not",
    "wont": "will not",
    "shan't": "shall not",
    "let's": "let us",
    "dont": "do not",
    "doesnt": "does not",
    "didnt": "did not",
    "isnt": "is not",
    "im": "i am",
    "ive": "i have",
    "whats": "what is",
}
_SHORT = {short: tuple(written.split()) for short, written in _SHORT_FORMS.items()}
_ENDINGS = (("n't", "not"), ("'re", "are"), ("'ve", "have"), ("'ll", "will"), ("'m", "am"))
_WITH_IS = listed("what where who how when why that it he she there here")
_PHRASES = {
    "due to": "because of",
    "in order to": "to",
    "as well as": "and",
    "per cent": "%",
    "percent": "%",
    "each day": "every day",
    "on flights": "when flying",
    "on a plane": "when flying",
    "lots of": "a lot of",
    "right now": "now",
    "at the moment": "now",
    "no one": "nobody",
    "with no": "without",
    "united states of america": "usa",
    "united states": "usa",
}
_PHRASE = re.compile(rf"\b(?:{'|'.join(_PHRASES)})(?!\S)")


def english_words(found: Sequence[str]) -> tuple[str, ...]:
    """Return the words of an English text in small letters, contractions written out, numbers in plain digits.

    Args:
        found: The segments of the text.
    """
    spelled = " ".join(_words_of(found))
    return tuple(_PHRASE.sub(lambda match: _PHRASES[match[0]], _HALF_DAY.sub(r"\1m#", spelled)).split())


def _words_of(found: Sequence[str]) -> Iterator[str]:
    before = ""
    for segment in found:
        word = segment.lower()
        if not word.isalpha():
            parts = _parts(segment if is_key(segment) else word)
        else:
            parts = _SHORT.get(word) or _WRITTEN_NUMBERS.get(word) or (word,)
        for part in parts:
            # "9 am", not "I am".
            before = f"{part}#" if part in _HALVES and before[-1:].isdigit() else part
            yield before


def _parts(word: str) -> Sequence[str]:
    if word in _SHORT:
        return _SHORT[word]
    if word[0].isdigit():
        return _number_parts(word)
    for ending, written in _ENDINGS:
        if word.endswith(ending):
            return word.removesuffix(ending), written
    if word.endswith("'s"):
        owner = word.removesuffix("'s")
        return owner, "is" if owner in _WITH_IS else "'s"
    return (word,)


def _number_parts(word: str) -> Sequence[str]:
    measured = _WITH_UNIT.match(word)
    number, unit = measured.groups() if measured else (word, "")
    if _GROUPED.fullmatch(number):
        number = number.replace(",", "")
    if unit == "k" and number.isdecimal():
        return (str(int(number) * _THOUSAND),)
    return (number, unit) if unit else (number,)


def statement_words(found: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a statement that carry its meaning, in order, those of one meaning as one."""
    kept = [word for word in found if word not in STATEMENT_FILLERS]
    nexts = [*kept, ""][1:]
    return tuple(
        meaning_of(word)
        for word, after in zip(kept, nexts, strict=True)
        if not (word in ("have", "has") and after.endswith("ed"))
    )


def leftovers(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words that either text has more often than the other."""
    one, other = Counter(first), Counter(second)
    return list((one - other).elements()), list((other - one).elements())


def is_understood(word: str) -> bool:
    """Tell whether a word, number or sign is one of English; emoji, keys and uncommon words are not."""
    return word == "'s" or is_english_word(word.rstrip("#")) or _MARKS.fullmatch(word) is not None


def is_english(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether most words of two texts are English ones."""
    spelled = [word for word in (*first, *second) if word[0].isalpha()]
    return sum(map(is_english_word, spelled)) >= _LEAST_ENGLISH * len(spelled)
