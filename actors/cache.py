"""A cache shard as an actor: the layers of all replicas and sub-agents in one process."""

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
# Below the calls of this actor that Ray runs at a time, or waiters would keep out the call that wakes them.
MAX_WAITERS = 500


@dataclass(slots=True)
class Waiters:
    """The callers that wait for one response.

    Args:
        settled: Set when it is there.
        count: How many they are.
    """

    settled: asyncio.Event = field(default_factory=asyncio.Event)
    count: int = 0


class WaitingRoom:
    """Keeps callers waiting for the one that has claimed the same response.

    Args:
        claims: The claims on responses.
        most: Most callers that wait; beyond it each makes its own response.
    """

    def __init__(self, claims: Claims, most: int = MAX_WAITERS) -> None:
        self._claims = claims
        self._most = most
        self._waiting = 0
        self._waiters: dict[ClaimName, Waiters] = {}

    async def claim(self, name: ClaimName, lease_s: float, wait_s: float) -> bool:
        """Claim a response, or wait up to ``wait_s`` for the caller that has claimed it.

        When a lease ends, one of the waiting callers takes over, and the others go on waiting.

        Returns:
            Whether the caller is to make the response.
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
        """Wake the callers that wait."""
        self._claims.settle(name)
        if (waiters := self._waiters.pop(name, None)) is not None:
            waiters.settled.set()

    async def _is_settled(self, name: ClaimName, within_s: float) -> bool:
        waiters = self._waiters.setdefault(name, Waiters())
        waiters.count += 1
        self._waiting += 1
        try:
            async with asyncio.timeout(within_s):
                return await waiters.settled.wait()
        except TimeoutError:
            return waiters.settled.is_set()
        finally:
            waiters.count -= 1
            self._waiting -= 1
            if not waiters.count and self._waiters.get(name) is waiters:
                del self._waiters[name]


def counted(
    method: "Callable[Concatenate[CacheShardActor, Arguments], Awaitable[Result]]",
) -> "Callable[Concatenate[CacheShardActor, Arguments], Coroutine[Any, Any, Result]]":
    """Count a method's calls, and those that fail."""

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
    """One shard with a clock: the CacheShard port in this process, or as an actor.

    Only :meth:`claim` ever waits; it holds no other call up.

    Args:
        limits: Its bounds.
    """

    def __init__(self, limits: ShardLimits) -> None:
        self.meter = process_meter()
        watch(self, "cache", self.meter)
        self._shard = Shard(limits)
        # An actor runs `claim` and `settle` in a thread of their own: no other method may touch this.
        self._waiting = WaitingRoom(Claims())
        self._expired_at = time.monotonic()

    @counted
    async def find(self, queries: Sequence[ShardQuery]) -> Sequence[ShardAnswer]:
        """Look each query up."""
        now = time.monotonic()
        return [self._shard.find(query, now) for query in queries]

    @counted
    async def keep(self, update: ShardUpdate) -> None:
        """Take over entries, agents and counts."""
        now = time.monotonic()
        self._shard.keep(update, now)
        # Swept while something is written: an idle shard may keep what has expired.
        if now - self._expired_at > EXPIRY_INTERVAL_S:
            self._expired_at = now
            self._shard.expire(now)

    @counted
    async def purge(self, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        """Drop entries of a workspace or a tenant."""
        return self._shard.purge(tenant, workspace, layers)

    @counted
    async def stats(self, tenant: str | None = None) -> ShardStats:
        """Return sizes, with expired entries that are not yet dropped, and the counts of the replicas."""
        return self._shard.stats(tenant)

    @counted
    async def claim(self, space: Space, digest: bytes, lease_s: float, wait_s: float) -> bool:
        """Claim a response, or wait for the caller that has claimed it."""
        return await self._waiting.claim((space, digest), lease_s, wait_s)

    @counted
    async def settle(self, space: Space, digest: bytes) -> None:
        """Wake the callers that wait for a response."""
        self._waiting.settle((space, digest))
