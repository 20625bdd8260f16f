"""Summarise dated texts: the port, and a summariser that quotes the most central sentences."""

import asyncio
import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Protocol

import numpy as np
import regex
from numpy.typing import NDArray

from lamina.core.ports import Embedder
from lamina.errors import InvalidInput
from lamina.policies.ranking.block_layout import as_name
from lamina.text.english import FUNCTION_WORDS, SENTENCE_STARTERS
from lamina.text.hygiene import is_blank
from lamina.text.numbers import depends_on_moment, figures
from lamina.text.paraphrase import is_same_statement
from lamina.text.segments import segments
from lamina.text.sentences import sentences
from lamina.text.words import estimated_tokens, words

MAX_SENTENCES = 2_000
"""Most sentences that are compared with each other; of more, those with the most figures and importance."""
LEAST_TOKENS = 32
MOST_LABEL_TOKENS, OTHER_SPEAKER = 12, "somebody"
_MARK = "| "
_MARK_TOKENS = estimated_tokens(_MARK)
LONGEST_SENTENCE_TOKENS = 120
DAMPING = 0.85
ROUNDS = 30
LEAST_COSINE = 0.1
RELEVANCE = 0.5
NEW_NAME = 0.25
SAME_COSINE = 0.92
_EMBEDDED_AT_ONCE = 256
# A character of four bytes counts two tokens in the estimate.
_MOST_TOKENS_A_CHAR = 2

_LINE_DATE = re.compile(r"(\d{4}-\d{2}-\d{2}): ")
_WIDE_END = re.compile(r"(?<=[\u3002\uff01\uff1f])")
_NAME = regex.compile(r"(?<![\p{L}\p{M}\p{N}])\p{Lu}[\p{L}\p{M}\p{N}'\u2019.-]*[\p{L}\p{M}\p{N}]")
_ENDED = regex.compile(r"[\p{P}\p{S}]$")
_UNENDED = regex.compile(r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Sc}\"'%]$")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text that a summary is made from.

    Args:
        text: A note, a message or an earlier summary; a line of it may begin with its day, as ``2026-11-20: ``.
        moment: The time that it is of, in UTC.
        importance: 0..1.
        speaker: Who said it, where that is somebody else than the user.
        quoted: Of an earlier summary, the speakers whose labels its lines may begin with, behind the day.
    """

    text: str
    moment: datetime
    importance: float = 0.5
    speaker: str = ""
    quoted: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The speaker's name as a prefix of quoted words: ``somebody`` if it is long, empty without one."""
        return label_of(self.speaker)

    def lines(self) -> Iterator["SourceText"]:
        """Yield its lines, each as a text of its own day and speaker."""
        labels = {label_of(name): name for name in self.quoted}
        said_on = self.moment.astimezone(UTC).date()
        for line in self.text.splitlines():
            rest, day = _split_date(line.strip(), said_on)
            moment = self.moment if day == said_on else datetime.combine(day, time(), UTC)
            label = max((label for label in labels if rest.startswith(label)), key=len, default="")
            speaker = labels.get(label, self.speaker)
            yield replace(self, text=rest[len(label) :], moment=moment, speaker=speaker, quoted=())


def label_of(speaker: str) -> str:
    """Return a speaker's name as a prefix of quoted words, ``somebody`` if it is long; empty for nobody."""
    if not speaker:
        return ""
    name = as_name(speaker)
    return f"{name if estimated_tokens(name) <= MOST_LABEL_TOKENS else OTHER_SPEAKER}: "


class Summarizer(Protocol):
    """Makes a short text of dated ones."""

    async def summarize(self, sources: Sequence[SourceText], *, most_tokens: int) -> str:
        """Return a summary of at most ``most_tokens`` estimated tokens, in the order of time.

        Raises:
            InvalidInput: If ``most_tokens`` is below 32, or no source has visible text.
            Unavailable: If a model does not answer, or its answer cannot be trusted; the sources are then not done.
        """
        ...


class ExtractiveSummarizer:
    """Quotes sentences of the sources, and says nothing in other words.

    First come sentences that together keep as many distinct numbers and dates as fit, then the most central ones
    that add something. Those of a day stand in one line that begins with it, and those of another speaker in one of
    their own, behind the name. The same sources give the same text,
    whatever their order.

    Args:
        embedder: Embeds the sentences, for their similarity.

    Source:
        Centrality: LexRank (Erkan and Radev, JAIR 2004), biased to importance as in Otterbacher et al., IP&M 2009.
        Choice: maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998), after a greedy cover of the figures.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def summarize(self, sources: Sequence[SourceText], *, most_tokens: int) -> str:
        """Return the chosen sentences; see :class:`Summarizer`.

        At most 2 000 sentences are compared. A sentence of more than 120 tokens is cut at white space.
        """
        quotable = _quotable_sentences(sources, most_tokens)
        vectors = await self._embed([item.text for item in quotable])
        return await asyncio.to_thread(_condense, quotable, vectors, most_tokens)

    async def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        starts = range(0, len(texts), _EMBEDDED_AT_ONCE)
        return np.concatenate(
            [await self._embedder.embed(texts[start : start + _EMBEDDED_AT_ONCE]) for start in starts]
        )


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence that may be quoted.

    Args:
        day: The day that it was said on.
        anchor: The same day, if the sentence needs it to say when: yesterday, on Monday.
        place: Among the sentences that may be quoted, in the order of time.
        label: What stands before the words of its speaker.
        figures: Its numbers and dates.
    """

    text: str
    day: date
    anchor: date | None
    importance: float
    place: int
    label: str
    figures: frozenset[str]
    names: frozenset[str]
    tokens: int


class _Quotes:
    """The sentences that are quoted so far, and the room that is left.

    Args:
        most_tokens: Of the whole.
    """

    def __init__(self, most_tokens: int) -> None:
        self.sentences: list[_Sentence] = []
        self.figures: set[str] = set()
        self.names: set[str] = set()
        self._lines: set[tuple[date, str]] = set()
        self._left = most_tokens

    def has_room(self, sentence: _Sentence) -> bool:
        """Report whether a sentence fits, with its day and speaker if they are new."""
        return self._cost(sentence) <= self._left

    def add(self, sentence: _Sentence) -> None:
        """Take a sentence that fits."""
        self._left -= self._cost(sentence)
        self.sentences.append(sentence)
        self.figures |= sentence.figures
        self.names |= sentence.names
        self._lines.add((sentence.day, sentence.label))

    def text(self) -> str:
        """Return the sentences in the order of time, a line for each day and speaker."""
        lines: dict[tuple[date, str], list[str]] = {}
        for sentence in sorted(self.sentences, key=lambda item: (item.day, item.place)):
            lines.setdefault((sentence.day, sentence.label), []).append(sentence.text)
        return "\n".join(f"{_opening(*line)}{' '.join(texts)}" for line, texts in lines.items())

    def _cost(self, sentence: _Sentence) -> int:
        line = sentence.day, sentence.label
        return sentence.tokens + (0 if line in self._lines else _opening_tokens(*line))


def check_sources(sources: Sequence[SourceText], most_tokens: int) -> None:
    """Refuse sources that no summary can be made from.

    Raises:
        InvalidInput: If ``most_tokens`` is below 32, or no source has visible text.
    """
    if most_tokens < LEAST_TOKENS:
        raise InvalidInput("most_tokens", f"is {most_tokens}; a summary needs at least {LEAST_TOKENS}")
    if all(is_blank(source.text) for source in sources):
        raise InvalidInput("sources", "show no text; summarise at least one that does")


def _condense(quotable: Sequence[_Sentence], vectors: NDArray[np.float32], most_tokens: int) -> str:
    cosines = np.clip(vectors @ vectors.T, 0, 1)
    values = _centrality(cosines, np.array([item.importance for item in quotable]))
    quotes = _Quotes(most_tokens)
    _cover_figures(quotable, values, quotes)
    _add_central(quotable, values, cosines, quotes)
    return quotes.text()


def _quotable_sentences(sources: Sequence[SourceText], most_tokens: int) -> list[_Sentence]:
    """Return the sentences in the order of time, each once; of too many, those with the most figures."""
    check_sources(sources, most_tokens)
    ordered = sorted(sources, key=lambda source: (source.moment, source.text, source.importance, source.speaker))
    lines = [line for source in ordered for line in source.lines()]
    labels = {line.label for line in lines}
    opening = max(_opening_tokens(date.max, label) for label in labels) + _MARK_TOKENS
    longest = min(LONGEST_SENTENCE_TOKENS, most_tokens - opening)
    found: dict[tuple[object, ...], _Sentence] = {}
    for line in lines:
        for text in _quotes_of(line, longest):
            # Words of nobody that begin like another's would be read as theirs.
            is_like_label = not line.label and text.startswith(tuple(labels - {""}))
            item = _sentence(f"{_MARK}{text}" if is_like_label else text, line, len(found))
            found.setdefault((*([one.lower() for one in segments(text)] or [text]), item.anchor, item.label), item)
    # Single words without a figure are left out, unless there is nothing else.
    whole = [item for item in found.values() if item.figures or len(words(item.text)) > 1] or list(found.values())
    most = heapq.nlargest(MAX_SENTENCES, whole, key=lambda item: (len(item.figures), item.importance, -item.place))
    in_time = sorted(most, key=lambda item: (item.day, item.place))
    return [replace(item, place=place) for place, item in enumerate(in_time)]


def _quotes_of(line: SourceText, longest: int) -> Iterator[str]:
    for sentence in sentences(line.text):
        for part in _WIDE_END.split(sentence):
            if not is_blank(part):
                yield from (_with_end(piece) for piece in pieces(part.strip(), longest - 1))


def _split_date(line: str, day: date) -> tuple[str, date]:
    """Return a line without the day that it begins with, and the day; a line without one keeps its source's."""
    dated = _LINE_DATE.match(line)
    try:
        return (line[dated.end() :], date.fromisoformat(dated[1])) if dated else (line, day)
    except ValueError:
        return line, day


def pieces(text: str, longest: int) -> Iterator[str]:
    """Yield a text, or if it has more than ``longest`` tokens its parts, cut at white space where there is any."""
    if estimated_tokens(text) <= longest:
        yield text
        return
    piece, left = "", longest
    for part in _parts(text, longest):
        tokens = estimated_tokens(part)
        if tokens > left:
            yield piece.strip()
            piece, left = "", longest
        piece, left = piece + part, left - tokens
    yield piece.strip()


def _parts(text: str, longest: int) -> Iterator[str]:
    size = longest // _MOST_TOKENS_A_CHAR
    for word in re.findall(r"\S+\s*", text):
        if estimated_tokens(word) <= longest:
            yield word
        else:
            yield from (word[start : start + size] for start in range(0, len(word), size))


def _with_end(sentence: str) -> str:
    """Return a sentence that ends visibly, so that another one may follow it in a line."""
    return sentence if _ENDED.search(sentence) and not _UNENDED.search(sentence) else f"{sentence}."


def _sentence(text: str, line: SourceText, place: int) -> _Sentence:
    day = line.moment.astimezone(UTC).date()
    anchor = day if depends_on_moment(text) else None
    names = frozenset(_names(text))
    tokens = estimated_tokens(text)
    return _Sentence(text, day, anchor, line.importance, place, line.label, figures(text), names, tokens)


def _names(text: str) -> Iterator[str]:
    for match in _NAME.finditer(text):
        name = match[0].casefold()
        if name not in FUNCTION_WORDS and not (match.start() == 0 and name in SENTENCE_STARTERS):
            yield name


def _opening(day: date, label: str) -> str:
    return f"{day.isoformat()}: {label}"


def _opening_tokens(day: date, label: str) -> int:
    """Return the tokens of a line's opening, and of the line break before it."""
    return estimated_tokens(f"\n{_opening(day, label)}")


def _centrality(cosines: NDArray[np.float32], importance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the centrality of each sentence, 0..1: where a reader ends who steps from sentence to similar sentence.

    From a sentence that is like no other the reader begins anew.

    Args:
        cosines: Shape (n, n), 0..1.
        importance: Shape (n,), 0..1: where the reader begins anew.
    """
    weights = np.where(cosines >= LEAST_COSINE, cosines, 0).astype(np.float64)
    np.fill_diagonal(weights, 0)
    start = (importance + 0.1) / (importance + 0.1).sum()
    weights[weights.sum(axis=1) == 0] = start
    steps = weights / weights.sum(axis=1, keepdims=True)
    ranks = start
    for _ in range(ROUNDS):
        ranks = (1 - DAMPING) * start + DAMPING * (ranks @ steps)
    # Rounded, so that the order of the sources does not decide by the last bits of a sum.
    scaled: NDArray[np.float64] = np.round(ranks / ranks.max(), 6)
    return scaled


def _cover_figures(quotable: Sequence[_Sentence], values: NDArray[np.float64], quotes: _Quotes) -> None:
    """Quote by new figures a token; the number only falls as figures are quoted, so old bids stay upper bounds."""
    bids = [(-len(item.figures) / item.tokens, -values[place], place) for place, item in enumerate(quotable)]
    heapq.heapify(bids)
    while bids and bids[0][0] < 0:
        _, value, place = heapq.heappop(bids)
        item = quotable[place]
        bid = (-len(item.figures - quotes.figures) / item.tokens, value, place)
        # Quotes since the bid was made may have covered its figures: it goes back to its new place.
        if bids and bid > bids[0]:
            heapq.heappush(bids, bid)
        elif bid[0] < 0 and quotes.has_room(item):
            quotes.add(item)


def _add_central(
    quotable: Sequence[_Sentence], values: NDArray[np.float64], cosines: NDArray[np.float32], quotes: _Quotes
) -> None:
    """Fill the room with central sentences unlike the quoted ones; repetitions of quoted sentences are left out."""
    nearest = np.zeros(len(quotable))
    for item in quotes.sentences:
        np.maximum(nearest, cosines[item.place], out=nearest)
    left = {item.place for item in quotable} - {item.place for item in quotes.sentences}
    while left := {place for place in left if quotes.has_room(quotable[place])}:
        item = quotable[max(left, key=lambda place: (_score(quotable[place], values, nearest, quotes), -place))]
        left.remove(item.place)
        near = [other for other in quotes.sentences if cosines[item.place, other.place] >= SAME_COSINE]
        if not any(item.anchor == other.anchor and is_same_statement(item.text, other.text) for other in near):
            quotes.add(item)
            np.maximum(nearest, cosines[item.place], out=nearest)


def _score(item: _Sentence, values: NDArray[np.float64], nearest: NDArray[np.float64], quotes: _Quotes) -> float:
    marginal = RELEVANCE * values[item.place] - (1 - RELEVANCE) * nearest[item.place]
    return round(float(marginal), 5) + (NEW_NAME if item.names - quotes.names else 0)
