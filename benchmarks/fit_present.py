"""Fit the weights by which statements are ordered for questions about the present, and write them into the package.

Odd conversations alone are fitted on: of ``changes``, where a current statement is to come before an outdated one, and
of ``chats``, where evidence is to keep its place; and all of ``more_changes``, which is beside this file. The sets are
CC0. The even ones check.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks import changes
from benchmarks.changes import Conversation, Judgement, Question
from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from lamina.client import AsyncClient
from lamina.policies.ranking import present_order
from lamina.policies.ranking.present_order import WINDOW, Statement, present_signals, weigh
from lamina.text.standing import asks_about_present, phrases_of

FILE = Path(present_order.__file__).with_name(present_order.WEIGHTS_FILE)
COMMAND = "python -m benchmarks fit-present --changes DIR --chats DIR"
MORE = Path(__file__).parent / "data" / "more_changes"
L2 = 0.3
"""Pull of the weights to the earlier ones that the file keeps, fitted on fewer questions: without it the fitted half
gains, and the other one and chats lose."""
SHARE_OF_EVIDENCE = 0.05
"""Weight of a current statement's place before all others; its place before outdated ones weighs 1."""
SHARE_OF_CHATS = 0.4
"""Weight of the place of evidence in chats. With 0.3, two points more of more_changes are in order, and evidence of
chats' even half is two points less often among the first three; with 0.5, one point less, and three more."""
STEPS = 2_000

Json = dict[str, Any]
Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Group:
    """The signals of one question's first hits, and which of them are right.

    Args:
        signals: Shape (hits, signals).
        current: Whether a hit states what holds, or is evidence.
        outdated: Whether it states what does not hold.
    """

    signals: Figures
    current: Figures
    outdated: Figures


def fit(
    changes_dir: Annotated[Path, typer.Option("--changes", help="Folder of the set of changes.")],
    chats_dir: Annotated[Path, typer.Option("--chats", help="Folder of the set of chats.")],
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 4,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Fit the order for the present over the hits of a service that does not order them, and write the weights."""
    sets = {"changes": changes.load(changes_dir), "more_changes": changes.load(MORE), "chats": load_chats(chats_dir)}
    with service(url, key, LAMINA_SEARCH__PRESENT_ORDER="false") as endpoint:
        judged = asyncio.run(_run(endpoint, sets, concurrency))
    fitted_on = {name: [item for item in items if _is_fitted_on(item, name)] for name, items in judged.items()}
    groups = {name: [group_of(item) for item in items] for name, items in fitted_on.items()}
    names = list(_signals(fitted_on["changes"][0]))
    earlier = json.loads(FILE.read_text())["earlier"]
    towards = [earlier.get(name, 0.0) for name in names]
    fitted = fit_weights([*groups["changes"], *groups["more_changes"]], groups["chats"], towards)
    weights = dict(zip(names, fitted, strict=True))
    found = {half: _shares(judged["changes"], weights, number) for number, half in ((1, "odd"), (0, "even"))}
    FILE.write_text(json.dumps(_file(weights, earlier, found, _data(changes_dir, chats_dir)), indent=1) + "\n")
    stage(f"weights written to {FILE}")
    shown = table(
        "The current statement before the outdated one, per cent of questions about now", "half", "fused", "ordered"
    )
    for half, shares in found.items():
        shown.add_row(half, *(f"{100 * share:.1f}" for share in shares.values()))
    publish([shown], {"fit_present": found})


def load_chats(folder: Path) -> tuple[Conversation, ...]:
    """Read the set of chats, with their evidence as the current statements and none outdated."""
    lines = (folder / "chats.jsonl").read_text().splitlines()
    return tuple(_chat(json.loads(line), number) for number, line in enumerate(lines, 1))


def _chat(item: Json, number: int) -> Conversation:
    sessions = [session | {"date": _moment(session["date"])} for session in item["sessions"]]
    turns = tuple(turn for session in sessions for turn in changes.turns_of(session))
    questions = tuple(
        Question(asked["question"], None, (asked["answer"],), None, tuple(asked["evidence"]), frozenset())
        for asked in item["questions"]
        if asked["evidence"]
    )
    return Conversation(item["id"], number, item["flavour"], is_late=False, turns=turns, questions=questions)


def _moment(date: str) -> str:
    return date if "T" in date else f"{date}T12:00:00Z"


async def _run(
    endpoint: Endpoint, sets: Mapping[str, Sequence[Conversation]], concurrency: int
) -> dict[str, list[Judgement]]:
    async with AsyncClient(*endpoint) as client:
        return {name: await changes.run(client, items, concurrency, limit=WINDOW) for name, items in sets.items()}


def _is_fitted_on(item: Judgement, name: str) -> bool:
    is_of_half = name == "more_changes" or item.conversation.number % 2 == 1
    is_of_now = item.question.as_of is None and _is_about_present(item.question)
    return is_of_half and bool(item.results) and is_of_now


def _is_about_present(question: Question) -> bool:
    return asks_about_present(phrases_of(question.text), as_of=question.as_of is not None)


def _signals(judged: Judgement) -> dict[str, Figures]:
    return present_signals(judged.question.text, [_statement(hit) for hit in judged.results[:WINDOW]])


def _statement(hit: Json) -> Statement:
    is_of_person = hit["tier"] != "sessions" or hit["source"] == "user"
    placement = hit["explain"].get("session_context")
    relevance = None if placement is None else placement["score"]
    said_at = datetime.fromisoformat(hit["occurred_at"])
    return Statement(hit["content"], hit["name"] or "", is_of_person, said_at, relevance, hit["id"])


def group_of(judged: Judgement) -> Group:
    """Return a question's first hits as figures."""
    refs = [hit["ref"] for hit in judged.results[:WINDOW]]
    return Group(
        np.stack(list(_signals(judged).values()), axis=1),
        np.array([ref in judged.question.current for ref in refs], float),
        np.array([ref in judged.question.outdated for ref in refs], float),
    )


def fit_weights(of_changes: Sequence[Group], of_chats: Sequence[Group], towards: Sequence[float]) -> list[float]:
    """Return the weights of the least listwise softmax over each question's hits, and over the labelled ones alone.

    Args:
        of_changes: The questions about facts that changed.
        of_chats: The questions of chats.
        towards: The weights to stay near.
    """
    scale = np.concatenate([group.signals for group in of_changes]).std(axis=0) + 1e-6
    parts = [(_padded(of_changes, scale), SHARE_OF_EVIDENCE, 1.0), (_padded(of_chats, scale), SHARE_OF_CHATS, 0.0)]
    near = np.array(towards) * scale
    weights = momentum = near
    # Accelerated descent: the loss is smooth, and standardised signals of ten hits bound its curvature.
    for step in range(STEPS):
        slope = 2 * L2 * (momentum - near)
        for (signals, current, outdated), listwise, labelled in parts:
            slope += listwise * _slope(signals, current, np.ones_like(current), momentum)
            slope += labelled * _slope(signals, current, current + outdated, momentum) if labelled else 0.0
        following = momentum - slope / len(scale)
        momentum, weights = following + step / (step + 3) * (following - weights), following
    return [round(float(weight), 4) for weight in weights / scale]


def _padded(groups: Sequence[Group], scale: Figures) -> tuple[Figures, Figures, Figures]:
    """Stack the groups that have a right hit into arrays, padded with zeros."""
    chosen = [group for group in groups if group.current.any()]
    signals = np.zeros((len(chosen), WINDOW, len(scale)))
    current, outdated = np.zeros((2, len(chosen), WINDOW))
    for number, group in enumerate(chosen):
        size = len(group.current)
        signals[number, :size] = group.signals / scale
        current[number, :size], outdated[number, :size] = group.current, group.outdated
    return signals, current, outdated


def _slope(signals: Figures, current: Figures, among: Figures, weights: Figures) -> Figures:
    """Return the gradient of the mean -log share of the right hits among some, padding left out."""
    is_hit = np.abs(signals).sum(axis=2) > 0
    scores = np.where((among > 0) & is_hit, signals @ weights, -np.inf)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    right = shares * current
    right /= right.sum(axis=1, keepdims=True)
    slope: Figures = np.einsum("gh,ghs->s", shares - right, signals) / len(signals)
    return slope


def _shares(judged: Sequence[Judgement], weights: Mapping[str, float], number: int) -> dict[str, float]:
    items = [item for item in judged if item.conversation.number % 2 == number and item.question.as_of is None]
    fused = [changes.is_ordered(item.question, [hit["ref"] for hit in item.results[: changes.LIMIT]]) for item in items]
    ordered = [changes.is_ordered(item.question, _reordered(item, weights)) for item in items]
    right = {"fused": sum(fused), "ordered": sum(ordered)}
    return {order: round(count / len(items), 4) for order, count in right.items()}


def _reordered(judged: Judgement, weights: Mapping[str, float]) -> list[str]:
    refs = [hit["ref"] for hit in judged.results]
    if not judged.results or not _is_about_present(judged.question):
        return refs[: changes.LIMIT]
    scores = weigh(_signals(judged), weights)
    return [refs[place] for place in sorted(range(len(scores)), key=lambda place: -scores[place])][: changes.LIMIT]


def _data(changes_dir: Path, chats_dir: Path) -> dict[str, Path]:
    """Return the files that the weights depend on, by the names that the weights' file gives them."""
    return {
        "changes.jsonl": changes_dir / "changes.jsonl",
        "more_changes.jsonl": MORE / "changes.jsonl",
        "chats.jsonl": chats_dir / "chats.jsonl",
    }


def _file(weights: Mapping[str, float], earlier: Mapping[str, float], found: Json, data: Mapping[str, Path]) -> Json:
    return {
        "origin": "fitted on the odd conversations of changes and chats and on more_changes, all CC0 1.0",
        "command": COMMAND,
        "sha256": {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in data.items()},
        "figures": found,
        "weights": weights,
        "earlier": dict(earlier),
    }
