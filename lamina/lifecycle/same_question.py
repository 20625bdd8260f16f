"""When two questions that are near by meaning want the same answer."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

import regex

from lamina.english import FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS, SENTENCE_STARTERS, listed
from lamina.text import words

_NUMBER = re.compile(r"\d+(?:\.\d+)?(k\b)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{2,3}(?:\D|$))")
_LEADING = re.compile(r"^\W*\d+[.)]\s")
_WITH_CAPITAL = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}]*|\p{L}*\p{N}+[\p{L}\p{N}]*\p{L}[\p{L}\p{N}]*")
_OPENS = re.compile(r"(?:^|[.!?:(\"'])\s*$")
_POSSESSIVE = re.compile(r"['’]s$")
_ENDINGS = ("ings", "ing", "edly", "ies", "ied", "ers", "er", "ed", "es", "s", "ly")
_LEAST_STEM = 3
# "one" and "first" seldom count anything in a question: "how does one", "which one".
_NO_NUMBERS = listed("one ones once first second zero")
_NEGATIONS = NEGATIONS | listed("cant dont wont isnt doesnt didnt arent couldnt shouldnt wouldnt")
# What a name may end with and still be the same one's: India, Indian; Turkey, Turkish.
_NAME_ENDINGS = listed("s n ns an ian ans ians ish ese i is ey y e a ia ic") | {""}
_LEAST_NAME_STEM = 4
_QUESTION_WORDS = listed("who when where why how which what")
_ASK_ONE_THING = listed("who when where why")
_MANNER = "how"


def is_same_question(first: str, second: str) -> bool:
    """Tell whether two questions, near by meaning, may be given the same answer.

    Vectors put "a rehab centre in Mercer County" next to "… in Macoupin County". So both must name
    the same numbers and names, both deny or neither, and neither may put another word in the place
    of one of the other's, the same words in another order, or ask where or why instead of how.
    What is in doubt is another question: it costs an answer, not a wrong one.

    Args:
        first: A question.
        second: Another; the order does not matter.

    Source:
        80 854 labelled pairs of questions (QQP), the rules chosen on one half: on the other, of the
        pairs within a cosine of .95 and as many true ones found, they take out a quarter of the false.
    """
    if first == second:
        return True
    one, other = _features(first), _features(second)
    if one.words == other.words:
        return True
    return (
        one.numbers == other.numbers
        and one.denies == other.denies
        and not one.names_missing_in(other)
        and not other.names_missing_in(one)
        and not _swaps(one.stems, other.stems)
        and not _replaces(one.stems, other.stems)
        and not _asks_otherwise(one.asks, other.asks)
    )


@dataclass(frozen=True, slots=True)
class _Features:
    """What of a question its answer depends on.

    Args:
        words: Its words in lower case, in order.
        stems: The same without their endings.
        names: Words with a capital, or with digits and letters, that open no sentence.
        asks: Its first question word, if it has one.
    """

    words: tuple[str, ...]
    stems: tuple[str, ...]
    numbers: frozenset[float]
    names: frozenset[str]
    denies: bool
    asks: str | None

    def names_missing_in(self, other: "_Features") -> bool:
        """Tell whether a name of this question stands nowhere in the other one, in no form."""
        return any(not _is_among(name, other.words) for name in self.names)


@lru_cache(maxsize=4096)
def _features(text: str) -> _Features:
    found = tuple(_POSSESSIVE.sub("", word) for word in words(text))
    return _Features(
        words=found,
        stems=tuple(map(_stem, found)),
        numbers=_numbers(text, found),
        names=frozenset(_names(text)),
        denies=any(word in _NEGATIONS or word.endswith("n't") for word in found),
        asks=next((word for word in found if word in _QUESTION_WORDS), None),
    )


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word.removesuffix(ending)
    return word


def _numbers(text: str, found: Collection[str]) -> frozenset[float]:
    """Return the numbers in digits, "30k" and "30,000" alike, and the written ones; not that of a numbered list."""
    plain = _LEADING.sub("", _THOUSANDS.sub("", text))
    digits = (float(match[0].rstrip("kK")) * (1000 if match[1] else 1) for match in _NUMBER.finditer(plain))
    written = (float(NUMBER_WORDS[word]) for word in found if word in NUMBER_WORDS and word not in _NO_NUMBERS)
    return frozenset((*digits, *written))


def _names(text: str) -> list[str]:
    names = []
    for match in _WITH_CAPITAL.finditer(text):
        name = match[0].lower()
        opens = _OPENS.search(text[: match.start()])
        is_name = len(name) > 1 and name not in FUNCTION_WORDS and not _NUMBER.fullmatch(name)
        if is_name and not (opens and name in SENTENCE_STARTERS):
            names.append(name)
    return names


def _is_among(name: str, found: Sequence[str]) -> bool:
    return any(name == word or _are_forms(name, word) for word in found)


def _are_forms(first: str, second: str) -> bool:
    """Tell whether two words are forms of one: equal stems, or one stem with a name's endings."""
    if _stem(first) == _stem(second):
        return True
    stem = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    endings = {first.removeprefix(stem), second.removeprefix(stem)}
    return len(stem) >= _LEAST_NAME_STEM and endings <= _NAME_ENDINGS


def _swaps(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether the same words stand in another order: from Java to .NET, from .NET to Java."""
    return first != second and sorted(first) == sorted(second)


def _replaces(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether one word with a meaning of its own stands in the place of another: given, received.

    Not of numbers, which are compared as such: two, 2.
    """
    if len(first) != len(second):
        return False
    pairs = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    return len(pairs) == 1 and not any(word in FUNCTION_WORDS or _counts(word) for word in pairs[0])


def _counts(word: str) -> bool:
    return word in NUMBER_WORDS or _NUMBER.fullmatch(word) is not None


def _asks_otherwise(first: str | None, second: str | None) -> bool:
    """Tell whether the questions ask for different things; what and which may stand for any."""
    asked = {first, second}
    return len(asked & (_ASK_ONE_THING | {_MANNER})) == len({first, second}) > 1
