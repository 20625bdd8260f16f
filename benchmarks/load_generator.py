"""Requests at a fixed rate, as many agents make them, and the outcome of each."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx

from benchmarks.timing import Latencies
from lamina.errors import LaminaError

Json = dict[str, Any]
Ask = Callable[[], Awaitable[Json]]


class RequestOutcome(StrEnum):
    """Outcome of a request."""

    ANSWERED = "answered"
    DEGRADED = "degraded"
    """Answered, without a source that is named."""
    REFUSED = "refused"
    """Nobody listened: nothing was sent, and whoever asks again risks nothing."""
    BROKEN = "broken"
    """The connection ended, or time did, before the answer came."""
    FAILED = "failed"
    """The answer was an error."""


FAILURES = frozenset({RequestOutcome.REFUSED, RequestOutcome.BROKEN, RequestOutcome.FAILED})


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is over.

    Args:
        begun_s: When it was sent, in seconds since the load began.
        elapsed_ms: How long it took.
        outcome: What became of it.
        reason: What was said of a failure.
    """

    begun_s: float
    elapsed_ms: float
    outcome: RequestOutcome
    reason: str = ""

    @property
    def ended_s(self) -> float:
        """When it was over, in seconds since the load began."""
        return self.begun_s + self.elapsed_ms / 1000


class Load:
    """Sends requests at a rate, each in a task of its own.

    Args:
        ask: Sends one.

    Attributes:
        seen: The requests that are over, in the order of their ends.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._begin = time.perf_counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[float] = set()
        self.seen: list[Request] = []

    @property
    def in_flight(self) -> int:
        """How many requests have no answer yet."""
        return len(self._tasks)

    def longest_wait_s(self) -> float:
        """Return for how many seconds the oldest request without an answer has been waiting; 0 if there is none."""
        return self.now_s() - min(self._waiting) if self._waiting else 0.0

    def now_s(self) -> float:
        """Return the seconds since the load began."""
        return time.perf_counter() - self._begin

    async def offer(self, rate: float, seconds: float) -> None:
        """Send requests evenly for a while.

        Args:
            rate: Requests a second.
            seconds: For how long.
        """
        begin = self.now_s()
        for number in range(round(rate * seconds)):
            await asyncio.sleep(max(0.0, begin + number / rate - self.now_s()))
            task = asyncio.create_task(self._send())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await asyncio.sleep(max(0.0, begin + seconds - self.now_s()))

    async def settle(self) -> None:
        """Wait for the answers that are still to come."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _send(self) -> None:
        begun = self.now_s()
        self._waiting.add(begun)
        outcome, reason = await classify(self._ask())
        self._waiting.discard(begun)
        self.seen.append(Request(begun, (self.now_s() - begun) * 1000, outcome, reason))


async def classify(answer: Awaitable[Json]) -> tuple[RequestOutcome, str]:
    """Return the outcome of a request, and the text of a failure."""
    try:
        body = await answer
    except LaminaError as error:
        return _failure(error), str(error)
    lacking = body.get("degraded")
    return (RequestOutcome.DEGRADED, f"without {lacking}") if lacking else (RequestOutcome.ANSWERED, "")


def _failure(error: LaminaError) -> RequestOutcome:
    match error.__cause__:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return RequestOutcome.REFUSED
        case httpx.TransportError():
            return RequestOutcome.BROKEN
        case _:
            return RequestOutcome.FAILED


def tally(requests: Sequence[Request]) -> Json:
    """Return how many there were of each outcome, and the percentiles of those that were answered."""
    counts: Json = {
        outcome.value: sum(request.outcome is outcome for request in requests) for outcome in RequestOutcome
    }
    answered = [request.elapsed_ms for request in requests if request.outcome not in FAILURES]
    return {"requests": len(requests), **counts, **(Latencies.of(answered).figures() if answered else {})}


def reasons(requests: Sequence[Request]) -> dict[str, int]:
    """Return the texts of degraded and failed requests with their counts."""
    return dict(Counter(request.reason for request in requests if request.reason).most_common())


def within(requests: Sequence[Request], begin_s: float, end_s: float) -> list[Request]:
    """Return the requests that were sent from a second on and before another."""
    return [request for request in requests if begin_s <= request.begun_s < end_s]
