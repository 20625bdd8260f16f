"""Searches over many memories, in one workspace and spread over a thousand, with the time of each process.

Loading takes by far the longest. By estimate 10 000 memories take some minutes on two idle cores, 100 000 the most of
an hour, 1 000 000 a day.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import agent_runs, scifact
from benchmarks.closed_loop import Ask
from benchmarks.counted_service import CountedService, counted_service
from benchmarks.distinct_texts import distinct_texts
from benchmarks.fresh_questions import phrasings
from benchmarks.memory_load import Embedded, held_out, load_memories, place_of, workspace_of
from benchmarks.peer_measure import LIMIT, Meters, measure_asks
from benchmarks.process_costs import count_statements, cpu_by_part
from benchmarks.report import stage, table
from benchmarks.timing import until_indexed
from lamina.client import AsyncClient

WORKSPACES = 1_000
QUESTIONS = 2_000
DOCUMENTS, PROCEDURES = 100, 100
PER_REQUEST = 20
INDEX_DEADLINE_S = 7200.0
CACHED_S = 2.0
LEAST_SHOWN_MS = 0.1

Json = dict[str, Any]


def measure_memories(folder: Path, memories: int, clients: Sequence[int], seconds: float) -> Json:
    """Return the figures of both layouts, each in a service of its own."""
    questions = min(QUESTIONS, memories)
    texts, asked = held_out(distinct_texts(folder, memories + questions), questions)
    embedded: Embedded = {}
    stage(f"{len(texts)} texts to store, {len(asked)} held out to be asked")
    return {
        name: _of_layout(folder, texts, asked, workspaces, embedded, clients, seconds)
        for name, workspaces in layouts(memories).items()
    }


def layouts(memories: int) -> dict[str, int]:
    """Return the numbers of workspaces by name; a workspace has at least one memory."""
    return {"one_workspace": 1, "spread": min(WORKSPACES, memories)}


def _of_layout(
    folder: Path,
    texts: Sequence[str],
    asked: Sequence[str],
    workspaces: int,
    embedded: Embedded,
    clients: Sequence[int],
    seconds: float,
) -> Json:
    def load(data_dir: Path, url: str) -> None:
        load_memories(data_dir, url, texts, workspaces, embedded)

    with counted_service(load) as service:
        return asyncio.run(_measure(service, folder, asked, workspaces, clients, seconds))


async def _measure(
    service: CountedService, folder: Path, asked: Sequence[str], workspaces: int, clients: Sequence[int], seconds: float
) -> Json:
    meters = Meters(cpu_by_part, lambda: count_statements(service.database_url))
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(AsyncClient(*service.endpoint)) for _ in range(max(clients))]
        await _add_documents_and_procedures(opened[0], folder, workspaces)
        stage(f"indexed {await until_indexed(opened[0], INDEX_DEADLINE_S):.1f} s later")
        questions, place = phrasings(asked), partial(place_of, questions=len(asked), workspaces=workspaces)
        asks = _asks(opened, questions, place)
        loads = {f"clients_{count}": await measure_asks(asks[:count], seconds, meters) for count in clients}
        found = {"workspaces": workspaces, **loads}
        alone = _asks(opened[: sorted(clients)[len(clients) // 2]], questions, place, tiers=["sessions"])
        found["sessions_alone"] = await measure_asks(alone, seconds, meters)
        again = partial(opened[0].search, asked[0], workspace=workspace_of(0), limit=LIMIT)
        found["cache_hit"] = await measure_asks([again], min(seconds, CACHED_S), meters)
    return found


def _asks(
    opened: Sequence[AsyncClient], questions: Iterator[tuple[int, str]], place: Callable[[int], str], **options: Any
) -> list[Ask]:
    """Return the request of each client: the next question, to the workspace that holds its neighbours."""

    def ask(client: AsyncClient) -> Awaitable[Json]:
        number, text = next(questions)
        return client.search(text, workspace=place(number), limit=LIMIT, cache=False, **options)

    return [partial(ask, client) for client in opened]


async def _add_documents_and_procedures(client: AsyncClient, folder: Path, workspaces: int) -> None:
    """Add a few, so that no tier is empty, spread as the memories are."""
    documents = scifact.load(scifact.Options(folder / "scifact", "")).documents[:DOCUMENTS]
    procedures = [run.procedure() for run in agent_runs.load(folder / "agent_runs")[:PROCEDURES]]
    for number, start in enumerate(range(0, len(documents), PER_REQUEST)):
        some = [{"content": item["content"]} for item in documents[start : start + PER_REQUEST]]
        await client.add_documents(some, workspace=workspace_of(number * 7 % workspaces))
    for number, start in enumerate(range(0, len(procedures), PER_REQUEST)):
        await client.add_procedures(
            procedures[start : start + PER_REQUEST], workspace=workspace_of(number * 7 % workspaces)
        )
    stage(f"{len(documents)} documents and {len(procedures)} procedures added")


def tables(found: Mapping[str, Json], memories: int) -> list[Table]:
    """Return the tables of the loads and of the time of each process."""
    return [_loads(found, memories), *(_parts(name, of_layout) for name, of_layout in found.items())]


def _loads(found: Mapping[str, Json], memories: int) -> Table:
    columns = ("load", "a second", "p50 ms", "p95 ms", "CPU ms", "statements", "failed", "degraded", "refused")
    shown = table(f"Search over {memories} memories, all tiers; the CPU without the client's", "workspaces", *columns)
    for of_layout in found.values():
        for name, load in loads_of(of_layout).items():
            rates = (f"{load[key]:.1f}" for key in ("per_s", "p50_ms", "p95_ms", "cpu_ms", "statements"))
            counts = (str(load[key]) for key in ("failed", "degraded", "refused"))
            shown.add_row(str(of_layout["workspaces"]), name.replace("_", " "), *rates, *counts)
    return shown


def _parts(layout: str, found: Json) -> Table:
    loads = loads_of(found)
    title = f"CPU ms of a search by process, {layout.replace('_', ' ')}"
    shown = table(title, "process", *(name.replace("_", " ") for name in loads))
    parts = [load["cpu_ms_by_part"] for load in loads.values()]
    for name in sorted({name for of_load in parts for name in of_load}):
        if max(of_load.get(name, 0.0) for of_load in parts) >= LEAST_SHOWN_MS:
            shown.add_row(name, *(f"{of_load.get(name, 0.0):.1f}" for of_load in parts))
    return shown


def loads_of(found: Json) -> dict[str, Json]:
    """Return the loads of a layout by name."""
    return {name: load for name, load in found.items() if isinstance(load, dict)}
