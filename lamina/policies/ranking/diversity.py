"""Keep repetitions from crowding out other hits."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import regex

from lamina.core.queries import FusedHit, Memory
from lamina.text.english import FUNCTION_WORDS
from lamina.text.normal_forms import normalised
from lamina.text.words import words

WINDOW = 100
NEGATIONS = frozenset(
    (
        *("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot"),
        *("kein", "keine", "keinen", "keiner", "nicht", "nie", "niemals", "ohne"),
        *("ne", "pas", "jamais", "sans", "ni", "nunca", "sin", "non", "mai", "senza"),
        *("не", "нет", "никогда", "без"),
    )
)
_RUN = regex.compile(r"[\p{L}\p{M}\p{N}_]+(?:['\u2019][\p{L}\p{M}\p{N}_]+)*")
# The same in ASCII, five times as fast.
_ASCII_RUN = re.compile(r"\w+(?:'\w+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class DiversityPolicy:
    """When hits are alike.

    Args:
        jaccard: Word sets that overlap this much are alike, 0..1; 1 switches diversity off.
        variants: How many alike hits with different facts (another number, name or negation) keep their place.
        keeps_latest: Whether of two hits with the same facts the later one takes the place of the better one.
    """

    jaccard: float
    variants: int
    keeps_latest: bool = False


class _Statement:
    """The words of a hit, and in their order those that make a fact: numbers, negations and names.

    Facts are read where words are alike: seldom, and at half of the cost of all this module does.
    """

    def __init__(self, memory: Memory) -> None:
        self.tier = memory.tier
        self._text = f"{memory.name}: {memory.content}" if memory.name else memory.content
        self.words = frozenset(words(self._text))

    @cached_property
    def facts(self) -> tuple[str, ...]:
        return tuple(_facts(self._text))


class DiverseHits(NamedTuple):
    """Hits in their new order.

    Args:
        hits: All of them.
        distinct: How many of the first repeat no better one, as far as was compared.
    """

    hits: tuple[FusedHit, ...]
    distinct: int


def diversify(hits: Sequence[FusedHit], policy: DiversityPolicy, *, enough: int) -> DiverseHits:
    """Move hits that repeat a better one behind the others; none is lost, and the order is kept otherwise.

    Two hits of a tier are near-identical if their word sets overlap by ``jaccard`` and they
    differ in no number, negation or name. Of those that differ so, ``variants`` keep their
    place: different facts are no repetition, but a hundred readings of a meter are one kind of
    thing.

    Args:
        hits: Best first.
        policy: When hits are alike.
        enough: After so many distinct hits the rest keeps its order; at most the first 100 are compared.
    """
    if policy.jaccard >= 1:
        return DiverseHits(tuple(hits), len(hits))
    kept: list[FusedHit] = []
    moved: list[FusedHit] = []
    statements: list[_Statement] = []
    for hit in hits[:WINDOW]:
        if len(kept) >= enough:
            break
        statement = _Statement(hit.memory)
        alike = [at for at, other in enumerate(statements) if _are_alike(statement, other, policy.jaccard)]
        same = next((at for at in alike if statements[at].facts == statement.facts), None)
        if same is None and len(alike) < policy.variants:
            kept.append(hit)
            statements.append(statement)
            continue
        if same is not None and policy.keeps_latest and kept[same].memory.occurred_at < hit.memory.occurred_at:
            moved.append(kept[same])
            kept[same] = replace(hit, score=kept[same].score)
        else:
            moved.append(hit)
    seen = len(kept) + len(moved)
    rest = (*hits[seen:], *moved) if len(kept) >= enough else (*moved, *hits[seen:])
    return DiverseHits((*kept, *rest), len(kept))


def _are_alike(one: _Statement, other: _Statement, jaccard: float) -> bool:
    if one.tier != other.tier or not one.words or not other.words:
        return False
    few, many = sorted((len(one.words), len(other.words)))
    if few < jaccard * many:
        return False
    return len(one.words & other.words) >= jaccard * len(one.words | other.words)


def _facts(text: str) -> Iterator[str]:
    """Yield the words that change a sentence's meaning: with a digit, negating, or written like a name."""
    for run in (_ASCII_RUN if text.isascii() else _RUN).findall(normalised("NFKC", text)):
        folded = run.casefold().replace("\u2019", "'")
        is_negation = folded in NEGATIONS or folded.endswith("n't")
        is_name = run[0].isupper() and folded not in FUNCTION_WORDS
        if is_negation or is_name or (not run.isalpha() and any(map(str.isdigit, run))):
            yield folded
