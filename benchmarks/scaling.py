"""Autoscaling under a step of load: replicas over time, and failed or degraded requests.

The tiers that scale beside embedded indexes are the graph's and the procedures'. On two cores a replica has little in
hand at a rate that leaves the machine room, so what autoscaling aims at is small; the step is what matters. A new
replica takes seconds of both cores to start: the deadlines of searches are long here, so that what comes late shows in
the times, and only what scaling itself loses counts as failed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any
from uuid import uuid4

import numpy as np
import typer
from rich.table import Table

from benchmarks.generated_sentences import Wording
from benchmarks.load_generator import FAILURES, Load, Request, RequestOutcome, reasons, tally, within
from benchmarks.replica_watch import ReplicaCounts, directions, scaling_steps, watch
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import until_indexed
from lamina.client import AsyncClient

# Queries in hand of one replica: about a quarter of what all have in hand during the step, on two cores.
TARGETS: Mapping[str, float] = {"graph": 0.12, "procedures": 0.08}
SCALED = tuple(tier.title() for tier in TARGETS)
MOST = 3
UPSCALE_S, DOWNSCALE_S, LOOK_BACK_S = 2, 10, 4
STATEMENTS = 40
PROCEDURES = 20
ROW_S = 3.0
DEADLINE_S = 15
BEFORE_S, AFTER_S = 15.0, 45.0
SEED = 20_240_601
LIMITS: Mapping[str, float] = {"failures": 0, "directions": 2, "most": MOST, "last": 1}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Phase:
    """A rate that is offered for a while, in requests a second."""

    rate: float
    seconds: float


def measure(
    low: Annotated[float, typer.Option(min=0.1, help="Searches a second before and after the step.")] = 0.5,
    high: Annotated[float, typer.Option(min=0.1, help="Searches a second during the step.")] = 10.0,
    seconds: Annotated[float, typer.Option(min=10, help="Seconds of the step.")] = 30.0,
) -> None:
    """Let the searchers of two tiers scale from 1 to 3 replicas and back under a step of load."""
    phases = (Phase(low, BEFORE_S), Phase(high, seconds), Phase(low, AFTER_S))
    with service(None, None, **variables()) as endpoint:
        requests, seen = asyncio.run(_run(endpoint, phases))
    found = figures(requests, seen)
    publish([timeline(requests, seen, phases), _summary(found)], {"scaling": found})


def variables() -> dict[str, str]:
    """Return the service's settings: which tiers scale, and how soon."""
    limits = {
        "MAX_REPLICAS": MOST,
        "UPSCALE_DELAY_S": UPSCALE_S,
        "DOWNSCALE_DELAY_S": DOWNSCALE_S,
        "LOOK_BACK_S": LOOK_BACK_S,
        "NUM_CPUS": 0.01,
    }
    scaled = {
        f"LAMINA_SERVE__SEARCHERS__{tier.upper()}__{name}": str(value)
        for tier, target in TARGETS.items()
        for name, value in {**limits, "TARGET_ONGOING_REQUESTS": target}.items()
    }
    deadlines = {f"LAMINA_SEARCH__{name}_DEADLINE_S": str(DEADLINE_S) for name in ("SOURCE", "TIER", "EMBED")}
    return {"LAMINA_EMBEDDING__KIND": "hashing", "LAMINA_JOBS__IS_SCHEDULED": "false", **deadlines, **scaled}


async def _run(endpoint: Endpoint, phases: Sequence[Phase]) -> tuple[list[Request], list[ReplicaCounts]]:
    async with AsyncClient(*endpoint, scope={"workspace": f"scaling-{uuid4().hex[:8]}"}) as client:
        await _fill(client)
        wording = Wording(np.random.default_rng(SEED))
        load = Load(lambda: client.search(wording.question(), tiers=list(TARGETS), cache=False))
        seen: list[ReplicaCounts] = []
        watching = asyncio.create_task(watch(load.now_s, seen))
        for phase in phases:
            stage(f"{phase.rate:g} searches a second for {phase.seconds:g} s")
            await load.offer(phase.rate, phase.seconds)
        await load.settle()
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    return load.seen, seen


async def _fill(client: AsyncClient) -> None:
    wording = Wording(np.random.default_rng(SEED + 1))
    await client.add_many([wording.statement() for _ in range(STATEMENTS)])
    await client.add_procedures([{"trigger": wording.question(), "action": "look it up"} for _ in range(PROCEDURES)])
    stage(f"indexed {await until_indexed(client):.1f} s after {STATEMENTS} notes and {PROCEDURES} procedures")


def figures(requests: Sequence[Request], seen: Sequence[ReplicaCounts]) -> Json:
    """Return the figures, their limits, those beyond a limit, and whether there are none."""
    failures = sum(request.outcome in FAILURES for request in requests)
    scaled = {name: _scaled(seen, name) for name in SCALED}
    beyond = [
        *([f"{failures} requests failed"] if failures > LIMITS["failures"] else []),
        *(line for name, figures_of in scaled.items() for line in _beyond(name, figures_of)),
    ]
    return {
        **tally(requests),
        "failures": failures,
        "reasons": reasons(requests),
        "deployments": scaled,
        "limits": dict(LIMITS),
        "beyond": beyond,
        "ok": not beyond,
    }


def _scaled(seen: Sequence[ReplicaCounts], name: str) -> Json:
    counts = [item.counts.get(name, 0) for item in seen]
    changes = scaling_steps(seen, name)
    return {
        "first": counts[0],
        "most": max(counts),
        "last": counts[-1],
        "directions": directions(changes),
        "changes": {f"{change.second:.1f}": change.after for change in changes},
    }


def _beyond(name: str, found: Json) -> list[str]:
    lines = {
        f"{name} had at most {found['most']} replicas": found["most"] != LIMITS["most"],
        f"{name} ended with {found['last']} replicas": found["last"] != LIMITS["last"],
        f"{name} changed its direction {found['directions']} times": found["directions"] > LIMITS["directions"],
    }
    return [line for line, is_beyond in lines.items() if is_beyond]


def timeline(requests: Sequence[Request], seen: Sequence[ReplicaCounts], phases: Sequence[Phase]) -> Table:
    """Return a row for every few seconds."""
    columns = ("second", "offered/s", *SCALED, "answered", "p50 ms", "p95 ms", "degraded", "failed")
    shown = table(
        "What was offered, how many replicas there were at the end of each row, and what came of it", *columns
    )
    ends = list(accumulate(phase.seconds for phase in phases))
    for place in range(int(ends[-1] / ROW_S)):
        begin_s, end_s = place * ROW_S, (place + 1) * ROW_S
        rate = next(phase.rate for phase, end in zip(phases, ends, strict=True) if begin_s < end)
        counts = next((item.counts for item in reversed(seen) if item.second <= end_s), {})
        shown.add_row(
            f"{begin_s:.0f}", f"{rate:g}", *(str(counts.get(name, 0)) for name in SCALED), *_cells(requests, begin_s)
        )
    return shown


def _cells(requests: Sequence[Request], begin_s: float) -> tuple[str, ...]:
    found = tally(within(requests, begin_s, begin_s + ROW_S))
    answered = found[RequestOutcome.ANSWERED] + found[RequestOutcome.DEGRADED]
    times = (f"{found[name]:.1f}" if name in found else "" for name in ("p50_ms", "p95_ms"))
    return str(answered), *times, str(found[RequestOutcome.DEGRADED]), str(sum(found[outcome] for outcome in FAILURES))


def _summary(found: Json) -> Table:
    shown = table("Replicas", "deployment", "first", "most", "last", "directions", "changes (second: replicas)")
    for name, item in found["deployments"].items():
        changes = ", ".join(f"{second}: {count}" for second, count in item["changes"].items())
        shown.add_row(name, *(str(item[key]) for key in ("first", "most", "last", "directions")), changes)
    return shown
