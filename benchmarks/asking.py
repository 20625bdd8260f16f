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
# A hit that one source alone ranks low can fall out of the fused answer; then a larger one is asked for.
LARGER_LIMITS = (200, 1000)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the workspace that can answer it."""

    workspace: str
    text: str


@dataclass(frozen=True, slots=True)
class Manner:
    """How to ask.

    Args:
        tiers: Tiers to search.
        limit: Fused hits to ask for; each source contributes as many.
        source_depth: How many hits of each source's own ranking must be known.
        concurrency: Searches in flight.
    """

    tiers: tuple[str, ...]
    limit: int
    source_depth: int = 0
    concurrency: int = 4


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer.

    Args:
        fused: Hits, best first.
        by_source: Each source's own hits, best first, down to the depth asked for.
        degraded: Sources that did not answer.
        elapsed_ms: Duration of the search that gave ``fused``.
        requests: Searches sent; more than one where a source's ranking was cut.
    """

    fused: Hits
    by_source: dict[str, Hits]
    degraded: tuple[str, ...]
    elapsed_ms: float
    requests: int


@dataclass(frozen=True, slots=True)
class Replies:
    """All answers, in the order of the questions, and the seconds they took together."""

    all: tuple[Reply, ...]
    elapsed_s: float

    def figures(self) -> dict[str, float]:
        """Return throughput, latency and how many answers lacked a source."""
        latencies = Latencies.of([reply.elapsed_ms for reply in self.all])
        return {
            "search_p50_ms": latencies.p50_ms,
            "search_p95_ms": latencies.p95_ms,
            "searches_per_s": sum(reply.requests for reply in self.all) / self.elapsed_s,
            "degraded": sum(bool(reply.degraded) for reply in self.all),
        }


async def ask_all(client: AsyncClient, questions: Sequence[Asked], manner: Manner) -> Replies:
    """Ask every question."""
    begin = time.perf_counter()
    replies = await run_all(questions, lambda asked: _ask(client, asked, manner), concurrency=manner.concurrency)
    return Replies(tuple(replies), time.perf_counter() - begin)


async def _ask(client: AsyncClient, asked: Asked, manner: Manner) -> Reply:
    first = await timed(_search(client, asked, manner, manner.limit))
    answers = [first.value]
    for limit in LARGER_LIMITS:
        if shows_sources(answers[-1], manner.source_depth):
            break
        answers.append(await _search(client, asked, manner, limit))
    return Reply(
        fused=tuple(first.value["results"]),
        by_source=source_rankings(answers[-1], manner.source_depth),
        degraded=tuple(first.value["degraded"]),
        elapsed_ms=first.elapsed_ms,
        requests=len(answers),
    )


async def _search(client: AsyncClient, asked: Asked, manner: Manner, limit: int) -> Json:
    return await client.search(
        asked.text, workspace=asked.workspace, tiers=list(manner.tiers), limit=limit, explain=True
    )


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
