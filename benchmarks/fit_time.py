"""Fit how much a message gains that belongs to the time a question is about, and write the weights' file.

The questions of the chats hardly name times. So each is asked several times more: about the day, week or month in which
its evidence was said, about a time that its evidence names, before or after another session, and about the time of
another session, as a question does that names a time in passing. The scores of the second stage stand as they are; only
what is added to them is fitted, and then made smaller until times named in passing lose little.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.chat_data import Conversation, load_chats
from benchmarks.chats import FILE, LONG_FILE
from benchmarks.fit import Group, data_hash, groups_of, newton, packaged_model
from benchmarks.report import publish, stage, table
from lamina.policies.ranking.second_stage import shipped_weights
from lamina.policies.ranking.time_boost import WEIGHTS_FILE, ThenSignals, beside, then_signals
from lamina.text.times import AskedTime, Interval, TimeKind

COMMAND = "python -m benchmarks fit-time --data DIR"
SIGNALS = ("said", "named", "beside")
L2 = 0.02
DEPTHS = (1, 5, 10, 20)
WRONG_SIDE = 3
"""One question in so many is asked about the side of an event on which its evidence is not."""
MOST_LOST = 0.015
"""Recall at 10 that questions lose at most that name a time in passing."""
KINDS = ("said_then", "named_then", "in_passing", "beside_event")

Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimedGroup:
    """A question that names a time.

    Args:
        kind: What the time has to do with the evidence.
        is_fitted: Whether weights may be fitted on it.
        asked: The question's messages, and which of them are candidates.
        own: Each message's own score of the second stage, whatever those around it score.
        then: How much each belongs to the time, shape (messages, signals).
    """

    kind: str
    is_fitted: bool
    asked: Group
    own: Figures
    then: Figures


def fit(
    data: Annotated[Path, typer.Option("--data", help="Folder of the chats.")],
    output: Annotated[Path, typer.Option(help="Where to write the weights.")] = WEIGHTS_FILE,
) -> None:
    """Fit the boost of events at the time a question is about; the same data give the same file."""
    files = [data / FILE, data / LONG_FILE]
    conversations = load_chats(files)
    with packaged_model() as (model, settings):
        groups = [
            group
            for item in conversations
            for number, asked in enumerate(groups_of(item, model, settings))
            for group in timed_groups(item, asked, number)
        ]
    stage(f"signals of {len(groups)} questions that name a time")
    weights = fit_weights([group for group in groups if group.is_fitted])
    found = {
        half: {
            kind: {
                when: recalls([group for group in groups if group.kind == kind and group.is_fitted == is_fitted], given)
                for when, given in (("without", dict.fromkeys(SIGNALS, 0.0)), ("with", weights))
            }
            for kind in KINDS
        }
        for half, is_fitted in (("fitted", True), ("unseen", False))
    }
    origin = {
        "data": f"{FILE} and {LONG_FILE}, conversations with odd numbers (CC0), asked about times",
        "data_sha256": data_hash(files),
        "questions": sum(group.is_fitted for group in groups),
        "l2": L2,
        "command": COMMAND,
    }
    text = json.dumps({"origin": origin, "weights": {name: round(weights[name], 4) for name in SIGNALS}}, indent=1)
    output.write_text(text + "\n", encoding="utf-8")
    stage(f"weights written to {output}")
    publish([_table(found)], {"fit_time": {**found, "weights": weights, "data_sha256": origin["data_sha256"]}})


def timed_groups(conversation: Conversation, asked: Group, number: int) -> Iterator[TimedGroup]:
    """Yield a question as it would be asked about several times."""
    own = asked.stage.own_scores(shipped_weights())
    for kind, signals in _signals(conversation, asked, own, number):
        then = np.stack([signals.said, signals.named, signals.beside], axis=1)
        yield TimedGroup(kind, conversation.is_fitted, asked, own, then)


def _signals(
    conversation: Conversation, asked: Group, scores: Figures, number: int
) -> Iterator[tuple[str, ThenSignals]]:
    """Yield each kind of time and its signals; the same number gives the same times."""
    places = np.flatnonzero(asked.is_candidate)[asked.evidence > 0].tolist()
    said = [asked.traits[place].said_at for place in places]
    if not said:
        return
    moments = [datetime.fromisoformat(session.messages[0]["occurred_at"]) for session in conversation.sessions]
    others = [moment for moment in moments if all(abs(moment - one) > timedelta(days=30) for one in said)]
    times = {"said_then": _around(said[0], number)}
    if named := [one for place in places for one in asked.traits[place].named]:
        times["named_then"] = named[0]
    if others:
        times["in_passing"] = _around(others[number % len(others)], number)
    for kind, interval in times.items():
        signals = then_signals(AskedTime(TimeKind.INTERVAL, "", (interval,)), asked.traits, scores)
        if signals is not None:
            yield kind, signals
    if others:
        event = others[number % len(others)]
        is_before = (event > said[0]) != (number % WRONG_SIDE == 0)
        yield "beside_event", beside(TimeKind.BEFORE_EVENT if is_before else TimeKind.AFTER_EVENT, event, asked.traits)


def _around(moment: datetime, number: int) -> Interval:
    """Return the day, week or month of a moment, by a question's number."""
    day = datetime.combine(moment.astimezone(UTC).date(), time(), UTC)
    match number % 3:
        case 0:
            return Interval(day, day + timedelta(days=1))
        case 1:
            start = day - timedelta(days=day.weekday())
            return Interval(start, start + timedelta(days=7))
        case _:
            start = day.replace(day=1)
            return Interval(start, (start + timedelta(days=31)).replace(day=1))


def fit_weights(groups: Sequence[TimedGroup]) -> dict[str, float]:
    """Return the weights that the groups ask for, none below 0, held back for times that are named in passing."""
    answerable = [group for group in groups if group.asked.evidence.any()]
    # The score of the stage is a column of its own, whose weight is then made 1.
    columns = [
        (
            np.column_stack([group.own - group.own.max(), group.then])[group.asked.is_candidate],
            group.asked.evidence / group.asked.evidence.sum(),
        )
        for group in answerable
    ]
    fitted = newton(columns, l2=L2, is_rising=np.ones(1 + len(SIGNALS), bool))
    asked_for = fitted[1:] / max(float(fitted[0]), 0.1)
    in_passing = [group for group in groups if group.kind == "in_passing"]
    least = recalls(in_passing, dict.fromkeys(SIGNALS, 0.0))["recall_at_10"] - MOST_LOST
    held_back = [dict(zip(SIGNALS, (asked_for * share / 20).tolist(), strict=True)) for share in range(20, -1, -1)]
    return next(weights for weights in held_back if recalls(in_passing, weights)["recall_at_10"] >= least)


def recalls(groups: Sequence[TimedGroup], weights: dict[str, float]) -> dict[str, Any]:
    """Return the mean recall at each depth."""
    vector = np.array([weights[name] for name in SIGNALS])
    found = dict.fromkeys(DEPTHS, 0.0)
    for group in groups:
        scores = group.asked.stage.scores(shipped_weights(), group.then @ vector)[group.asked.is_candidate]
        order = np.argsort(-scores, kind="stable")
        for depth in DEPTHS:
            found[depth] += float(group.asked.evidence[order[:depth]].sum()) / group.asked.wanted / len(groups)
    return {f"recall_at_{depth}": value for depth, value in found.items()} | {"questions": len(groups)}


def _table(found: dict[str, dict[str, dict[str, dict[str, Any]]]]) -> Table:
    shown = table(
        "Recall of evidence among the candidates, per cent, by what the named time has to do with the evidence",
        "half",
        "kind",
        "boost",
        "questions",
        *(f"@{depth}" for depth in DEPTHS),
    )
    for half, of_half in found.items():
        for kind, of_kind in of_half.items():
            for when, of_one in of_kind.items():
                figures = (f"{100 * of_one[f'recall_at_{depth}']:.1f}" for depth in DEPTHS)
                shown.add_row(half, kind.replace("_", " "), when, str(of_one["questions"]), *figures)
    return shown
