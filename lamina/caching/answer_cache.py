"""Whole answers from the caches, or computed once and kept: what stands between a route and the read path."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from lamina.aio.circuit_breaker import BreakerPolicy, CircuitBreaker
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import ENTRY_BYTES, Entry, Found, Key, Layer, Probe, Space
from lamina.core.cache_stats import Holding, Outcome
from lamina.core.ports import Clock
from lamina.core.queries import Ranking
from lamina.core.scope import Scope
from lamina.core.stamps import Stamp
from lamina.core.tiers import Source
from lamina.policies.caching.keys import digest
from lamina.policies.caching.ttl_lru import TtlLru
from lamina.search.fused_search import WITHOUT_HINTS, SearchHints

MAX_JOINED = 2


@dataclass(frozen=True, slots=True)
class Computed:
    """An answer as it is sent, and what may be kept of it.

    Args:
        body: JSON, an object with at least one member.
        found: Notes whose hits count each time it is sent.
        is_empty: Whether nothing was found.
        is_whole: Whether everything answered that was asked; otherwise it is not kept.
        graph: What the graph's sources said, if that may be kept.
        expires_at: From when on something in it is to be seen no more; ``None`` means never.
    """

    body: bytes
    found: tuple[UUID, ...] = ()
    is_empty: bool = False
    is_whole: bool = True
    graph: Mapping[Source, Ranking] | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """An answer on its way out.

    Args:
        computed: The answer.
        layers: The cache layers that it, or a part of it, comes from.
    """

    computed: Computed
    layers: tuple[Layer, ...] = ()

    def body(self) -> bytes:
        """Return the answer's JSON with the layers as its last member."""
        names = ",".join(f'"{layer.value}"' for layer in self.layers)
        return b'%b,"cache":[%b]}' % (self.computed.body[:-1], names.encode())


@dataclass(frozen=True, slots=True)
class Kept:
    """A whole answer as shards and replicas keep it.

    Args:
        computed: The answer.
        until: When it is over, in seconds of the time of day, which all machines share.
    """

    computed: Computed
    until: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that caches may answer.

    Args:
        kind: Which call it is; two kinds never share an answer.
        scope: Whose.
        request: All that was sent beside the scope, as JSON.
        text: What is embedded for it, if anything is.
        graph: What the graph's part of the answer depends on; ``None`` where the graph is not asked.
    """

    kind: str
    scope: Scope
    request: Mapping[str, Any]
    text: str = ""
    graph: str | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """Under which a request's answer and its pieces are kept."""

    turn: Key
    negative: Key
    swarm: Key | None
    graph: Key | None
    embedding: Key

    def answers(self) -> tuple[Key, ...]:
        """Return the keys of whole answers, the outermost layer first."""
        return (self.turn, self.negative) if self.swarm is None else (self.turn, self.negative, self.swarm)

    def pieces(self) -> tuple[Key, ...]:
        """Return the keys of what the answer is made from."""
        return (self.embedding,) if self.graph is None else (self.graph, self.embedding)


@dataclass(frozen=True, slots=True)
class AnswerPolicy:
    """What answers depend on beside requests and stamps, and how long they live.

    Args:
        fingerprint: Of the release, the configuration and the database.
        generation: The active generation of vectors.
        ttl_s: Seconds that whole answers live, by layer.
        front_entries: Most answers of the replica's own copies; 0 keeps none.
        front_bytes: Most bytes of them.
        deadline_s: Seconds after which an answer is computed without a stamp, and not kept.
        failures: So many stamps in a row that cannot be read end the asking for a while.
        pause_s: That while, in seconds.
    """

    fingerprint: bytes
    generation: int
    ttl_s: Mapping[Layer, float] = field(default_factory=dict)
    front_entries: int = 0
    front_bytes: int = 0
    deadline_s: float = 1.0
    failures: int = 5
    pause_s: float = 2.0


class StampReader(Protocol):
    """Reads what proves a cached answer fresh."""

    async def of(self, scope: Scope) -> Stamp:
        """Return the scope's stamp as of a moment after this call began.

        Raises:
            Unavailable: If it cannot be read.
        """
        ...


Compute = Callable[[SearchHints], Awaitable[Computed]]


def keys_of(asked: Asked, stamp: Stamp, policy: AnswerPolicy, embedding: Key, clock: Clock) -> Keys:
    """Return the keys of a request under a stamp.

    An exact answer belongs to everything that was sent. Agents of a swarm share it whatever their
    name, as long as the same memory profile holds for them. The graph's part depends on the own
    workspace alone.
    """
    ids = asked.scope
    place = (ids.tenant, ids.workspace, ids.namespace)
    basis = (policy.fingerprint, policy.generation, asked.kind, place, stamp.whole(clock()))
    whole = digest(*basis, ids.user, ids.session, ids.agent, asked.request)
    anyone = digest(*basis, ids.user, ids.session, _profile(stamp), asked.request)
    return Keys(
        turn=Key(Layer.TURN, whole),
        negative=Key(Layer.NEGATIVE, anyone),
        swarm=None if ids.swarm is None else Key(Layer.SWARM, anyone, ids.swarm),
        graph=None if asked.graph is None else walk_key("graph", ids, asked.graph, stamp, policy),
        embedding=embedding,
    )


def walk_key(kind: str, scope: Scope, walk: object, stamp: Stamp, policy: AnswerPolicy) -> Key:
    """Return the key of what a walk through the own workspace's graph found for whoever sees what the scope sees."""
    place = (scope.tenant, scope.workspace, scope.namespace, scope.user, scope.session)
    return Key(Layer.GRAPH, digest(policy.fingerprint, policy.generation, kind, place, stamp.own(), walk))


def _profile(stamp: Stamp) -> tuple[object, ...]:
    """Return what of the agent's memory profile its answers depend on."""
    chosen = stamp.profile
    if chosen is None:
        return ()
    tiers = [tier.name for tier in chosen.tiers]
    return (tiers, chosen.max_context_chunks, chosen.min_relevance, chosen.ttl_days, chosen.prompt_suffix)


class AnswerCache:
    """Serves answers from the caches, and keeps those that had to be computed.

    The replica's own copies are asked first, then the workspace's shard, once. Requests that are
    computed at this moment are waited for instead of computed again. Whatever fails here, the
    answer is computed.

    Args:
        stamps: Proves answers fresh; read before anything else, for every request.
        caches: The shards.
        embedding_key: From a generation and a text to the key of its embedding.
        policy: What answers depend on, and how long they live.
        clock: The time of day.
    """

    def __init__(
        self,
        stamps: StampReader,
        caches: SharedCaches,
        embedding_key: Callable[[int, str], Key],
        policy: AnswerPolicy,
        clock: Clock,
    ) -> None:
        self._stamps = stamps
        self._caches = caches
        self._embedding_key = embedding_key
        self._policy = policy
        self._clock = clock
        self._front: TtlLru[tuple[Space, Key], Kept] | None = None
        if policy.front_entries:
            self._front = TtlLru(max_entries=policy.front_entries, max_bytes=policy.front_bytes)
        self._reading = CircuitBreaker(
            "reading of stamps", BreakerPolicy(policy.deadline_s, policy.failures, policy.pause_s)
        )
        self._flights: dict[bytes, asyncio.Task[Served]] = {}
        self._running: set[asyncio.Task[Served]] = set()

    async def stamp(self, scope: Scope) -> Stamp | None:
        """Return what proves the scope's answers fresh; ``None`` if it cannot be read in time.

        Without a proof nothing is served from a cache; the front's errors count that.
        """
        try:
            return await self._reading.call(lambda: self._stamps.of(scope))
        except Exception:  # noqa: BLE001 - then it is searched
            self._caches.observe(Layer.FRONT, Outcome.ERROR)
            return None

    async def serve(self, asked: Asked, stamp: Stamp, compute: Compute) -> Served:
        """Return the answer to a request whose stamp was read after it came.

        Raises:
            LaminaError: Whatever computing it raises.
        """
        embedding = self._embedding_key(self._policy.generation, asked.text)
        keys = keys_of(asked, stamp, self._policy, embedding, self._clock)
        space = (asked.scope.tenant, asked.scope.workspace)
        known = self._from_front(space, keys) or await self._in_flight(keys)
        return known or await self._looked_up(space, keys, stamp, compute)

    async def walked(self, asked: Asked, stamp: Stamp, compute: Compute) -> Served:
        """Return what a walk through the own workspace's graph found, from the layer of walks where it has it.

        Raises:
            LaminaError: Whatever walking raises.
        """
        space = (asked.scope.tenant, asked.scope.workspace)
        key = walk_key(asked.kind, asked.scope, asked.request, stamp, self._policy)
        found = await self._caches.find(Probe(space, (key,)))
        if found.answer is not None and isinstance(found.answer[1], Computed):
            return Served(found.answer[1], (Layer.GRAPH,))
        computed = await compute(WITHOUT_HINTS)
        if stamp.is_settled and computed.expires_at is None:
            self._caches.keep(Entry(space, key, computed, _size(computed)))
        return Served(computed)

    def front_holding(self) -> Holding:
        """Return what the replica's own copies are."""
        front = self._front
        return Holding() if front is None else Holding(len(front), front.size_bytes, front.evictions)

    def _from_front(self, space: Space, keys: Keys) -> Served | None:
        if self._front is None:
            return None
        began = time.perf_counter()
        for key in keys.answers():
            if self._caches.has(key.layer) and (kept := self._front.get((space, key), time.time())) is not None:
                self._caches.observe(Layer.FRONT, Outcome.HIT, time.perf_counter() - began)
                self._caches.observe(key.layer, Outcome.HIT)
                return Served(kept.computed, (key.layer,))
        self._caches.observe(Layer.FRONT, Outcome.MISS)
        return None

    async def _in_flight(self, keys: Keys) -> Served | None:
        """Return what another request with the same keys is computing, if one is, and may be given to both.

        Of several that wait for one that fails, the first begins anew, and the others wait for that.
        """
        for _ in range(MAX_JOINED):
            task = self._flights.get(keys.turn.digest)
            if task is None:
                break
            try:
                return await asyncio.shield(task)
            except Exception:  # noqa: BLE001, S112 - then this one tries itself
                continue
        return None

    async def _looked_up(self, space: Space, keys: Keys, stamp: Stamp, compute: Compute) -> Served:
        """Look into the shard, or compute; in a task of its own, so that whoever waits survives the first caller."""
        task = asyncio.create_task(self._answer(space, keys, stamp, compute))
        name = keys.turn.digest
        self._running.add(task)
        if stamp.is_settled:  # Nobody joins a search that began before an index had caught up.
            self._flights[name] = task
        task.add_done_callback(lambda done: self._landed(name, done))
        return await asyncio.shield(task)

    def _landed(self, name: bytes, task: asyncio.Task[Served]) -> None:
        self._running.discard(task)
        if self._flights.get(name) is task:
            del self._flights[name]
        if not task.cancelled():
            task.exception()  # Looked at, in case nobody waits any more.

    async def _answer(self, space: Space, keys: Keys, stamp: Stamp, compute: Compute) -> Served:
        found = await self._caches.find(Probe(space, keys.answers(), keys.pieces()))
        if found.answer is not None and isinstance(found.answer[1], Kept):
            key, kept = found.answer
            if kept.until > time.time():
                self._copy(space, key, kept)
                return Served(kept.computed, (key.layer,))
        computed = await compute(_known(found, keys, stamp))
        if stamp.is_settled:
            self._keep(space, keys, computed, found)
        return Served(computed, tuple(key.layer for key in keys.pieces() if key in found.pieces))

    def _keep(self, space: Space, keys: Keys, computed: Computed, found: Found) -> None:
        if computed.is_whole:
            for key in (keys.negative,) if computed.is_empty else (keys.turn, keys.swarm):
                if key is not None and self._caches.has(key.layer):
                    kept = Kept(computed, _until(computed, time.time() + self._policy.ttl_s[key.layer]))
                    self._copy(space, key, kept)
                    self._caches.keep(Entry(space, key, kept, _size(computed)))
        # What was found is not kept anew, or its time would never end; what expires has no time of its own there.
        graph = computed.graph if computed.graph is not None and _lasts(computed.graph) else None
        if keys.graph is not None and graph is not None and keys.graph not in found.pieces:
            size = ENTRY_BYTES + sum(_ranking_bytes(ranking) for ranking in graph.values())
            self._caches.keep(Entry(space, keys.graph, graph, size))

    def _copy(self, space: Space, key: Key, kept: Kept) -> None:
        now = time.time()
        if self._front is not None:
            size = _size(kept.computed)
            self._front.put((space, key), kept, now=now, ttl_s=kept.until - now, size_bytes=size)


def _known(found: Found, keys: Keys, stamp: Stamp) -> SearchHints:
    graph = None if keys.graph is None else found.pieces.get(keys.graph)
    return SearchHints(embedding=found.pieces.get(keys.embedding), graph=graph, shares=stamp.shares())


def _until(computed: Computed, latest: float) -> float:
    """Return until when an answer may be kept: no longer than everything in it is to be seen."""
    return latest if computed.expires_at is None else min(latest, computed.expires_at.timestamp())


def _lasts(graph: Mapping[Source, Ranking]) -> bool:
    return all(hit.memory.expires_at is None for ranking in graph.values() for hit in ranking)


def _size(computed: Computed) -> int:
    return ENTRY_BYTES + len(computed.body)


def _ranking_bytes(ranking: Ranking) -> int:
    return sum(ENTRY_BYTES + len(hit.memory.content) for hit in ranking)
