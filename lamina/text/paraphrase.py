"""Decide whether two texts that are near by meaning say the same.

Vectors put "lives in Graz" next to "lives in Linz", and "a clinic in Mercer County" next to "a clinic in Macoupin
County"; of words that their model does not know they see nothing at all. So the decision is about what differs between
the texts, in any script. Case, composition, width, the digits' script, punctuation and white space change nothing in
any language. Any other difference counts, unless both texts are English and every word of it is understood: it adds
nothing, has the same meaning, or, in questions, leaves the threshold to decide. What is in doubt is not the same.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from os.path import commonprefix
from typing import TypeVar

from lamina.text.contrasts import OPPOSITES, SIDES, Side
from lamina.text.english import FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS, SENTENCE_STARTERS, listed
from lamina.text.english_reading import english_words, is_english, is_understood, leftovers, statement_words
from lamina.text.patterns import regex
from lamina.text.segments import are_spelled_alike, plainly_written, segments
from lamina.text.vocabulary import is_english_word, meaning_of
from lamina.text.words import words

MAX_QUESTION_CHARS = 2_000
# Left of a Turkish capital letter in small letters.
_DOT_ABOVE = "\u0307"
_SHORT_CHARS = 10_000

_FILLERS = FUNCTION_WORDS | listed("very truly absolutely definitely currently please due always")
_COMMON = _FILLERS | SENTENCE_STARTERS | frozenset(SIDES)

_POSSESSIVE = re.compile(r"['’]s$")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))")
_CAPITALISED = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}_]*(?:[-'’.][\p{L}\p{N}][\p{L}\p{M}\p{N}_]*)*")
# Enough to see the mark before quotes and brackets that open a sentence.
_LEAD_CHARS = 8
_OPENS = re.compile(rf"[.!?:\n]\W{{0,{_LEAD_CHARS - 1}}}$")

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
_PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?k?", re.IGNORECASE)
# Indian grouping too: 1,00,000.
_GROUPING = re.compile(r"(?<=\d),(?=\d{2,3}(?:\D|$))")
_LIST_NUMBER = re.compile(r"^\W*\d+[.)]\s")
# "one" and "first" seldom count anything in a question: "how does one", "which one".
_NO_NUMBERS = listed("one ones once first second zero")
# What says something at words: C++ and C#, 2+2 and 2*2, 3 > 5 and 3 < 5, 1/2, &str, a grade of A-;
# not "#" of a tag, "men/women".
_SYMBOLS = regex.compile(
    r"(?<=\w)[#*^\p{Sm}]++|(?<![*^\p{Sm}])[*^\p{Sm}]++(?=\w)|(?<=\w\s)[*^\p{Sm}]++(?=\s[\w−-])|(?<=\b\p{L})-(?![\w-])"
    r"|(?<=\w)@(?=\w)|(?<=\d\s?)[/%](?=\s?\d)|(?<!\w)&(?=\w)|\p{Sc}(?=\p{L})"
)
_SPELLED = "_"
# What is meant by a function word in capitals, where not everything is; not what is often stressed: not, all, you.
_ACRONYMS = listed("us it who up be am me in or and can")
# Not of "9 AM".
_CASED = regex.compile(r"(?<![\w'’])(?<!\d\s?)(?:\p{Lu}{2,}|\p{Ll}{2,})(?![\w'’])")
# A word with a capital anywhere, as in iPhone, or with digits and letters.
_WITH_CAPITAL = regex.compile(
    r"(?<![\p{L}\p{M}\p{N}])(?:\p{Ll}*+\p{Lu}[\p{L}\p{M}\p{N}]*+|\p{L}*+\p{N}++\p{L}[\p{L}\p{N}]*+)"
)
_OPENERS = ".!?:(\"'"
# The one name that is a function word, too: written small it is "us".
_US = "US"
_SPELT_US = re.compile(r"\b(?:u\.s(?:\.a)?\b\.?|usa\b|united states\b(?: of america\b)?)", re.IGNORECASE)
_AMERICA = listed("us america american americans")
# What a name may end with and still be the same one's: India, Indian; Turkey, Turkish.
_NAME_ENDINGS = listed("s n ns an ian ans ians ish ese i is ey y e a ia ic") | {""}
_LEAST_NAME_STEM = 4
# The same of other words, after their stems: decorat, decoration; develop, development.
_DERIVED = listed("ion ation ment nes ness") | {""}
# Small words that turn the meaning around, so that one more or less of them is another question.
_PARTICLES = listed("off out down under below above before after without never until unless except against less least")
_ENDINGS = ("ings", "ing", "edly", "ies", "ied", "ers", "er", "ed", "es", "s", "ly")
_LAST_LETTERS = "eyi"
_LEAST_STEM = 3
# From the second row on: German, French, Spanish, Italian, Portuguese, Dutch; none that is also an English word.
_DENIALS = (NEGATIONS - {"stopped"}) | listed(
    """
    cant dont wont isnt doesnt didnt arent couldnt shouldnt wouldnt
    nicht nichts kein keine keinen keinem keiner keines nie niemals niemand ohne ne jamais sans aucun aucune nunca jamás
    ningún ninguno ninguna senza nessun nessuno nessuna não nenhum nenhuma niet geen nooit zonder
    """
)
_NO_DENIALS = re.compile(r"\b(?:or (?:why )?not|not only)\b")
_PREFIXES = ("un", "non", "dis", "il", "ir", "im", "in", "anti", "mis")
_LEAST_PREFIXED = 4
_QUESTION_WORDS = listed("who when where why how which what")
_ASK_ONE_THING = listed("who when where why how")
_SUBJECT = re.compile(
    r"\A\W*+(?:I|you|he|she|it|we|they|my|your|his|her|its|our|their|the|this|these)\b", re.IGNORECASE
)
_OWNERS = listed("my your his her our their")
# Of so few words with content one more is a large share.
_FEW_WORDS = 2
_JOINS = listed("and or vs versus nor")
_DIRECTIONS = listed("to from into than against over for by before after of with in on about")


class Difference(StrEnum):
    """A difference between two texts that say the same."""

    SPELLING = "spelling"
    """Case, composition, width, the digits' script, punctuation or white space."""
    FORMS = "forms"
    """Contractions, numbers in words, words that add nothing as "the" and "really"."""
    SYNONYMS = "synonyms"
    WORDING = "wording"
    """Other words of a question that ask the same."""


Features = TypeVar("Features")


def _cached(read: Callable[[str], Features]) -> Callable[[str], Features]:
    """Keep the features of texts, for a batch of notes compares each with many; those of few long ones fill as much."""
    of_short, of_long = lru_cache(maxsize=4096)(read), lru_cache(maxsize=4)(read)
    return lambda text: of_short(text) if len(text) <= _SHORT_CHARS else of_long(text)


def is_same_statement(first: str, second: str) -> bool:
    """Tell whether one of two statements, near by meaning, is enough, because the other says the same.

    Args:
        first: A statement.
        second: Another; the order does not matter.
    """
    return difference_of_statements(first, second) is not None


def difference_of_statements(first: str, second: str) -> Difference | None:
    """Return the difference between two statements that say the same; ``None`` if they may say different things.

    English ones must have the same words in the same order but for contractions, words that add nothing, and words of
    one meaning that a closed list knows; and the same numbers, negations and names, on the same side of every contrast.
    Two questions are the same if they also ask the same (:func:`is_same_question`), and neither has content that the
    other lacks while lacking none itself.
    """
    written = first == second or _compare_as_written(first, second)
    if written is not None:
        return Difference.SPELLING if written else None
    if not _share_features(_statement(first), _statement(second)):
        return None
    one, other = _english(first), _english(second)
    if not _are_understood(one, other):
        return None
    if statement_words(one) == statement_words(other):
        kept = [[word for word in found if meaning_of(word) == word] for found in (one, other)]
        return Difference.FORMS if statement_words(kept[0]) == statement_words(kept[1]) else Difference.SYNONYMS
    is_asked = _is_question(first) and _is_question(second)
    return Difference.WORDING if is_asked and _ask_and_say_the_same(first, second) else None


def _ask_and_say_the_same(first: str, second: str) -> bool:
    one, other = _statement(first), _statement(second)
    return (
        (one.content == other.content or sorted(one.content) != sorted(other.content))
        and not set(one.content) < set(other.content)
        and not set(one.content) > set(other.content)
        and is_same_question(first, second)
    )


def _share_features(one: "_Statement", other: "_Statement") -> bool:
    return (
        one.numbers == other.numbers
        and one.denials == other.denials
        and one.sides == other.sides
        and one.names_beside(other) == other.names_beside(one)
    )


def is_same_question(first: str, second: str) -> bool:
    """Tell whether two questions, near by meaning, may be given the same answer.

    English ones must have the same numbers, symbols and names, both deny or neither, and neither may have a word that
    is no common English one and the other lacks, put one word in the place of another, say the opposite, the same words
    in another order, or ask where or why instead of how. Longer than 2 000 characters is another question: it costs an
    answer, not a wrong one. More than one other word, or one more, is left to the threshold.

    Args:
        first: A question.
        second: Another; the order does not matter.

    Source:
        80 854 labelled pairs of questions (QQP), the rules chosen on one half: on the other, of the
        pairs within a cosine of .95 and as many true ones found, they take out a quarter of the false.
    """
    if first == second:
        return True
    if max(len(first), len(second)) > MAX_QUESTION_CHARS:
        return False
    written = _compare_as_written(first, second)
    if written is not None:
        return written
    if _tells(first) or _tells(second):
        return is_same_statement(first, second)
    one, other = _question(first), _question(second)
    if (
        not _are_understood(one.words, other.words)
        or _differ_in_marks(one, other)
        or _differ_in_acronyms(_SPELT_US.sub(_US, first), _SPELT_US.sub(_US, second))
    ):
        return False
    return one.terms == other.terms or not (
        one.denies != other.denies
        or _are_opposed(one, other)
        or _lacks_a_name(one, other)
        or _lacks_a_name(other, one)
        or _negates_a_word(one, other)
        or _negates_a_word(other, one)
        or _swap_words(one, other)
        or _change_content(one.words, other.words)
        or _ask_otherwise(one.question_words, other.question_words)
    )


def _tells(text: str) -> bool:
    """Tell whether a text says something rather than ask it."""
    return "?" not in text and _SUBJECT.match(text) is not None


def _compare_as_written(first: str, second: str) -> bool | None:
    """Compare two texts in any language by their segments; ``None`` if only a reader of their language can tell."""
    one, other = _segments(first), _segments(second)
    if are_spelled_alike(one, other):
        return bool(one or other) and not _differ_in_acronyms(first, second)
    if not one or not other:
        return False
    are_keys = len(one) == len(other) and all(a.lower() == b.lower() for a, b in zip(one, other, strict=True))
    return False if are_keys else None


def _are_understood(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether two texts are English, and every word that only one of them has, in no form, is a common one."""
    mine, theirs = leftovers([_stem(word) for word in one], [_stem(word) for word in other])
    changed = {*mine, *theirs}
    strange = [word for word in (*one, *other) if _stem(word) in changed and not is_understood(word)]
    return is_english(one, other) and all(_has_form_in(word, other if word in one else one) for word in strange)


def statement_kinds(texts: Sequence[str]) -> list[Hashable]:
    """Return for each statement the features that all statements of the same meaning share; others need no comparison.

    A question and the same words without its mark are of two kinds. Names of questions count as far as no text writes
    them small: one that does makes a name of one text a word of another.
    """
    small = {word for text in texts if _is_question(text) for word in _statement(text).small}
    return [_question_kind(text, small) if _is_question(text) else _wording(text) for text in texts]


def _question_kind(text: str, small: AbstractSet[str]) -> Hashable:
    found = _statement(text)
    names = tuple(name for name in found.names if name not in small)
    return found.numbers, found.denials, found.sides, names


def _wording(text: str) -> Hashable:
    """Return the words of a statement so that those of one meaning, and any of one spelling, have the same."""
    return tuple(word.lower().upper().replace(_DOT_ABOVE, "") for word in statement_words(_english(text)))


def _is_question(text: str) -> bool:
    return text.rstrip().endswith(("?", "\uff1f"))


@dataclass(frozen=True, slots=True)
class _Statement:
    """The features of a statement that its meaning depends on.

    Args:
        numbers: Those in digits, "1,500" as 1500, then the written ones, each kind in order.
        names: The capitalised words in order, but for common ones that open a sentence.
        small: The words that are written without a capital.
        content: The words without fillers, in order.
    """

    numbers: tuple[str, ...]
    denials: int
    sides: frozenset[Side]
    names: tuple[str, ...]
    small: frozenset[str]
    content: tuple[str, ...]

    def names_beside(self, other: "_Statement") -> list[str]:
        """Return the names; a word that the other statement writes small is a name in neither."""
        return [name for name in self.names if name not in other.small]


@_cached
def _statement(written: str) -> _Statement:
    text = plainly_written(written)
    found = _plain_words(text)
    digits = (number.lstrip("0") or "0" for number in _NUMBER.findall(_THOUSANDS.sub("", text)))
    return _Statement(
        numbers=(*digits, *(str(NUMBER_WORDS[word]) for word in found if word in NUMBER_WORDS)),
        denials=_count_denials(found),
        sides=_sides(found, SIDES),
        names=tuple(_capitalised_names(text)),
        small=frozenset(_plain_words(" ".join(word for word in text.split() if word.islower()))),
        content=tuple(word for word in found if word not in _FILLERS),
    )


_segments = _cached(segments)


@_cached
def _english(text: str) -> tuple[str, ...]:
    return english_words(_segments(text))


@dataclass(frozen=True, slots=True)
class _Question:
    """The features of a question that its answer depends on.

    Args:
        words: The words as English ones, contractions written out.
        terms: The words and the symbols, which are spelled as words so that they count like one.
        stems: The terms without their endings.
        symbols: The symbols alone, sorted.
        priced: The numbers at a sign of a currency or of percent, each with the sign.
        measured: The same, and those at a word for such a sign.
        names: The words with a capital, or with digits and letters, that open no sentence.
        joined: The stems without function words, in order; those that "and" or "or" joins are one, sorted.
        directed: The same one by one, with the words that give them a direction.
    """

    words: tuple[str, ...]
    terms: tuple[str, ...]
    stems: tuple[str, ...]
    symbols: tuple[str, ...]
    numbers: frozenset[float]
    priced: frozenset[tuple[float, str]]
    measured: frozenset[tuple[float, str]]
    names: frozenset[str]
    sides: frozenset[Side]
    denies: bool
    question_words: tuple[str, ...]
    joined: tuple[tuple[str, ...], ...]
    directed: tuple[str, ...]


# A lookup compares one question with a few near ones.
@lru_cache(maxsize=256)
def _question(question: str) -> _Question:
    text = _SPELT_US.sub(_US, plainly_written(question))
    terms = _plain_words(_SYMBOLS.sub(_spelled, text))
    stems = [_stem(term) for term in terms]
    amounts = list(_amounts(_LIST_NUMBER.sub("", _GROUPING.sub("", text))))
    units = [(number, unit) for number, found in amounts for unit in found]
    counted = (float(NUMBER_WORDS[term]) for term in terms if term in NUMBER_WORDS and term not in _NO_NUMBERS)
    pairs = list(zip(terms, stems, strict=True))
    read = _english(_LIST_NUMBER.sub("", text))
    return _Question(
        words=read,
        terms=tuple(terms),
        stems=tuple(stems),
        symbols=tuple(sorted(term for term in terms if term.startswith(_SPELLED))),
        numbers=frozenset((*(number for number, _ in amounts), *counted)),
        priced=frozenset((number, unit) for number, unit in units if unit not in _UNITS),
        measured=frozenset((number, _UNITS.get(unit, unit)) for number, unit in units),
        names=frozenset(_question_names(text)),
        sides=_sides(read, OPPOSITES),
        # "or not" denies nothing.
        denies=_count_denials(_NO_DENIALS.sub(" ", " ".join(terms)).split()) > 0,
        question_words=tuple(term for term in terms if term in _QUESTION_WORDS),
        joined=tuple(_joined(pairs)),
        directed=tuple(stem for term, stem in pairs if term in _DIRECTIONS or term not in FUNCTION_WORDS),
    )


def _joined(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    groups: list[tuple[str, ...]] = []
    joins = False
    for term, stem in pairs:
        if term in _JOINS:
            joins = True
        elif term not in FUNCTION_WORDS:
            before = groups.pop() if joins and groups else ()
            groups.append(tuple(sorted((*before, stem))))
            joins = False
    return groups


def _sides(found: Iterable[str], listed_sides: Mapping[str, frozenset[Side]]) -> frozenset[Side]:
    plain = " ".join(found).replace("with no ", "without ")
    return frozenset(side for word in plain.split() for side in listed_sides.get(word, ()))


def _plain_words(text: str) -> list[str]:
    return [_POSSESSIVE.sub("", word) for word in words(text)]


def _count_denials(found: Iterable[str]) -> int:
    return sum(word in _DENIALS or word.endswith("n't") for word in found)


def _capitalised_names(text: str) -> Iterator[str]:
    for match in _CAPITALISED.finditer(text):
        start = match.start()
        opens = start == 0 or _OPENS.search(text[max(0, start - _LEAD_CHARS) : start]) is not None
        for place, name in enumerate(_plain_words(match.group())):
            if name not in FUNCTION_WORDS and not (opens and place == 0 and name in _COMMON):
                yield name


def _spelled(match: "regex.Match[str]") -> str:
    return f" {_SPELLED}{'_'.join(str(ord(symbol)) for symbol in match[0])} "


def _amounts(text: str) -> Iterator[tuple[float, tuple[str, ...]]]:
    """Yield each number in digits, "30k" and "30,000" alike, with the units around it."""
    for amount in _AMOUNT.finditer(text):
        # The pattern may know digits of a later Unicode than Python can read.
        if amount["number"].replace(".", "").isdecimal():
            number = float(amount["number"]) * (1000 if amount["thousands"] else 1) * (-1 if amount["minus"] else 1)
            yield number, tuple(unit.casefold() for unit in (amount["before"], amount["after"]) if unit is not None)


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """Return the part that the forms of a word share: acquire, acquired; country, countries; reset, resetting."""
    ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= _LEAST_STEM), "")
    stem = word.removesuffix(ending)
    if len(stem) > _LEAST_STEM and stem[-1] == stem[-2]:
        stem = stem[:-1]
    return stem[:-1] if len(stem) > _LEAST_STEM and stem[-1] in _LAST_LETTERS else stem


_NO_CONTENT = frozenset(map(_stem, FUNCTION_WORDS)) | frozenset(
    map(_stem, listed("really actually exactly truly simply please currently basically literally possibly will might"))
)
# Words that change little where they are added.
_LIGHT = frozenset(
    map(
        _stem,
        listed(
            """
            different major basic possible people person country world think know explain include included provide
            provided like lot day days exist read buy follow thing things happen great common useful thank help going
            want way get make become best good kind type use using advantages disadvantages dollars euros rupees
            """
        ),
    )
)


def _question_names(text: str) -> Iterator[str]:
    for match in _WITH_CAPITAL.finditer(text):
        name = match[0].lower()
        is_common = name in FUNCTION_WORDS and (match[0] != _US or text == text.upper())
        is_name = len(name) > 1 and not is_common and not _PLAIN_NUMBER.fullmatch(name)
        if is_name and not (name in SENTENCE_STARTERS and _opens_sentence(text, match.start())):
            yield name


def _opens_sentence(text: str, start: int) -> bool:
    before = start - 1
    while before >= 0 and text[before].isspace():
        before -= 1
    return before < 0 or text[before] in _OPENERS


def _differ_in_marks(one: _Question, other: _Question) -> bool:
    """Compare the marks that the words of two questions need not show: numbers, units, symbols."""
    return (
        one.numbers != other.numbers
        or one.symbols != other.symbols
        or not (one.priced <= other.measured and other.priced <= one.measured)
    )


def _differ_in_acronyms(first: str, second: str) -> bool:
    """Tell whether a text writes small what the other has in capitals: US and us, IT and it."""
    (capitals, small), (other_capitals, other_small) = _acronyms(first), _acronyms(second)
    return not (capitals.isdisjoint(other_small) and other_capitals.isdisjoint(small))


def _acronyms(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return which of US, IT and the like stand in capitals and never small, and the reverse; all capitals say none."""
    cased = [match[0] for match in _CASED.finditer(text) if match[0].lower() in _ACRONYMS]
    capitals = frozenset(() if text == text.upper() else (word.lower() for word in cased if word.isupper()))
    small = frozenset(word for word in cased if word.islower())
    return capitals - small, small - capitals


def _are_opposed(one: _Question, other: _Question) -> bool:
    """Tell whether two questions take different sides of a contrast; one that takes both sides opposes neither."""
    mine = {contrast for contrast, _ in one.sides - other.sides}
    return any(contrast in mine for contrast, _ in other.sides - one.sides)


def _lacks_a_name(one: _Question, other: _Question) -> bool:
    """Tell whether a name of one question stands nowhere in the other one, in no form."""
    return any(_stem(name) not in other.stems and not _has_form_in(name, other.terms) for name in one.names)


def _has_form_in(name: str, found: Iterable[str]) -> bool:
    if name in _AMERICA:
        return not _AMERICA.isdisjoint(found)
    start = name[:_LEAST_NAME_STEM]
    return any(word.startswith(start) and _are_forms(name, word) for word in found)


def _are_forms(first: str, second: str) -> bool:
    """Tell whether two words have one stem with a name's endings."""
    stem = commonprefix((first, second))  # noqa: RUF071 - by characters, not as paths
    return len(stem) >= _LEAST_NAME_STEM and {first.removeprefix(stem), second.removeprefix(stem)} <= _NAME_ENDINGS


def _negates_a_word(one: _Question, other: _Question) -> bool:
    """Tell whether one question has a word of the other one with a prefix against it: biased, unbiased."""
    stems = set(other.stems) - set(one.stems)
    return any(
        _stem(word.removeprefix(prefix).lstrip("-")) in stems
        for word in one.terms
        if word not in other.terms
        for prefix in _PREFIXES
        if word.startswith(prefix) and len(word) - len(prefix) >= _LEAST_PREFIXED
    )


def _swap_words(one: _Question, other: _Question) -> bool:
    """Tell whether the same words stand in an order that says something else: from Java to .NET, from .NET to Java.

    Where "is" stands, and which stands first beside an "and", says nothing.
    """
    if one.joined == other.joined:
        return False
    return sorted(one.stems) == sorted(other.stems) or _exchange_two(one.directed, other.directed)


def _exchange_two(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether two words changed places across one that gives them a direction: dollars to rupees."""
    places = _differing_places(first, second)
    if len(places) != 2:  # noqa: PLR2004 - a pair
        return False
    one, two = places
    exchanged = (first[one], first[two]) == (second[two], second[one])
    return exchanged and not _DIRECTIONS.isdisjoint(first[one:two])


def _change_content(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether words of two questions stand for each other, or one more changes much.

    One for another are: given, received; my, your. Of few words, another one counts: the best phone, the best gaming
    phone; and anywhere one as "off". Numbers are compared as such: two, 2.
    """
    stems = [
        [_US.lower() if word in _AMERICA else _stem(meaning_of(word)) for word in found] for found in (first, second)
    ]
    left = leftovers(*stems)
    changed = {word for found in left for word in found}
    if not _PARTICLES.isdisjoint(changed) or (all(len(found) == 1 for found in left) and changed <= _OWNERS):
        return True
    mine, theirs = ([word for word in found if _has_content(word)] for found in left)
    if mine and theirs:
        return not (len(mine) == len(theirs) == 1 and _are_derived(mine[0], theirs[0]))
    shared = set(stems[0]).intersection(stems[1])
    adds = not shared.union(_LIGHT).issuperset((*mine, *theirs))
    return adds and sum(map(_has_content, shared)) <= _FEW_WORDS


def _has_content(stem: str) -> bool:
    return stem[0].isalpha() and stem not in _NO_CONTENT


def _are_derived(first: str, second: str) -> bool:
    """Tell whether two words have one stem with endings that change no meaning: decorate, decoration."""
    stem = commonprefix((first, second))  # noqa: RUF071 - by characters, not as paths
    endings = {first.removeprefix(stem), second.removeprefix(stem)}
    is_name = not (is_english_word(first) or is_english_word(second))
    return len(stem) >= _LEAST_NAME_STEM and (endings <= _DERIVED or (is_name and endings <= _NAME_ENDINGS))


def _differing_places(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Return where two rows of words differ; nowhere if they differ in length."""
    if len(first) != len(second):
        return []
    return [place for place, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]]


def _ask_otherwise(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether two questions ask for different things; one that asks for a thing may ask for any."""
    if not first or not second or first[0] in second or second[0] in first:
        return False
    return {first[0], second[0]} <= _ASK_ONE_THING
