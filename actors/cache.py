"""The shard of the caches as an actor: every replica's and every sub-agent's layers in one process."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from actors.instruments import process_meter, watch
from lamina.core.cache_layers import Layer, ShardAnswer, ShardQuery, Space
from lamina.core.cache_stats import ShardStats, ShardUpdate
from lamina.core.metrics import SHARD_CALLS, CallOutcome
from lamina.policies.caching.claims import ClaimName, Claims
from lamina.policies.caching.shard import Shard, ShardLimits

EXPIRY_INTERVAL_S = 30.0
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
MAX_WAITERS = 500
"""Below what Ray runs of this actor at a time, or waiters would keep out who is to wake them."""


@dataclass(slots=True)
class Waiters:
    """Those who wait for one response, whoever makes it.

    Args:
        settled: Set when it is there.
        count: How many they are.
    """

    settled: asyncio.Event = field(default_factory=asyncio.Event)
    count: int = 0


class WaitingRoom:
    """Keeps callers waiting for whoever claimed what they want.

    Args:
        claims: Who makes what.
        most: How many may wait; beyond it everyone makes their own.
    """

    def __init__(self, claims: Claims, most: int = MAX_WAITERS) -> None:
        self._claims = claims
        self._most = most
        self._waiting = 0
        self._waiters: dict[ClaimName, Waiters] = {}

    async def claim(self, name: ClaimName, lease_s: float, wait_s: float) -> bool:
        """Tell whether the caller is to make it; wait for whoever is at it already, at most ``wait_s``.

        When a lease ends, one of those who wait takes over, and the others go on waiting.
        """
        now = time.monotonic()
        give_up = now + wait_s
        while (until := self._claims.take(name, now, lease_s)) is not None:
            if now >= give_up or self._waiting >= self._most:
                return True
            if await self._is_settled(name, min(until, give_up) - now):
                return False
            now = time.monotonic()
        return True

    def settle(self, name: ClaimName) -> None:
        """Wake those who wait."""
        self._claims.settle(name)
        if (waiters := self._waiters.pop(name, None)) is not None:
            waiters.settled.set()

    async def _is_settled(self, name: ClaimName, within_s: float) -> bool:
        waiters = self._waiters.setdefault(name, Waiters())
        self._count(waiters, 1)
        try:
            async with asyncio.timeout(within_s):
                return await waiters.settled.wait()
        except TimeoutError:
            return waiters.settled.is_set()
        finally:
            self._count(waiters, -1)
            if not waiters.count and self._waiters.get(name) is waiters:
                del self._waiters[name]

    def _count(self, waiters: Waiters, more: int) -> None:
        waiters.count += more
        self._waiting += more


def counted(
    method: "Callable[Concatenate[CacheShardActor, Arguments], Awaitable[Result]]",
) -> "Callable[Concatenate[CacheShardActor, Arguments], Coroutine[Any, Any, Result]]":
    """Return a method of the shard whose calls, and those that fail, are counted."""

    @wraps(method)
    async def call(self: "CacheShardActor", /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        outcome = CallOutcome.FAILED
        try:
            result = await method(self, *arguments, **named)
            outcome = CallOutcome.OK
        finally:
            self.meter.record(SHARD_CALLS, operation=method.__name__, outcome=outcome)
        return result

    return call


class CacheShardActor:
    """One shard behind a clock; the CacheShard port as an actor serves it, and as a test uses it.

    Its methods never wait for anything but :meth:`claim`, which others do not notice.

    Args:
        limits: Its bounds.
    """

    def __init__(self, limits: ShardLimits) -> None:
        self.meter = process_meter()
        watch(self, "cache", self.meter)
        self._shard = Shard(limits)
        # An actor runs `claim` and `settle` in a thread apart: nothing else may touch this.
        self._waiting = WaitingRoom(Claims())
        self._expired_at = time.monotonic()

    @counted
    async def find(self, probes: Sequence[ShardQuery]) -> Sequence[ShardAnswer]:
        """Return what is known for each probe."""
        now = time.monotonic()
        return [self._shard.find(probe, now) for probe in probes]

    @counted
    async def keep(self, news: ShardUpdate) -> None:
        """Take over entries, agents and counts."""
        now = time.monotonic()
        self._shard.keep(news, now)
        if now - self._expired_at > EXPIRY_INTERVAL_S:
            self._expired_at = now
            self._shard.expire(now)

    @counted
    async def purge(self, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        """Forget entries of a workspace or a tenant."""
        return self._shard.purge(tenant, workspace, layers)

    @counted
    async def stats(self) -> ShardStats:
        """Return what the shard holds, what is over but not yet forgotten included, and was told."""
        return self._shard.stats()

    @counted
    async def claim(self, space: Space, digest: bytes, lease_s: float, wait_s: float) -> bool:
        """Tell whether the caller is to make the response itself, or wait for whoever is at it."""
        return await self._waiting.claim((space, digest), lease_s, wait_s)

    @counted
    async def settle(self, space: Space, digest: bytes) -> None:
        """Wake those who wait for the response."""
        self._waiting.settle((space, digest))
