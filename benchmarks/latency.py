"""Search under load, beside the bare transport."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import uuid4

import numpy as np
import typer
from rich.table import Table

from benchmarks.generated_sentences import Wording
from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import Latencies, until_indexed
from lamina.client import AsyncClient
from lamina.client.calls import Call
from lamina.errors import LaminaError, Unavailable

NOTES = 1000
MESSAGES = 1000
NOTES_PER_REQUEST = 100
MESSAGES_PER_REQUEST = 20
MESSAGES_PER_SESSION = 100
WARM_UP_S = 1.0
SEED = 20_240_601
LIVE = Call("GET", "/livez")

Json = dict[str, Any]
Request = Callable[[AsyncClient, Wording], Awaitable[Json]]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Latencies of some clients that each send one request after another.

    Args:
        elapsed_ms: Durations of the requests that were answered.
        elapsed_s: Seconds of the whole.
        failed: Requests that were answered with an error.
        degraded: Answers that lacked a source.
    """

    elapsed_ms: tuple[float, ...]
    elapsed_s: float
    failed: int
    degraded: int

    def figures(self) -> dict[str, float]:
        """Return throughput, percentiles and counts.

        Raises:
            Unavailable: If nothing was answered.
        """
        if not self.elapsed_ms:
            raise Unavailable("lamina", f"all {self.failed} requests failed")
        return {
            "per_s": len(self.elapsed_ms) / self.elapsed_s,
            **Latencies.of(self.elapsed_ms).figures(),
            "failed": self.failed,
            "degraded": self.degraded,
        }


def measure(
    clients: Annotated[tuple[int, int, int], typer.Option(help="Three numbers of clients.")] = (1, 8, 32),
    seconds: Annotated[float, typer.Option(min=0.5, help="Seconds of each load.")] = 8.0,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Measure throughput and latency of searches, and of /livez: the transport alone, which is the limit."""
    with service(url, key) as endpoint:
        figures = asyncio.run(_run(endpoint, clients, seconds))
    publish([_table(figures)], {"latency": figures})


async def _run(endpoint: Endpoint, clients: tuple[int, ...], seconds: float) -> Json:
    workspace = f"latency-{uuid4().hex[:8]}"
    async with AsyncClient(*endpoint, scope={"workspace": workspace}) as client:
        await _fill(client)
    return {f"clients_{count}": await _measure(endpoint, workspace, count, seconds) for count in clients}


async def _fill(client: AsyncClient) -> None:
    wording = Wording(np.random.default_rng(SEED))
    for _ in range(0, NOTES, NOTES_PER_REQUEST):
        await client.add_many([wording.statement() for _ in range(NOTES_PER_REQUEST)])
    for start in range(0, MESSAGES, MESSAGES_PER_REQUEST):
        messages = [{"content": wording.statement()} for _ in range(MESSAGES_PER_REQUEST)]
        await client.record(messages, session=f"session-{start // MESSAGES_PER_SESSION}")
    stage(f"{NOTES} notes and {MESSAGES} messages written")
    stage(f"indexed {await until_indexed(client):.1f} s later")


async def _measure(endpoint: Endpoint, workspace: str, count: int, seconds: float) -> Json:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(AsyncClient(*endpoint, scope={"workspace": workspace}))
            for _ in range(count)
        ]
        live = (await _load(clients, _ask_live, seconds)).figures()
        search = (await _load(clients, _ask_search, seconds)).figures()
    stage(f"{count} clients: {search['per_s']:.0f} searches a second")
    return {
        "search": search,
        "livez": live,
        "throughput_ratio": search["per_s"] / live["per_s"],
        "p50_ratio": search["p50_ms"] / live["p50_ms"],
    }


async def _ask_live(client: AsyncClient, _: Wording) -> Json:
    return await client.send(LIVE)


async def _ask_search(client: AsyncClient, wording: Wording) -> Json:
    return await client.search(wording.question(), cache=False)


async def _load(clients: list[AsyncClient], request: Request, seconds: float) -> LoadResult:
    """Let every client send requests for a while, after a second that does not count."""
    await _all(clients, request, WARM_UP_S, SEED + 1)
    begin = time.perf_counter()
    outcomes = await _all(clients, request, seconds, SEED + 2)
    elapsed_s = time.perf_counter() - begin
    answered = [outcome for outcome in outcomes if outcome is not None]
    return LoadResult(
        elapsed_ms=tuple(ms for ms, _ in answered),
        elapsed_s=elapsed_s,
        failed=len(outcomes) - len(answered),
        degraded=sum(degraded for _, degraded in answered),
    )


async def _all(
    clients: list[AsyncClient], request: Request, seconds: float, seed: int
) -> list[tuple[float, bool] | None]:
    generators = np.random.default_rng(seed).spawn(len(clients))
    pairs = zip(clients, map(Wording, generators), strict=True)
    per_client = await asyncio.gather(*(_one(client, wording, request, seconds) for client, wording in pairs))
    return [outcome for outcomes in per_client for outcome in outcomes]


async def _one(
    client: AsyncClient, wording: Wording, request: Request, seconds: float
) -> list[tuple[float, bool] | None]:
    outcomes: list[tuple[float, bool] | None] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        outcomes.append(await _attempt(client, wording, request))
    return outcomes


async def _attempt(client: AsyncClient, wording: Wording, request: Request) -> tuple[float, bool] | None:
    """Return a request's milliseconds and whether its answer lacked a source; nothing if it failed."""
    begin = time.perf_counter()
    try:
        answer = await request(client, wording)
    except LaminaError:
        return None
    return (time.perf_counter() - begin) * 1000, bool(answer.get("degraded"))


def _table(figures: Json) -> Table:
    columns = ("clients", "path", "a second", "p50 ms", "p95 ms", "p99 ms", "failed", "degraded", "of the limit")
    shown = table(f"Search over {NOTES} notes and {MESSAGES} messages; the limit is /livez", *columns)
    for row in _rows(figures):
        shown.add_row(*row)
    return shown


def _rows(figures: Json) -> Iterator[tuple[str, ...]]:
    for name, both in figures.items():
        for path, ratio in (("search", f"{both['throughput_ratio']:.2f}"), ("livez", "1.00")):
            times = (f"{both[path][key]:.1f}" for key in ("per_s", "p50_ms", "p95_ms", "p99_ms"))
            counts = (str(both[path][key]) for key in ("failed", "degraded"))
            yield name.removeprefix("clients_"), path, *times, *counts, ratio
