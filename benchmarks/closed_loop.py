"""Send requests as a number of clients, each waiting for its answer, and count the answers."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import httpx

from benchmarks.timing import Latencies
from lamina.errors import LaminaError, Unavailable

WARM_UP_S = 1.0
LONGEST_WAIT_S = 60.0
"""A request that is refused for so long has failed."""

Json = dict[str, Any]
Ask = Callable[[], Awaitable[Json]]


@dataclass(frozen=True, slots=True)
class RequestResult:
    """A request that is over.

    Args:
        elapsed_ms: From its first attempt to the end, with the waits between attempts.
        refusals: How often the service was too busy and told when to come again.
        failure: The error with which it ended; empty if it was answered.
        is_degraded: Whether the answer lacked a source.
    """

    elapsed_ms: float
    refusals: int = 0
    failure: str = ""
    is_degraded: bool = False


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Requests of some clients that each send one after another, and the seconds of all."""

    requests: tuple[RequestResult, ...]
    elapsed_s: float

    @property
    def answered(self) -> int:
        """How many requests were answered."""
        return sum(not request.failure for request in self.requests)

    def figures(self) -> dict[str, float]:
        """Return throughput, percentiles and counts; the percentiles are infinite if nothing was answered."""
        elapsed_ms = [request.elapsed_ms for request in self.requests if not request.failure]
        return {
            "per_s": len(elapsed_ms) / self.elapsed_s,
            **(Latencies.of(elapsed_ms) if elapsed_ms else Latencies(*[math.inf] * 4)).figures(),
            "failed": len(self.requests) - len(elapsed_ms),
            "degraded": sum(request.is_degraded for request in self.requests),
            "refused": sum(request.refusals for request in self.requests),
        }

    def failures(self) -> Counter[str]:
        """Return the errors of requests that failed, with their numbers."""
        return Counter(request.failure for request in self.requests if request.failure)


async def send_in_turn(asks: Sequence[Ask], seconds: float) -> LoadResult:
    """Let every client send requests for a while, each as soon as the one before is over.

    Args:
        asks: Sends a request, one for each client.
        seconds: After which no request begins, but the first of each client.
    """
    begin = time.perf_counter()
    of_clients = await asyncio.gather(*(_send_until(ask, begin + seconds) for ask in asks))
    elapsed_s = time.perf_counter() - begin
    return LoadResult(tuple(request for requests in of_clients for request in requests), elapsed_s)


async def _send_until(ask: Ask, end: float) -> list[RequestResult]:
    requests = [await send(ask)]
    while time.perf_counter() < end:
        requests.append(await send(ask))
    return requests


async def send(ask: Ask) -> RequestResult:
    """Send a request, again as often as the service refuses it and says when to come again."""
    begin, refusals = time.perf_counter(), list[Unavailable]()
    try:
        answer = await accepted(ask, refusals)
    except LaminaError as error:
        return RequestResult((time.perf_counter() - begin) * 1000, len(refusals), failure=str(error))
    elapsed_ms = (time.perf_counter() - begin) * 1000
    return RequestResult(elapsed_ms, len(refusals), is_degraded=bool(answer.get("degraded")))


async def accepted(ask: Ask, refusals: list[Unavailable]) -> Json:
    """Return the answer to a request that is repeated while the service refuses it.

    Args:
        ask: Sends it.
        refusals: Takes up each of them.

    Raises:
        LaminaError: Any other error, and the last refusal after a minute.
    """
    begin = time.perf_counter()
    while True:
        try:
            return await ask()
        except LaminaError as error:
            if not is_refusal(error) or time.perf_counter() - begin > LONGEST_WAIT_S:
                raise
            refusals.append(error)
            await asyncio.sleep(error.retry_after_s)


def is_refusal(error: LaminaError) -> TypeGuard[Unavailable]:
    """Report whether the service itself answered that it could not, and when to come again."""
    return isinstance(error, Unavailable) and not isinstance(error.__cause__, httpx.TransportError)
