"""Signals: how well each message of a conversation answers a question, by itself and by those around it.

All are comparable within one question, whatever engine found the messages: none is an engine's own figure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from lamina.policies.ranking.message_traits import NUMBERS, MessageTraits, QuestionTraits

Figures = NDArray[np.float64]
# By how many rows they are apart: the products of the vectors of two rows, at the later one.
Products = dict[int, Figures]

TINIEST = 1e-9
K1, B = 1.2, 0.75
SHORT_WORDS = 25
"""Words at which a message counts as short by 1/e."""
TINY_WORDS = 4
BEST_OF_SESSION = 3
SPREAD = 2.0
"""By how much a score falls while its relevance falls to 1/e."""
_FLOATS = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""The float32 of each float16 by its bits; numpy converts one at a time, which takes five times as long."""
REACH = 3
"""Positions before and after a message that its signals look at."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Messages in the order in which they were said; those of a session stand together.

    Args:
        traits: Of each message.
        session: Number of its session, rising.
        position: Its place there; neighbours differ by 1.
        words_rank: Its rank by the keyword index, from 0; infinite where that did not find it.
    """

    traits: Sequence[MessageTraits]
    session: NDArray[np.int64]
    position: NDArray[np.int64]
    words_rank: Figures


def conversation_signals(question: QuestionTraits, flow: Flow) -> dict[str, Figures]:
    """Return each signal of every message, without gates.

    Source:
        The windows smooth as ConvMemory's do. Fitted on the odd half of `chats`, leaving out the neighbours
        costs 4 points of LoCoMo's recall at 10, time and place 3, role and speaker 1.
    """
    return _Signals(question, flow).all()


def signals_and_lengths(question: QuestionTraits, flow: Flow) -> tuple[dict[str, Figures], Figures]:
    """Return the same, and the words of each message."""
    signals = _Signals(question, flow)
    return signals.all(), signals.length


def _numbers_of(flow: Flow) -> dict[str, Figures]:
    """Return each number of all messages by its name."""
    packed = np.frombuffer(b"".join([item.numbers for item in flow.traits]), np.float64).reshape(-1, len(NUMBERS))
    return dict(zip(NUMBERS, np.ascontiguousarray(packed.T), strict=True))


@overload
def gate(length: float) -> float: ...
@overload
def gate(length: Figures) -> Figures: ...
def gate(length: float | Figures) -> float | Figures:
    """Return how short a length in words is, 0..1."""
    return np.exp(-length / SHORT_WORDS)


def median(figures: Figures) -> float:
    """Return the median; numpy's own takes a hundred times as long for as few figures."""
    ordered = np.sort(figures)
    return float((ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2)


def signals_around(flow: Flow, scores: Figures) -> dict[str, Figures]:
    """Return how much messages before and after each one, and the best of its session, answer by their own scores.

    With the signs of the weights that were fitted, the best message stays the best: it gets most of what raises, and
    nothing of what lowers a message that stands near a better one.
    """
    places, near = _Places(flow), np.exp((scores - scores.max()) / SPREAD)
    apart = {step: places.moved(near, step) for side in (1, -1) for step in range(side, side * REACH + side, side)}
    return {
        "score_before": np.maximum(apart[1] - near, 0.0),
        "score_after": np.maximum(apart[-1] - near, 0.0),
        "score_2_apart": np.maximum.reduce([apart[2], apart[-2], near]),
        "score_3_apart": np.maximum(np.maximum(apart[3], apart[-3]) - near, 0.0),
        "score_of_session": np.maximum.reduceat(near, places.starts)[places.of_session],
    }


class _Places:
    """Where the messages of a flow stand to each other."""

    def __init__(self, flow: Flow) -> None:
        self.flow, self.size = flow, len(flow.traits)
        is_first = np.ones(self.size, bool)
        np.not_equal(flow.session[1:], flow.session[:-1], out=is_first[1:])
        self.starts = np.flatnonzero(is_first)
        self.of_session = np.cumsum(is_first) - 1
        self.ends = np.append(self.starts[1:], self.size)
        self.next_to = {step: self._are_apart(step) for step in range(1, REACH + 1)}

    def moved(self, figures: Figures, step: int) -> Figures:
        """Return for each message the figures of the one so many positions before it (after it if negative), or 0."""
        moved = np.zeros(figures.shape)
        if step > 0:
            np.multiply(figures[:-step].T, self.next_to[step][step:], out=moved[step:].T)
        else:
            np.multiply(figures[-step:].T, self.next_to[-step][-step:], out=moved[:step].T)
        return moved

    def _are_apart(self, step: int) -> Figures:
        """Return 1 for each message that stands so many positions after an earlier row of its session, else 0."""
        session, position, apart = self.flow.session, self.flow.position, np.zeros(self.size)
        near = (session[step:] == session[:-step]) & (position[step:] - position[:-step] == step)
        apart[step:] = near
        return apart


class _Signals(_Places):
    def __init__(self, question: QuestionTraits, flow: Flow) -> None:
        super().__init__(flow)
        self.question = question
        ones = np.ones(self.size)
        self.is_next_to = {step: self.moved(ones, step) for step in (*self.next_to, *(-step for step in self.next_to))}
        self.numbers = _numbers_of(flow)
        self.length, self.asks, self.has_number = (self.numbers[name] for name in ("length", "asks", "has_number"))
        self.assistant = self._assistants()

    def all(self) -> dict[str, Figures]:
        words, similar = self._by_words(), self._by_meaning()
        together = {
            "bm25_x_cos_1": words["bm25"] * similar["cos_1"],
            "number_x_cos_1": self.has_number * self.question.asks_amount * similar["cos_1"],
            "question_before": self.moved(self.asks, 1) * similar["cos_before"],
        }
        return {
            **words,
            **similar,
            **together,
            **self._by_session(words["bm25"], similar["cos"]),
            **self._by_trigrams(),
            **self._by_speaker(),
            **self._by_time(),
            **self._by_length(),
        }

    # -- words ----------------------------------------------------------------------------------------------------

    def _by_words(self) -> dict[str, Figures]:
        sizes = self.numbers["stems"]
        counts = _counts([item.stems for item in self.flow.traits], sizes, self.question.stems)
        own, idf = _bm25(counts, sizes)
        bm25 = _by_most(own)
        window_1, _ = _bm25(self._window(counts, 1, 1), self._window(sizes, 1, 1))
        window_2, _ = _bm25(self._window(counts, 3, 2), self._window(sizes, 3, 2))
        whole, _ = _bm25(np.add.reduceat(counts, self.starts), np.add.reduceat(sizes, self.starts))
        return {
            "bm25": bm25,
            "bm25_rank": _closeness(own),
            "bm25_raw": np.minimum(own / 20, 1.5),
            "engine_rank": 1 / (1 + self.flow.words_rank / 10),
            "coverage": (counts > 0) @ idf / (idf.sum() or 1.0),
            "bm25_1": _by_most(window_1),
            "bm25_2": _by_most(window_2),
            "bm25_before": self.moved(bm25, 1),
            "bm25_after": self.moved(bm25, -1),
            "session_document": _by_most(whole)[self.of_session],
        }

    def _by_trigrams(self) -> dict[str, Figures]:
        sizes = self.numbers["trigrams"]
        counts = _counts([item.trigrams for item in self.flow.traits], sizes, self.question.trigrams)
        own = _by_most(_bm25(counts, sizes)[0])
        window = _bm25(self._window(counts, 1, 1), self._window(sizes, 1, 1))[0]
        return {"trigrams": own, "trigrams_standard": _standard(own) / 3, "trigrams_1": _by_most(window)}

    # -- meaning --------------------------------------------------------------------------------------------------

    def _by_meaning(self) -> dict[str, Figures]:
        cos, mean_cos, products = self._cosines()
        cos_1 = self._smooth(mean_cos, products, (1.0, 0.6))
        cos_3 = self._smooth(mean_cos, products, (1.0, 0.7, 0.4, 0.25))
        before, after = self.moved(cos, 1), self.moved(cos, -1)
        return {
            "cos": cos,
            "cos_standard": _standard(cos) / 3,
            "cos_rank": _closeness(cos),
            "cos_1": cos_1,
            "cos_1_standard": _standard(cos_1) / 3,
            "cos_1_rank": _closeness(cos_1),
            "cos_3": cos_3,
            "cos_before": before,
            "cos_after": after,
            "cos_neighbours": np.maximum.reduce([before, after, cos]),
        }

    def _cosines(self) -> tuple[Figures, Figures, Products]:
        """Return the cosine of each message's nearest chunk, that of its mean, and the products of near means."""
        chunks = self.numbers["chunks"].astype(np.int64)
        embedded = np.flatnonzero(chunks)
        nothing = np.zeros(self.size)
        if self.question.vector is None or not len(embedded):
            return nothing, nothing, {}
        held = [item.vectors for item in self.flow.traits]
        if len(embedded) < self.size:
            held = [held[place] for place in embedded.tolist()]
        vectors = _FLOATS.take(np.concatenate(held).view(np.uint16), mode="wrap")
        cosines = (vectors @ self.question.vector).astype(float)
        if len(vectors) == self.size == len(embedded):
            return cosines, cosines, _products(vectors)
        starts = np.cumsum(chunks[embedded]) - chunks[embedded]
        nearest, mean_cos, means = nothing.copy(), nothing.copy(), np.zeros((self.size, vectors.shape[1]), np.float32)
        nearest[embedded] = np.maximum.reduceat(cosines, starts)
        mean_cos[embedded] = np.add.reduceat(cosines, starts) / chunks[embedded]
        means[embedded] = vectors[starts]
        for place in np.flatnonzero(chunks > 1).tolist():
            means[place] = self.flow.traits[place].vectors.mean(axis=0, dtype=np.float32)
        return nearest, mean_cos, _products(means)

    def _smooth(self, mean_cos: Figures, products: Products, weights: Sequence[float]) -> Figures:
        """Return the cosine of the weighted mean of each message and of those around it."""
        if not products:
            return mean_cos
        reach = len(weights) - 1
        # Weight of the message so many positions before (after if negative), 0 where there is none.
        weight_of = {0: np.full(self.size, weights[0])} | {
            sign * apart: weights[apart] * self.is_next_to[sign * apart]
            for apart in range(1, reach + 1)
            for sign in (1, -1)
        }
        framed = np.zeros(self.size + 2 * REACH)
        framed[REACH : REACH + self.size] = mean_cos
        total = np.add.reduce([weight * _at(framed, step) for step, weight in weight_of.items()])
        square = np.zeros(self.size)
        for early in range(-reach, reach + 1):
            for late in range(-reach, early + 1):
                both = weight_of[early] * weight_of[late] * _at(products[early - late], late)
                square += both if early == late else 2 * both
        return np.asarray(total / np.sqrt(np.maximum(square, TINIEST)))

    # -- session, speaker, time -----------------------------------------------------------------------------------

    def _by_session(self, bm25: Figures, cos: Figures) -> dict[str, Figures]:
        by_cos = self._top_of_sessions(cos)
        sizes = self.ends - self.starts
        return {
            "session_cos": by_cos[self.of_session],
            "session_bm25": self._top_of_sessions(bm25)[self.of_session],
            "session_mean": (np.add.reduceat(cos, self.starts) / sizes)[self.of_session],
            "session_rank": (1 / (1 + _ranks(by_cos)))[self.of_session],
        }

    def _top_of_sessions(self, figures: Figures) -> Figures:
        """Return the mean of each session's best few."""
        order = np.lexsort((-figures, self.of_session))
        is_top = np.arange(self.size) - self.starts[self.of_session] < BEST_OF_SESSION
        return np.add.reduceat(figures[order] * is_top, self.starts) / np.add.reduceat(is_top, self.starts, dtype=float)

    def _by_speaker(self) -> dict[str, Figures]:
        speakers = [item.speaker for item in self.flow.traits]
        named_of = {name: not self.question.words.isdisjoint(name) for name in set(speakers)}
        named = np.array([named_of[name] for name in speakers], float)
        return {
            "speaker_named": named,
            "other_speaker": float(any(named_of.values())) * (1 - named),
            "assistant": self.assistant,
            "assistant_asked_for": self.assistant * self.question.asks_advice,
        }

    def _assistants(self) -> Figures:
        """Return how much each message is a machine's: 0 for people, up to 1 for assistants that write at length.

        In a chat of two people one may have the role of the assistant; his messages are as short as the other's.
        """
        assistant = self.numbers["is_assistant"] > 0
        if assistant.all() or not assistant.any():
            return assistant.astype(float)
        ratio = (self.length[assistant].mean() + 1) / (self.length[~assistant].mean() + 1)
        return assistant.astype(float) * float(np.clip(math.log(ratio) / math.log(4), 0, 1))

    def _by_time(self) -> dict[str, Figures]:
        order = np.empty(self.size)
        order[np.lexsort((self.flow.position, self.numbers["said_at_s"]))] = np.arange(self.size)
        place = order / max(self.size - 1, 1)
        return {
            "question": self.asks,
            "answers": self.moved(self.asks, 1),
            "at_end_x_now": place * self.question.asks_now,
            "at_end_x_first": place * self.question.asks_first,
            "number": self.has_number * (not self.question.asks_amount),
            "number_x_when": self.has_number * self.question.asks_amount,
            "date": self._date_matches(),
        }

    def _date_matches(self) -> Figures:
        """Return 1 for messages of a month that the question names, 2 where the day is named, too."""
        if not self.question.months:
            return np.zeros(self.size)
        is_month = np.isin(self.numbers["month"], list(self.question.months))
        is_day = np.isin(self.numbers["day"], list(self.question.days))
        return np.asarray(is_month.astype(float) * (1.0 + is_day))

    def _by_length(self) -> dict[str, Figures]:
        usual = median(self.length)
        return {
            "length": np.minimum(self.length, 12) / 12,
            "tiny": (self.length < TINY_WORDS).astype(float),
            "length_to_usual": np.clip(np.log1p(self.length) - math.log1p(usual), -3, 3) / 3,
            "assistant_x_length": self.assistant * np.log1p(self.length) / 5 * (1 - gate(usual)),
        }

    # -- windows --------------------------------------------------------------------------------------------------

    def _window(self, figures: Figures, before: int, after: int) -> Figures:
        """Return the sum of the figures of each message and of those around it."""
        steps = (*range(1, before + 1), *range(-1, -after - 1, -1))
        return np.asarray(np.add.reduce([figures, *(self.moved(figures, step) for step in steps)]))


def _products(means: NDArray[np.float32]) -> Products:
    """Return the product of each row's vector and that of the row so many before it, framed by zeros."""
    found = {}
    for step in range(2 * REACH + 1):
        found[step] = np.zeros(len(means) + 2 * REACH)
        last = max(len(means) - step, 0)
        found[step][REACH + step : REACH + step + last] = np.einsum("nd,nd->n", means[step:], means[:last])
    return found


def _at(framed: Figures, step: int) -> Figures:
    """Return the figures of the row so many before each (after if negative), of figures framed by zeros."""
    return framed[REACH - step : len(framed) - REACH - step]


def _counts(held: Sequence[NDArray[np.unsignedinteger]], sizes: Figures, asked: NDArray[np.unsignedinteger]) -> Figures:
    """Return how often each message holds each asked key, shape (messages, asked); ``sizes`` are those of ``held``."""
    if not len(asked):
        return np.zeros((len(held), 0))
    flat = np.concatenate(held)
    # A table of the low 16 bits leaves few keys to compare.
    table = np.zeros(1 << 16, bool)
    table[asked.astype(np.uint16)] = True
    near = np.flatnonzero(table.take(flat.astype(np.uint16)))
    keys = flat[near]
    place = np.minimum(np.searchsorted(asked, keys), len(asked) - 1)
    same = np.flatnonzero(asked[place] == keys)
    owner = np.searchsorted(np.cumsum(sizes), near[same], side="right")
    found = np.bincount(owner * len(asked) + place[same], minlength=len(held) * len(asked))
    return found.reshape(len(held), len(asked)).astype(float)


def _bm25(counts: Figures, sizes: Figures) -> tuple[Figures, Figures]:
    """Return BM25 of each text, and the idf of each key, by these texts alone."""
    having = (counts > 0).sum(axis=0)
    idf = np.log(1 + (len(counts) - having + 0.5) / (having + 0.5))
    norm = K1 * (1 - B + B * sizes / max(sizes.mean(), 1.0))
    return (counts * (K1 + 1) / (counts + norm[:, None])) @ idf, idf


def _ranks(figures: Figures) -> Figures:
    ranks = np.empty(len(figures))
    ranks[np.argsort(-figures, kind="stable")] = np.arange(len(figures))
    return ranks


def _closeness(figures: Figures) -> Figures:
    """Return 1 for the best, falling by rank."""
    return 1 / (1 + _ranks(figures) / 10)


def _by_most(figures: Figures) -> Figures:
    most = figures.max(initial=0.0)
    return figures / most if most > 0 else figures


def _standard(figures: Figures) -> Figures:
    # As numpy's own mean and deviation, each of which would ask for the sum anew.
    centred = figures - np.add.reduce(figures) / len(figures)
    deviation = math.sqrt(np.add.reduce(centred * centred) / len(figures))
    return centred / deviation if deviation > TINIEST else figures * 0
