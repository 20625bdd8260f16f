"""Measure precision and recall of the extraction rules on labelled sentences.

A claim is one field of the profile at the end, one item of its preferences, one note of a category in an item, or one
typed relation. Every claim that no label has is false, wherever it comes from. Values are equal if their keys are:
case, composition and an article in front do not count. About half of the items of a file must give nothing; the
others are its positive half, over which recall is taken.

Source:
    ``data/extraction/own.jsonl`` and ``own_kinds.jsonl`` were written by the hand that makes the rules: the first
    before there were any, the second for the kinds of sentences that these got wrong. The others are by hands that had
    not seen the rules. ``other_hand`` and ``other_hand_2a`` are the half on which the rules are tuned,
    ``other_hand_2b`` is the half that checks them: nobody who changes the rules reads it. It and ``other_hand_2a`` are
    one set, split by lot.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from benchmarks.report import console, publish, table
from lamina.core.memories import Category, Extraction, Message, Role, new_id
from lamina.extraction.rules import extract_by_rules
from lamina.text.words import name_key

FOLDER = Path(__file__).parent / "data" / "extraction"
FILES = ("own", "own_kinds", "other_hand", "other_hand_2a", "other_hand_2b")
NOTHING_GIVEN = "must give nothing"

Json = dict[str, Any]
Claim = tuple[str, ...]
"""The kind (``location``, ``note: decision``, ``relation``), and the value if it has one."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The claims of one item."""

    item: Json
    right: Counter[Claim]
    false: Counter[Claim]
    missed: Counter[Claim]


def measure(
    files: Annotated[list[str] | None, typer.Argument(help="Names of files; all by default.")] = None,
    failures: Annotated[bool, typer.Option(help="Show every item with a false or a missed claim.")] = False,
) -> None:
    """Measure the precision and recall of extraction by rules over labelled sentences."""
    judged = {name: [judge(item) for item in read_items(FOLDER / f"{name}.jsonl")] for name in files or FILES}
    if failures:
        for name, found in judged.items():
            _show_failures(name, found)
    every = [item for found in judged.values() for item in found]
    kinds = by_kind(every)
    shown = table("Extraction by rules", "kind", "right", "false", "missed", "precision", "recall")
    for kind, figures in [*kinds.items(), *((f"all of {name}", total(found)) for name, found in judged.items())]:
        shown.add_row(kind, *(_cell(figures[column]) for column in ("right", "false", "missed", "precision", "recall")))
    of_files = {name: {"items": len(found), **total(found)} for name, found in judged.items()}
    publish([shown], {"extraction": {**total(every), "by_kind": kinds, "files": of_files}})


def read_items(path: Path) -> list[Json]:
    """Read the items of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def judge(item: Json) -> Judged:
    """Compare the extractions from an item's messages with its labels."""
    messages = [_message(said) for said in item["messages"]]
    found = Counter(_found_claims(extract_by_rules(messages, [new_id() for _ in messages])))
    expected = Counter(_expected_claims(item))
    return Judged(item, found & expected, found - expected, expected - found)


def by_kind(judged: Sequence[Judged]) -> dict[str, dict[str, float]]:
    """Return the figures of each kind of claim."""
    kinds = sorted(
        {claim[0] for item in judged for claims in (item.right, item.false, item.missed) for claim in claims}
    )
    return {kind: _figures(judged, kind) for kind in kinds}


def total(judged: Sequence[Judged]) -> dict[str, float]:
    """Return the figures over all claims."""
    return _figures(judged, None)


def _figures(judged: Sequence[Judged], kind: str | None) -> dict[str, float]:
    right, false, missed = (
        sum(
            count
            for item in judged
            for claim, count in getattr(item, column).items()
            if kind is None or claim[0] == kind
        )
        for column in ("right", "false", "missed")
    )
    precision = right / (right + false) if right + false else 1.0
    recall = right / (right + missed) if right + missed else 1.0
    return {"right": right, "false": false, "missed": missed, "precision": precision, "recall": recall}


def _message(said: Mapping[str, Any]) -> Message:
    moment = said.get("occurred_at")
    return Message(
        Role(said.get("role") or "user"),
        said["text"],
        name=said.get("name"),
        occurred_at=datetime.fromisoformat(moment) if moment else None,
    )


def _found_claims(found: Extraction) -> Iterator[Claim]:
    yield from _profile_claims(found.profile)
    # The items were labelled before the rules drew interactions.
    noted = [note.category for note in found.notes if note.category is not Category.INTERACTION]
    yield from ((f"note: {category.value}",) for category in noted)
    yield from (_relation(edge.subject, edge.type, edge.object) for edge in found.edges)


def _expected_claims(item: Json) -> Iterator[Claim]:
    yield from _profile_claims(item["profile"])
    yield from ((f"note: {category}",) for category in item["notes"])
    yield from (_relation(*relation) for relation in item["relations"])


def _profile_claims(profile: Mapping[str, Any]) -> Iterator[Claim]:
    for key, value in profile.items():
        yield from ((key, _key(one)) for one in (value if isinstance(value, list) else [value]))


def _relation(subject: str, type_: str, object_: str) -> Claim:
    return ("relation", _key(subject), type_, _key(object_))


def _key(value: object) -> str:
    return name_key(str(value)).removeprefix("the ")


def _cell(value: float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _show_failures(name: str, judged: Sequence[Judged]) -> None:
    for item in judged:
        if item.false or item.missed:
            said = " | ".join(message["text"] for message in item.item["messages"])
            parts = [
                f"{word} {dict(claims)}" for word, claims in (("false", item.false), ("missed", item.missed)) if claims
            ]
            console.print(escape(f"{name}: {said}\n    {'; '.join(parts)}"), highlight=False, soft_wrap=True)
