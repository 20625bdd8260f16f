"""LoCoMo: conversations over months, and questions with the turns that answer them.

Source:
    Maharana et al., ACL 2024. The folder holds `locomo10.json` and the questions with clean
    evidence ids, `locomo10_evidence_normalised.jsonl`.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.report import stage, table
from benchmarks.scored_searches import Hits, ScoredAnswers, ScoredQuestion, SearchOptions, ask_all, rank_by_source
from benchmarks.scoring import RECALL_DEPTHS, JudgedRanking, distinct, mean_recalls
from benchmarks.timing import run_all, until_indexed
from lamina.client import AsyncClient
from lamina.core.tiers import TIERS
from lamina.errors import Misconfigured

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
MESSAGES_PER_REQUEST = 16
DEEPEST = max(RECALL_DEPTHS)
# Recall at 5, 10 and 20 over the 1 982 questions, measured outside the product.
REFERENCES: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "words": ("BM25", (0.483, 0.573, 0.653)),
    "vectors": ("MiniLM", (0.331, 0.425, 0.521)),
    "all_tiers": ("RRF of both", (0.451, 0.548, 0.636)),
}
SOURCES = {"words": "session_words", "vectors": "session_vectors"}
RANKINGS = ("words", "vectors", "sessions", "all_tiers")
HALVES = ("even", "odd")
HEADLINE_DEPTH = 10
_SESSION = re.compile(r"session_\d+")
_TIME_FORMAT = "%I:%M %p on %d %B, %Y"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the measurement.

    Args:
        folder: Where the data set lies.
        workspaces: Prefix of the workspaces; one that was written before is used as it is.
        conversations: How many of the ten; all if not given.
        questions: How many of their questions; all if not given.
        captions: Whether a turn says what its image shows.
        limit: Fused hits asked for.
        concurrency: Requests in flight.
    """

    folder: Path
    workspaces: str
    conversations: int | None = None
    questions: int | None = None
    captions: bool = False
    limit: int = 20
    concurrency: int = 4


@dataclass(frozen=True, slots=True)
class Session:
    """A session's messages, in order, as `POST /v1/turns` takes them."""

    conversation: str
    name: str
    messages: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question that has evidence.

    Args:
        conversation: Which conversation answers it.
        category: One of ``CATEGORIES``.
        text: What is asked.
        evidence: The refs of the turns that answer it; at least one.
    """

    conversation: str
    category: str
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Locomo:
    """The data set."""

    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of writing the data set.

    Args:
        refs: The ref of every message, by the id the service gave it.
        existed: How many messages the service had before.
        turns_per_s: Throughput of the requests.
        indexed_s: Seconds after the last answer until both projections had everything.
    """

    refs: Mapping[str, str]
    existed: int
    turns_per_s: float
    indexed_s: float


@dataclass(frozen=True, slots=True)
class LocomoResult:
    """The measurement.

    Args:
        data: What was asked.
        written: What writing gave.
        sessions: Every question's answer over sessions alone.
        by_source: Every question's ranking by each source of the sessions.
        all_tiers: Every question's answer over all tiers.
    """

    data: Locomo
    written: WriteResult
    sessions: ScoredAnswers
    by_source: Sequence[Mapping[str, Hits]]
    all_tiers: ScoredAnswers


def load(options: Options) -> Locomo:
    """Read the data set.

    Raises:
        Misconfigured: If the folder does not hold it.
    """
    try:
        conversations = json.loads((options.folder / "locomo10.json").read_text())
        lines = (options.folder / "locomo10_evidence_normalised.jsonl").read_text().splitlines()
    except FileNotFoundError as error:
        raise Misconfigured(f"{error.filename} does not exist", "name LoCoMo's folder with --locomo") from error
    sessions = tuple(
        session for item in conversations[: options.conversations] for session in _sessions(item, options.captions)
    )
    return Locomo(sessions, tuple(_questions(map(json.loads, lines), sessions))[: options.questions])


def _sessions(item: Json, captions: bool) -> Iterator[Session]:
    talk = item["conversation"]
    roles = {talk["speaker_a"]: "user", talk["speaker_b"]: "assistant"}
    for name, turns in talk.items():
        if _SESSION.fullmatch(name):
            begin = datetime.strptime(talk[f"{name}_date_time"], _TIME_FORMAT).replace(tzinfo=UTC)
            messages = (
                _message(turn, roles, begin + timedelta(seconds=place), captions) for place, turn in enumerate(turns)
            )
            yield Session(item["sample_id"], name, tuple(messages))


def _message(turn: Json, roles: Mapping[str, str], occurred_at: datetime, captions: bool) -> Json:
    caption = turn.get("blip_caption") if captions else None
    return {
        "role": roles[turn["speaker"]],
        "name": turn["speaker"],
        "ref": turn["dia_id"],
        "content": f"{turn['text']} [shares an image: {caption}]" if caption else turn["text"],
        "occurred_at": occurred_at.isoformat(),
    }


def _questions(items: Iterator[Json], sessions: Sequence[Session]) -> Iterator[Question]:
    known = {(session.conversation, message["ref"]) for session in sessions for message in session.messages}
    for item in items:
        evidence = frozenset(ref for ref in item["evidence"] if (item["sample_id"], ref) in known)
        if evidence:
            yield Question(item["sample_id"], CATEGORIES[item["category"]], item["question"], evidence)


async def run(client: AsyncClient, options: Options) -> LocomoResult:
    """Write the conversations, ask the questions over sessions alone, then over all tiers."""
    data = load(options)
    written = await _write(client, data.sessions, options)
    asked = [ScoredQuestion(_workspace(options, question.conversation), question.text) for question in data.questions]
    alone = SearchOptions(("sessions",), options.limit, options.concurrency)
    sessions = await ask_all(client, asked, alone)
    stage(f"{len(asked)} questions asked over sessions")
    by_source = await rank_by_source(client, asked, sessions, alone, depth=DEEPEST)
    stage("each source's own ranking is known")
    all_tiers = await ask_all(client, asked, SearchOptions(tuple(TIERS), options.limit, options.concurrency))
    stage(f"{len(asked)} questions asked over all tiers")
    return LocomoResult(data, written, sessions, by_source, all_tiers)


def _workspace(options: Options, conversation: str) -> str:
    return f"{options.workspaces}-{conversation}"


async def _write(client: AsyncClient, sessions: Sequence[Session], options: Options) -> WriteResult:
    begin = time.perf_counter()
    answers = await run_all(
        sessions, lambda session: _write_session(client, session, options), concurrency=options.concurrency
    )
    elapsed_s = time.perf_counter() - begin
    stored = [message for answer in answers for message in answer]
    stage(f"{len(stored)} turns written, {len(stored) / elapsed_s:.0f} a second")
    indexed_s = await until_indexed(client)
    stage(f"indexed {indexed_s:.1f} s later")
    return WriteResult(
        refs={message["id"]: message["ref"] for message in stored},
        existed=sum(message["existed"] for message in stored),
        turns_per_s=len(stored) / elapsed_s,
        indexed_s=indexed_s,
    )


async def _write_session(client: AsyncClient, session: Session, options: Options) -> list[Json]:
    stored: list[Json] = []
    for start in range(0, len(session.messages), MESSAGES_PER_REQUEST):
        messages = session.messages[start : start + MESSAGES_PER_REQUEST]
        workspace = _workspace(options, session.conversation)
        answer = await client.record(messages, workspace=workspace, session=session.name)
        pairs = zip(messages, answer["messages"], strict=True)
        stored += [kept | {"ref": message["ref"]} for message, kept in pairs]
    return stored


def figures(outcome: LocomoResult, options: Options) -> Json:
    """Return the figures; recalls are fractions."""
    rankings = _rankings(outcome)
    recalls = {name: mean_recalls(judged) for name, judged in rankings.items()}
    return {
        **recalls["all_tiers"],
        **{name: recalls[name] for name in RANKINGS if name != "all_tiers"},
        "by_tier": _by_tier(outcome),
        "halves": _halves(outcome.data.questions, rankings["all_tiers"]),
        "by_category": _by_category(outcome.data.questions, rankings),
        "limit": options.limit,
        "questions": len(outcome.data.questions),
        "turns": sum(len(session.messages) for session in outcome.data.sessions),
        "existed": outcome.written.existed,
        "turns_per_s": outcome.written.turns_per_s,
        "indexed_s": outcome.written.indexed_s,
        **outcome.all_tiers.figures(),
        "sessions_search": outcome.sessions.figures(),
    }


def _rankings(outcome: LocomoResult) -> dict[str, list[JudgedRanking]]:
    hits = {name: [rankings.get(source, ()) for rankings in outcome.by_source] for name, source in SOURCES.items()}
    hits |= {"sessions": outcome.sessions.fused(), "all_tiers": outcome.all_tiers.fused()}
    return {
        name: [_judge(*pair, outcome) for pair in zip(outcome.data.questions, hits[name], strict=True)]
        for name in RANKINGS
    }


def _judge(question: Question, hits: Hits, outcome: LocomoResult) -> JudgedRanking:
    return JudgedRanking(distinct(ref_of(hit, outcome.written.refs) for hit in hits), question.evidence)


def ref_of(hit: Json, refs: Mapping[str, str]) -> str:
    """Return the ref of the turn that a hit is, or that it was drawn from; a fact of the graph stands for itself."""
    id_ = hit["id"] if hit["tier"] == "sessions" else (hit["source"] or "").removeprefix("message:")
    return refs.get(id_, hit["id"])


def _by_tier(outcome: LocomoResult) -> Json:
    """Return each tier's share of the first ten hits of a search over all tiers.

    ``hits`` a question, the ``evidence`` found through them as a fraction of all, and how many
    of these hits the graph placed, whatever tier they live in.
    """
    tops = [hits[:HEADLINE_DEPTH] for hits in outcome.all_tiers.fused()]
    pairs = list(zip(outcome.data.questions, tops, strict=True))
    return {tier: _of_tier(tier, pairs, outcome.written.refs) for tier in TIERS}


def _of_tier(tier: str, pairs: Sequence[tuple[Question, Hits]], refs: Mapping[str, str]) -> Json:
    own = [(question, [hit for hit in hits if hit["tier"] == tier]) for question, hits in pairs]
    found = [question.evidence.intersection(ref_of(hit, refs) for hit in hits) for question, hits in own]
    shares = [len(refs_) / len(question.evidence) for refs_, (question, _) in zip(found, own, strict=True)]
    return {
        "hits": sum(len(hits) for _, hits in own) / max(1, len(pairs)),
        "evidence": sum(shares) / max(1, len(pairs)),
        "placed_by_graph": sum("graph" in hit["explain"] for _, hits in own for hit in hits) / max(1, len(pairs)),
    }


def _halves(questions: Sequence[Question], judged: Sequence[JudgedRanking]) -> Json:
    """Return the recalls over every second conversation, and over the others."""
    names = list(dict.fromkeys(question.conversation for question in questions))
    return {
        half: mean_recalls(
            [
                item
                for question, item in zip(questions, judged, strict=True)
                if names.index(question.conversation) % 2 == start
            ]
        )
        for start, half in enumerate(HALVES)
    }


def _by_category(questions: Sequence[Question], rankings: Mapping[str, Sequence[JudgedRanking]]) -> dict[str, Json]:
    asked = {question.category for question in questions}
    return {name: _of_category(name, questions, rankings) for name in CATEGORIES.values() if name in asked}


def _of_category(category: str, questions: Sequence[Question], rankings: Mapping[str, Sequence[JudgedRanking]]) -> Json:
    places = [place for place, question in enumerate(questions) if question.category == category]
    recalls = {name: mean_recalls([judged[place] for place in places]) for name, judged in rankings.items()}
    return {"questions": len(places), **recalls}


def tables(found: Json) -> tuple[Table, ...]:
    """Return the tables of the figures."""
    return _overall(found), _tiers(found), _categories(found), _speed(found)


def _overall(found: Json) -> Table:
    asked = f"{found['questions']} questions, limit {found['limit']}"
    title = f"LoCoMo: recall of evidence at {_slashed(RECALL_DEPTHS)} in per cent, {asked}"
    shown = table(title, "ranking", "recall", "reference", "", "ratio")
    for name in RANKINGS:
        recalls = found if name == "all_tiers" else found[name]
        reference, expected = REFERENCES.get(name, ("", ()))
        ratios = [value / right for value, right in zip(_values(recalls), expected, strict=False)]
        shown.add_row(
            name.replace("_", " "), _percent(_values(recalls)), reference, _percent(expected), _decimals(ratios)
        )
    return shown


def _tiers(found: Json) -> Table:
    title = "What each tier gives to the first ten hits over all tiers"
    shown = table(title, "tier", "hits a question", "evidence, per cent", "placed by the graph")
    for tier, share in found["by_tier"].items():
        figures_ = (f"{share['hits']:.2f}", f"{100 * share['evidence']:.1f}", f"{share['placed_by_graph']:.2f}")
        shown.add_row(tier, *figures_)
    return shown


def _categories(found: Json) -> Table:
    shown = table("By category", "category", "questions", *(name.replace("_", " ") for name in RANKINGS))
    for category, recalls in found["by_category"].items():
        cells = (_percent(_values(recalls[name])) for name in RANKINGS)
        shown.add_row(category, str(recalls["questions"]), *cells)
    return shown


def _speed(found: Json) -> Table:
    shown = table("Speed", "", "a second", "p50 ms", "p95 ms", "degraded")
    shown.add_row("turns written", f"{found['turns_per_s']:.0f}", "", "", "")
    for name, speed in (("searches, sessions", found["sessions_search"]), ("searches, all tiers", found)):
        times = (f"{speed[key]:.1f}" for key in ("searches_per_s", "search_p50_ms", "search_p95_ms"))
        shown.add_row(name, *times, str(speed["degraded"]))
    return shown


def _values(recalls: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(recalls[f"recall_at_{k}"] for k in RECALL_DEPTHS)


def _percent(fractions: Sequence[float]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in fractions)


def _decimals(ratios: Sequence[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in ratios)


def _slashed(numbers: Sequence[int]) -> str:
    return "/".join(map(str, numbers))
