"""Searches whose answers are scored: the fused ranking, and each source's own."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.timing import Latencies, run_all, timed
from lamina.client import AsyncClient

Json = dict[str, Any]
Hits = tuple[Json, ...]
# A hit that one source alone ranks can fall out of the fused answer; then a larger one is asked for.
LARGER_LIMITS = (50, 200, 1000)


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """A question and the workspace that can answer it."""

    workspace: str
    text: str


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to ask.

    Args:
        tiers: Tiers to search.
        limit: Fused hits to ask for; each source contributes as many, so the fused ranking depends on it.
        concurrency: Searches in flight.
    """

    tiers: tuple[str, ...]
    limit: int
    concurrency: int = 4


@dataclass(frozen=True, slots=True)
class ScoredAnswers:
    """All answers in the order of the questions, their durations, and the seconds they took together."""

    answers: tuple[Json, ...]
    elapsed_ms: tuple[float, ...]
    elapsed_s: float

    def fused(self) -> list[Hits]:
        """Return each answer's hits, best first."""
        return [tuple(answer["results"]) for answer in self.answers]

    def figures(self) -> dict[str, float]:
        """Return throughput, latency and how many answers lacked a source."""
        latencies = Latencies.of(self.elapsed_ms)
        return {
            "search_p50_ms": latencies.p50_ms,
            "search_p95_ms": latencies.p95_ms,
            "searches_per_s": len(self.answers) / self.elapsed_s,
            "degraded": sum(bool(answer["degraded"]) for answer in self.answers),
        }


async def ask_all(client: AsyncClient, questions: Sequence[ScoredQuestion], options: SearchOptions) -> ScoredAnswers:
    """Ask every question once."""
    begin = time.perf_counter()
    replies = await run_all(
        questions,
        lambda asked: timed(_search(client, asked, options.tiers, options.limit)),
        concurrency=options.concurrency,
    )
    elapsed_s = time.perf_counter() - begin
    return ScoredAnswers(
        tuple(reply.value for reply in replies), tuple(reply.elapsed_ms for reply in replies), elapsed_s
    )


async def rank_by_source(
    client: AsyncClient,
    questions: Sequence[ScoredQuestion],
    replies: ScoredAnswers,
    options: SearchOptions,
    *,
    depth: int,
) -> list[dict[str, Hits]]:
    """Return each source's own first ``depth`` hits for every question; ask again where an answer was too short."""
    return await run_all(
        zip(questions, replies.answers, strict=True),
        lambda pair: _rank_by_source(client, *pair, options.tiers, depth),
        concurrency=options.concurrency,
    )


async def _rank_by_source(
    client: AsyncClient, asked: ScoredQuestion, answer: Json, tiers: Sequence[str], depth: int
) -> dict[str, Hits]:
    known = answer
    for limit in LARGER_LIMITS:
        if shows_sources(known, depth):
            break
        known = await _search(client, asked, tiers, limit)
    return source_rankings(known, depth)


async def _search(client: AsyncClient, asked: ScoredQuestion, tiers: Sequence[str], limit: int) -> Json:
    return await client.search(asked.text, workspace=asked.workspace, tiers=list(tiers), limit=limit, explain=True)


def shows_sources(answer: Json, depth: int) -> bool:
    """Tell whether the answer holds the first ``depth`` hits of every source, or all it has."""
    rankings = source_rankings(answer, depth)
    return all(len(rankings.get(source, ())) == min(depth, count) for source, count in answer["sources"].items())


def source_rankings(answer: Json, depth: int) -> dict[str, Hits]:
    """Return each source's own hits among those of the answer, best first, down to rank ``depth``."""
    ranked: defaultdict[str, list[tuple[int, Json]]] = defaultdict(list)
    for hit in answer["results"]:
        for source, placement in hit["explain"].items():
            if placement["rank"] <= depth:
                ranked[source].append((placement["rank"], hit))
    return {source: tuple(hit for _, hit in sorted(hits, key=lambda pair: pair[0])) for source, hits in ranked.items()}
