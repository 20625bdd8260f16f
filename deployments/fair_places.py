"""Places of a router's requests, shared fairly among tenants."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lamina.core.principals import Principal
from lamina.errors import LimitReached
from lamina.policies.limits.fair_share import FairShare, FairShareLimits
from lamina.settings.loading import Settings

ACTIVE_S = 10.0
LONGEST_WAIT_S = 10.0
LOOK_S = 1.0
"""Time between two looks whether a request may begin: others may have stopped asking."""


def share_limits(settings: Settings) -> FairShareLimits:
    """Return the shares of a router's replica."""
    router, door = settings.serve.router, settings.serve.front_door
    of_tenant = max(1, int(door.tenant_share * router.max_ongoing_requests))
    return FairShareLimits(
        of_key=max(1, int(door.key_share * router.max_ongoing_requests)),
        of_tenant=of_tenant,
        of_tenant_alone=max(of_tenant, int(door.tenant_alone_share * router.max_ongoing_requests)),
        worked_on=door.tenant_requests,
        active_s=ACTIVE_S,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """A request that waits to begin."""

    begun: "asyncio.Future[None]"
    is_large: bool


class FairPlaces:
    """Lets a request begin when its tenant's share allows; used in one event loop.

    Args:
        limits: The shares.
        clock: Seconds that never go back.
    """

    def __init__(self, limits: FairShareLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._share = FairShare(limits)
        self._clock = clock
        self._waiting: defaultdict[str, deque[_Turn]] = defaultdict(deque)

    def is_shared(self, tenant: str) -> bool:
        """Report whether another tenant asks, too."""
        return self._share.is_shared(tenant, self._clock())

    @asynccontextmanager
    async def place(
        self, principal: Principal, *, is_idle: bool = False, is_large: bool = False
    ) -> AsyncIterator[Callable[[], None]]:
        """Hold a place for a request, and yield a function that gives it back early: where the rest is waiting.

        Args:
            principal: Its key.
            is_idle: Whether it may wait long without work, for somebody else's response, so that it begins at once.
            is_large: Whether the work on it is so large that none of its tenant's others is worked on meanwhile.

        Raises:
            LimitReached: If its key or tenant has too many requests in hand.
        """
        tenant, key = principal.tenant, principal.key_id
        refusal = self._share.refusal(tenant, key, self._clock())
        if refusal is not None:
            whose, most = refusal
            raise LimitReached(whose, f"{most} requests at the same time")
        self._share.take(tenant, key)
        try:
            if not is_idle:
                await self._begin(tenant, is_large=is_large)
            begun, is_worked_on = self._clock(), not is_idle

            def rest() -> None:
                nonlocal is_worked_on
                if is_worked_on:
                    is_worked_on, now = False, self._clock()
                    self._share.count(tenant, now - begun, now)
                    self._share.end(tenant, is_large=is_large)
                    self._wake(tenant)

            try:
                yield rest
            finally:
                rest()
        finally:
            self._share.give_up(tenant, key)

    async def _begin(self, tenant: str, *, is_large: bool) -> None:
        """Wait for the tenant's turn, and begin.

        Raises:
            LimitReached: If it does not come.
        """
        if not self._waiting.get(tenant) and self._share.may_work(tenant, self._clock(), is_large=is_large):
            self._share.begin(tenant, is_large=is_large)
            return
        turn = _Turn(asyncio.get_running_loop().create_future(), is_large)
        self._waiting[tenant].append(turn)
        try:
            async with asyncio.timeout(LONGEST_WAIT_S):
                while not turn.begun.done():
                    await asyncio.wait([turn.begun], timeout=LOOK_S)
                    self._wake(tenant)
        except BaseException as error:
            self._leave(tenant, turn)
            if isinstance(error, TimeoutError):
                reason = f"{self._limits.worked_on} requests are worked on at the same time while others ask"
                raise LimitReached("tenant", reason) from error
            raise

    def _leave(self, tenant: str, turn: _Turn) -> None:
        """Give up waiting, or the turn that came at the same moment."""
        if turn.begun.done() and not turn.begun.cancelled():
            self._share.end(tenant, is_large=turn.is_large)
        elif turn in self._waiting[tenant]:
            self._waiting[tenant].remove(turn)
        self._wake(tenant)

    def _wake(self, tenant: str) -> None:
        """Let those begin that may now, in their order."""
        waiting = self._waiting.get(tenant)
        while waiting and self._share.may_work(tenant, self._clock(), is_large=waiting[0].is_large):
            turn = waiting.popleft()
            if not turn.begun.done():
                self._share.begin(tenant, is_large=turn.is_large)
                turn.begun.set_result(None)
        if not waiting:
            self._waiting.pop(tenant, None)
