"""Order statements that compete for a question about the present: the one that holds before the one that held.

A linear model over some forty signals of the first hits: how well each answers and when it was said, whether a similar
statement was made later, and words of change, of the past and of supposition. It draws no fact, and it reorders only:
no hit is lost.
"""

import json
import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from uuid import UUID

import numpy as np
import regex
from numpy.typing import NDArray

from lamina.core.memories import Role
from lamina.core.queries import FusedHit, Memory
from lamina.core.tiers import Source, Tier
from lamina.policies.ranking.conversation_signals import SPREAD
from lamina.text.corrections import corrected_values
from lamina.text.dates import event_time
from lamina.text.parts import ends_of
from lamina.text.standing import (
    ACKNOWLEDGED,
    CHANGE,
    CORRECTION,
    OTHERS,
    PAST,
    SUPPOSED,
    asks,
    asks_about_present,
    asks_for_amount,
    asks_for_person,
    content_stems,
    has_number,
    misleads,
    names_present,
    names_year_before,
    phrases_of,
    says_nothing,
    share_of,
    tense,
)
from lamina.text.words import name_words

WINDOW = 18
"""So many of the first hits are ordered, and read where fewer are asked for: of 158 questions about a fact that
changed, 8 had the current statement behind the first ten."""
FIRST = 3
"""A hit from beyond the limit takes another's place only if it comes so far to the front."""
MOST_ENTERING = 2
"""With no bound, a second value that holds as well was lost in 4 of 15 questions."""
EXCERPT_CHARS = 1_000
QUESTION_CHARS = 2_000
"""Of a longer question, its ends are read."""
SAME_OCCASION = timedelta(hours=1)
FARTHEST = -8.0
"""Statements that are less relevant than this are all alike."""
WEIGHTS_FILE = "present_weights.json"
COMPETING = 0.2
"""Statements that share so much of their words, rare ones above all, tell of the same."""
LONG_BEFORE = timedelta(days=10)
"""A message that names a date so long before its own tells of the past."""
_OF_NOW = (
    "late", "rank", "nearness", "similar later", "similar earlier, ranked high", "covered x late", "rank x late",
    "nearness x late", "change x late", "past x late", "tense x late", "length x late",
)  # fmt: skip
"""Signals whose worth depends on whether a question names the present ("now", "currently")."""
_LEAST_SIZE = 1e-9
_VALUE = regex.compile(r"(?<=[\p{Ll},;:\d] )\p{Lu}[\p{L}\d]++|\d[\d.,:]*+")
_NOT_OF_A_PERSON = frozenset({Role.ASSISTANT.value, Role.SYSTEM.value, Role.TOOL.value})

Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Statement:
    """A hit as the order sees it.

    Args:
        text: What it says.
        speaker: Who says it, if known.
        is_of_person: Whether no assistant, tool or system says it.
        said_at: When.
        relevance: How relevant the second stage found it, 0..1; it ranks messages alone.
        key: Orders what was said at one moment, as it arrived.
    """

    text: str
    speaker: str
    is_of_person: bool
    said_at: datetime
    relevance: float | None = None
    key: str = ""


def order_for_present(
    hits: Sequence[FusedHit],
    question: str,
    *,
    as_of: bool,
    limit: int | None = None,
    weights: Mapping[str, float] | None = None,
) -> tuple[FusedHit, ...]:
    """Return the hits with the statements among the first of them in their order for the present.

    Messages and what was drawn from them change places, with the scores of these; all else keeps its own. Of those
    beyond the limit, two at most come in, where they are among the first three of that order; the others, and what gave
    way, follow as they were. Nothing changes for a text that asks nothing, or asks of the past. Where all was said on
    one occasion and nothing corrected, only what is known to be replaced goes behind, and answers that say nothing.

    Args:
        hits: Best first.
        question: The question.
        as_of: Whether it is asked as of a moment; then it is about the state at that moment, however it is worded.
        limit: How many hits leave; all if not given.
        weights: Of the signals; those of the package if not given.
    """
    limit = len(hits) if limit is None else limit
    places = [place for place, hit in enumerate(hits[:WINDOW]) if _is_said(hit.memory)]
    within = sum(place < limit for place in places)
    question = ends_of(question, QUESTION_CHARS)
    if not within or not asks_for_state(question, as_of=as_of):
        return tuple(hits)
    statements = _Signals(question, [statement_of(hits[place]) for place in places])
    decided = list(range(within))
    # Statements of one occasion stay in their order, unless one begins like a correction.
    if statements.is_later.any() or any(not CORRECTION.isdisjoint(phrases) for phrases in statements.phrases):
        scores = weigh(statements.all(), packaged_weights() if weights is None else weights)
        best = _kept(sorted(range(len(places)), key=lambda number: -scores[number]), within)
        decided = statements.misleading_last(statements.corrections_first(best))
    settled = _replaced_last(statements.empty_last(decided), [hits[place].memory for place in places])
    ordered = list(hits[:limit])
    for place, number in zip(places, settled, strict=False):
        ordered[place] = replace(hits[places[number]], score=hits[place].score)
    chosen = {hit.memory.id for hit in ordered}
    return (*ordered, *(hit for hit in hits if hit.memory.id not in chosen))


def _kept(best: Sequence[int], within: int) -> list[int]:
    """Return as many numbers as are within the limit: those, but for the last of them where better ones come in."""
    first = best[: min(FIRST, within)]
    giving_way = [number for number in range(within - 1, -1, -1) if number not in first]
    entering = [number for number in first if number >= within][:MOST_ENTERING]
    entering = entering[: len(giving_way)]
    leaving = giving_way[: len(entering)]
    return [number for number in best if (number < within and number not in leaving) or number in entering]


def asks_for_state(question: str, *, as_of: bool) -> bool:
    """Report whether a text asks how things are: now, or at the moment as of which it asks."""
    text = ends_of(question, QUESTION_CHARS)
    return asks(text) and asks_about_present(phrases_of(text), as_of=as_of)


def _replaced_last(best: Sequence[int], memories: Sequence[Memory]) -> list[int]:
    """Return the numbers in their order, each memory right behind those that are known to have replaced it."""
    ordered: list[int] = []
    waiting = list(best)
    while waiting:
        left = {memories[number].id for number in waiting}
        free = (number for number in waiting if left.isdisjoint(memories[number].replaced_by))
        chosen = next(free, waiting[0])
        ordered.append(chosen)
        waiting.remove(chosen)
    return ordered


def put_right(hits: Sequence[FusedHit], question: str) -> tuple[FusedHit, ...]:
    """Return the hits, each statement that a later one of them puts right behind that one, and with it as ``later``.

    "It was 2019, not 2018" puts right what names 2018 and tells of the same as the correction or the question. Nobody
    puts right what another person said.
    """
    said = [hit for hit in hits[:WINDOW] if _is_said(hit.memory)]
    correcting = [
        (hit.memory, wrong) for hit in said if (wrong := corrected_values(hit.memory.content[:EXCERPT_CHARS]))
    ]
    if not correcting:
        return tuple(hits)
    asked = frozenset(content_stems(phrases_of(ends_of(question, QUESTION_CHARS))))
    by: dict[UUID, Memory] = {}
    for hit in said:
        corrections = (one for one, wrong in correcting if _is_put_right(hit.memory, one, wrong, asked))
        if (last := max(corrections, key=lambda one: (one.occurred_at, one.id), default=None)) is not None:
            by[hit.memory.id] = last
    told = [replace(hit, memory=_with_correction(hit.memory, by.get(hit.memory.id))) for hit in hits]
    places = {hit.memory.id: place for place, hit in enumerate(told)}
    # Right behind its correction, where that is no better hit already.
    behind = {id_: places[one.id] + 0.5 for id_, one in by.items()}
    ordered = sorted(told, key=lambda hit: max(places[hit.memory.id], behind.get(hit.memory.id, 0)))
    return tuple(replace(hit, score=place.score) for hit, place in zip(ordered, hits, strict=True))


def _is_put_right(memory: Memory, correction: Memory, wrong: frozenset[str], asked: frozenset[str]) -> bool:
    """Report whether a correction, made later or by a message of the same moment, is of what a memory says."""
    is_before = (memory.occurred_at, memory.id) < (correction.occurred_at, correction.id)
    if not is_before or _is_of_another(memory, correction) or f"message:{memory.id}" == correction.source:
        return False
    said = memory.content[:EXCERPT_CHARS].casefold()
    named = [
        value
        for value in wrong
        if regex.search(rf"(?<![\p{{Ll}}\p{{N}}]){regex.escape(value)}(?![\p{{Ll}}\p{{N}}])", said)
    ]
    if not named or not corrected_values(memory.content[:EXCERPT_CHARS]).isdisjoint(wrong):
        return False
    own = frozenset(content_stems(phrases_of(said)))
    others = asked | frozenset(content_stems(phrases_of(correction.content[:EXCERPT_CHARS])))
    return not (own & others).issubset({value[:5] for value in wrong})


def _is_of_another(memory: Memory, correction: Memory) -> bool:
    """Report whether another person, or one in another role, said it, as far as that is known of both.

    A note has its message's user and no role, so it is compared by what it has.
    """
    said = (memory, correction)
    roles = {one.source for one in said if one.tier is Tier.SESSIONS}
    known = [{one.user for one in said}, {one.name for one in said}, roles]
    return any(len(values - {None, ""}) > 1 for values in known)


def _with_correction(memory: Memory, correction: Memory | None) -> Memory:
    if correction is None or correction.content in memory.later:
        return memory
    return replace(memory, later=(*memory.later, correction.content[:EXCERPT_CHARS]))


def _is_said(memory: Memory) -> bool:
    return memory.tier is Tier.SESSIONS or (memory.tier is Tier.NOTES and (memory.source or "").startswith("message:"))


def weigh(signals: Mapping[str, Figures], weights: Mapping[str, float]) -> Figures:
    """Return the weighted sum of the signals of each statement."""
    scores: Figures = np.sum([weights.get(name, 0.0) * figures for name, figures in signals.items()], axis=0)
    return scores


@cache
def packaged_weights() -> Mapping[str, float]:
    """Return the weights that ``python -m benchmarks fit-present`` wrote; the file says from which data."""
    weights: dict[str, float] = json.loads(files(__package__).joinpath(WEIGHTS_FILE).read_text())["weights"]
    return weights


def present_signals(question: str, statements: Sequence[Statement]) -> dict[str, Figures]:
    """Return the signals of each statement, best hit first; none depends on a search engine's own figures.

    ``… x late`` is a signal times how late a statement was made among all; ``… x now`` counts where the question names
    the present.

    Source:
        Fitted on the odd halves of ``changes`` and of ``chats``: of the even half of ``changes``, 80 % of the questions
        about now have the current statement first (49 % in the order of the search).
    """
    return _Signals(question, statements).all()


class _Signals:
    def __init__(self, question: str, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.asked = phrases_of(question)
        self.texts = [item.text[:EXCERPT_CHARS] for item in statements]
        self.phrases = [phrases_of(text) for text in self.texts]
        self.stems = [frozenset(content_stems(phrases)) for phrases in self.phrases]
        said = np.array([item.said_at.timestamp() for item in statements])
        apart = said[None, :] - said[:, None]
        self.is_later = apart > SAME_OCCASION.total_seconds()
        self.is_together = (np.abs(apart) <= SAME_OCCASION.total_seconds()) & ~np.eye(len(said), dtype=bool)
        moments = sorted(set(said))
        self.late = np.array([moments.index(moment) for moment in said]) / max(len(moments) - 1, 1)
        count = len(statements)
        self.sequence = sorted(range(count), key=lambda at: (said[at], statements[at].key))
        self.place = np.argsort(self.sequence)
        self.close = 1 / (1 + np.arange(count) / 3)
        self.weight = _Rarity(Counter(stem for own in self.stems for stem in own), count)
        self.wanted = self._wanted()
        self.covered, self.similar = self._covered(), self._similar()

    def all(self) -> dict[str, Figures]:
        by_place = {
            **self._by_words(),
            **self._by_relevance(),
            **self._by_standing(),
            **self._by_speaker(),
            **self._by_answer(),
        }
        late = {f"{name} x late": figures * self.late for name, figures in by_place.items()}
        signals = {**by_place, **late, "late": self.late, **self._by_rivals(), **self._by_correction()}
        is_of_now = names_present(self.asked)
        return {**signals, **{f"{name} x now": signals[name] * is_of_now for name in _OF_NOW}}

    def empty_last(self, best: Sequence[int]) -> list[int]:
        """Return the order with an assistant's answers that say nothing behind all that say something."""
        return sorted(
            best, key=lambda number: not self.statements[number].is_of_person and says_nothing(self.texts[number])
        )

    def corrections_first(self, best: Sequence[int]) -> list[int]:
        """Return the order with each correction before the best statement before it on its occasion."""
        ordered = list(best)
        is_after = self.is_together & (self.place[:, None] > self.place[None, :])
        for number in best:
            if CORRECTION.isdisjoint(self.phrases[number]) or asks(self.texts[number]):
                continue
            may_be_meant = is_after[number] & ((self.covered > 0) | (self.similar[number] > 0))
            place = ordered.index(next((other for other in ordered if may_be_meant[other]), number))
            if place < ordered.index(number):
                ordered.remove(number)
                ordered.insert(place, number)
        return ordered

    def misleading_last(self, best: Sequence[int]) -> list[int]:
        """Return the order with each statement that misleads behind the first earlier one that it competes with."""
        ordered = list(best)
        misleading = [
            misleads(text, phrases, item.said_at.year, self.asked)
            for text, phrases, item in zip(self.texts, self.phrases, self.statements, strict=True)
        ]
        for number in filter(misleading.__getitem__, best):
            competing = (
                other
                for other in ordered
                if self.is_later[other, number]
                and not misleading[other]
                and not asks(self.texts[other])
                and self._compete(other, number)
            )
            place = ordered.index(next(competing, number))
            if place > ordered.index(number):
                ordered.remove(number)
                ordered.insert(place, number)
        return ordered

    def _compete(self, one: int, other: int) -> bool:
        """Report whether a statement tells of the same as another, or answers the question at least as well."""
        answers = self.covered[one] > 0 and self.covered[one] >= self.covered[other]
        return bool(answers or self.similar[one, other] >= COMPETING)

    def _wanted(self) -> frozenset[str]:
        """Return the stems that the question asks for, without the speakers' names."""
        speakers = {word[:5] for item in self.statements for word in name_words(item.speaker)}
        stems = frozenset(content_stems(self.asked))
        return (stems - speakers) or stems

    def _covered(self) -> Figures:
        """Return how much of the question each has, rare words above all, 0 to 1."""
        possible = sum(self.weight(stem) for stem in self.wanted) or 1.0
        return np.array([sum(self.weight(stem) for stem in self.wanted & own) for own in self.stems]) / possible

    def _similar(self) -> Figures:
        """Return how much each two share of their words, rare ones above all, 0 to 1; nothing of itself."""
        column = {stem: at for at, stem in enumerate(self.weight.found_in)}
        has = np.zeros((len(self.stems), len(column)))
        for row, own in enumerate(self.stems):
            has[row, [column[stem] for stem in own]] = 1.0
        shared = (has * np.array([self.weight(stem) for stem in column])) @ has.T
        sizes = np.sqrt(shared.diagonal())
        similar: Figures = shared / np.maximum(sizes[:, None] * sizes[None, :], _LEAST_SIZE)
        np.fill_diagonal(similar, 0.0)
        return similar

    def _by_words(self) -> dict[str, Figures]:
        trigrams = _trigrams(self.wanted)
        alike = np.array([len(trigrams & _trigrams(own)) for own in self.stems]) / max(len(trigrams), 1)
        return {
            "rank": self.close,
            "covered": self.covered,
            "trigrams": alike,
            "covered together": (self.is_together * self.covered).max(axis=1),
            "trigrams together": (self.is_together * alike).max(axis=1),
        }

    def _by_relevance(self) -> dict[str, Figures]:
        """Return by how much each is less relevant than the best, in the scores of the second stage."""
        relevance = np.array([item.relevance or np.nan for item in self.statements], float)
        is_known = np.isfinite(relevance)
        if not is_known.any():
            return {"nearness": np.zeros(len(relevance))}
        behind = np.maximum(SPREAD * np.log(relevance / relevance[is_known].max()), FARTHEST)
        return {"nearness": np.where(is_known, behind, behind[is_known].mean())}

    def _by_standing(self) -> dict[str, Figures]:
        sizes = np.array([len(phrases) for phrases in self.phrases]) / 2
        return {
            "change": np.array([share_of(phrases, CHANGE) for phrases in self.phrases]),
            "past": np.array([share_of(phrases, PAST) for phrases in self.phrases]),
            "supposed": np.array([share_of(phrases, SUPPOSED) for phrases in self.phrases]),
            "tense": np.array([tense(phrases) for phrases in self.phrases]),
            "asks": np.array([asks(text) for text in self.texts], float),
            "number": asks_for_amount(self.asked) * self._have_number(),
            "earlier year": np.array(
                [names_year_before(item.text, item.said_at.year) for item in self.statements], float
            ),
            "dated before": np.array(
                [_is_dated_before(item, text) for item, text in zip(self.statements, self.texts, strict=True)], float
            ),
            "length": np.minimum(np.log1p(sizes) / 4, 1.2),
        }

    def _by_speaker(self) -> dict[str, Figures]:
        is_person = np.array([item.is_of_person for item in self.statements], float)
        asked = set(self.asked)
        asked |= {word.removesuffix("'s") for word in asked}
        named = np.array([not asked.isdisjoint(name_words(item.speaker)) for item in self.statements]) * is_person
        has_name = np.array([any(char.isupper() for char in text[1:]) for text in self.texts], float)
        return {
            "of the named": named,
            "of another": named.any() * (1 - named) * is_person,
            "of no person": 1 - is_person,
            "name asked for": asks_for_person(self.asked) * has_name,
        }

    def _by_rivals(self) -> dict[str, Figures]:
        return {
            "similar later": (self.similar * self.is_later).max(axis=1),
            "similar earlier": (self.similar * self.is_later.T).max(axis=1),
            "similar earlier, ranked high": (self.similar * self.is_later.T * self.close).max(axis=1),
        }

    def _by_answer(self) -> dict[str, Figures]:
        """Return the assistant's answer to each, the names in it that the question has not, and of whom it tells."""
        asked = set(self.asked)
        return {
            "acknowledged": np.array([self._answered(at, ACKNOWLEDGED) for at in range(len(self.texts))]),
            "change acknowledged": np.array([self._answered(at, CHANGE) for at in range(len(self.texts))]),
            "of others": np.array(
                [share_of([phrase for phrase in phrases if phrase not in asked], OTHERS) for phrases in self.phrases]
            ),
            "value": np.array(
                [
                    _values(text, asked | set(name_words(item.speaker)))
                    for text, item in zip(self.texts, self.statements, strict=True)
                ]
            ),
        }

    def _answered(self, at: int, listed: frozenset[str]) -> float:
        """Return how much of a list an assistant says right after a person."""
        following = self.place[at] + 1
        if not self.statements[at].is_of_person or following == len(self.sequence):
            return 0.0
        other = self.sequence[following]
        is_answer = self.is_together[at, other] and not self.statements[other].is_of_person
        return share_of(self.phrases[other], listed) if is_answer else 0.0

    def _by_correction(self) -> dict[str, Figures]:
        """Return how much each corrects, and is corrected by, another of the same occasion."""
        corrects = np.array([share_of(phrases, CORRECTION) for phrases in self.phrases])
        is_after = self.is_together & (self.place[None, :] > self.place[:, None])
        return {
            "corrects": corrects,
            "corrects x late": corrects * self.late,
            "corrects just said": corrects * (is_after.T * self.close).max(axis=1),
            "corrected": (is_after * corrects).max(axis=1) * self.close,
            "sequence": self.place / max(len(self.place) - 1, 1),
        }

    def _have_number(self) -> Figures:
        return np.array(
            [has_number(text, phrases) for text, phrases in zip(self.texts, self.phrases, strict=True)], float
        )


@dataclass(frozen=True, slots=True)
class _Rarity:
    """Inverse document frequency among the statements."""

    found_in: Counter[str]
    count: int

    def __call__(self, stem: str) -> float:
        found = self.found_in.get(stem, 0)
        return math.log(1 + (self.count - found + 0.5) / (found + 0.5))


def _values(text: str, known: Container[str]) -> float:
    """Return how many names and numbers a text has that are not known, as a share of two; more count no more."""
    found = (match[0].casefold() for match in _VALUE.finditer(text))
    return min(sum(value not in known for value in found), 2) / 2


def _is_dated_before(statement: Statement, text: str) -> bool:
    """Report whether the first date that a statement names is long before it was made."""
    dated = event_time(text, statement.said_at)
    return dated is not None and statement.said_at - dated > LONG_BEFORE


def _trigrams(stems: frozenset[str]) -> frozenset[str]:
    return frozenset(part for stem in stems for part in _trigrams_of(stem))


@lru_cache(maxsize=16_384)
def _trigrams_of(stem: str) -> tuple[str, ...]:
    return tuple(f" {stem} "[at : at + 3] for at in range(len(stem)))


def statement_of(hit: FusedHit) -> Statement:
    """Return a hit as the order sees it."""
    memory, placement = hit.memory, hit.placements.get(Source.SESSION_CONTEXT)
    speaker = memory.name or ""
    is_of_person = memory.tier is not Tier.SESSIONS or memory.source not in _NOT_OF_A_PERSON
    relevance = None if placement is None else placement.score
    return Statement(memory.content, speaker, is_of_person, memory.occurred_at, relevance, str(memory.id))
