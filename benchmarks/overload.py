"""Whole answers a second when more clients search than the service can answer.

Each client sends one search after the other, past the caches, and repeats one that is refused after the time that the
refusal names. A service that bounds what it begins gives as many whole answers under four times the load as before.
"""

import asyncio
import random
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any
from uuid import uuid4

import httpx
import numpy as np
import typer
from rich.table import Table

from benchmarks.generated_sentences import Wording
from benchmarks.latency import SEED, fill
from benchmarks.options import KeyOption, UrlOption
from benchmarks.replica_watch import cpu_s, processes
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import Latencies
from lamina.client import AsyncClient

TIMES = (1, 2, 4)
TIMEOUT_S = 60.0
# Those that were refused together do not come back together.
SPREAD = 0.5
WARM_UP_S = 1.0

Json = dict[str, Any]


@dataclass
class Answers:
    """Figures of a load.

    Args:
        answered: Searches that were answered, those of the first second included.
        whole_ms: Durations of requests with a whole answer.
        asked_ms: Time from a client's first request of a search to its answer, refusals and their pauses included.
        counts: Answers by what became of them.
    """

    answered: int = 0
    whole_ms: list[float] = field(default_factory=list)
    asked_ms: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def figures(self, seconds: float) -> Json:
        """Return rates, percentiles and counts."""
        latencies = Latencies.of(self.whole_ms).figures() if self.whole_ms else {}
        asked = Latencies.of(self.asked_ms).figures() if self.asked_ms else {}
        return {
            "whole_per_s": len(self.whole_ms) / seconds,
            **latencies,
            **{f"asked_{name}": value for name, value in asked.items()},
            **{name: self.counts[name] for name in ("whole", "degraded", "refused", "failed")},
        }


def measure(
    clients: Annotated[int, typer.Option(min=1, help="Clients that saturate the service.")] = 16,
    seconds: Annotated[float, typer.Option(min=0.5, help="Seconds of each load.")] = 15.0,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Search with the clients that saturate, twice as many and four times as many; count whole answers a second."""
    with service(url, key) as endpoint:
        figures = asyncio.run(_run(endpoint, clients, seconds))
    publish([_table(figures)], {"overload": figures})


async def _run(endpoint: Endpoint, clients: int, seconds: float) -> Json:
    workspace = f"overload-{uuid4().hex[:8]}"
    async with AsyncClient(*endpoint, scope={"workspace": workspace}) as client:
        await fill(client)
    loads = {str(times): await _load(endpoint, workspace, clients * times, seconds) for times in TIMES}
    rates = [load["whole_per_s"] for load in loads.values()]
    return {"clients": clients, "loads": loads, "kept": rates[-1] / max(rates)}


async def _load(endpoint: Endpoint, workspace: str, clients: int, seconds: float) -> Json:
    answers = Answers()
    async with AsyncExitStack() as stack:
        headers = {"Authorization": f"Bearer {endpoint.key}"}
        options: Json = {"base_url": endpoint.url, "headers": headers, "timeout": TIMEOUT_S, "trust_env": False}
        opened = [await stack.enter_async_context(httpx.AsyncClient(**options)) for _ in range(clients)]
        wordings = map(Wording, np.random.default_rng(SEED).spawn(clients))
        begin, before_s = time.perf_counter() + WARM_UP_S, _cpu_s()
        await asyncio.gather(
            *(
                _search(http, workspace, wording, answers, begin, seconds)
                for http, wording in zip(opened, wordings, strict=True)
            )
        )
    figures = {**answers.figures(seconds), "cpu_ms": _cpu_ms(_cpu_s() - before_s, answers)}
    stage(f"{clients} clients: {figures['whole_per_s']:.1f} whole answers a second, {figures['refused']} refused")
    return figures


async def _search(
    http: httpx.AsyncClient, workspace: str, wording: Wording, answers: Answers, begin: float, seconds: float
) -> None:
    """Search until the time is over; count the answers that end within it."""
    first: float | None = None
    question = wording.question()
    while (sent := time.perf_counter()) < begin + seconds:
        first = first or sent
        outcome, pause_s = await _ask(http, {"query": question, "workspace": workspace, "cache": False})
        ended = time.perf_counter()
        answers.answered += outcome in ("whole", "degraded")
        if begin <= ended < begin + seconds:
            answers.counts[outcome] += 1
            if outcome == "whole":
                answers.whole_ms.append((ended - sent) * 1000)
                answers.asked_ms.append((ended - first) * 1000)
        if outcome == "refused":
            await asyncio.sleep(pause_s)
        else:
            first, question = None, wording.question()


async def _ask(http: httpx.AsyncClient, body: Json) -> tuple[str, float]:
    """Return what became of a search, and the seconds after which to repeat one that was refused."""
    try:
        answer = await http.post("/v1/search", json=body)
    except httpx.TransportError:
        return "failed", 0.0
    if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE and "Retry-After" in answer.headers:
        return "refused", int(answer.headers["Retry-After"]) * random.uniform(1, 1 + SPREAD)  # noqa: S311 - no secret
    if not answer.is_success:
        return "failed", 0.0
    return ("degraded" if answer.json()["degraded"] else "whole"), 0.0


def _cpu_s() -> float:
    """Return the processor time of the service, if it runs below this process."""
    return sum(cpu_s(process.pid) for process in processes())


def _cpu_ms(used_s: float, answers: Answers) -> float | None:
    return used_s * 1000 / answers.answered if used_s > 0 and answers.answered else None


def _table(figures: Json) -> Table:
    names = ("whole_per_s", "p50_ms", "p95_ms", "asked_p50_ms", "asked_p95_ms", "cpu_ms")
    counts = ("whole", "degraded", "refused", "failed")
    columns = ("clients", "whole a second", "p50 ms", "p95 ms", "asked p50 ms", "asked p95 ms", "CPU ms", *counts)
    shown = table(f"Searches past the caches; four times the load keeps {figures['kept']:.0%} of the most", *columns)
    for times, load in figures["loads"].items():
        shown.add_row(
            str(figures["clients"] * int(times)),
            *(f"{load.get(name) or 0:.1f}" for name in names),
            *(str(load[name]) for name in counts),
        )
    return shown
