"""A replica's way to the cache shards: it fails open, counts, and never makes anyone wait long."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TypeVar

from lamina.aio.circuit_breaker import BreakerPolicy, CircuitBreaker
from lamina.aio.coalescing import Coalescer
from lamina.aio.write_behind import WriteBehind
from lamina.core.cache_layers import (
    NOTHING_FOUND,
    CacheEntry,
    CacheKey,
    Layer,
    RespondingAgents,
    ShardAnswer,
    ShardQuery,
    Space,
)
from lamina.core.cache_stats import LayerCounts, LayerOutcome, ShardStats, ShardUpdate, Tally
from lamina.core.ports import CacheShard
from lamina.policies.caching.rendezvous import owner
from lamina.policies.caching.shard import add_up_stats

KEEP_WINDOW_S = 0.01
REPORT_WINDOW_S = 1.0
STATS_DEADLINE_S = 1.0
MAX_IN_FLIGHT = 4
MAX_QUEUED = 256
MAX_KEPT = 64  # An entry may have some tens of KB, and a call little time.
MAX_WAITING = 1_000
MAX_OWNERS = 10_000
CLAIM_MARGIN_S = 1.0
Result = TypeVar("Result")


class ShardClient:
    """One shard, asked in batches, with a deadline, and left alone while it fails.

    Args:
        name: Its name, for the log.
        shard: The shard.
        guard: When it is left alone.
        on_lost: Is told of each layer whose entries could not be kept.
    """

    def __init__(self, name: str, shard: CacheShard, guard: BreakerPolicy, on_lost: Callable[[Layer], None]) -> None:
        self._shard = shard
        self._calls = CircuitBreaker(f"cache shard {name}", guard)
        self._on_lost = on_lost
        self._probes: Coalescer[ShardQuery, ShardAnswer] = Coalescer(
            self._find, part="cache", max_in_flight=MAX_IN_FLIGHT, max_queued=MAX_QUEUED
        )
        self._entries: WriteBehind[CacheEntry] = WriteBehind(
            self._keep,
            part="cache",
            window_s=KEEP_WINDOW_S,
            max_items=MAX_KEPT,
            capacity=MAX_WAITING,
        )

    async def find(self, probe: ShardQuery) -> ShardAnswer:
        """Return what the shard knows.

        Raises:
            Unavailable: If it fails, takes too long, or failed too often just now.
        """
        return await self._probes.submit(probe)

    def keep(self, entry: CacheEntry) -> None:
        """Have the shard keep something, a moment later; not while it is left alone."""
        if not self._calls.is_open:
            self._entries.add(entry)

    async def tell(self, news: ShardUpdate) -> None:
        """Have the shard take something over, now.

        Raises:
            Unavailable: As :meth:`find`.
        """
        await self.guarded(lambda: self._shard.keep(news))

    async def guarded(self, call: Callable[[], Awaitable[Result]], deadline_s: float | None = None) -> Result:
        """Return what the call returns, if the shard may be asked and answers in time.

        Raises:
            Unavailable: Otherwise.
        """
        return await self._calls.call(call, deadline_s)

    async def flush(self) -> None:
        """Hand over everything that is to be kept."""
        await self._entries.flush()

    async def close(self) -> None:
        """Hand over everything and end."""
        await self._entries.close()

    async def _find(self, probes: Sequence[ShardQuery]) -> Sequence[ShardAnswer]:
        return await self.guarded(lambda: self._shard.find(probes))

    async def _keep(self, entries: Sequence[CacheEntry]) -> None:
        try:
            await self.tell(ShardUpdate(entries=entries))
        except Exception:  # noqa: BLE001 - counted; what guards the calls tells the log
            for layer in {entry.key.layer for entry in entries}:
                self._on_lost(layer)


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """What the caches hold and did.

    Args:
        here: What this replica counted since it began.
        shards: What each shard holds and was told, by name; ``None`` for one that does not answer.
    """

    here: Mapping[Layer, LayerCounts]
    shards: Mapping[str, ShardStats | None] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every shard answered; otherwise counts of other replicas are missing."""
        return None not in self.shards.values()

    def totals(self) -> ShardStats:
        """Return what the shards that answered hold and were told, as one."""
        return add_up_stats([stats for stats in self.shards.values() if stats is not None])


class SharedCaches:
    """The shards as one; a cache that fails is a miss, and is counted as an error.

    Args:
        shards: By name; each owns some workspaces.
        layers: Those that are switched on; nothing else is asked for or kept.
        guard: When a shard is left alone.
    """

    def __init__(self, shards: Mapping[str, CacheShard], layers: AbstractSet[Layer], guard: BreakerPolicy) -> None:
        # Of the workspaces asked for lately: with 256 shards, each search costs half a millisecond.
        self._owner: Callable[[Space], str] = lru_cache(MAX_OWNERS)(partial(owner, tuple(shards)))
        self._shards = dict(shards)
        self._guarded = {name: ShardClient(name, shard, guard, self._lost) for name, shard in shards.items()}
        self._layers = layers
        self._tally = Tally()
        self._unreported = Tally()
        self._is_reporting = False
        self._latest: tuple[float, CacheFigures | None] = (0.0, None)
        self._reports: WriteBehind[None] = WriteBehind(self._report, part="cache counts", window_s=REPORT_WINDOW_S)

    def has(self, layer: Layer) -> bool:
        """Tell whether a layer is switched on."""
        return layer in self._layers

    async def find(self, probe: ShardQuery) -> ShardAnswer:
        """Return what is known; nothing if the shard fails. Makes at most one round trip, and never raises.

        A whole answer to an agent's lookup is not counted here: whoever asks knows later whether it is current.
        """
        asked = self._narrowed(probe)
        if not asked.answers and not asked.pieces and asked.agent is None:
            return NOTHING_FOUND
        began = time.monotonic()
        try:
            found = await self._guarded[self._owner(probe.space)].find(asked)
        except Exception:  # noqa: BLE001 - a cache that fails is a miss
            self._count_errors(asked)
            return NOTHING_FOUND
        self._count(asked if probe.agent is None else replace(asked, answers=()), found, time.monotonic() - began)
        return found

    def keep(self, entry: CacheEntry) -> None:
        """Keep something, if its layer is switched on; returns at once."""
        if entry.key.layer in self._layers:
            self._guarded[self._owner(entry.space)].keep(entry)

    async def tell(self, agents: RespondingAgents) -> None:
        """Tell who has responses; returns when the shard knows, or failed."""
        if Layer.AGENTS in self._layers:
            news = ShardUpdate(agents=(agents,))
            await self._open(agents.space, lambda shard: shard.keep(news), otherwise=None, layer=Layer.AGENTS)

    async def claim(self, space: Space, digest: bytes, lease_s: float, wait_s: float) -> bool:
        """Tell whether the caller is to make a response itself; yes if the shard fails."""

        async def call(shard: CacheShard) -> bool:
            return await shard.claim(space, digest, lease_s, wait_s)

        return await self._open(space, call, otherwise=True, layer=Layer.TURN, deadline_s=wait_s + CLAIM_MARGIN_S)

    async def settle(self, space: Space, digest: bytes) -> None:
        """Wake those who wait for a response."""
        await self._open(space, lambda shard: shard.settle(space, digest), otherwise=None, layer=Layer.TURN)

    async def purge(self, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        """Forget entries of a workspace, or of a tenant in every shard; return how many."""
        names = list(self._shards) if workspace is None else [self._owner((tenant, workspace))]
        dropped = await asyncio.gather(*(self._purge(name, tenant, workspace, layers) for name in names))
        return sum(dropped)

    def observe(self, layer: Layer, outcome: LayerOutcome, elapsed_s: float | None = None) -> None:
        """Count what came of asking a layer."""
        self._tally.observe(layer, outcome, elapsed_s)
        self._unreported.observe(layer, outcome, elapsed_s)
        if not self._is_reporting:
            self._is_reporting = True
            self._reports.add(None)

    async def figures(self, max_age_s: float = 0.0) -> CacheFigures:
        """Return what is held and was counted, this replica's latest counts included.

        Args:
            max_age_s: Figures that were read so lately may be told again.
        """
        read_at, figures = self._latest
        if figures is None or time.monotonic() - read_at >= max_age_s:
            await self.flush()
            stats = await asyncio.gather(*(self._stats(name) for name in self._shards))
            figures = CacheFigures(self._tally.read(), dict(zip(self._shards, stats, strict=True)))
            self._latest = (time.monotonic(), figures)
        return figures

    def counted(self) -> Mapping[Layer, LayerCounts]:
        """Return what this replica counted since it began."""
        return self._tally.read()

    async def flush(self) -> None:
        """Hand over everything that waits to be kept or counted."""
        await asyncio.gather(*(shard.flush() for shard in self._guarded.values()))
        await self._reports.flush()

    async def close(self) -> None:
        """Hand over everything and end."""
        await asyncio.gather(*(shard.close() for shard in self._guarded.values()))
        await self._reports.close()

    def _narrowed(self, probe: ShardQuery) -> ShardQuery:
        return ShardQuery(
            probe.space,
            tuple(key for key in probe.answers if key.layer in self._layers),
            tuple(key for key in probe.pieces if key.layer in self._layers),
            probe.agent if Layer.AGENTS in self._layers else None,
        )

    def _count(self, asked: ShardQuery, found: ShardAnswer, elapsed_s: float) -> None:
        for key in asked.answers:
            if found.answer is not None and found.answer[0] == key:
                self.observe(key.layer, LayerOutcome.HIT, elapsed_s)
                return
            self.observe(key.layer, LayerOutcome.MISS, elapsed_s)
        for key in asked.pieces if found.answer is None else ():
            self.observe(key.layer, LayerOutcome.HIT if key in found.pieces else LayerOutcome.MISS, elapsed_s)

    def _count_errors(self, asked: ShardQuery) -> None:
        agents = () if asked.agent is None else (Layer.AGENTS,)
        for layer in dict.fromkeys((*agents, *(key.layer for key in (*asked.answers, *asked.pieces)))):
            self.observe(layer, LayerOutcome.ERROR)

    async def _open(
        self,
        space: Space,
        call: Callable[[CacheShard], Awaitable[Result]],
        *,
        otherwise: Result,
        layer: Layer,
        deadline_s: float | None = None,
    ) -> Result:
        """Return what the workspace's shard returns, or else what holds without it."""
        name = self._owner(space)
        try:
            return await self._guarded[name].guarded(lambda: call(self._shards[name]), deadline_s)
        except Exception:  # noqa: BLE001 - a cache that fails is a miss
            self.observe(layer, LayerOutcome.ERROR)
            return otherwise

    async def _purge(self, name: str, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        try:
            return await self._guarded[name].guarded(lambda: self._shards[name].purge(tenant, workspace, layers))
        except Exception:  # noqa: BLE001 - what is left there is never asked for again: its epoch is over
            for layer in layers:
                self.observe(layer, LayerOutcome.ERROR)
            return 0

    async def _stats(self, name: str) -> ShardStats | None:
        try:
            return await self._guarded[name].guarded(self._shards[name].stats, STATS_DEADLINE_S)
        except Exception:  # noqa: BLE001 - reported as missing
            return None

    async def _report(self, _: Sequence[None]) -> None:
        """Tell a shard what was counted; which one does not matter, they are added up."""
        self._is_reporting = False
        counts = self._unreported.take()
        try:
            await self._guarded[next(iter(self._shards))].tell(ShardUpdate(counts=counts))
        except Exception:  # noqa: BLE001 - told with the next ones
            self._unreported.add(counts)

    def _lost(self, layer: Layer) -> None:
        self.observe(layer, LayerOutcome.ERROR)


def piece(found: ShardAnswer, key: CacheKey | None) -> object | None:
    """Return a piece that was found under a key, if it was asked for at all."""
    return None if key is None else found.pieces.get(key)
