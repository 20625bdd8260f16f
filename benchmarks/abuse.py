"""Measure one tenant's calls while another tenant misuses the same service in twenty-one ways.

The other tenant's calls go out at a fixed pace, whether or not the one before has been answered: a service that stands
still would otherwise be asked less. It ends within ten minutes; ways for which there was no time are named.
"""

import asyncio
import itertools
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.table import Table

from benchmarks.abusers import WAYS
from benchmarks.options import KeyOption, UrlOption
from benchmarks.replica_watch import memory_mb
from benchmarks.report import publish, stage, table
from benchmarks.service import LAMINA, REPOSITORY, Endpoint, started
from benchmarks.timing import Latencies
from lamina.errors import InvalidInput

PAUSE_S = 0.25
WARM_UP_S = 10.0
UNLOADED_S = 30.0
SETTLE_S = 3.0
TIMEOUT_S = 10.0
GREATEST_RATIO = 2.0
BUDGET_S = 540.0
"""Seconds after which no further way begins."""

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Seen:
    """The other tenant's calls during one way.

    Args:
        elapsed_ms: Of each call.
        errors: How many had each status that is no success, or each error of the connection.
        memory_mb: Of all processes of the service, afterwards; 0 where another one's was measured.
    """

    elapsed_ms: Sequence[float]
    errors: Counter[str]
    memory_mb: float

    @property
    def p95_ms(self) -> float:
        """The 95th percentile."""
        return Latencies.of(self.elapsed_ms).p95_ms

    def is_hurt(self, unloaded: "Seen") -> bool:
        """Report whether the other tenant met an error, or waited more than twice as long as without load."""
        return self.errors.total() > 0 or self.p95_ms > GREATEST_RATIO * unloaded.p95_ms


def measure(
    url: UrlOption = None,
    key: KeyOption = None,
    abusers_key: Annotated[str | None, typer.Option(help="Of another tenant; needed with --url.")] = None,
    seconds: Annotated[float, typer.Option(help="How long each way lasts.")] = 10.0,
    ways: Annotated[list[str] | None, typer.Argument(help="All by default.")] = None,
) -> None:
    """Measure a tenant's calls while another tenant misuses the service in each of many ways."""
    wanted = ways or list(WAYS)
    for name in wanted:
        if name not in WAYS:
            raise InvalidInput("ways", f"{name!r} is none; choose among {', '.join(WAYS)}")
    if url is not None:
        if key is None or abusers_key is None:
            raise InvalidInput("--abusers-key", "or --key is missing: a service that runs needs keys of two tenants")
        unloaded, seen = asyncio.run(_run(Endpoint(url, key), abusers_key, wanted, seconds))
    else:
        with tempfile.TemporaryDirectory(prefix="lamina-benchmark-") as folder, started(Path(folder), {}) as found:
            worker = Endpoint(found.url, _new_key(Path(folder), "worker"))
            unloaded, seen = asyncio.run(_run(worker, _new_key(Path(folder), "abuser"), wanted, seconds))
    worst = max(item.p95_ms for item in seen.values()) / unloaded.p95_ms
    figures = {
        "ways": len(seen),
        "unloaded_p95_ms": unloaded.p95_ms,
        "worst_p95_ratio": worst,
        "failing": [way for way, item in seen.items() if item.is_hurt(unloaded)],
        "unmeasured": [way for way in wanted if way not in seen],
        "errors_of_the_other": sum(item.errors.total() for item in seen.values()),
        "memory_growth_mb": max(item.memory_mb for item in seen.values()) - unloaded.memory_mb,
    }
    publish([_table(unloaded, seen)], {"abuse": figures})


def _new_key(folder: Path, tenant: str) -> str:
    command = [str(LAMINA), "keys", "create", "--tenant", tenant, "--data-dir", str(folder / "data")]
    made = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    return next(word for word in made.stdout.split() if word.startswith("lamina_"))


async def _run(worker: Endpoint, abuser: str, ways: Sequence[str], seconds: float) -> tuple[Seen, dict[str, Seen]]:
    headers = {"Authorization": f"Bearer {worker.key}"}
    begin = time.monotonic()
    async with httpx.AsyncClient(base_url=worker.url, headers=headers, timeout=TIMEOUT_S) as client:
        calls = _calls()
        # A key that was never valid is refused while its address tries wrong ones, as one of the ways does.
        await client.get("/v1/notes", headers={"Authorization": f"Bearer {abuser}"})
        await _work(client, calls, WARM_UP_S)
        unloaded = await _work(client, calls, UNLOADED_S)
        stage(f"{unloaded.p95_ms:6.0f} ms  without load")
        seen = {}
        for way in ways:
            if time.monotonic() - begin > BUDGET_S:
                break
            async with _misusing(way, worker.url, abuser) as pid:
                await asyncio.sleep(1)  # it starts
                seen[way] = await _work(client, calls, seconds, {pid})
            verdict = "FAILS" if seen[way].is_hurt(unloaded) else "     "
            stage(f"{seen[way].p95_ms:6.0f} ms  {verdict}  {way}  {dict(seen[way].errors) or ''}")
            await asyncio.sleep(SETTLE_S)
    return unloaded, seen


def _calls() -> Iterator[Call]:
    """Yield the other tenant's calls: a turn, a note, and searches."""
    for number in itertools.count():
        day = f"On day {number} the tide was {number % 7} feet high and the harbour master slept."
        yield "/v1/turns", {"session": f"s{number % 10}", "messages": [{"role": "user", "content": day}]}
        yield "/v1/search", {"query": f"how high was the tide on day {number}?"}
        yield "/v1/notes", {"content": f"Gauge {number} stands at pier {number % 5}."}
        yield "/v1/context", {"query": f"where is gauge {number}?", "budget_tokens": 1_000}


async def _work(
    client: httpx.AsyncClient, calls: Iterator[Call], seconds: float, abusers: Collection[int] = ()
) -> Seen:
    """Send calls at a fixed pace, wait for all answers, and return their times.

    Args:
        client: Sends them.
        calls: What is asked.
        seconds: For which calls are sent.
        abusers: Processes that are none of the service: four bodies of 30 MiB take 440 MB of one and more.
    """
    loop = asyncio.get_running_loop()
    errors: Counter[str] = Counter()

    async def send(path: str, body: dict[str, Any]) -> float:
        begin = loop.time()
        try:
            answer = await client.post(path, json=body)
            if not answer.is_success:
                errors[f"{path} {answer.status_code}"] += 1
        except httpx.HTTPError as error:
            errors[f"{path} {type(error).__name__}"] += 1
        return (loop.time() - begin) * 1000

    begin, sent = loop.time(), list[asyncio.Task[float]]()
    for path, body in calls:
        sent.append(asyncio.create_task(send(path, body)))
        await asyncio.sleep(max(0.0, begin + len(sent) * PAUSE_S - loop.time()))
        if loop.time() - begin > seconds:
            break
    elapsed_ms = await asyncio.gather(*sent)
    return Seen(elapsed_ms, errors, await asyncio.to_thread(memory_mb, abusers))


@asynccontextmanager
async def _misusing(way: str, url: str, key: str) -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.abusers", way, url, key, cwd=REPOSITORY, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield process.pid
    finally:
        process.kill()
        await process.wait()


def _table(unloaded: Seen, seen: dict[str, Seen]) -> Table:
    shown = table(f"Beside a tenant that misuses the service; without it p95 {unloaded.p95_ms:.0f} ms", "way")
    for column in ("p50 ms", "p95 ms", "times", "errors", "MB", "fails"):
        shown.add_column(column, justify="right", no_wrap=True)
    for way, item in sorted(seen.items(), key=lambda pair: -pair[1].p95_ms):
        ratio = item.p95_ms / unloaded.p95_ms
        p50_ms = Latencies.of(item.elapsed_ms).p50_ms
        row = (f"{p50_ms:.0f}", f"{item.p95_ms:.0f}", f"{ratio:.1f}", f"{item.errors.total()}", f"{item.memory_mb:.0f}")
        shown.add_row(way, *row, "yes" if item.is_hurt(unloaded) else "")
    return shown
