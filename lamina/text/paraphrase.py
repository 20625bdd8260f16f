"""When two questions that are near by meaning want the same answer."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

import regex

from lamina.text.english import FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS, SENTENCE_STARTERS, listed
from lamina.text.words import words

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
# A word with a capital anywhere, as in iPhone, or with digits and letters.
_WITH_CAPITAL = regex.compile(
    r"(?<![\p{L}\p{M}\p{N}])(?:\p{Ll}*+\p{Lu}[\p{L}\p{M}\p{N}]*+|\p{L}*+\p{N}++\p{L}[\p{L}\p{N}]*+)"
)
_OPENERS = ".!?:(\"'"
_POSSESSIVE = re.compile(r"['’]s$")
_ENDINGS = ("ings", "ing", "edly", "ies", "ied", "ers", "er", "ed", "es", "s", "ly")
_LAST_LETTERS = "eyi"
_LEAST_STEM = 3
# "one" and "first" seldom count anything in a question: "how does one", "which one".
_NO_NUMBERS = listed("one ones once first second zero")
# From the second row on: German, French, Spanish, Italian, Portuguese, Dutch; none that is also an English word.
_NEGATIONS = (NEGATIONS - {"stopped"}) | listed(
    """
    cant dont wont isnt doesnt didnt arent couldnt shouldnt wouldnt
    nicht nichts kein keine keinen keinem keiner keines nie niemals niemand ohne ne jamais sans aucun aucune nunca jamás
    ningún ninguno ninguna senza nessun nessuno nessuna não nenhum nenhuma niet geen nooit zonder
    """
)
_NO_DENIALS = re.compile(r"\b(?:or (?:why )?not|not only)\b")
_PREFIXES = ("un", "non", "dis", "il", "ir", "im", "in", "anti", "mis")
_LEAST_PREFIXED = 4
_A_PAIR = 2
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
    "he him his himself | she her hers herself",
    "same similar similarity similarities similarly | differ differs different difference differences differently",
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
# The one name that is a function word, too: written small it is "us".
_US = "US"
_SPELT_US = re.compile(r"\b(?:u\.s(?:\.a)?\b\.?|usa\b|united states\b(?: of america\b)?)", re.IGNORECASE)
_AMERICA = listed("us america american americans")
_QUESTION_WORDS = listed("who when where why how which what")
_OWNERS = listed("my your his her our their")
_JOINS = listed("and or vs versus nor")
_DIRECTIONS = listed("to from into than against over for by before after of with in on about")
_ASK_ONE_THING = listed("who when where why")
_MANNER = "how"


def is_same_question(first: str, second: str) -> bool:
    """Tell whether two questions, near by meaning, may be given the same answer.

    Vectors put "a rehab centre in Mercer County" next to "… in Macoupin County". So both must name
    the same numbers, symbols and names, both deny or neither, and neither may put another word in the place
    of one of the other's, say the opposite, the same words in another order, or ask where or why instead of how.
    What is in doubt is another question, and so is what is longer than 2 000 characters: it costs an answer, not a
    wrong one. Another word without a capital, in a question worded otherwise throughout, is left to the threshold.

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
        and not one.is_negated_in(other)
        and not other.is_negated_in(one)
        and not _swaps(one, other)
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
        asks: Its question words, in order.
        joined: The stems without function words, in order; what "and" or "or" joins is one, sorted.
        directed: The same one by one, with the words that give them a direction.
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
    asks: tuple[str, ...]
    joined: tuple[tuple[str, ...], ...]
    directed: tuple[str, ...]

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

    def is_negated_in(self, other: "_Features") -> bool:
        """Tell whether the other one says a word of this question with a prefix against it: biased, unbiased."""
        stems = set(self.stems) - set(other.stems)
        return any(stem in stems for word in other.words if word not in self.words for stem in _unprefixed(word))

    def names_missing_in(self, other: "_Features") -> bool:
        """Tell whether a name of this question stands nowhere in the other one, in no form."""
        return any(_stem(name) not in other.stems and not _has_form_in(name, other.words) for name in self.names)


@lru_cache(maxsize=256)
def _features(question: str) -> _Features:
    text = _SPELT_US.sub(_US, question)
    found = tuple(_POSSESSIVE.sub("", word) for word in words(_SYMBOLS.sub(_spelled, text)))
    amounts = list(_amounts(_LEADING.sub("", _THOUSANDS.sub("", text))))
    units = list(_units(amounts))
    acronyms, small = _cased(text)
    stems = tuple(map(_stem, found))
    return _Features(
        words=found,
        stems=stems,
        symbols=tuple(sorted(word for word in found if word.startswith(_SPELLED))),
        numbers=frozenset((*map(_number, amounts), *_written_numbers(found))),
        priced=frozenset(amount for amount in units if amount[1] not in _UNITS),
        measured=frozenset((number, _UNITS.get(unit, unit)) for number, unit in units),
        acronyms=acronyms - small,
        small=small - acronyms,
        names=frozenset(_names(text)),
        sides=_sides(found),
        denies=_denies(found),
        asks=tuple(word for word in found if word in _QUESTION_WORDS),
        joined=tuple(_joined(found, stems)),
        directed=tuple(
            stem for word, stem in zip(found, stems, strict=True) if word in _DIRECTIONS or word not in FUNCTION_WORDS
        ),
    )


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """Return what the forms of a word have in common: acquire, acquired; country, countries; reset, resetting."""
    ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= _LEAST_STEM), "")
    stem = word.removesuffix(ending)
    if len(stem) > _LEAST_STEM and stem[-1] == stem[-2]:
        stem = stem[:-1]
    return stem[:-1] if len(stem) > _LEAST_STEM and stem[-1] in _LAST_LETTERS else stem


def _unprefixed(word: str) -> Iterator[str]:
    for prefix in _PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= _LEAST_PREFIXED:
            yield _stem(word.removeprefix(prefix).lstrip("-"))


def _spelled(match: "regex.Match[str]") -> str:
    """Return symbols as a word, so that they count like one where words are compared."""
    return f" {_SPELLED}{'_'.join(str(ord(symbol)) for symbol in match[0])} "


def _amounts(text: str) -> Iterator["regex.Match[str]"]:
    """Yield the amounts in digits that Python can read; the pattern may know digits of a later Unicode."""
    for amount in _AMOUNT.finditer(text):
        if amount["number"].replace(".", "").isdecimal():
            yield amount


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


def _denies(found: Iterable[str]) -> bool:
    """Tell whether a question denies something; "or not" does not."""
    plain = _NO_DENIALS.sub(" ", " ".join(found))
    return any(word in _NEGATIONS or word.endswith("n't") for word in plain.split())


def _joined(found: Sequence[str], stems: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the stems without function words, those that "and" or "or" joins as one, sorted."""
    groups: list[tuple[str, ...]] = []
    joins = False
    for word, stem in zip(found, stems, strict=True):
        if word in _JOINS:
            joins = True
        elif word not in FUNCTION_WORDS:
            before = groups.pop() if joins and groups else ()
            groups.append(tuple(sorted((*before, stem))))
            joins = False
    return groups


def _cased(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the acronyms that stand in capitals, unless everything does, and the same words that stand small."""
    found = [match[0] for match in _CASED.finditer(text) if match[0].lower() in _ACRONYMS]
    in_capitals = () if text == text.upper() else (word.lower() for word in found if word.isupper())
    return frozenset(in_capitals), frozenset(word for word in found if word.islower())


def _names(text: str) -> list[str]:
    names = []
    for match in _WITH_CAPITAL.finditer(text):
        name = match[0].lower()
        is_common = name in FUNCTION_WORDS and (match[0] != _US or text == text.upper())
        is_name = len(name) > 1 and not is_common and not _NUMBER.fullmatch(name)
        if is_name and not (name in SENTENCE_STARTERS and _opens_sentence(text, match.start())):
            names.append(name)
    return names


def _opens_sentence(text: str, start: int) -> bool:
    before = start - 1
    while before >= 0 and text[before].isspace():
        before -= 1
    return before < 0 or text[before] in _OPENERS


def _has_form_in(name: str, found: Iterable[str]) -> bool:
    if name in _AMERICA:
        return not _AMERICA.isdisjoint(found)
    start = name[:_LEAST_NAME_STEM]
    return any(word.startswith(start) and _are_forms(name, word) for word in found)


def _are_forms(first: str, second: str) -> bool:
    """Tell whether two words have one stem with a name's endings."""
    stem = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    endings = {first.removeprefix(stem), second.removeprefix(stem)}
    return len(stem) >= _LEAST_NAME_STEM and endings <= _NAME_ENDINGS


def _swaps(one: _Features, other: _Features) -> bool:
    """Tell whether the same words stand in an order that says something else: from Java to .NET, from .NET to Java.

    Where "is" stands, and what stands first beside an "and", says nothing.
    """
    if one.joined == other.joined:
        return False
    return sorted(one.stems) == sorted(other.stems) or _exchanges(one.directed, other.directed)


def _exchanges(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether two words changed places across one that gives them a direction: dollars to rupees."""
    if len(first) != len(second):
        return False
    places = [place for place, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]]
    if len(places) != _A_PAIR:
        return False
    one, two = places
    exchanged = (first[one], first[two]) == (second[two], second[one])
    return exchanged and not _DIRECTIONS.isdisjoint(first[one:two])


def _replaces(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether one word with a meaning of its own stands in the place of another: given, received; my, your.

    Not of numbers, which are compared as such: two, 2.
    """
    if len(first) != len(second):
        return False
    pairs = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    return len(pairs) == 1 and (
        _OWNERS.issuperset(pairs[0]) or not any(word in FUNCTION_WORDS or _counts(word) for word in pairs[0])
    )


def _counts(word: str) -> bool:
    return word in NUMBER_WORDS or _NUMBER.fullmatch(word) is not None


def _asks_otherwise(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether the questions ask for different things; what and which may stand for any."""
    if not first or not second or first[0] in second or second[0] in first:
        return False
    return {first[0], second[0]} <= _ASK_ONE_THING | {_MANNER}
