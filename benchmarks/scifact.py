"""SciFact: scientific claims, and the abstracts that support or refute them.

Source:
    Wadden et al., EMNLP 2020, in the layout of BEIR (Thakur et al., 2021). The folder holds
    `corpus.jsonl.gz`, `queries.jsonl` and `qrels/test.tsv`.
"""

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.report import stage, table
from benchmarks.scored_searches import Hits, ScoredAnswers, ScoredQuestion, SearchOptions, ask_all
from benchmarks.scoring import JudgedRanking, distinct, ndcg_at, recall_at
from benchmarks.timing import run_all, until_indexed
from lamina.client import AsyncClient
from lamina.errors import Misconfigured

DEPTH = 10
# Enough passages for ten documents, and for each leg's own ranking.
LIMIT = 100
DOCUMENTS_PER_REQUEST = 64
SOURCE = "documents"
# nDCG at 10 over whole abstracts, measured outside the product.
REFERENCES: Mapping[str, tuple[str, float]] = {
    "words": ("BM25", 0.686),
    "vectors": ("MiniLM", 0.645),
    "documents": ("RRF of both", 0.716),
}
RAW = {"words": "bm25", "vectors": "cosine"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the measurement.

    Args:
        folder: Where the data set lies.
        workspace: Where to write it; one that was written before is used as it is.
        claims: How many of the claims; all if not given.
        concurrency: Requests in flight.
    """

    folder: Path
    workspace: str
    claims: int | None = None
    concurrency: int = 4


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and the keys of the abstracts that bear on it."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class SciFact:
    """The data set: abstracts as `POST /v1/documents/batch` takes them, and the claims of the test set."""

    documents: tuple[Json, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class SciFactResult:
    """The measurement.

    Args:
        claims: What was asked.
        replies: The answers, in the same order.
        documents: How many abstracts were written.
        existed: How many of them the service had before.
        documents_per_s: Throughput of writing.
        indexed_s: Seconds after the last answer until the index had everything.
    """

    claims: tuple[Claim, ...]
    replies: ScoredAnswers
    documents: int
    existed: int
    documents_per_s: float
    indexed_s: float


def load(options: Options) -> SciFact:
    """Read the data set.

    Raises:
        Misconfigured: If the folder does not hold it.
    """
    try:
        with gzip.open(options.folder / "corpus.jsonl.gz", "rt") as lines:
            documents = tuple(_document(json.loads(line)) for line in lines)
        texts = {
            item["_id"]: item["text"]
            for item in map(json.loads, (options.folder / "queries.jsonl").read_text().splitlines())
        }
        judged = (options.folder / "qrels" / "test.tsv").read_text().splitlines()[1:]
    except FileNotFoundError as error:
        raise Misconfigured(f"{error.filename} does not exist", "name SciFact's folder with --scifact") from error
    return SciFact(documents, tuple(_claims(texts, judged))[: options.claims])


def _document(item: Json) -> Json:
    return {"key": item["_id"], "title": item["title"], "content": item["text"]}


def _claims(texts: Mapping[str, str], judged: Sequence[str]) -> list[Claim]:
    evidence: defaultdict[str, set[str]] = defaultdict(set)
    for line in judged:
        claim, document, relevance = line.split("\t")
        if int(relevance) > 0:
            evidence[claim].add(document)
    return [Claim(texts[claim], frozenset(documents)) for claim, documents in evidence.items()]


async def run(client: AsyncClient, options: Options) -> SciFactResult:
    """Write the abstracts as documents, then ask every claim."""
    data = load(options)
    begin = time.perf_counter()
    results = await _write(client, data.documents, options)
    elapsed_s = time.perf_counter() - begin
    stage(f"{len(results)} abstracts written, {len(results) / elapsed_s:.0f} a second")
    indexed_s = await until_indexed(client)
    stage(f"indexed {indexed_s:.1f} s later")
    asked = [ScoredQuestion(options.workspace, claim.text) for claim in data.claims]
    replies = await ask_all(client, asked, SearchOptions((SOURCE,), LIMIT, options.concurrency))
    stage(f"{len(asked)} claims asked")
    return SciFactResult(
        claims=data.claims,
        replies=replies,
        documents=len(results),
        existed=sum(item["status"] == "existed" for item in results),
        documents_per_s=len(results) / elapsed_s,
        indexed_s=indexed_s,
    )


async def _write(client: AsyncClient, documents: Sequence[Json], options: Options) -> list[Json]:
    batches = [
        documents[start : start + DOCUMENTS_PER_REQUEST] for start in range(0, len(documents), DOCUMENTS_PER_REQUEST)
    ]
    answers = await run_all(
        batches,
        lambda batch: client.add_documents(batch, workspace=options.workspace),
        concurrency=options.concurrency,
    )
    results = [item for answer in answers for item in answer["results"]]
    wrong = next((item["error"] for item in results if item["status"] == "invalid"), None)
    if wrong is not None:
        raise Misconfigured(f"an abstract was refused: {wrong}", "use the data set as it was published")
    return results


def figures(outcome: SciFactResult) -> Json:
    """Return the figures; nDCG and recall are fractions."""
    found = outcome.replies.fused()
    judged = {"documents": _judged(outcome.claims, found, lambda hits: hits)}
    judged |= {name: _judged(outcome.claims, found, _by(figure)) for name, figure in RAW.items()}
    scores = {name: _scores(claims) for name, claims in judged.items()}
    return {
        **scores.pop("documents"),
        **scores,
        "claims": len(outcome.claims),
        "documents": outcome.documents,
        "existed": outcome.existed,
        "documents_per_s": outcome.documents_per_s,
        "indexed_s": outcome.indexed_s,
        **outcome.replies.figures(),
    }


def _judged(claims: Sequence[Claim], found: Sequence[Hits], rank: Callable[[Hits], Hits]) -> list[JudgedRanking]:
    """Return each claim's abstracts in the order of their best passages."""
    return [
        JudgedRanking(distinct(hit["ref"] for hit in rank(hits)), claim.evidence)
        for claim, hits in zip(claims, found, strict=True)
    ]


def _by(figure: str) -> Callable[[Hits], Hits]:
    """Return how to rank the hits by one of the engine's own figures, those without it left out."""

    def raw(hit: Json) -> float | None:
        value: float | None = hit["explain"][SOURCE]["raw"].get(figure)
        return value

    return lambda hits: tuple(sorted((hit for hit in hits if raw(hit) is not None), key=lambda hit: -(raw(hit) or 0)))


def _scores(judged: Sequence[JudgedRanking]) -> dict[str, float]:
    count = max(1, len(judged))
    return {
        "ndcg_at_10": sum(ndcg_at(DEPTH, item) for item in judged) / count,
        "recall_at_10": sum(recall_at(DEPTH, item) for item in judged) / count,
    }


def tables(found: Json) -> tuple[Table, ...]:
    """Return the tables of the figures."""
    title = f"SciFact: {found['claims']} claims over {found['documents']} abstracts"
    shown = table(title, "ranking", "nDCG@10", "recall@10", "reference", "nDCG@10", "ratio")
    for name, (reference, expected) in REFERENCES.items():
        scores = found if name == "documents" else found[name]
        ratio = f"{scores['ndcg_at_10'] / expected:.2f}"
        cells = (f"{scores['ndcg_at_10']:.3f}", f"{scores['recall_at_10']:.3f}", reference, f"{expected:.3f}", ratio)
        shown.add_row(name, *cells)
    speed = table("Speed", "", "a second", "p50 ms", "p95 ms", "degraded")
    speed.add_row("documents written", f"{found['documents_per_s']:.0f}", "", "", "")
    times = (f"{found[key]:.1f}" for key in ("searches_per_s", "search_p50_ms", "search_p95_ms"))
    speed.add_row("searches, 100 passages each", *times, str(found["degraded"]))
    return shown, speed
