"""Let as many searches run as do well beside each other; the others wait shortly, or are refused before they begin."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from math import ceil
from typing import Protocol

from lamina.core.queries import Answer, SearchRequest
from lamina.errors import TURN, Overloaded, Unavailable
from lamina.policies.limits.concurrency import ConcurrencyLimit
from lamina.policies.limits.fair_turns import FairTurns
from lamina.search.fused_search import WITHOUT_HINTS, SearchHints

MOST_WAITING = 1024


class SearchTiers(Protocol):
    """Searches all tiers."""

    async def search(self, request: SearchRequest, hints: SearchHints) -> Answer:
        """Search.

        Raises:
            LaminaError: If it is refused, or nothing answers.
        """
        ...


class SearchPlaces:
    """Places of the searches of a process; tenants that wait take turns. Used in one event loop.

    Beside it, the front door holds the requests of a tenant back while another one asks: a tenant then has no more
    searches here than it may have worked on, and one that is alone waits nowhere else.

    Args:
        limit: How many there are.
        max_wait_s: Longest wait for one.
        clock: Seconds that never go back.
    """

    def __init__(self, limit: ConcurrencyLimit, max_wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._max_wait_s = max_wait_s
        self._clock = clock
        self._waiting: FairTurns[asyncio.Future[None]] = FairTurns()
        self._running = 0

    @asynccontextmanager
    async def place(self, tenant: str, kind: Hashable) -> AsyncIterator[None]:
        """Hold a place; the time for which it is held counts, also where it ends too late for an answer.

        Args:
            tenant: Who searches.
            kind: Searches of a kind take about as long.

        Raises:
            Overloaded: If the wait for one would be too long, or was.
        """
        await self._begin(tenant)
        began = self._clock()
        try:
            yield
            self._record(kind, began)
        except Unavailable:
            # Where all sources miss their deadlines, too many run; what is refused at once says nothing.
            if self._clock() - began >= self._limit.late_s:
                self._record(kind, began)
            raise
        finally:
            self._running -= 1
            self._grant()

    def _record(self, kind: Hashable, began: float) -> None:
        now = self._clock()
        self._limit.record(kind, now - began, self._running, now)

    async def _begin(self, tenant: str) -> None:
        if self._running < self._limit.places and not self._waiting:
            self._running += 1
            return
        expected_s = self._limit.wait_s(self._waiting.ahead_of(tenant))
        if expected_s > self._max_wait_s or len(self._waiting) >= MOST_WAITING:
            raise self._refusal(expected_s)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.put(tenant, turn)
        try:
            async with asyncio.timeout(self._max_wait_s):
                await turn
        except BaseException as error:
            self._give_up(tenant, turn)
            if isinstance(error, TimeoutError):
                raise self._refusal(self._max_wait_s) from error
            raise

    def _refusal(self, expected_s: float) -> Overloaded:
        reason = f"a search would wait {expected_s:.1f} s for it, and may wait {self._max_wait_s:g} s"
        return Overloaded(TURN, reason, retry_after_s=max(1, ceil(expected_s)))

    def _give_up(self, tenant: str, turn: "asyncio.Future[None]") -> None:
        """Give up waiting, or the place that came at the same moment."""
        if turn.done() and not turn.cancelled():
            self._running -= 1
            self._grant()
        else:
            self._waiting.remove(tenant, turn)

    def _grant(self) -> None:
        """Give free places to those that wait, to one tenant after the other."""
        while self._waiting and self._running < self._limit.places:
            turn = self._waiting.take()
            if not turn.done():
                self._running += 1
                turn.set_result(None)


class AdmittedSearch:
    """A search that begins when it has a place.

    Args:
        search: Searches.
        places: The places of this process.
    """

    def __init__(self, search: SearchTiers, places: SearchPlaces) -> None:
        self._search = search
        self._places = places

    async def search(self, request: SearchRequest, hints: SearchHints = WITHOUT_HINTS) -> Answer:
        """Return the answer.

        Raises:
            Overloaded: If the search would wait too long for its turn; nothing was done.
            LaminaError: From the search.
        """
        depth = max(request.limit, request.per_source).bit_length()
        words = len(request.text).bit_length()
        kind = (request.tiers, depth, words, hints.embedding is None, hints.graph is None)
        async with self._places.place(request.scope.tenant, kind):
            return await self._search.search(request, hints)
