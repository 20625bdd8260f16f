"""Raise memories of the time that a question is about.

A message counts for the day on which it was said, and for the times that it names, seen from that day. The boost adds
to the score of the second stage, and never decides alone: many questions name a time only in passing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np

from lamina.core.queries import RankedHit
from lamina.core.tiers import Source, Tier
from lamina.policies.ranking.conversation_signals import Figures
from lamina.policies.ranking.message_traits import MessageTraits, QuestionTraits, stem_hashes
from lamina.text.times import AskedTime, Interval, TimeKind

WEIGHTS_FILE = Path(__file__).with_name("time_weights.json")
SAME_OCCASION = timedelta(hours=1)
LEAST_COVERED = 0.6
"""Share of an event's words that the message which tells of it has at least."""
GAIN = 1.15
"""Factor of the score of a note or fact of that time: some ten ranks of the default fusion."""
_DATED_TIERS = (Tier.NOTES, Tier.GRAPH)


@dataclass(frozen=True, slots=True)
class ThenSignals:
    """How much each message belongs to the time that was asked for, 0..1.

    Args:
        said: Whether it was said then.
        named: How much of a time that it names lies there.
        beside: Whether it was said before, or after, the event that was asked for.
    """

    said: Figures
    named: Figures
    beside: Figures

    def shown(self, place: int) -> dict[str, float]:
        """Return the signals of one message that are not 0."""
        figures = {"said_then": self.said, "named_then": self.named, "beside_event": self.beside}
        return {name: float(of_all[place]) for name, of_all in figures.items() if of_all[place] > 0}


def as_asked(question: QuestionTraits, asked: AskedTime) -> QuestionTraits:
    """Return the question's traits, those about first and last things by the time that it names.

    "Last summer" asks for no last thing: with it, the newest message came first.
    """
    if asked.intervals:
        return replace(question, asks_now=False, asks_first=False)
    is_latest, is_earliest = asked.kind is TimeKind.LATEST, asked.kind is TimeKind.EARLIEST
    return replace(question, asks_now=question.asks_now or is_latest, asks_first=question.asks_first or is_earliest)


def then_signals(asked: AskedTime, messages: Sequence[MessageTraits], scores: Figures) -> ThenSignals | None:
    """Return how much each message belongs to the time; ``None`` where that tells none from the others.

    Args:
        asked: The time.
        messages: In any order.
        scores: By which the message that tells of an event is chosen among those that have its words.
    """
    nothing = np.zeros(len(messages))
    if asked.intervals:
        said = np.array([any(contains(one, item.said_at) for one in asked.intervals) for item in messages], float)
        # The largest share of a named time that lies within one that was asked for.
        shares = ([_share(one, other) for one in item.named for other in asked.intervals] for item in messages)
        return ThenSignals(said, np.array([max(found, default=0.0) for found in shares]), nothing)
    if asked.kind not in (TimeKind.BEFORE_EVENT, TimeKind.AFTER_EVENT):
        return None
    moment = _moment_of(asked.event, messages, scores)
    return None if moment is None else beside(asked.kind, moment, messages)


def beside(kind: TimeKind, moment: datetime, messages: Sequence[MessageTraits]) -> ThenSignals:
    """Return which messages were said before an event, or after it."""
    nothing = np.zeros(len(messages))
    is_before = kind is TimeKind.BEFORE_EVENT
    is_beside = [
        item.said_at < moment - SAME_OCCASION if is_before else item.said_at > moment + SAME_OCCASION
        for item in messages
    ]
    return ThenSignals(nothing, nothing, np.array(is_beside, float))


def _moment_of(event: str, messages: Sequence[MessageTraits], scores: Figures) -> datetime | None:
    """Return when an event was, by the message that tells of it best; ``None`` where none does."""
    wanted = stem_hashes(event)
    if not wanted:
        return None
    covered = np.array([len(wanted.intersection(item.stems.tolist())) for item in messages]) / len(wanted)
    if covered.max(initial=0.0) < LEAST_COVERED:
        return None
    best = messages[max(range(len(messages)), key=lambda at: (covered[at], scores[at]))]
    return next((one.start for one in best.named if one.start is not None), best.said_at)


def contains(interval: Interval, moment: datetime) -> bool:
    """Report whether a moment lies in an interval."""
    return (interval.start is None or interval.start <= moment) and (interval.end is None or moment < interval.end)


def _share(named: Interval, asked: Interval) -> float:
    if named.start is None or named.end is None:
        return 0.0
    start = named.start if asked.start is None else max(named.start, asked.start)
    end = named.end if asked.end is None else min(named.end, asked.end)
    return max((end - start) / (named.end - named.start), 0.0)


def weigh_then(signals: ThenSignals) -> Figures:
    """Return by how much the score of each message rises."""
    weights = shipped_time_weights()
    return np.asarray(
        weights["said"] * signals.said + weights["named"] * signals.named + weights["beside"] * signals.beside
    )


@cache
def shipped_time_weights() -> Mapping[str, float]:
    """Read the weights that ``python -m benchmarks fit-time`` wrote; their file says from which data."""
    weights: dict[str, float] = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))["weights"]
    return weights


def raise_by_time(ranked: Sequence[RankedHit], asked: AskedTime | None) -> tuple[RankedHit, ...]:
    """Return the hits, best first, with the notes and facts of the time that was asked for raised.

    The second stage raises messages; where it did not rank one, that is raised here.
    """
    if asked is None or not asked.intervals:
        return tuple(ranked)
    raised = [replace(hit, score=min(hit.score * GAIN, 1.0)) if _is_of(hit, asked.intervals) else hit for hit in ranked]
    return tuple(sorted(raised, key=lambda hit: -hit.score))


def _is_of(hit: RankedHit, intervals: Sequence[Interval]) -> bool:
    is_unranked = hit.memory.tier is Tier.SESSIONS and Source.SESSION_CONTEXT not in hit.placements
    if hit.memory.tier not in _DATED_TIERS and not is_unranked:
        return False
    return any(contains(one, hit.memory.occurred_at) for one in intervals)
