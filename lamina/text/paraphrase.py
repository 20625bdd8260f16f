"""Decide whether two texts that are near by meaning say the same.

Vectors put "lives in Graz" next to "lives in Linz", and "a clinic in Mercer County" next to "a clinic in Macoupin
County". So both texts must agree in everything that changes the meaning. What is in doubt is not the same. The word
lists are English; in other languages numbers, names and some negations still count.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix

import regex

from lamina.text.english import FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS, SENTENCE_STARTERS, listed
from lamina.text.words import words

MAX_QUESTION_CHARS = 2_000

# Words that turn a statement about without a "not", by the side they stand on.
_QUESTION_CONTRASTS = """
before | after | during
with | without
more | less fewer
increase increases increased increasing rise rises rose raise raised higher up \
| decrease decreases decreased decreasing reduce reduces reduced reducing fall falls fell lower lowered down
buy buys buying bought purchase purchased purchases | sell sells selling sold
open opens opened opening | close closes closed closing
start starts started starting begin begins began | stop stops stopped stopping end ends ended quit
enable enables enabled enabling | off disable disables disabled disabling
import imports imported importing | export exports exported exporting
advantage advantages | disadvantage disadvantages
male males | female females
he him his himself | she her hers herself | they them their
same similar similarity similarities similarly | differ differs different difference differences differently
""".strip().splitlines()
_STATEMENT_CONTRASTS = """
like likes liked love loves loved enjoy enjoys prefer prefers adore adores fond \
| dislike dislikes hate hates hated detest detests avoid avoids
unable | capable
always | never rarely seldom | sometimes occasionally | usually often
all every everybody everyone | some few | none nobody
accept accepts accepted approve approves approved allow allows allowed \
| reject rejects rejected deny denies denied forbid forbids forbidden refuse refused
win won wins | lose lost loses
pass passed passes succeed succeeded succeeds | fail failed fails broke broken
join joined joins hired | left leave leaves resigned fired
arrive arrived arrives | depart departed departs
good better best | bad worse worst
first | last | next
early earlier | late later
morning | noon afternoon | evening | night
yesterday | today | tomorrow
north | south | east | west
old older | new newer | young younger
big large bigger larger | small smaller | medium
hot warm | cold cool
high | low
fast quick | slow
left-hand | right-hand
min minimum | max maximum
black | white | red | blue | green | yellow | orange | purple | brown | grey gray | pink
mother mom mum | father dad | sister | brother | wife | husband | son | daughter | aunt | uncle
day days daily | week weeks weekly | month months monthly | year years yearly annual | hour hours hourly \
| minute minutes | second seconds
married | single divorced
public | private
mandatory required must | optional
safe | unsafe dangerous
possible | impossible
true | false
single | double
vegetarian | vegan
spring | summer | autumn | winter
upgrade upgraded | downgrade downgraded
add added adds | remove removed removes
""".strip().splitlines()
Side = tuple[int, int]
"""A contrast and the side of it that a word stands on; a word may stand in several contrasts."""


def _sides_of_words() -> dict[str, frozenset[Side]]:
    sides: dict[str, frozenset[Side]] = {}
    for contrast, listing in enumerate((*_QUESTION_CONTRASTS, *_STATEMENT_CONTRASTS)):
        for side, same_side in enumerate(listing.split("|")):
            for word in same_side.split():
                sides[word] = sides.get(word, frozenset()) | {(contrast, side)}
    return sides


_SIDES = _sides_of_words()
_FILLERS = FUNCTION_WORDS | listed("very truly absolutely definitely currently please due always")
_COMMON = _FILLERS | SENTENCE_STARTERS | frozenset(_SIDES)

_POSSESSIVE = re.compile(r"['’]s$")
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))")
_CAPITALISED = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}_]*(?:[-'’.][\p{L}\p{N}][\p{L}\p{M}\p{N}_]*)*")
_OPENS = re.compile(r"[.!?:\n]\W*$")
# Enough to see the mark before quotes and brackets that open a sentence.
_LEAD_CHARS = 8

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
_CASED = regex.compile(r"(?<![\w'’])(?:\p{Lu}{2,}|\p{Ll}{2,})(?![\w'’])")
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
_OWNERS = listed("my your his her our their")
_JOINS = listed("and or vs versus nor")
_DIRECTIONS = listed("to from into than against over for by before after of with in on about")


def is_same_statement(first: str, second: str) -> bool:
    """Tell whether one of two statements, near by meaning, is enough, because the other says the same.

    They must have the same numbers, negations and names in the same order, stand on the same side of every contrast
    that a closed list knows (likes, dislikes; before, after; red, blue), and neither may have content that the other
    lacks while lacking none itself: "vegetarian" is not "vegetarian, plays basketball".

    Args:
        first: A statement.
        second: Another; the order does not matter.
    """
    one, other = _statement(first), _statement(second)
    return (
        one.numbers == other.numbers
        and one.denials == other.denials
        and one.sides == other.sides
        and one.names_beside(other) == other.names_beside(one)
        and (one.content == other.content or sorted(one.content) != sorted(other.content))
        and not set(one.content) < set(other.content)
        and not set(one.content) > set(other.content)
    )


def is_same_question(first: str, second: str) -> bool:
    """Tell whether two questions, near by meaning, may be given the same answer.

    Both must have the same numbers, symbols and names, both deny or neither, and neither may put another word in the
    place of one of the other's, say the opposite, the same words in another order, or ask where or why instead of how.
    Longer than 2 000 characters is another question: it costs an answer, not a wrong one. Another word without a
    capital, in a question worded otherwise throughout, is left to the threshold.

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
    one, other = _question(first), _question(second)
    if not one.terms or not other.terms or _differ_in_marks(one, other):
        return False
    return one.terms == other.terms or not (
        one.denies != other.denies
        or _are_opposed(one, other)
        or _lacks_a_name(one, other)
        or _lacks_a_name(other, one)
        or _negates_a_word(one, other)
        or _negates_a_word(other, one)
        or _swap_words(one, other)
        or _replace_one(one.stems, other.stems)
        or _ask_otherwise(one.question_words, other.question_words)
    )


def statement_kinds(texts: Sequence[str]) -> list[Hashable]:
    """Return for each statement the features that all statements of the same meaning share; others need no comparison.

    Names count as far as no text writes them small: one that does makes a name of one text a word of another.
    """
    small: set[str] = set()
    kinds = []
    for text in texts:
        found = _statement(text)
        small |= found.small
        kinds.append(((found.numbers, found.denials, found.sides), found.names))
    return [(rest, tuple(name for name in names if name not in small)) for rest, names in kinds]


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


# A batch of notes compares each text with many others.
@lru_cache(maxsize=4096)
def _statement(text: str) -> _Statement:
    found = _plain_words(text)
    digits = (number.lstrip("0") or "0" for number in _NUMBER.findall(_THOUSANDS.sub("", text)))
    return _Statement(
        numbers=(*digits, *(str(NUMBER_WORDS[word]) for word in found if word in NUMBER_WORDS)),
        denials=_count_denials(found),
        sides=_sides(found),
        names=tuple(_capitalised_names(text)),
        small=frozenset(_plain_words(" ".join(word for word in text.split() if word.islower()))),
        content=tuple(word for word in found if word not in _FILLERS),
    )


@dataclass(frozen=True, slots=True)
class _Question:
    """The features of a question that its answer depends on.

    Args:
        terms: The words and the symbols, which are spelled as words so that they count like one.
        stems: The terms without their endings.
        symbols: The symbols alone, sorted.
        priced: The numbers at a sign of a currency or of percent, each with the sign.
        measured: The same, and those at a word for such a sign.
        acronyms: Of US, IT and the like those in capitals, and never small, unless everything is in capitals.
        small: Of the same those written small, and never in capitals.
        names: The words with a capital, or with digits and letters, that open no sentence.
        joined: The stems without function words, in order; those that "and" or "or" joins are one, sorted.
        directed: The same one by one, with the words that give them a direction.
    """

    terms: tuple[str, ...]
    stems: tuple[str, ...]
    symbols: tuple[str, ...]
    numbers: frozenset[float]
    priced: frozenset[tuple[float, str]]
    measured: frozenset[tuple[float, str]]
    acronyms: frozenset[str]
    small: frozenset[str]
    names: frozenset[str]
    sides: frozenset[Side]
    denies: bool
    question_words: tuple[str, ...]
    joined: tuple[tuple[str, ...], ...]
    directed: tuple[str, ...]


# A lookup compares one question with a few near ones.
@lru_cache(maxsize=256)
def _question(question: str) -> _Question:
    text = _SPELT_US.sub(_US, question)
    terms = _plain_words(_SYMBOLS.sub(_spelled, text))
    stems = [_stem(term) for term in terms]
    amounts = list(_amounts(_LIST_NUMBER.sub("", _GROUPING.sub("", text))))
    units = [(number, unit) for number, found in amounts for unit in found]
    counted = (float(NUMBER_WORDS[term]) for term in terms if term in NUMBER_WORDS and term not in _NO_NUMBERS)
    cased = [match[0] for match in _CASED.finditer(text) if match[0].lower() in _ACRONYMS]
    capitals = frozenset(() if text == text.upper() else (word.lower() for word in cased if word.isupper()))
    small = frozenset(word for word in cased if word.islower())
    pairs = list(zip(terms, stems, strict=True))
    return _Question(
        terms=tuple(terms),
        stems=tuple(stems),
        symbols=tuple(sorted(term for term in terms if term.startswith(_SPELLED))),
        numbers=frozenset((*(number for number, _ in amounts), *counted)),
        priced=frozenset((number, unit) for number, unit in units if unit not in _UNITS),
        measured=frozenset((number, _UNITS.get(unit, unit)) for number, unit in units),
        acronyms=capitals - small,
        small=small - capitals,
        names=frozenset(_question_names(text)),
        sides=_sides(terms),
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


def _sides(found: Iterable[str]) -> frozenset[Side]:
    plain = " ".join(found).replace("with no ", "without ")
    return frozenset(side for word in plain.split() for side in _SIDES.get(word, ()))


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
    """Compare the marks that the words of two questions need not show: numbers, units, symbols, acronyms."""
    return (
        one.numbers != other.numbers
        or one.symbols != other.symbols
        or not (one.priced <= other.measured and other.priced <= one.measured)
        or not one.acronyms.isdisjoint(other.small)
        or not other.acronyms.isdisjoint(one.small)
    )


def _are_opposed(one: _Question, other: _Question) -> bool:
    """Tell whether two questions take different sides of a contrast; one that takes both sides opposes neither."""
    mine = {contrast for contrast, _ in one.sides - other.sides}
    return any(contrast in mine and contrast < len(_QUESTION_CONTRASTS) for contrast, _ in other.sides - one.sides)


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


def _replace_one(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether one word with a meaning of its own stands in the place of another: given, received; my, your.

    Not of numbers, which are compared as such: two, 2.
    """
    places = _differing_places(first, second)
    if len(places) != 1:
        return False
    pair = (first[places[0]], second[places[0]])
    has_no_meaning = any(
        word in FUNCTION_WORDS or word in NUMBER_WORDS or _PLAIN_NUMBER.fullmatch(word) for word in pair
    )
    return _OWNERS.issuperset(pair) or not has_no_meaning


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
