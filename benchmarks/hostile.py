"""Send hostile inputs to a service, and measure how long it keeps others waiting."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import httpx
from rich.table import Table

from benchmarks.hostile_inputs import HostileInput, all_inputs
from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish, stage, table
from benchmarks.service import REPOSITORY, Endpoint, service

LIMIT_MS = 250.0
BASELINE_S = 5.0
TIMEOUT_S = 150.0
DEADLINE_S = 540.0
"""After it no further input is sent: all of it ends within ten minutes."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An input with its answer.

    Args:
        name: Of the input.
        status: HTTP status of the answer; the name of the error where none came.
        elapsed_s: Until the answer.
        livez_ms: The slowest `/livez` meanwhile.
    """

    name: str
    status: str
    elapsed_s: float
    livez_ms: float


@dataclass(slots=True)
class Pulse:
    """The moments at which `/livez` was asked for, on the system's clock, and the milliseconds that each took."""

    beats: list[tuple[float, float]] = field(default_factory=list)
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def add(self, at: float, elapsed_ms: float) -> None:
        """Take one that was answered."""
        async with self.came:
            self.beats.append((at, elapsed_ms))
            self.came.notify_all()

    async def slowest(self, begin: float, end: float) -> float:
        """Return the slowest that was under way between two moments, once it is known."""
        async with self.came:
            await self.came.wait_for(lambda: bool(self.beats) and self.beats[-1][0] >= end)
        return max((ms for at, ms in self.beats if at <= end and at + ms / 1000 >= begin), default=0.0)


def measure(url: UrlOption = None, key: KeyOption = None) -> None:
    """Measure the slowest `/livez` beside inputs of every size, script, encoding and nesting."""
    with service(url, key) as endpoint:
        idle_ms, trials, left_out = asyncio.run(_run(endpoint))
    slowest = max((trial.livez_ms for trial in trials), default=0.0)
    figures = {
        "inputs": len(trials),
        "slowest_livez_ms": slowest,
        "slowest_livez_idle_ms": idle_ms,
        "above_limit": sum(trial.livez_ms > LIMIT_MS for trial in trials),
        "server_errors": sum(trial.status == "500" or not trial.status.isdigit() for trial in trials),
        "left_out": left_out,
        "limit_ms": LIMIT_MS,
    }
    publish([_table(trials, idle_ms)], {"hostile": figures})


async def _run(endpoint: Endpoint) -> tuple[float, list[Trial], int]:
    trials: list[Trial] = []
    left_out = 0
    headers = {"Authorization": f"Bearer {endpoint.key}"}
    end = time.monotonic() + DEADLINE_S
    workspace = f"hostile-{uuid4().hex[:8]}"
    async with (
        httpx.AsyncClient(base_url=endpoint.url, headers=headers, timeout=TIMEOUT_S) as client,
        _pulse(endpoint.url) as pulse,
    ):
        # The first of anything loads modules and fills pools.
        await client.post("/v1/notes", json={"workspace": workspace, "content": "The key hangs behind the barometer."})
        await client.post("/v1/search", json={"workspace": workspace, "query": "Where is the key?"})
        begin = time.monotonic()
        await asyncio.sleep(BASELINE_S)
        idle_ms = await pulse.slowest(begin, time.monotonic())
        stage(f"/livez takes {idle_ms:.0f} ms at most without load")
        for item in all_inputs():
            if time.monotonic() > end:
                left_out += 1
                continue
            trials.append(await _try(client, pulse, item))
    return idle_ms, trials, left_out


async def _try(client: httpx.AsyncClient, pulse: Pulse, item: HostileInput) -> Trial:
    begin = time.monotonic()
    try:
        answer = await client.request(item.method, item.path, content=item.body, headers=item.headers)
        status = str(answer.status_code)
    except httpx.HTTPError as error:
        status = type(error).__name__
    end = time.monotonic()
    trial = Trial(item.name, status, end - begin, await pulse.slowest(begin, end))
    stage(f"{trial.livez_ms:6.0f} ms  {trial.status}  {trial.elapsed_s:6.2f} s  {trial.name}")
    return trial


@asynccontextmanager
async def _pulse(url: str) -> AsyncIterator[Pulse]:
    pulse = Pulse()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.livez_pulse", url, cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE
    )
    reading = asyncio.create_task(_read(process, pulse))
    try:
        yield pulse
    finally:
        reading.cancel()
        process.kill()
        await process.wait()


async def _read(process: asyncio.subprocess.Process, pulse: Pulse) -> None:
    assert process.stdout is not None  # noqa: S101 - it is piped
    async for line in process.stdout:
        at, elapsed_ms = line.split()
        await pulse.add(float(at), float(elapsed_ms))


def _table(trials: list[Trial], idle_ms: float) -> Table:
    shown = table(f"Hostile inputs; /livez without load {idle_ms:.0f} ms at most", "input", "answer", "s", "/livez ms")
    for trial in sorted(trials, key=lambda trial: -trial.livez_ms):
        shown.add_row(trial.name, trial.status, f"{trial.elapsed_s:.2f}", f"{trial.livez_ms:.0f}")
    return shown
