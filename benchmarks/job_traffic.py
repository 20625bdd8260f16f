"""Searches beside a sweep and without one, in turns, so that other load counts for both."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from benchmarks.generated_sentences import Wording
from benchmarks.job_data import NoteBatch, drop_search_indexes, enqueue_all, load, make_indexes, settle
from benchmarks.job_runs import TENANT, JobBench
from benchmarks.report import stage
from benchmarks.service import Endpoint, service
from benchmarks.timing import Latencies, until_indexed
from lamina.client import AsyncClient
from lamina.core.runs import OPEN, RunState
from lamina.errors import LaminaError, Unavailable

SEARCHED = "searched"
SEARCHED_NOTES = 2_000
PER_REQUEST = 100
ROUNDS = 8
SEARCHES_PER_S = 5
IDLE_S = 10.0
POLL_S = 0.25
SWEEP_DEADLINE_S = 300.0
SEED = 20_240_601

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Searches:
    """Searches that were sent at a steady rate, whether or not others were answered yet.

    Args:
        elapsed_ms: Until the answer, or the error.
        failed: How many ended in an error.
    """

    elapsed_ms: tuple[float, ...] = ()
    failed: int = 0

    def __add__(self, other: "Searches") -> "Searches":
        return Searches(self.elapsed_ms + other.elapsed_ms, self.failed + other.failed)

    def figures(self, prefix: str) -> Json:
        """Return the number of searches, their median and their 95th percentile."""
        latencies = Latencies.of(self.elapsed_ms)
        return {
            f"{prefix}_searches": len(self.elapsed_ms),
            f"{prefix}_failed": self.failed,
            f"{prefix}_p50_ms": latencies.p50_ms,
            f"{prefix}_p95_ms": latencies.p95_ms,
        }


def measure_traffic(place: JobBench, notes: int) -> Json:
    """Return how long a running service's searches take beside the sweep of so many notes, as a ratio.

    The notes are spread over workspaces, each of which is swept by itself; all stand in the indexes of Postgres and
    of the service.
    """
    with place.database("traffic") as url, service(None, None, **_variables(url)) as endpoint:
        return asyncio.run(_run(endpoint, url, notes, place.scopes))


def _variables(url: str) -> dict[str, str]:
    return {
        "LAMINA_POSTGRES__KIND": "server",
        "LAMINA_POSTGRES__URL": url,
        "LAMINA_EMBEDDING__KIND": "hashing",
        "LAMINA_JOBS__IS_SCHEDULED": "false",
    }


async def _run(endpoint: Endpoint, url: str, notes: int, scopes: int) -> Json:
    async with AsyncClient(*endpoint, scope={"workspace": SEARCHED}) as client:
        await asyncio.to_thread(_load, url, notes, scopes)
        await _fill(client)
        return await _in_turns(client)


def _load(url: str, notes: int, scopes: int) -> None:
    """Write the notes, with all indexes, while the service runs."""
    begin, moment = time.monotonic(), datetime.now(UTC)
    indexes = drop_search_indexes(url)
    for workspace in map(_workspace, range(ROUNDS + 1)):
        load(url, NoteBatch(TENANT, workspace, notes // ROUNDS, scopes, moment))
        enqueue_all(url, workspace)
    make_indexes(url, indexes)
    settle(url)
    stage(f"{notes} notes written and indexed by Postgres in {time.monotonic() - begin:.0f} s")


def _workspace(turn: int) -> str:
    return f"swept-{turn}"


async def _fill(client: AsyncClient) -> None:
    wording = Wording(np.random.default_rng(SEED))
    for start in range(0, SEARCHED_NOTES, PER_REQUEST):
        await client.add_many([f"{wording.statement()} ({start + place})" for place in range(PER_REQUEST)])
    waited_s = await until_indexed(client)
    stage(f"{SEARCHED_NOTES} notes written to be searched; all are indexed after {waited_s:.0f} s")


async def _in_turns(client: AsyncClient) -> Json:
    wording = Wording(np.random.default_rng(SEED + 1))
    await _searches(client, wording, lambda: _sweep(client, _workspace(ROUNDS)))  # Workers start, once.
    turns = [await _turn(client, wording, _workspace(turn)) for turn in range(ROUNDS)]
    idle, beside = (reduce(add, side, Searches()) for side in zip(*turns, strict=True))
    found = {**idle.figures("idle"), **beside.figures("sweep")}
    stage(f"p95 {found['idle_p95_ms']:.1f} ms idle, {found['sweep_p95_ms']:.1f} ms beside the sweep")
    return {**found, "p95_ratio": found["sweep_p95_ms"] / found["idle_p95_ms"]}


async def _turn(client: AsyncClient, wording: Wording, workspace: str) -> tuple[Searches, Searches]:
    """Return the searches of a while without a sweep, and those beside one."""
    await until_indexed(client)
    idle = await _searches(client, wording, lambda: asyncio.sleep(IDLE_S))
    beside = await _searches(client, wording, lambda: _sweep(client, workspace))
    return idle, beside


# Searches at a steady rate.


async def _searches(client: AsyncClient, wording: Wording, until: Callable[[], Awaitable[object]]) -> Searches:
    """Search at a steady rate until something has happened."""
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(_awaited(until()))
        searches = [group.create_task(_searched(client, wording.question())) async for _ in _ticks(waiting)]
    outcomes = [search.result() for search in searches]
    return Searches(tuple(ms for ms, _ in outcomes), sum(not is_answered for _, is_answered in outcomes))


async def _awaited(something: Awaitable[object]) -> None:
    await something


async def _ticks(waiting: "asyncio.Task[None]") -> AsyncIterator[int]:
    begin, count = time.monotonic(), 0
    while not waiting.done() or count == 0:
        yield count
        count += 1
        await asyncio.sleep(max(0.0, begin + count / SEARCHES_PER_S - time.monotonic()))


async def _searched(client: AsyncClient, question: str) -> tuple[float, bool]:
    begin, is_answered = time.perf_counter(), True
    try:
        await client.search(question, cache=False)
    except LaminaError:
        is_answered = False
    return (time.perf_counter() - begin) * 1000, is_answered


async def _sweep(client: AsyncClient, workspace: str) -> None:
    """Have the service sweep a workspace, and wait for its end.

    Raises:
        Unavailable: If it does not end in time, or fails.
    """
    begin, run = time.monotonic(), (await client.run_job("sweep", workspace=workspace))["id"]
    while (found := await client.job_run(run))["state"] in OPEN:
        if time.monotonic() - begin > SWEEP_DEADLINE_S:
            raise Unavailable("sweep", f"run {run} does not end within {SWEEP_DEADLINE_S:.0f} s")
        await asyncio.sleep(POLL_S)
    if found["state"] != RunState.DONE:
        raise Unavailable("sweep", f"run {run} is {found['state']}: {found['error']}")
    stage(f"{workspace}: {found['counts']['changed']} notes turned cold in {time.monotonic() - begin:.1f} s")
