"""The shard of the caches as an actor: every replica's and every sub-agent's layers in one process."""

import asyncio
import time
from collections.abc import Sequence

from lamina.caching.layers import Found, Layer, Probe, Space
from lamina.caching.shard import Shard, ShardLimits
from lamina.caching.tally import News, ShardStats

MAX_CLAIMS = 10_000
EXPIRY_INTERVAL_S = 30.0
Claimed = tuple[Space, bytes]


class Claims:
    """Who is making a response right now, and who waits for it.

    Args:
        most: Claims kept; beyond it everyone makes their own.
    """

    def __init__(self, most: int = MAX_CLAIMS) -> None:
        self._most = most
        self._settled: dict[Claimed, asyncio.Event] = {}
        self._until: dict[Claimed, float] = {}

    async def claim(self, name: Claimed, lease_s: float, wait_s: float) -> bool:
        """Tell whether the caller is to make it; wait for whoever is at it already."""
        give_up = time.monotonic() + wait_s
        while (left := self._until.get(name, 0.0) - time.monotonic()) > 0:
            patience = give_up - time.monotonic()
            if patience <= 0:
                return True
            if await _is_set(self._settled[name], min(left, patience)):
                return False
        return self._take(name, lease_s)

    def settle(self, name: Claimed) -> None:
        """Wake those who wait."""
        self._until.pop(name, None)
        if (event := self._settled.pop(name, None)) is not None:
            event.set()

    def expire(self) -> None:
        """Forget claims whose lease ended."""
        now = time.monotonic()
        for name in [name for name, until in self._until.items() if until <= now]:
            del self._until[name], self._settled[name]

    def _take(self, name: Claimed, lease_s: float) -> bool:
        if len(self._until) >= self._most:
            self.expire()
        if name in self._until or len(self._until) < self._most:
            self._until[name] = time.monotonic() + lease_s
            self._settled.setdefault(name, asyncio.Event())
        return True


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


class CacheShard:
    """One shard behind a clock; the CacheShard port as an actor serves it, and as a test uses it.

    Its methods never wait for anything but :meth:`claim`, which others do not notice.

    Args:
        limits: Its bounds.
    """

    def __init__(self, limits: ShardLimits) -> None:
        self._shard = Shard(limits)
        self._claims = Claims()
        self._expired_at = time.monotonic()

    async def find(self, probes: Sequence[Probe]) -> Sequence[Found]:
        """Return what is known for each probe."""
        now = time.monotonic()
        return [self._shard.find(probe, now) for probe in probes]

    async def keep(self, news: News) -> None:
        """Take over entries, agents and counts."""
        now = time.monotonic()
        self._shard.keep(news, now)
        if now - self._expired_at > EXPIRY_INTERVAL_S:
            self._expired_at = now
            self._shard.expire(now)
            self._claims.expire()

    async def purge(self, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        """Forget entries of a workspace or a tenant."""
        return self._shard.purge(tenant, workspace, layers)

    async def stats(self) -> ShardStats:
        """Return what the shard holds and was told."""
        self._shard.expire(time.monotonic())
        return self._shard.stats()

    async def claim(self, space: Space, digest: bytes, lease_s: float, wait_s: float) -> bool:
        """Tell whether the caller is to make the response itself, or wait for whoever is at it."""
        return await self._claims.claim((space, digest), lease_s, wait_s)

    async def settle(self, space: Space, digest: bytes) -> None:
        """Wake those who wait for the response."""
        self._claims.settle((space, digest))
