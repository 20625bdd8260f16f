"""When two questions that are near by meaning want the same answer."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

import regex

from lamina.english import FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS, SENTENCE_STARTERS, listed
from lamina.text import words

MAX_CHARS = 2_000

_UNITS = {
    **dict.fromkeys(("percent", "per cent"), "%"),
    **dict.fromkeys(("dollar", "dollars", "usd", "bucks"), "$"),
    **dict.fromkeys(("euro", "euros", "eur"), "€"),
    **dict.fromkeys(("rupee", "rupees", "inr", "rs"), "₹"),
}
_UNIT = rf"\b(?:{'|'.join(sorted(_UNITS, key=len, reverse=True))})\b"
# A minus is a number's if nothing stands right before it: not in "post-2010", "2010-12".
_AMOUNT = regex.compile(
    r"(?P<minus>(?<![\w%)\]\p{Sc}−-])[−-](?=\p{Sc}?\d))?"
    rf"(?:(?P<before>\p{{Sc}}|{_UNIT})\.?\s?)?(?P<number>\d+(?:\.\d+)?)(?P<thousands>k\b)?"
    rf"(?:[\s-]?(?P<after>[%\p{{Sc}}](?!\s?\d)|{_UNIT}))?",
    regex.IGNORECASE,
)
# What says something at words: C++ and C#, 2+2 and 2*2, 3 > 5 and 3 < 5, 1/2, &str, a grade of A-;
# not "#" of a tag, "men/women".
_SYMBOLS = regex.compile(
    r"(?<=\w)[#*^\p{Sm}]++|[*^\p{Sm}]++(?=\w)|(?<=\w\s)[*^\p{Sm}]++(?=\s[\w−-])|(?<=\b\p{L})-(?![\w-])"
    r"|(?<=\w)@(?=\w)|(?<=\d\s?)[/%](?=\s?\d)|(?<!\w)&(?=\w)|\p{Sc}(?=\p{L})"
)
# What is meant by a function word in capitals, where not everything is; not what is often stressed: not, all, you.
_ACRONYMS = listed("us it who up be am me in or and can")
_CASED = regex.compile(r"(?<![\w'’])(?:\p{Lu}{2,}|\p{Ll}{2,})(?![\w'’])")
_SPELLED = "_"
_NUMBER = re.compile(r"\d+(?:\.\d+)?k?", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{2,3}(?:\D|$))")
_LEADING = re.compile(r"^\W*\d+[.)]\s")
_WITH_CAPITAL = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}]*|(?<![\p{L}\p{N}])\p{L}*+\p{N}++\p{L}[\p{L}\p{N}]*+")
_OPENERS = ".!?:(\"'"
_POSSESSIVE = re.compile(r"['’]s$")
_ENDINGS = ("ings", "ing", "edly", "ies", "ied", "ers", "er", "ed", "es", "s", "ly")
_LEAST_STEM = 3
# "one" and "first" seldom count anything in a question: "how does one", "which one".
_NO_NUMBERS = listed("one ones once first second zero")
# From the second row on: German, French, Spanish, Italian, Portuguese, Dutch; none that is also an English word.
_NEGATIONS = NEGATIONS | listed(
    """
    cant dont wont isnt doesnt didnt arent couldnt shouldnt wouldnt
    nicht nichts kein keine keinen keinem keiner keines nie niemals niemand ohne ne jamais sans aucun aucune nunca jamás
    ningún ninguno ninguna senza nessun nessuno nessuna não nenhum nenhuma niet geen nooit zonder
    """
)
_OPPOSITES = (
    "before | after",
    "with | without",
    "more | less fewer",
    "increase increases increased increasing | decrease decreases decreased decreasing reduce reduces reduced reducing",
    "buy buys buying bought | sell sells selling sold",
    "open opens opened opening | close closes closed closing",
    "start starts started starting | stop stops stopped stopping",
    "enable enables enabled enabling | disable disables disabled disabling",
    "import imports imported importing | export exports exported exporting",
    "advantage advantages | disadvantage disadvantages",
    "male males | female females",
)
# For each word the opposition it belongs to, and its side there.
_SIDES = {
    word: (number, side)
    for number, opposites in enumerate(_OPPOSITES)
    for side, listing in enumerate(opposites.split("|"))
    for word in listing.split()
}
# What a name may end with and still be the same one's: India, Indian; Turkey, Turkish.
_NAME_ENDINGS = listed("s n ns an ian ans ians ish ese i is ey y e a ia ic") | {""}
_LEAST_NAME_STEM = 4
_QUESTION_WORDS = listed("who when where why how which what")
_ASK_ONE_THING = listed("who when where why")
_MANNER = "how"


def is_same_question(first: str, second: str) -> bool:
    """Tell whether two questions, near by meaning, may be given the same answer.

    Vectors put "a rehab centre in Mercer County" next to "… in Macoupin County". So both must name
    the same numbers, symbols and names, both deny or neither, and neither may put another word in the place
    of one of the other's, say the opposite, the same words in another order, or ask where or why instead of how.
    What is in doubt is another question, and so is what is longer than 2 000 characters: it costs an answer, not a
    wrong one.

    Args:
        first: A question.
        second: Another; the order does not matter.

    Source:
        80 854 labelled pairs of questions (QQP), the rules chosen on one half: on the other, of the
        pairs within a cosine of .95 and as many true ones found, they take out a quarter of the false.
    """
    if first == second:
        return True
    if max(len(first), len(second)) > MAX_CHARS:
        return False
    one, other = _features(first), _features(second)
    if not (one.words and other.words and one.has_marks_of(other)):
        return False
    return one.words == other.words or _mean_the_same(one, other)


def _mean_the_same(one: "_Features", other: "_Features") -> bool:
    """Tell whether two questions that differ in their words still ask the same."""
    return (
        one.denies == other.denies
        and not one.is_opposed_to(other)
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
        words: Its words in lower case and its symbols, in order.
        stems: The same without their endings.
        symbols: The symbols alone, sorted.
        priced: Its numbers at a sign of a currency or of percent, each with the sign.
        measured: The same, and those at a word for one.
        acronyms: What it writes in capitals, and never small, of US, IT and the like.
        small: What of the same it writes small, and never in capitals: us, it.
        names: Words with a capital, or with digits and letters, that open no sentence.
        sides: Which oppositions it takes a side in, and which side.
        asks: Its first question word, if it has one.
    """

    words: tuple[str, ...]
    stems: tuple[str, ...]
    symbols: tuple[str, ...]
    numbers: frozenset[float]
    priced: frozenset[tuple[float, str]]
    measured: frozenset[tuple[float, str]]
    acronyms: frozenset[str]
    small: frozenset[str]
    names: frozenset[str]
    sides: frozenset[tuple[int, int]]
    denies: bool
    asks: str | None

    def has_marks_of(self, other: "_Features") -> bool:
        """Tell whether the two agree in what their words need not show: numbers, units, symbols, acronyms."""
        return (
            self.numbers == other.numbers
            and self.symbols == other.symbols
            and self.priced <= other.measured
            and other.priced <= self.measured
            and not (self.acronyms & other.small or other.acronyms & self.small)
        )

    def is_opposed_to(self, other: "_Features") -> bool:
        """Tell whether one takes one side of an opposition and the other the other one; both sides oppose neither."""
        opposite = {(number, 1 - side) for number, side in self.sides - other.sides}
        return bool(opposite & (other.sides - self.sides))

    def names_missing_in(self, other: "_Features") -> bool:
        """Tell whether a name of this question stands nowhere in the other one, in no form."""
        return any(_stem(name) not in other.stems and not _has_form_in(name, other.words) for name in self.names)


@lru_cache(maxsize=256)
def _features(text: str) -> _Features:
    found = tuple(_POSSESSIVE.sub("", word) for word in words(_SYMBOLS.sub(_spelled, text)))
    amounts = list(_AMOUNT.finditer(_LEADING.sub("", _THOUSANDS.sub("", text))))
    units = list(_units(amounts))
    acronyms, small = _cased(text)
    return _Features(
        words=found,
        stems=tuple(map(_stem, found)),
        symbols=tuple(sorted(word for word in found if word.startswith(_SPELLED))),
        numbers=frozenset((*map(_number, amounts), *_written_numbers(found))),
        priced=frozenset(amount for amount in units if amount[1] not in _UNITS),
        measured=frozenset((number, _UNITS.get(unit, unit)) for number, unit in units),
        acronyms=acronyms - small,
        small=small - acronyms,
        names=frozenset(_names(text)),
        sides=_sides(found),
        denies=any(word in _NEGATIONS or word.endswith("n't") for word in found),
        asks=next((word for word in found if word in _QUESTION_WORDS), None),
    )


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word.removesuffix(ending)
    return word


def _spelled(match: "regex.Match[str]") -> str:
    """Return symbols as a word, so that they count like one where words are compared."""
    return f" {_SPELLED}{'_'.join(str(ord(symbol)) for symbol in match[0])} "


def _number(amount: "regex.Match[str]") -> float:
    """Return a number in digits, "30k" and "30,000" alike."""
    sign = -1 if amount["minus"] else 1
    return sign * float(amount["number"]) * (1000 if amount["thousands"] else 1)


def _units(amounts: Iterable["regex.Match[str]"]) -> Iterator[tuple[float, str]]:
    for amount in amounts:
        for unit in (amount["before"], amount["after"]):
            if unit is not None:
                yield _number(amount), unit.casefold()


def _written_numbers(found: Iterable[str]) -> Iterator[float]:
    return (float(NUMBER_WORDS[word]) for word in found if word in NUMBER_WORDS and word not in _NO_NUMBERS)


def _sides(found: Iterable[str]) -> frozenset[tuple[int, int]]:
    plain = " ".join(found).replace("with no ", "without ")
    return frozenset(_SIDES[word] for word in plain.split() if word in _SIDES)


def _cased(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the acronyms that stand in capitals, unless everything does, and the same words that stand small."""
    found = [match[0] for match in _CASED.finditer(text) if match[0].lower() in _ACRONYMS]
    in_capitals = () if text == text.upper() else (word.lower() for word in found if word.isupper())
    return frozenset(in_capitals), frozenset(word for word in found if word.islower())


def _names(text: str) -> list[str]:
    names = []
    for match in _WITH_CAPITAL.finditer(text):
        name = match[0].lower()
        is_name = len(name) > 1 and name not in FUNCTION_WORDS and not _NUMBER.fullmatch(name)
        if is_name and not (name in SENTENCE_STARTERS and _opens_sentence(text, match.start())):
            names.append(name)
    return names


def _opens_sentence(text: str, start: int) -> bool:
    before = start - 1
    while before >= 0 and text[before].isspace():
        before -= 1
    return before < 0 or text[before] in _OPENERS


def _has_form_in(name: str, found: Iterable[str]) -> bool:
    start = name[:_LEAST_NAME_STEM]
    return any(word.startswith(start) and _are_forms(name, word) for word in found)


def _are_forms(first: str, second: str) -> bool:
    """Tell whether two words have one stem with a name's endings."""
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
