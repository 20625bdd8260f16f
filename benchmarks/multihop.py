"""2Wiki: questions whose answer needs two passages or more, found by the links between them.

Source:
    Ho et al., COLING 2020; 101 of its questions as fast-graphrag publishes them. The folder holds
    the passages, `2wikimultihopqa_corpus.json.gz`, and the questions, `2wiki101_qrels.jsonl`.
"""

import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.report import stage, table
from benchmarks.scoring import distinct
from benchmarks.timing import Latencies, Timed, run_all, timed, until_indexed
from lamina.client import AsyncClient
from lamina.client.calls import Call
from lamina.errors import Misconfigured

PUBLISHED = 780
DOCUMENTS_PER_REQUEST = 64
DEPTHS = (8, 10)
LIMIT = 20
# All gold passages in the first eight of the 780, measured outside the product or published.
REFERENCES = {"words": 0.356, "vectors": 0.386, "both": 0.406, "graph with a language model": 0.931}
MANNERS: dict[str, tuple[str, ...]] = {
    "documents alone": ("documents",),
    "graph alone": ("graph",),
    "documents and graph": ("documents", "graph"),
}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the measurement.

    Args:
        folder: Where the data set lies.
        workspaces: Prefix of the workspaces; one that was written before is used as it is.
        is_whole: Whether to measure all passages beside the published first 780.
        concurrency: Requests in flight.
    """

    folder: Path
    workspaces: str
    is_whole: bool = True
    concurrency: int = 4


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the titles of all passages that its answer needs."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Multihop:
    """The data set."""

    passages: tuple[Json, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class MultihopResult:
    """Results over one set of passages.

    Args:
        passages: How many.
        titles: For each manner of asking, each question's titles, best first.
        elapsed_ms: Duration of each search over documents and graph.
        documents_per_s: Throughput of writing.
        degraded: Answers that lacked a source.
    """

    passages: int
    titles: dict[str, list[tuple[str, ...]]]
    elapsed_ms: tuple[float, ...]
    documents_per_s: float
    degraded: int


def load(options: Options) -> Multihop:
    """Read the data set.

    Raises:
        Misconfigured: If the folder does not hold it.
    """
    try:
        with gzip.open(options.folder / "2wikimultihopqa_corpus.json.gz") as file:
            passages = json.load(file)
        lines = (options.folder / "2wiki101_qrels.jsonl").read_text().splitlines()
    except FileNotFoundError as error:
        raise Misconfigured(f"{error.filename} does not exist", "name 2Wiki's folder with --multihop") from error
    asked = map(json.loads, lines)
    return Multihop(
        tuple(passages), tuple(Question(item["question"], frozenset(item["gold_titles"])) for item in asked)
    )


async def run(client: AsyncClient, options: Options) -> dict[str, MultihopResult]:
    """Write the passages as documents and ask every question, over the published ones and over all."""
    data = load(options)
    sizes = {"published": PUBLISHED} | ({"whole": len(data.passages)} if options.is_whole else {})
    return {
        name: await _measure(client, data, f"{options.workspaces}-{name}", size, options)
        for name, size in sizes.items()
    }


async def _measure(client: AsyncClient, data: Multihop, workspace: str, size: int, options: Options) -> MultihopResult:
    documents_per_s = await _write(client, data.passages[:size], workspace)
    titles: dict[str, list[tuple[str, ...]]] = {}
    for name, tiers in MANNERS.items():
        ask = partial(_ask, client, workspace, tiers)
        replies = await run_all(data.questions, ask, concurrency=options.concurrency)
        titles[name] = [distinct(hit["title"] for hit in reply.value["results"] if hit["title"]) for reply in replies]
    stage(f"{len(data.questions)} questions asked over {size} passages")
    degraded = sum(bool(reply.value["degraded"]) for reply in replies)
    return MultihopResult(size, titles, tuple(reply.elapsed_ms for reply in replies), documents_per_s, degraded)


async def _write(client: AsyncClient, passages: Sequence[Json], workspace: str) -> float:
    begin = time.perf_counter()
    for start in range(0, len(passages), DOCUMENTS_PER_REQUEST):
        batch = passages[start : start + DOCUMENTS_PER_REQUEST]
        documents = [
            {"key": f"passage {start + place}", "title": passage["title"], "content": passage["text"]}
            for place, passage in enumerate(batch)
        ]
        await client.send(Call("POST", "/v1/documents/batch", {"workspace": workspace, "documents": documents}))
    documents_per_s = len(passages) / (time.perf_counter() - begin)
    stage(f"{len(passages)} passages written, {documents_per_s:.0f} a second")
    stage(f"indexed {await until_indexed(client):.1f} s later")
    return documents_per_s


async def _ask(client: AsyncClient, workspace: str, tiers: Sequence[str], question: Question) -> Timed[Json]:
    return await timed(client.search(question.text, workspace=workspace, tiers=list(tiers), limit=LIMIT))


def figures(outcomes: dict[str, MultihopResult], options: Options) -> Json:
    """Return the figures; those of the published passages stand first, all as fractions."""
    data = load(options)
    found = {name: _figures(outcome, data.questions) for name, outcome in outcomes.items()}
    return {**found["published"], **{name: value for name, value in found.items() if name != "published"}}


def _figures(outcome: MultihopResult, questions: Sequence[Question]) -> Json:
    shares = {
        name: {f"all_gold_at_{k}": _all_gold(titles, questions, k) for k in DEPTHS}
        for name, titles in outcome.titles.items()
    }
    halves = {
        half: _all_gold(outcome.titles["documents and graph"][start::2], questions[start::2], DEPTHS[0])
        for start, half in enumerate(("even", "odd"))
    }
    latencies = Latencies.of(outcome.elapsed_ms)
    return {
        **shares.pop("documents and graph"),
        **{name.replace(" ", "_"): share for name, share in shares.items()},
        "halves_at_8": halves,
        "passages": outcome.passages,
        "questions": len(questions),
        "documents_per_s": outcome.documents_per_s,
        "search_p50_ms": latencies.p50_ms,
        "search_p95_ms": latencies.p95_ms,
        "degraded": outcome.degraded,
    }


def _all_gold(titles: Sequence[tuple[str, ...]], questions: Sequence[Question], k: int) -> float:
    found = [question.gold <= set(ranked[:k]) for ranked, question in zip(titles, questions, strict=True)]
    return sum(found) / len(found)


def tables(found: Json) -> tuple[Table, ...]:
    """Return the table of the figures."""
    title = "2Wiki: questions with all gold passages in the first 8 / 10, per cent"
    shown = table(title, "tiers", f"{PUBLISHED} passages", "all passages")
    whole = found.get("whole", {})
    for name in MANNERS:
        key = name.replace(" ", "_")
        shown.add_row(name, _percent(found.get(key, found)), _percent(whole.get(key, whole)))
    for name, share in REFERENCES.items():
        shown.add_row(f"reference: {name}", f"{100 * share:.1f}", "")
    return (shown,)


def _percent(shares: Json) -> str:
    return " / ".join(f"{100 * shares[f'all_gold_at_{k}']:.1f}" for k in DEPTHS) if shares else ""
