"""A replica's access to the cache shards: it fails open, counts, and never waits long."""

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
    Layer,
    RespondingAgents,
    ShardAnswer,
    ShardQuery,
    Space,
)
from lamina.core.cache_stats import LayerCounts, LayerOutcome, ShardStats, ShardUpdate, Tally, TenantTallies
from lamina.core.ports import CacheShard
from lamina.core.quotas import spending_tenant
from lamina.errors import Unavailable, describe_error
from lamina.policies.caching.rendezvous import owner
from lamina.policies.caching.shard import add_up_stats

# The entries of some searches travel together: a call to a shard costs as much as a fifth of a search. The replica that
# made an entry has it at once.
KEEP_WINDOW_S = 0.1
REPORT_WINDOW_S = 1.0
# Longer than a lookup's deadline: a shard adds up all of its layers.
STATS_DEADLINE_S = 1.0
MAX_IN_FLIGHT = 4
MAX_QUEUED = 256
MAX_KEPT = 64  # An entry may have some tens of KB, and a call little time.
MAX_WAITING = 1_000
MAX_OWNERS = 10_000
# Whose counts are told apart between two reports.
MAX_TENANTS = 1_000
# For the round trip of a caller that waits to the end.
CLAIM_MARGIN_S = 1.0
Result = TypeVar("Result")


class ShardClient:
    """One shard, asked in batches, with a deadline, and left alone while it fails.

    Args:
        name: Its name, for the log.
        shard: The shard.
        policy: When it is left alone.
        on_lost: Called with each layer whose entries could not be kept.

    Attributes:
        entries: Those that wait to be kept.
    """

    def __init__(self, name: str, shard: CacheShard, policy: BreakerPolicy, on_lost: Callable[[Layer], None]) -> None:
        self._shard = shard
        self._breaker = CircuitBreaker(f"cache shard {name}", policy)
        self._on_lost = on_lost
        self._queries: Coalescer[ShardQuery, ShardAnswer] = Coalescer(
            lambda queries: self.call(lambda shard: shard.find(queries)),
            part="cache",
            max_in_flight=MAX_IN_FLIGHT,
            max_queued=MAX_QUEUED,
        )
        self.entries: WriteBehind[CacheEntry] = WriteBehind(
            self._keep,
            part="cache",
            window_s=KEEP_WINDOW_S,
            max_items=MAX_KEPT,
            capacity=MAX_WAITING,
        )

    async def find(self, query: ShardQuery) -> ShardAnswer:
        """Look a query up.

        Raises:
            Unavailable: As :meth:`call`.
        """
        return await self._queries.submit(query)

    def keep(self, entry: CacheEntry) -> None:
        """Keep an entry, a moment later; not while the shard is left alone."""
        if not self._breaker.is_open:
            self.entries.add(entry)

    async def call(self, call: Callable[[CacheShard], Awaitable[Result]], deadline_s: float | None = None) -> Result:
        """Call the shard, now.

        Raises:
            Unavailable: If it fails, takes too long, or failed too often just now.
        """
        return await self._breaker.call(lambda: call(self._shard), deadline_s)

    async def _keep(self, entries: Sequence[CacheEntry]) -> None:
        try:
            await self.call(lambda shard: shard.keep(ShardUpdate(entries=entries)))
        except Exception:  # noqa: BLE001 - counted; the breaker writes the log
            for layer in {entry.key.layer for entry in entries}:
                self._on_lost(layer)


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """Counts and sizes of the caches.

    Args:
        here: Counts of this replica since it began.
        shards: Sizes of each shard, and the counts that replicas reported to it; ``None`` for one that does not answer.
    """

    here: Mapping[Layer, LayerCounts]
    shards: Mapping[str, ShardStats | None] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every shard answered; otherwise counts of other replicas are missing."""
        return None not in self.shards.values()

    def totals(self) -> ShardStats:
        """Add up the shards that answered."""
        return add_up_stats([stats for stats in self.shards.values() if stats is not None])


class SharedCaches:
    """All shards behind one face: a failure is a miss, and counts as an error.

    Args:
        shards: By name; each owns some workspaces.
        layers: Those that are switched on; nothing else is asked for or kept.
        policy: When a shard is left alone.
    """

    def __init__(self, shards: Mapping[str, CacheShard], layers: AbstractSet[Layer], policy: BreakerPolicy) -> None:
        # Cached, for with 256 shards each look-up of an owner costs half a millisecond.
        self._owner: Callable[[Space], str] = lru_cache(MAX_OWNERS)(partial(owner, tuple(shards)))
        self._clients = {name: ShardClient(name, shard, policy, self._count_error) for name, shard in shards.items()}
        self._layers = layers
        self._tally = Tally()
        self._unreported = Tally()
        self._of_tenants = TenantTallies(MAX_TENANTS)
        self._unreported_of_tenants = TenantTallies(MAX_TENANTS)
        self._is_reporting = False
        self._latest: tuple[float, CacheFigures | None] = (0.0, None)
        self._reports: WriteBehind[None] = WriteBehind(self._report, part="cache counts", window_s=REPORT_WINDOW_S)

    def has(self, layer: Layer) -> bool:
        """Report whether a layer is switched on."""
        return layer in self._layers

    async def find(self, query: ShardQuery) -> ShardAnswer:
        """Look a query up in the workspace's shard, in at most one round trip; a failure finds nothing.

        A whole answer to an agent's lookup is not counted here: only its caller can tell whether it is current.
        """
        asked = ShardQuery(
            query.space,
            tuple(key for key in query.answers if key.layer in self._layers),
            tuple(key for key in query.pieces if key.layer in self._layers),
            query.agent if Layer.AGENTS in self._layers else None,
        )
        if not asked.answers and not asked.pieces and asked.agent is None:
            return NOTHING_FOUND
        began = time.monotonic()
        try:
            found = await self._clients[self._owner(query.space)].find(asked)
        except Exception:  # noqa: BLE001 - a cache that fails is a miss
            agents = () if asked.agent is None else (Layer.AGENTS,)
            for layer in dict.fromkeys((*agents, *(key.layer for key in (*asked.answers, *asked.pieces)))):
                self._count_error(layer)
            return NOTHING_FOUND
        self._count(asked if query.agent is None else replace(asked, answers=()), found, time.monotonic() - began)
        return found

    def keep(self, entry: CacheEntry) -> None:
        """Keep an entry, if its layer is switched on; returns at once."""
        if entry.key.layer in self._layers:
            self._clients[self._owner(entry.space)].keep(entry)

    async def tell(self, agents: RespondingAgents) -> None:
        """Add agents with responses to the shard's list; returns when it has them, or failed."""
        if Layer.AGENTS in self._layers:
            update = ShardUpdate(agents=(agents,))
            await self._call(self._owner(agents.space), lambda shard: shard.keep(update), None, (Layer.AGENTS,))

    async def claim(self, space: Space, digest: bytes, lease_s: float, wait_s: float) -> bool:
        """Claim a response, or wait for the caller that has claimed it.

        Returns:
            Whether this caller is to make the response; also if the shard fails.
        """
        return await self._call(
            self._owner(space),
            lambda shard: shard.claim(space, digest, lease_s, wait_s),
            otherwise=True,
            layers=(Layer.TURN,),
            deadline_s=wait_s + CLAIM_MARGIN_S,
        )

    async def settle(self, space: Space, digest: bytes) -> None:
        """Wake the callers that wait for a response."""
        await self._call(self._owner(space), lambda shard: shard.settle(space, digest), None, (Layer.TURN,))

    async def purge(self, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        """Drop the entries of a workspace, or of a tenant in every shard; return how many.

        Entries of a shard that fails stay there, and are never found: their epoch is over.
        """
        names = list(self._clients) if workspace is None else [self._owner((tenant, workspace))]
        dropped = await asyncio.gather(
            *(self._call(name, lambda shard: shard.purge(tenant, workspace, layers), 0, layers) for name in names)
        )
        return sum(dropped)

    async def forget(self, tenant: str) -> None:
        """Drop all entries of a tenant from every shard, those that still wait among them.

        Raises:
            Unavailable: If a shard does not answer.
        """
        await self.flush()
        for name, client in self._clients.items():
            try:
                await client.call(lambda shard: shard.purge(tenant, None, tuple(Layer)))
            except Exception as error:
                raise Unavailable("cache", f"shard {name} still holds entries: {describe_error(error)}") from error

    def observe(self, layer: Layer, outcome: LayerOutcome, elapsed_s: float | None = None) -> None:
        """Count a look-up in a layer."""
        self._tally.observe(layer, outcome, elapsed_s)
        self._unreported.observe(layer, outcome, elapsed_s)
        if tenant := spending_tenant():
            self._of_tenants.of(tenant).observe(layer, outcome, elapsed_s)
            self._unreported_of_tenants.of(tenant).observe(layer, outcome, elapsed_s)
        # One item in the queue is enough: the report takes all counts up to its own time.
        if not self._is_reporting:
            self._is_reporting = True
            self._reports.add(None)

    async def figures(self, max_age_s: float = 0.0) -> CacheFigures:
        """Return sizes and counts, this replica's latest counts included.

        Args:
            max_age_s: A reading that is younger is returned again.
        """
        read_at, figures = self._latest
        if figures is None or time.monotonic() - read_at >= max_age_s:
            figures = await self._read_figures(self._tally, None)
            self._latest = (time.monotonic(), figures)
        return figures

    async def figures_of(self, tenant: str) -> CacheFigures:
        """Return the same of the requests of one tenant; sizes are those of all."""
        return await self._read_figures(self._of_tenants.of(tenant), tenant)

    async def _read_figures(self, here: Tally, tenant: str | None) -> CacheFigures:
        await self.flush()
        stats = await asyncio.gather(
            *(self._call(name, lambda shard: shard.stats(tenant), None, (), STATS_DEADLINE_S) for name in self._clients)
        )
        return CacheFigures(here.read(), dict(zip(self._clients, stats, strict=True)))

    def counted(self) -> Mapping[Layer, LayerCounts]:
        """Return this replica's counts since it began."""
        return self._tally.read()

    async def flush(self) -> None:
        """Hand over entries and counts that wait."""
        await asyncio.gather(*(client.entries.flush() for client in self._clients.values()))
        await self._reports.flush()

    async def close(self) -> None:
        """Hand over entries and counts that wait, and end."""
        await asyncio.gather(*(client.entries.close() for client in self._clients.values()))
        await self._reports.close()

    def _count(self, asked: ShardQuery, found: ShardAnswer, elapsed_s: float) -> None:
        for key in asked.answers:
            if found.answer is not None and found.answer[0] == key:
                self.observe(key.layer, LayerOutcome.HIT, elapsed_s)
                return
            self.observe(key.layer, LayerOutcome.MISS, elapsed_s)
        for key in asked.pieces if found.answer is None else ():
            self.observe(key.layer, LayerOutcome.HIT if key in found.pieces else LayerOutcome.MISS, elapsed_s)

    def _count_error(self, layer: Layer) -> None:
        self.observe(layer, LayerOutcome.ERROR)

    async def _call(
        self,
        name: str,
        call: Callable[[CacheShard], Awaitable[Result]],
        otherwise: Result,
        layers: Sequence[Layer],
        deadline_s: float | None = None,
    ) -> Result:
        """Call a shard; if it fails, count errors of the layers and return a result that holds without it."""
        try:
            return await self._clients[name].call(call, deadline_s)
        except Exception:  # noqa: BLE001 - a cache that fails is a miss
            for layer in layers:
                self._count_error(layer)
            return otherwise

    async def _report(self, _: Sequence[None]) -> None:
        """Report counts to any shard: those of all shards are added up."""
        self._is_reporting = False
        update = ShardUpdate(counts=self._unreported.take(), of_tenants=self._unreported_of_tenants.take())
        try:
            await next(iter(self._clients.values())).call(lambda shard: shard.keep(update))
        except Exception:  # noqa: BLE001 - reported with the next ones
            self._unreported.add(update.counts)
            self._unreported_of_tenants.add(update.of_tenants)
