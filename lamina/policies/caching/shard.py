"""The layers of one shard, each bounded, each with its own time to live."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from lamina.core.cache_layers import CacheEntry, CacheKey, Layer, RespondingAgents, ShardAnswer, ShardQuery, Space
from lamina.core.cache_stats import Holding, ShardStats, ShardUpdate, Tally, TenantTallies
from lamina.policies.caching.ttl_lru import TtlLru

EntryPlace = tuple[Space, CacheKey]
MAX_AGENTS = 10_000
# Whose counts are told apart.
MAX_TENANTS = 2_000
# Longer than Postgres takes to list the agents of a workspace.
RECENT_S = 10.0
# Only to let go of workspaces that are not asked for: a list that has ended still answers yes.
LIST_TTL_S = 86_400.0
# Memory of a name beside its characters, about.
AGENT_BYTES = 150


@dataclass(frozen=True, slots=True)
class LayerLimits:
    """The bounds of one layer.

    Args:
        entries: Most entries.
        ttl_s: Seconds each lives.
        max_bytes: Most bytes; ``None`` where the entries are small.
    """

    entries: int
    ttl_s: float
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SwarmLimits:
    """The bounds of the swarm layer.

    Args:
        each: Of one swarm.
        swarms: Most swarms.
        max_bytes: Most bytes of all swarms.
    """

    each: LayerLimits
    swarms: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class ShardLimits:
    """The bounds of a shard; a layer that is missing keeps nothing.

    Args:
        layers: By layer, the swarm layer excepted.
        swarm: Of the swarm layer.
    """

    layers: Mapping[Layer, LayerLimits]
    swarm: SwarmLimits | None = None


class Swarms:
    """An LRU for each swarm; the least recently used swarm goes whole when there are too many, or too many bytes."""

    def __init__(self, limits: SwarmLimits) -> None:
        self._limits = limits
        self._swarms: OrderedDict[tuple[Space, str], TtlLru[bytes, object]] = OrderedDict()
        self._evictions = 0
        self.size_bytes = 0

    def get(self, space: Space, key: CacheKey, now: float) -> object | None:
        """Return the swarm's value of a key."""
        swarm = self._swarms.get((space, key.swarm or ""))
        if swarm is None:
            return None
        self._swarms.move_to_end((space, key.swarm or ""))
        return self._weighed(swarm, lambda: swarm.get(key.digest, now))

    def put(self, entry: CacheEntry, now: float) -> None:
        """Keep an entry for its swarm."""
        name = (entry.space, entry.key.swarm or "")
        each = self._limits.each
        swarm = self._swarms.setdefault(name, TtlLru(max_entries=each.entries, max_bytes=each.max_bytes))
        self._swarms.move_to_end(name)
        self._weighed(
            swarm,
            lambda: swarm.put(entry.key.digest, entry.value, now=now, ttl_s=each.ttl_s, size_bytes=entry.size_bytes),
        )
        while len(self._swarms) > self._limits.swarms or (self.size_bytes > self._limits.max_bytes and self._swarms):
            _, evicted = self._swarms.popitem(last=False)
            self.size_bytes -= evicted.size_bytes
            self._evictions += evicted.evictions + len(evicted)

    def drop_where(self, is_meant: Callable[[Space], bool]) -> int:
        """Drop the swarms of some workspaces; return how many entries they had."""
        meant = [name for name in self._swarms if is_meant(name[0])]
        dropped = sum(len(self._swarms[name]) for name in meant)
        for name in meant:
            self.size_bytes -= self._swarms.pop(name).size_bytes
        return dropped

    def holding(self) -> Holding:
        """Return the size of all swarms."""
        evictions = self._evictions + sum(swarm.evictions for swarm in self._swarms.values())
        return Holding(sum(map(len, self._swarms.values())), self.size_bytes, evictions)

    def expire(self, now: float) -> None:
        """Drop expired entries, and swarms without any."""
        for name, swarm in list(self._swarms.items()):
            before = swarm.size_bytes
            swarm.expire(now)
            self.size_bytes += swarm.size_bytes - before
            if not len(swarm):
                self._evictions += self._swarms.pop(name).evictions

    def _weighed(self, swarm: TtlLru[bytes, object], change: Callable[[], object]) -> object:
        """Make a change to a swarm and add the bytes by which it grew."""
        before = swarm.size_bytes
        result = change()
        self.size_bytes += swarm.size_bytes - before
        return result


@dataclass(frozen=True, slots=True)
class AgentList:
    """The agents of a workspace that have responses.

    Args:
        added_at: When each was added last.
        complete_until: Until then no other agent has any.
    """

    added_at: Mapping[str, float] = field(default_factory=dict)
    complete_until: float = 0.0

    def extended(self, added: RespondingAgents, now: float, ttl_s: float) -> Self:
        """Return the list with more agents.

        A complete list replaces all but the latest agents: those that were added while it was read are not on it.
        """
        if added.has_ended:
            # One that was added lately may have a response that is newer than the news of its end.
            left = {
                agent: at for agent, at in self.added_at.items() if agent not in added.agents or now - at < RECENT_S
            }
            return type(self)(left, self.complete_until)
        latest = {agent: at for agent, at in self.added_at.items() if not added.is_all or now - at < RECENT_S}
        agents = {**latest, **dict.fromkeys(added.agents, now)}
        if len(agents) > MAX_AGENTS:
            # Too many: such a list can say yes, but not no.
            return type(self)(dict.fromkeys(added.agents[:MAX_AGENTS], now), 0.0)
        return type(self)(agents, now + ttl_s if added.is_all else self.complete_until)


class AgentFilter(TtlLru[Space, AgentList]):
    """The agents of each workspace that have responses in the semantic cache.

    A complete list answers with yes or no, a part of one with yes or nothing. It counts as
    complete for the layer's time to live; then it is asked for again.
    """

    def __init__(self, limits: LayerLimits) -> None:
        super().__init__(max_entries=limits.entries, max_bytes=limits.max_bytes)
        self._ttl_s = limits.ttl_s

    def has(self, space: Space, agent: str, now: float) -> bool | None:
        """Report whether the agent has responses, or ``None`` without a complete list."""
        known = self.get(space, now)
        if known is None:
            return None
        return True if agent in known.added_at else (False if now < known.complete_until else None)

    def add(self, agents: RespondingAgents, now: float) -> None:
        """Take over a list, whole or in part."""
        known = (self.get(agents.space, now) or AgentList()).extended(agents, now, self._ttl_s)
        size = sum(AGENT_BYTES + len(agent) for agent in known.added_at)
        self.put(agents.space, known, now=now, ttl_s=LIST_TTL_S, size_bytes=size)


class Shard:
    """The layers of one shard; plain, single-threaded, and without a clock.

    Args:
        limits: Its bounds.
    """

    def __init__(self, limits: ShardLimits) -> None:
        self._limits = limits
        self._layers: dict[Layer, TtlLru[EntryPlace, object]] = {
            layer: TtlLru(max_entries=item.entries, max_bytes=item.max_bytes)
            for layer, item in limits.layers.items()
            if layer is not Layer.AGENTS
        }
        self._swarms = None if limits.swarm is None else Swarms(limits.swarm)
        agents = limits.layers.get(Layer.AGENTS)
        self._agents = None if agents is None else AgentFilter(agents)
        self._tally = Tally()
        self._of_tenants = TenantTallies(MAX_TENANTS)

    def find(self, query: ShardQuery, now: float) -> ShardAnswer:
        """Return the outermost whole answer, or else the pieces, that the layers have.

        Args:
            query: The keys to look up.
            now: Seconds of a clock that never goes back.
        """
        has_responses = None
        if query.agent is not None and self._agents is not None:
            has_responses = self._agents.has(query.space, query.agent, now)
        for key in query.answers:
            value = self._get(query.space, key, now)
            if value is not None:
                return ShardAnswer((key, value), {}, has_responses)
        pieces = ((key, self._get(query.space, key, now)) for key in query.pieces)
        return ShardAnswer(None, {key: value for key, value in pieces if value is not None}, has_responses)

    def keep(self, update: ShardUpdate, now: float) -> None:
        """Take over entries, agents and counts."""
        for entry in update.entries:
            self._put(entry, now)
        for agents in update.agents:
            if self._agents is not None:
                self._agents.add(agents, now)
        self._tally.add(update.counts)
        self._of_tenants.add(update.of_tenants)

    def purge(self, tenant: str, workspace: str | None, layers: Collection[Layer]) -> int:
        """Drop the layers' entries of a workspace, or of a whole tenant; return how many."""

        def is_meant(space: Space) -> bool:
            return space[0] == tenant and workspace in {None, space[1]}

        dropped = sum(
            lru.drop_where(lambda place: is_meant(place[0])) for layer, lru in self._layers.items() if layer in layers
        )
        if self._swarms is not None and Layer.SWARM in layers:
            dropped += self._swarms.drop_where(is_meant)
        if self._agents is not None and Layer.AGENTS in layers:
            dropped += self._agents.drop_where(is_meant)
        return dropped

    def expire(self, now: float) -> None:
        """Drop expired entries."""
        for lru in self._layers.values():
            lru.expire(now)
        for part in (self._swarms, self._agents):
            if part is not None:
                part.expire(now)

    def stats(self, tenant: str | None = None) -> ShardStats:
        """Return the size of every layer, and the counts of the replicas, of one tenant's requests if it is given."""
        holdings = {layer: lru.holding() for layer, lru in self._layers.items()}
        if self._swarms is not None:
            holdings[Layer.SWARM] = self._swarms.holding()
        if self._agents is not None:
            holdings[Layer.AGENTS] = self._agents.holding()
        tally = self._tally if tenant is None else self._of_tenants.of(tenant)
        return ShardStats(holdings, tally.read())

    def _get(self, space: Space, key: CacheKey, now: float) -> object | None:
        if key.layer is Layer.SWARM:
            return None if self._swarms is None else self._swarms.get(space, key, now)
        lru = self._layers.get(key.layer)
        return None if lru is None else lru.get((space, key), now)

    def _put(self, entry: CacheEntry, now: float) -> None:
        layer = entry.key.layer
        if layer is Layer.SWARM and self._swarms is not None:
            self._swarms.put(entry, now)
        elif layer in self._layers:
            ttl_s = self._limits.layers[layer].ttl_s
            place = (entry.space, entry.key)
            self._layers[layer].put(place, entry.value, now=now, ttl_s=ttl_s, size_bytes=entry.size_bytes)


def add_up_stats(stats: Sequence[ShardStats]) -> ShardStats:
    """Add up the stats of several shards."""
    tally = Tally()
    holdings: dict[Layer, Holding] = {}
    for item in stats:
        tally.add(item.counts)
        for layer, holding in item.holdings.items():
            holdings[layer] = holdings.get(layer, Holding()) + holding
    return ShardStats(holdings, tally.read())
