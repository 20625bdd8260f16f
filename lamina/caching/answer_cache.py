"""Layers of whole answers: a replica's own copies in front of the workspace's shard."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from lamina.aio.circuit_breaker import CircuitBreaker
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import ENTRY_BYTES, CacheEntry, CacheKey, Layer, ShardQuery, Space
from lamina.core.cache_stats import Holding, LayerOutcome
from lamina.core.ports import Clock
from lamina.core.queries import Ranking
from lamina.core.scope import Scope
from lamina.core.stamps import Stamp
from lamina.core.tiers import Source
from lamina.policies.caching.answer_keys import AnswerKeys, AnswerPolicy, RequestIdentity, answer_keys, walk_key
from lamina.policies.caching.ttl_lru import TtlLru


@dataclass(frozen=True, slots=True)
class RenderedAnswer:
    """An answer as it is sent, with the facts that decide whether and where it is cached.

    Args:
        body: JSON, an object with at least one member.
        notes: Notes whose hits count each time it is sent.
        is_empty: Whether it has no result.
        is_whole: Whether every source answered; otherwise it is not cached.
        graph: The rankings of the graph's sources, if they may be kept.
        expires_at: When the first memory in it expires; ``None`` means never.
    """

    body: bytes
    notes: tuple[UUID, ...] = ()
    is_empty: bool = False
    is_whole: bool = True
    graph: Mapping[Source, Ranking] | None = None
    expires_at: datetime | None = None

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""
        return ENTRY_BYTES + len(self.body)


@dataclass(frozen=True, slots=True)
class SentAnswer:
    """An answer on its way out.

    Args:
        answer: The answer.
        layers: The cache layers that it, or a part of it, comes from.
    """

    answer: RenderedAnswer
    layers: tuple[Layer, ...] = ()

    def body(self) -> bytes:
        """Return the answer's JSON with the layers as its last member."""
        names = ",".join(f'"{layer.value}"' for layer in self.layers)
        return b'%b,"cache":[%b]}' % (self.answer.body[:-1], names.encode())


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A whole answer as shards and replicas keep it.

    Args:
        answer: The answer.
        until: When it ends, in seconds of the time of day, which all machines share.
    """

    answer: RenderedAnswer
    until: float


class StampReader(Protocol):
    """Reads the stamps that prove cached answers fresh."""

    async def read(self, scope: Scope, question: str | None = None) -> Stamp:
        """Return the scope's stamp as of a moment after this call began, with the question's remembered embedding.

        Raises:
            Unavailable: If it cannot be read.
        """
        ...


class AnswerCache:
    """Keeps answers in this replica and in the workspace's shard; a failure in here is a miss.

    Args:
        stamps: Prove answers fresh; one is read before anything else, for every request.
        caches: The shards.
        policy: What answers depend on, and how long they live.
        clock: The time of day.
    """

    def __init__(self, stamps: StampReader, caches: SharedCaches, policy: AnswerPolicy, clock: Clock) -> None:
        self._stamps = stamps
        self._caches = caches
        self._policy = policy
        self._clock = clock
        self._front: TtlLru[tuple[Space, CacheKey], CachedAnswer] | None = None
        if policy.front_entries:
            self._front = TtlLru(max_entries=policy.front_entries, max_bytes=policy.front_bytes)
        self._breaker = CircuitBreaker("reading of stamps", policy.breaker)

    async def read_stamp(self, scope: Scope, question: str | None = None) -> Stamp | None:
        """Read the scope's stamp, or return ``None`` if that fails or takes too long.

        Without one nothing comes from a cache; the front's errors count that.
        """
        try:
            return await self._breaker.call(lambda: self._stamps.read(scope, question))
        except Exception:  # noqa: BLE001 - then it is searched
            self._caches.observe(Layer.FRONT, LayerOutcome.ERROR)
            return None

    def keys(self, request: RequestIdentity, stamp: Stamp) -> AnswerKeys:
        """Return the keys of a request's answer and its pieces."""
        return answer_keys(request, stamp, self._policy, self._clock())

    def find_copy(self, keys: AnswerKeys) -> SentAnswer | None:
        """Return the replica's own copy of an answer, if it has one."""
        if self._front is None:
            return None
        began = time.perf_counter()
        for key in keys.answers():
            if self._caches.has(key.layer) and (cached := self._front.get((keys.space, key), time.time())) is not None:
                self._caches.observe(Layer.FRONT, LayerOutcome.HIT, time.perf_counter() - began)
                self._caches.observe(key.layer, LayerOutcome.HIT)
                return SentAnswer(cached.answer, (key.layer,))
        self._caches.observe(Layer.FRONT, LayerOutcome.MISS)
        return None

    async def find(self, keys: AnswerKeys) -> tuple[SentAnswer | None, Mapping[CacheKey, Any]]:
        """Ask the workspace's shard, once, for the answer, or else for its pieces."""
        found = await self._caches.find(ShardQuery(keys.space, keys.answers(), keys.pieces()))
        # The shard does not know ends: an entry lives for its layer's time, an answer until its first memory expires.
        if found.answer is not None and isinstance(found.answer[1], CachedAnswer):
            key, cached = found.answer
            if cached.until > time.time():
                self._copy(keys.space, key, cached)
                return SentAnswer(cached.answer, (key.layer,)), {}
        return None, found.pieces

    def keep(self, keys: AnswerKeys, answer: RenderedAnswer, pieces: Mapping[CacheKey, Any]) -> None:
        """Keep a new answer, and its graph's part unless that is one of the pieces that were found."""
        if answer.is_whole:
            # Empty answers have a layer of their own, with its own bounds and time to live.
            for key in (keys.negative,) if answer.is_empty else (keys.turn, keys.swarm):
                if key is not None and self._caches.has(key.layer):
                    until = time.time() + self._policy.ttl_s[key.layer]
                    if answer.expires_at is not None:
                        until = min(until, answer.expires_at.timestamp())
                    cached = CachedAnswer(answer, until)
                    self._copy(keys.space, key, cached)
                    self._caches.keep(CacheEntry(keys.space, key, cached, answer.size_bytes))
        # A piece that was found is not kept again, or it would never expire; memories that expire are not kept, since
        # the graph's part has no end of its own.
        if keys.graph is not None and keys.graph not in pieces and answer.graph is not None:
            memories = [hit.memory for ranking in answer.graph.values() for hit in ranking]
            if all(memory.expires_at is None for memory in memories):
                size = ENTRY_BYTES * (1 + len(memories))
                self._caches.keep(CacheEntry(keys.space, keys.graph, answer.graph, size))

    async def find_walk(self, request: RequestIdentity, stamp: Stamp) -> SentAnswer | None:
        """Return the answer of a walk through the own workspace's graph, if the shard has it."""
        key = self._walk_key(request, stamp)
        found = await self._caches.find(ShardQuery((request.scope.tenant, request.scope.workspace), (key,)))
        if found.answer is not None and isinstance(found.answer[1], RenderedAnswer):
            return SentAnswer(found.answer[1], (Layer.GRAPH,))
        return None

    def keep_walk(self, request: RequestIdentity, stamp: Stamp, answer: RenderedAnswer) -> None:
        """Keep the answer of a walk, unless something in it expires."""
        if answer.expires_at is None:
            space = (request.scope.tenant, request.scope.workspace)
            self._caches.keep(CacheEntry(space, self._walk_key(request, stamp), answer, answer.size_bytes))

    def front_holding(self) -> Holding:
        """Return the size of the replica's own copies."""
        return Holding() if self._front is None else self._front.holding()

    def _walk_key(self, request: RequestIdentity, stamp: Stamp) -> CacheKey:
        return walk_key(request.kind, request.scope, request.sent, stamp, self._policy)

    def _copy(self, space: Space, key: CacheKey, cached: CachedAnswer) -> None:
        if self._front is not None:
            now, size = time.time(), cached.answer.size_bytes
            self._front.put((space, key), cached, now=now, ttl_s=cached.until - now, size_bytes=size)
