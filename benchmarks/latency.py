"""Search under load, beside the bare transport."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import numpy as np
import typer
from rich.table import Table

from benchmarks.closed_loop import WARM_UP_S, Ask, send_in_turn
from benchmarks.generated_sentences import Wording
from benchmarks.many_memories import measure_memories, tables
from benchmarks.options import DATA_SETS, KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import until_indexed
from lamina.client import AsyncClient
from lamina.client.calls import Call
from lamina.errors import Unavailable

NOTES = 1000
MESSAGES = 1000
NOTES_PER_REQUEST = 100
MESSAGES_PER_REQUEST = 20
MESSAGES_PER_SESSION = 100
CLIENTS, CLIENTS_OF_MANY = (1, 8, 32), (1, 16, 64)
SEED = 20_240_601
LIVE: Call[Any] = Call("GET", "/livez")

Json = dict[str, Any]
Request = Callable[[AsyncClient, Wording], Awaitable[Json]]


def measure(
    clients: Annotated[
        tuple[int, int, int] | None,
        typer.Option(help="Three numbers of clients; 1 8 32, and with --memories 1 16 64.", show_default=False),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.5, help="Seconds of each load.")] = 8.0,
    memories: Annotated[
        int | None,
        typer.Option(min=100, help="Search so many distinct texts instead, in one workspace and in 1 000."),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--data", help="Folder of the data sets for --memories.", envvar="LAMINA_DATA_SETS")
    ] = DATA_SETS,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Measure throughput and latency of searches, and of /livez: the transport alone, which is the limit.

    With --memories, a service of its own is filled before, past HTTP: by estimate some minutes for 10 000, the most of
    an hour for 100 000, a day for 1 000 000. The time of each process and the statements of a search are shown, too.
    """
    if memories is not None:
        found = measure_memories(folder, memories, clients or CLIENTS_OF_MANY, seconds)
        publish(tables(found, memories), {"latency": {"memories": memories, **found}})
        return
    with service(url, key) as endpoint:
        figures = asyncio.run(_run(endpoint, clients or CLIENTS, seconds))
    publish([_table(figures)], {"latency": figures})


async def _run(endpoint: Endpoint, clients: tuple[int, ...], seconds: float) -> Json:
    workspace = f"latency-{uuid4().hex[:8]}"
    async with AsyncClient(*endpoint, scope={"workspace": workspace}) as client:
        await fill(client)
    return {f"clients_{count}": await _measure(endpoint, workspace, count, seconds) for count in clients}


async def fill(client: AsyncClient) -> None:
    """Write notes and messages, and wait until they are indexed."""
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
        live = await _load(clients, _ask_live, seconds)
        search = await _load(clients, _ask_search, seconds)
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


async def _load(clients: list[AsyncClient], request: Request, seconds: float) -> dict[str, float]:
    """Let every client send requests for a while, after a second that does not count.

    Raises:
        Unavailable: If nothing was answered.
    """
    await send_in_turn(_asks(clients, request, SEED + 1), WARM_UP_S)
    load = await send_in_turn(_asks(clients, request, SEED + 2), seconds)
    if not load.answered:
        raise Unavailable("lamina", f"no request was answered: {load.requests[-1].failure}")
    return load.figures()


def _asks(clients: list[AsyncClient], request: Request, seed: int) -> list[Ask]:
    generators = np.random.default_rng(seed).spawn(len(clients))
    wordings = map(Wording, generators)
    return [partial(request, client, wording) for client, wording in zip(clients, wordings, strict=True)]


def _table(figures: Json) -> Table:
    columns = (
        "clients",
        "path",
        "a second",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "failed",
        "degraded",
        "refused",
        "of the limit",
    )
    shown = table(f"Search over {NOTES} notes and {MESSAGES} messages; the limit is /livez", *columns)
    for row in _rows(figures):
        shown.add_row(*row)
    return shown


def _rows(figures: Json) -> Iterator[tuple[str, ...]]:
    for name, both in figures.items():
        for path, ratio in (("search", f"{both['throughput_ratio']:.2f}"), ("livez", "1.00")):
            times = (f"{both[path][key]:.1f}" for key in ("per_s", "p50_ms", "p95_ms", "p99_ms"))
            counts = (str(both[path][key]) for key in ("failed", "degraded", "refused"))
            yield name.removeprefix("clients_"), path, *times, *counts, ratio
