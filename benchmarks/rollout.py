"""Failed and degraded requests during a redeploy and after kills, under a steady load.

Postgres and FalkorDB run beside the service, so that an application that is deployed anew finds them. There are two
routers and two searchers of the procedures; every other deployment has one replica. A killed part is a process that
gets SIGKILL; a frozen one SIGSTOP, which is what a stuck event loop looks like from outside. Times: until the last
bad answer (well), and until what was hit was gone and replaced (new).

A redeploy starts a dozen processes at once. Where they have two cores only, searches miss their deadlines for half a
minute; with longer ones it shows what the redeploy itself loses.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import numpy as np
import typer
from rich.table import Table

from benchmarks import redeploy_on_demand
from benchmarks.generated_sentences import Wording
from benchmarks.load_generator import FAILURES, Load, Request, RequestOutcome, reasons, tally
from benchmarks.replica_watch import all_replicas, count_replicas, pids, processes, replicas
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import until_indexed
from lamina.client import AsyncClient
from lamina.embedded import EmbeddedFalkorDB, EmbeddedPostgres
from lamina.errors import Unavailable
from lamina.settings.stores import EmbeddedFalkorDBSettings, EmbeddedPostgresSettings

STATEMENTS = 100
WRITE_EVERY = 8
# Seconds without a bad answer, and with all replicas there, after which all is well again.
CALM_S = 8.0
# Seconds after which a request without an answer counts as held up.
LONG_S = 2.0
LONGEST_S = 90.0
STEP_S = 0.1
SEED = 20_240_601

Json = dict[str, Any]
# Given the folder by which a redeploy is asked for; returns the processes that are to be replaced.
Act = Callable[[Path], Awaitable[Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that befalls the service.

    Args:
        name: What it is.
        act: Brings it about.
    """

    name: str
    act: Act


@dataclass(frozen=True, slots=True)
class Effect:
    """Requests that an event affected.

    Args:
        name: Which event.
        begun_s: When it happened, in seconds since the load began.
        in_flight: Requests without an answer at that moment.
        requests: Those that were under way then, or sent until all was well again.
        replaced_s: Seconds until what was hit was gone and there were as many replicas as before.
    """

    name: str
    begun_s: float
    in_flight: int
    requests: tuple[Request, ...]
    replaced_s: float | None

    def figures(self) -> Json:
        """Return the counts, the times, and whether no more failed than was in flight."""
        bad = [request for request in self.requests if request.outcome is not RequestOutcome.ANSWERED]
        failures = sum(request.outcome in FAILURES for request in bad)
        return {
            **tally(self.requests),
            "in_flight": self.in_flight,
            "failures": failures,
            "recovered_s": max((request.ended_s - self.begun_s for request in bad), default=0.0),
            "replaced_s": self.replaced_s,
            "reasons": reasons(self.requests),
            "ok": failures <= self.in_flight,
        }


def measure(
    rate: Annotated[float, typer.Option(min=0.5, help="Requests a second; every eighth is a write.")] = 6.0,
    deadline: Annotated[float, typer.Option(min=0.1, help="Seconds a search waits for a tier.")] = 1.5,
) -> None:
    """Redeploy, kill a searcher, a router and the proxy under load, and count the failures."""
    with (
        _servers() as variables,
        tempfile.TemporaryDirectory(prefix="lamina-benchmark-") as asked,
        service(None, None, **variables, **_deadlines(deadline), **{redeploy_on_demand.FOLDER: asked}) as endpoint,
    ):
        effects = asyncio.run(_run(endpoint, rate, Path(asked)))
    found = figures(effects)
    publish([_table(effects)], {"rollout": found})


@contextmanager
def _servers() -> Iterator[dict[str, str]]:
    """Run Postgres and FalkorDB; give the settings of a service over them."""
    with tempfile.TemporaryDirectory(prefix="lamina-benchmark-", ignore_cleanup_errors=True) as folder:
        postgres = EmbeddedPostgres(Path(folder) / "postgres", EmbeddedPostgresSettings())
        falkordb = EmbeddedFalkorDB(Path(folder) / "graph", EmbeddedFalkorDBSettings())
        try:
            yield _variables(postgres.start(), falkordb.start())
        finally:
            falkordb.stop()
            postgres.stop()


def _variables(postgres: str, falkordb: str) -> dict[str, str]:
    two = {"MIN_REPLICAS": "2", "MAX_REPLICAS": "2"}
    return {
        "LAMINA_POSTGRES__KIND": "server",
        "LAMINA_POSTGRES__URL": postgres,
        "LAMINA_GRAPH__KIND": "falkordb",
        "LAMINA_GRAPH__URL": falkordb,
        "LAMINA_EMBEDDING__KIND": "hashing",
        "LAMINA_JOBS__IS_SCHEDULED": "false",
        "LAMINA_SERVE__APPLICATION": f"{redeploy_on_demand.__name__}:{redeploy_on_demand.run.__name__}",
        **{f"LAMINA_SERVE__ROUTER__{name}": value for name, value in two.items()},
        **{f"LAMINA_SERVE__SEARCHERS__PROCEDURES__{name}": value for name, value in two.items()},
    }


def _deadlines(seconds: float) -> dict[str, str]:
    return {f"LAMINA_SEARCH__{name}_DEADLINE_S": str(seconds) for name in ("TIER", "EMBED")}


async def _redeploy(folder: Path) -> Sequence[int]:
    before = await asyncio.to_thread(all_replicas)
    (folder / redeploy_on_demand.DONE).unlink(missing_ok=True)
    (folder / redeploy_on_demand.WANTED).touch()
    await _until((folder / redeploy_on_demand.DONE).exists)
    return before


def _hit(find: Callable[[], Sequence[int]], number: int = signal.SIGKILL, most: int | None = 1) -> Act:
    """Return a function that sends a signal to the first of some processes, or to more."""

    async def act(_: Path) -> Sequence[int]:
        found = (await asyncio.to_thread(find))[:most]
        if not found:
            raise Unavailable("benchmark", "there is no such process")
        for pid in found:
            os.kill(pid, number)
        return found

    return act


EVENTS = (
    Event("redeploy", _redeploy),
    Event("one of two searchers killed", _hit(lambda: replicas("Procedures"))),
    Event("one of two searchers frozen", _hit(lambda: replicas("Procedures"), signal.SIGSTOP)),
    Event("a tier's only searcher killed", _hit(lambda: replicas("Notes"))),
    Event("one of two routers killed", _hit(lambda: replicas("Router"))),
    # One that is replaced while it drains is there beside its successor.
    Event("HAProxy killed", _hit(lambda: pids("/haproxy"), most=None)),
    Event("the proxy's actor killed", _hit(lambda: pids("ray::HAProxyManager"))),
)


async def _run(endpoint: Endpoint, rate: float, folder: Path) -> list[Effect]:
    async with AsyncClient(*endpoint, scope={"workspace": f"rollout-{uuid4().hex[:8]}"}) as client:
        wording = Wording(np.random.default_rng(SEED))
        await client.add_many([wording.statement() for _ in range(STATEMENTS)])
        stage(f"indexed {await until_indexed(client):.1f} s after {STATEMENTS} notes")
        load = Load(make_request_mix(client, wording))
        offering = asyncio.create_task(load.offer(rate, LONGEST_S * 2 * len(EVENTS)))
        await asyncio.sleep(CALM_S)
        effects = [await _observed(event, load, folder) for event in EVENTS]
        offering.cancel()
        await load.settle()
    return effects


def make_request_mix(client: AsyncClient, wording: Wording) -> Callable[[], Awaitable[Json]]:
    """Return a function that sends searches past the caches, and a write in place of every eighth."""
    count = 0

    def ask() -> Awaitable[Json]:
        nonlocal count
        count += 1
        if count % WRITE_EVERY == 0:
            return client.add(wording.statement())
        return client.search(wording.question(), cache=False)

    return ask


async def _observed(event: Event, load: Load, folder: Path) -> Effect:
    before = await asyncio.to_thread(count_replicas)
    known, begun_s, in_flight = len(load.seen), load.now_s(), load.in_flight
    gone = await event.act(folder)
    replaced = await _until(lambda: _is_replaced(before, gone), in_thread=True)
    replaced_s = load.now_s() - begun_s if replaced else None
    await _until(lambda: _is_calm(load, begun_s))
    effect = Effect(event.name, begun_s, in_flight, tuple(load.seen[known:]), replaced_s)
    stage(f"{event.name}: {effect.figures()['failures']} of {len(effect.requests)} requests failed")
    return effect


def _is_replaced(before: Mapping[str, int], gone: Sequence[int]) -> bool:
    """Tell whether those that were hit are gone, and there are as many replicas as before."""
    return not set(gone) & {item.pid for item in processes()} and count_replicas() == before


def _is_calm(load: Load, begun_s: float) -> bool:
    bad = (request.ended_s for request in load.seen if request.outcome is not RequestOutcome.ANSWERED)
    return load.longest_wait_s() < LONG_S and load.now_s() - max([begun_s, *bad]) > CALM_S


async def _until(condition: Callable[[], bool], *, in_thread: bool = False) -> bool:
    """Wait for something; tell whether it came in time."""
    for _ in range(round(LONGEST_S / STEP_S)):
        if await asyncio.to_thread(condition) if in_thread else condition():
            return True
        await asyncio.sleep(STEP_S)
    return False


def figures(effects: Sequence[Effect]) -> Json:
    """Return the cost of each event, those beyond a limit, and whether there are none."""
    found = {effect.name: effect.figures() for effect in effects}
    beyond = [
        f"{name}: {item['failures']} failed, {item['in_flight']} were in flight"
        for name, item in found.items()
        if not item["ok"]
    ]
    return {"events": found, "beyond": beyond, "ok": not beyond}


def _table(effects: Sequence[Effect]) -> Table:
    columns = ("event", "in flight", "sent", "refused", "broken", "failed", "degraded", "well s", "new s", "p95 ms")
    shown = table("What callers notice; of the requests in flight, and no others, may fail", *columns)
    for effect in effects:
        item = effect.figures()
        names = ("in_flight", "requests", "refused", "broken", "failed", "degraded")
        times = (f"{item.get(name) or 0:.1f}" for name in ("recovered_s", "replaced_s", "p95_ms"))
        shown.add_row(effect.name, *(str(item[name]) for name in names), *times)
    return shown
