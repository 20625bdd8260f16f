"""Calls in flight and how long they take."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Generic, Self, TypeVar

import numpy as np

from lamina.client import AsyncClient
from lamina.core.tiers import PROJECTIONS
from lamina.errors import Unavailable

INDEX_DEADLINE_S = 600.0
POLL_INTERVAL_S = 0.25

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Timed(Generic[Result]):
    """A result and the milliseconds it took."""

    value: Result
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class Latencies:
    """Percentiles of a set of calls, in milliseconds."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    @classmethod
    def of(cls, elapsed_ms: Sequence[float]) -> Self:
        """Return the percentiles; between two calls they are interpolated.

        Args:
            elapsed_ms: At least one duration, in any order.
        """
        p50, p95, p99, longest = (float(value) for value in np.percentile(elapsed_ms, (50, 95, 99, 100)))
        return cls(p50, p95, p99, longest)

    def figures(self) -> dict[str, float]:
        """Return the percentiles by name."""
        return asdict(self)


async def timed(call: Awaitable[Result]) -> Timed[Result]:
    """Await a call and return its result with its duration."""
    begin = time.perf_counter()
    value = await call
    return Timed(value, (time.perf_counter() - begin) * 1000)


async def run_all(items: Iterable[Item], act: Callable[[Item], Awaitable[Result]], *, concurrency: int) -> list[Result]:
    """Act on every item, at most ``concurrency`` at a time; the first failure ends it.

    Returns:
        One result an item, in the items' order.
    """
    gate = asyncio.Semaphore(concurrency)

    async def one(item: Item) -> Result:
        async with gate:
            return await act(item)

    return await asyncio.gather(*(one(item) for item in items))


async def until_indexed(client: AsyncClient, deadline_s: float = INDEX_DEADLINE_S) -> float:
    """Wait until the outboxes of everything that is searched are empty and return the seconds it took.

    Raises:
        Unavailable: If they are not within ten minutes, or the given time.
    """
    begin = time.monotonic()
    while time.monotonic() - begin < deadline_s:
        outbox = (await client.ready())["outbox"]
        if all(outbox.get(name, {"pending": 1})["pending"] == 0 for name in PROJECTIONS):
            return time.monotonic() - begin
        await asyncio.sleep(POLL_INTERVAL_S)
    raise Unavailable("indexer", f"the outboxes are not empty after {deadline_s:.0f} s")
