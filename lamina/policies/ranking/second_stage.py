"""The second stage of the search of conversations: a linear model of signals, fitted on data that may be shipped."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lamina.errors import Misconfigured
from lamina.policies.ranking.conversation_signals import (
    SPREAD,
    Figures,
    Flow,
    gate,
    median,
    signals_and_lengths,
    signals_around,
)
from lamina.policies.ranking.message_traits import TRAITS_VERSION, QuestionTraits

WEIGHTS_FILE = Path(__file__).with_name("second_stage.json")
# In short talk a message means little without those around it; where answers run to 200 words, the opposite holds.
GATED = (
    "bm25", "bm25_raw", "bm25_rank", "bm25_1", "bm25_2", "bm25_before", "bm25_after", "bm25_x_cos_1", "coverage",
    "cos", "cos_standard", "cos_rank", "cos_1", "cos_1_rank", "cos_3", "cos_before", "cos_after", "cos_neighbours",
    "question_before", "session_cos", "session_bm25", "session_document", "session_mean", "session_rank",
    "trigrams", "number", "number_x_cos_1", "assistant",
)  # fmt: skip
"""Signals whose worth depends on how long a message is, and on how long the messages around it usually are."""

# Nobody asks in the very words of the evidence, so that no fit learns it: a text that is asked for itself comes first.
IDENTICAL_GAIN, ALIKE = 10.0, 0.9


@dataclass(frozen=True, slots=True)
class StageWeights:
    """The weights of the stage.

    Args:
        plain: Of each signal.
        short: Of a gated signal, times how short the message is.
        usual: Of a gated signal, times how short messages usually are.
        around: Of what messages around score by all of these.
        origin: The data that they were fitted on, their hash, the command that fits them again.
    """

    plain: Mapping[str, float]
    short: Mapping[str, float]
    usual: Mapping[str, float]
    around: Mapping[str, float]
    origin: Mapping[str, Any]
    _vectors: dict[tuple[str, ...], tuple[Figures, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def vectors(self, names: tuple[str, ...]) -> tuple[Figures, ...]:
        """Return the weights of these signals, each part as one vector."""
        if names not in self._vectors:
            parts = (self.plain, self.short, self.usual)
            self._vectors[names] = tuple(np.array([part.get(name, 0.0) for name in names]) for part in parts)
        return self._vectors[names]

    def to_json(self) -> str:
        """Return the text of the weights' file, the same for the same weights."""
        parts = {"plain": self.plain, "short": self.short, "usual": self.usual, "around": self.around}
        rounded = {
            part: {name: float(f"{weight:.5g}") for name, weight in weights.items()} for part, weights in parts.items()
        }
        return json.dumps({"origin": dict(self.origin), "traits_version": TRAITS_VERSION, **rounded}, indent=1) + "\n"


@cache
def shipped_weights() -> StageWeights:
    """Read the weights that come with Lamina."""
    return parse_weights(WEIGHTS_FILE.read_text(encoding="utf-8"))


def parse_weights(text: str) -> StageWeights:
    """Read the text of a weights' file.

    Raises:
        Misconfigured: If it was fitted on other signals than this release has.
    """
    stored = json.loads(text)
    if stored["traits_version"] != TRAITS_VERSION:
        raise Misconfigured(
            f"the weights of the second stage are for signals of version {stored['traits_version']}, "
            f"this release has {TRAITS_VERSION}",
            f"fit them again: {stored['origin']['command']}",
        )
    return StageWeights(stored["plain"], stored["short"], stored["usual"], stored["around"], stored["origin"])


@dataclass(frozen=True, slots=True)
class Design:
    """The signals of some messages for one question.

    Args:
        names: Of the signals.
        values: Shape (messages, signals).
        short: How short each message is, 0..1.
        usual: How short messages usually are, 0..1.
        flow: The messages.
    """

    names: tuple[str, ...]
    values: Figures
    short: Figures
    usual: float
    flow: Flow

    def of(self, name: str) -> Figures:
        """Return one signal of each message."""
        return self.values[:, self.names.index(name)]

    def scores(self, weights: StageWeights, gain: Figures | None = None) -> Figures:
        """Return each message's score; only differences between scores of one question mean something.

        Args:
            weights: Of the signals.
            gain: What else each message's own score rises by, before those around it count.
        """
        own = self.own_scores(weights)
        if gain is not None:
            own = own + gain
        around = signals_around(self.flow, own)
        fitted = own + sum(weight * around[name] for name, weight in weights.around.items())
        return np.asarray(fitted + IDENTICAL_GAIN * np.clip((self.of("cos") - ALIKE) / (1 - ALIKE), 0, 1))

    def own_scores(self, weights: StageWeights) -> Figures:
        """Return each message's score by its signals alone, whatever those around it score."""
        plain, short, usual = weights.vectors(self.names)
        return np.asarray(self.values @ (plain + self.usual * usual) + self.short * (self.values @ short))

    def relevance(self, scores: Figures) -> Figures:
        """Return scores of 0..1 in the same order: the best is as sure as the nearest message is near."""
        sure = min(1.0, float(max(self.of("cos").max(), self.of("coverage").max() / 2)))
        return np.asarray(max(sure, 0.0) * np.exp((scores - scores.max()) / SPREAD))

    def strongest(self, weights: StageWeights, places: Sequence[int], most: int) -> list[dict[str, float]]:
        """Return the signals that raise or lower each of the messages most against the mean of all, strongest first."""
        plain, short, usual = weights.vectors(self.names)
        around = signals_around(self.flow, self.own_scores(weights))
        names = (*self.names, *weights.around)
        shares = np.column_stack(
            [
                self.values * (plain + self.usual * usual + self.short[:, None] * short),
                *(weight * around[name] for name, weight in weights.around.items()),
            ]
        )
        above = shares[list(places)] - shares.mean(axis=0)
        order = np.argsort(-np.abs(above), axis=1, kind="stable")[:, :most]
        return [
            {f"signal_{names[signal]}": float(row[signal]) for signal in of_row}
            for row, of_row in zip(above, order, strict=True)
        ]

    def matrix(self) -> tuple[Figures, list[tuple[str, str]]]:
        """Return the signals with their gates side by side, and (part, name) of each column, for a fit."""
        gated = [self.names.index(name) for name in GATED]
        held = self.values[:, gated]
        columns = [("plain", name) for name in self.names]
        columns += [(part, name) for part in ("short", "usual") for name in GATED]
        return np.hstack([self.values, held * self.short[:, None], held * self.usual]), columns


def design(question: QuestionTraits, flow: Flow) -> Design:
    """Return the signals of each message of a flow."""
    signals, length = signals_and_lengths(question, flow)
    values = np.stack(list(signals.values()), axis=1)
    return Design(tuple(signals), values, gate(length), gate(median(length)), flow)
