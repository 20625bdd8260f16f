"""When two texts say the same: near by meaning, and equal in everything whose change changes the meaning."""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

from lamina.text.english import FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS, SENTENCE_STARTERS, listed
from lamina.text.words import words

RAISED_BY = 0.1
MAX_LEAD_CHARS = 8

_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))")
_CAPITALISED = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}_]*(?:[-'’.][\p{L}\p{N}][\p{L}\p{M}\p{N}_]*)*")
_OPENS = re.compile(r"[.!?:\n]\W*$")
_POSSESSIVE = re.compile(r"'s$")

# Words that turn a statement about without a "not", by the side they stand on; of either kind, both texts must have
# the same.
_CONTRASTS = (
    (
        "like likes liked love loves loved enjoy enjoys prefer prefers adore adores fond | "
        "dislike dislikes hate hates hated detest detests avoid avoids"
    ),
    "unable | capable",
    "always | never rarely seldom | sometimes occasionally | usually often",
    "before | after | during",
    "more | less fewer",
    "with | without",
    "all every everybody everyone | some few | none nobody",
    (
        "increase increases increased rise rises rose raise raised higher up | "
        "decrease decreases decreased fall falls fell lower lowered down"
    ),
    "enable enables enabled | off disable disables disabled",
    "start starts started begin begins began | stop stops stopped end ends ended quit",
    "open opens opened | close closes closed",
    (
        "accept accepts accepted approve approves approved allow allows allowed | "
        "reject rejects rejected deny denies denied forbid forbids forbidden refuse refused"
    ),
    "win won wins | lose lost loses",
    "pass passed passes succeed succeeded succeeds | fail failed fails broke broken",
    "buy bought buys purchase purchased purchases | sell sold sells",
    "join joined joins hired | left leave leaves resigned fired",
    "arrive arrived arrives | depart departed departs",
    "import imports imported | export exports exported",
    "good better best | bad worse worst",
    "first | last | next",
    "early earlier | late later",
    "morning | noon afternoon | evening | night",
    "yesterday | today | tomorrow",
    "north | south | east | west",
    "old older | new newer | young younger",
    "big large bigger larger | small smaller | medium",
    "hot warm | cold cool",
    "high | low",
    "fast quick | slow",
    "left-hand | right-hand",
    "min minimum | max maximum",
    "black | white | red | blue | green | yellow | orange | purple | brown | grey gray | pink",
    "mother mom mum | father dad | sister | brother | wife | husband | son | daughter | aunt | uncle",
    "he him his | she her hers | they them their",
    (
        "day days daily | week weeks weekly | month months monthly | year years yearly annual | "
        "hour hours hourly | minute minutes | second seconds"
    ),
    "married | single divorced",
    "public | private",
    "mandatory required must | optional",
    "safe | unsafe dangerous",
    "possible | impossible",
    "true | false",
    "single | double",
    "vegetarian | vegan",
    "spring | summer | autumn | winter",
    "upgrade upgraded | downgrade downgraded",
    "add added adds | remove removed removes",
)


def _sides_of_words() -> dict[str, frozenset[tuple[int, int]]]:
    """Return for each word the (contrast, side) it stands on; a word may stand in several contrasts."""
    sides: dict[str, frozenset[tuple[int, int]]] = {}
    for number, contrast in enumerate(_CONTRASTS):
        for place, side in enumerate(contrast.split("|")):
            for word in side.split():
                sides[word] = sides.get(word, frozenset()) | {(number, place)}
    return sides


_SIDES = _sides_of_words()
_FILLERS = FUNCTION_WORDS | listed("very truly absolutely definitely currently please due always")


_COMMON = _FILLERS | SENTENCE_STARTERS | frozenset(_SIDES)


def are_near_duplicates(first: str, second: str, cosine: float, *, min_cosine: float) -> bool:
    """Tell whether one of two texts is enough, because the other says the same.

    Beside a cosine of at least ``min_cosine`` the texts must have the same numbers, negations and names in the same
    order, stand on the same side of every contrast that a closed list knows (likes, dislikes; before, after; red,
    blue), and neither may have content that the other lacks while lacking none itself: "vegetarian" is not
    "vegetarian, plays basketball". What is in doubt is not a duplicate. The word lists are English; in other
    languages numbers and capitalised names still count.

    Args:
        first: A text.
        second: Another; the order does not matter.
        cosine: Of their embeddings, −1..1.
        min_cosine: The least cosine of duplicates.
    """
    if cosine < min_cosine:
        return False
    left, right = _features(first), _features(second)
    return (
        left.numbers == right.numbers
        and left.negations == right.negations
        and left.sides == right.sides
        and _names(left, right) == _names(right, left)
        and not _differs_in_content(left.content, right.content)
    )


def kinds_of(texts: Sequence[str]) -> list[Hashable]:
    """Return for each text what is equal in all its near-duplicates, so that others need not be compared.

    Names count as far as no text writes them small: one that does makes a name of one text a word of another.
    """
    small: set[str] = set()
    kinds = []
    for text in texts:
        features = _features(text)
        small |= features.small
        names = tuple(name for opens, name in features.capitalised if not (opens and name in _COMMON))
        kinds.append(((features.numbers, features.negations, features.sides), names))
    return [(rest, tuple(name for name in names if name not in small)) for rest, names in kinds]


def raised_importance(importance: float, other: float) -> float:
    """Return the importance of a memory that was told once more: above both, never above 1."""
    most = max(importance, other)
    return most + RAISED_BY * (1 - most)


@dataclass(frozen=True, slots=True)
class _Features:
    """What of a text must be equal in its near-duplicates.

    Args:
        capitalised: Its capitalised words in order, each with whether it opens a sentence.
        small: The words that it writes without a capital.
        content: Its words without those that only hold it together, in order.
    """

    numbers: tuple[str, ...]
    negations: int
    sides: frozenset[tuple[int, int]]
    capitalised: tuple[tuple[bool, str], ...]
    small: frozenset[str]
    content: tuple[str, ...]


@lru_cache(maxsize=4096)
def _features(text: str) -> _Features:
    found = _words(text)
    return _Features(
        tuple(_numbers(text, found)),
        sum(word in NEGATIONS or word.endswith("n't") for word in found),
        frozenset(side for word in found for side in _SIDES.get(word, ())),
        tuple(_capitalised(text)),
        frozenset(_words(" ".join(word for word in text.split() if word.islower()))),
        tuple(word for word in found if word not in _FILLERS),
    )


def _words(text: str) -> list[str]:
    return [_POSSESSIVE.sub("", word) for word in words(text)]


def _numbers(text: str, found: Sequence[str]) -> Iterator[str]:
    """Yield the numbers in digits, "1,500" as 1500, then the written ones, each kind in order."""
    yield from (number.lstrip("0") or "0" for number in _NUMBER.findall(_THOUSANDS.sub("", text)))
    yield from (str(NUMBER_WORDS[word]) for word in found if word in NUMBER_WORDS)


def _capitalised(text: str) -> Iterator[tuple[bool, str]]:
    for match in _CAPITALISED.finditer(text):
        opens = match.start() == 0 or _OPENS.search(text[max(0, match.start() - MAX_LEAD_CHARS) : match.start()])
        for place, name in enumerate(_words(match.group())):
            if name not in FUNCTION_WORDS:
                yield bool(opens) and place == 0, name


def _names(features: _Features, other: _Features) -> list[str]:
    """Return the capitalised words in order, but for common ones that open a sentence.

    A word that the other text writes small counts as a name in neither.
    """
    return [name for opens, name in features.capitalised if name not in other.small and not (opens and name in _COMMON)]


def _differs_in_content(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether one text only adds to the other, or orders the same words in another way."""
    if sorted(first) == sorted(second):
        return first != second
    return bool(set(first) - set(second)) != bool(set(second) - set(first))
