"""Layer 7 of the caches: embeddings of texts that were embedded before."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lamina.aio.circuit_breaker import BreakerPolicy, CircuitBreaker
from lamina.aio.coalescing import Coalescer
from lamina.aio.deadline import deadline
from lamina.aio.write_behind import WriteBehind
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import ENTRY_BYTES, CacheEntry, Layer, ShardQuery, Space
from lamina.core.cache_stats import LayerOutcome
from lamina.core.memories import Chunk
from lamina.core.ports import Clock, Embedder
from lamina.core.scope import Scope
from lamina.errors import Unavailable
from lamina.models.batching import checked
from lamina.policies.caching.keys import embedding_key
from lamina.stores.postgres.embedding_cache import CachedEmbedding, TextKey, text_key

ONE_CHUNK_CHARS = 126
"""No model of ours reads fewer than 128 word pieces, its own two among them, and each is a character at least."""
USED_EVERY = timedelta(days=1)
MAX_FIND = 256
MAX_KEEP = 500
MAX_WAITING = 5000
UNIT_TOLERANCE = 0.01


class EmbeddingStore(Protocol):
    """A table of embeddings of one generation."""

    async def find(self, texts: Sequence[TextKey]) -> Sequence[CachedEmbedding | None]:
        """Return what is kept of each text, in their order.

        Raises:
            Unavailable: If the table does not answer.
        """
        ...

    async def keep(self, items: Sequence[CachedEmbedding]) -> None:
        """Keep embeddings, or take note of their use.

        Raises:
            Unavailable: If the table does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingPolicy:
    """What embeddings are kept, and how long anybody waits for one.

    Args:
        generation: The active generation of vectors.
        dimension: Length of its vectors.
        embed_deadline_s: Seconds after which the model counts as failed.
        deadline_s: Seconds after which the table is a miss.
        failures: Failures of the table in a row after which it is left alone for a while.
        pause_s: That while, in seconds.
        window_s: Seconds for which new embeddings gather before they are written together.
        write_deadline_s: Seconds after which such a write counts as failed.
    """

    generation: int
    dimension: int
    embed_deadline_s: float = 2.0
    deadline_s: float = 0.1
    failures: int = 5
    pause_s: float = 2.0
    window_s: float = 0.1
    write_deadline_s: float = 2.0


def is_sound(embedding: object, dimension: int) -> bool:
    """Tell whether these are the float32 bytes of a unit vector of this dimension."""
    if not isinstance(embedding, bytes) or len(embedding) != 4 * dimension:
        return False
    length = float(np.linalg.norm(np.frombuffer(embedding, dtype=np.float32).astype(np.float64)))
    return abs(length - 1) <= UNIT_TOLERANCE  # No comparison with NaN holds.


class TableCache:
    """The table as a cache: it never raises, counts each asking, and writes behind.

    Its askings count as those of :attr:`Layer.EMBEDDINGS`, beside the shard's before them.

    Args:
        table: The table.
        caches: Count.
        policy: How long to wait for it.
        clock: The time of day.
    """

    def __init__(self, table: EmbeddingStore, caches: SharedCaches, policy: EmbeddingPolicy, clock: Clock) -> None:
        self._table = table
        self._caches = caches
        self._policy = policy
        self._clock = clock
        self._calls = CircuitBreaker(
            "embedding cache", BreakerPolicy(policy.deadline_s, policy.failures, policy.pause_s)
        )
        self._reads: Coalescer[TextKey, CachedEmbedding | None] = Coalescer(
            self._read, part="embedding cache", max_items=MAX_FIND
        )
        self._writes: WriteBehind[CachedEmbedding] = WriteBehind(
            table.keep,
            part="embedding cache",
            window_s=policy.window_s,
            max_items=MAX_KEEP,
            capacity=MAX_WAITING,
            deadline_s=policy.write_deadline_s,
            on_error=self._failed,
        )

    async def find(self, text: TextKey) -> bytes | None:
        """Return the text's embedding; ``None`` if it has none that is sound, or the table does not answer in time."""
        began = time.perf_counter()
        try:
            kept = await self._calls.call(lambda: self._reads.submit(text))
        except Exception as error:  # noqa: BLE001 - a cache that fails is a miss
            self._failed(error)
            return None
        return self._used(kept, time.perf_counter() - began)

    def keep(self, text: TextKey, embedding: bytes) -> None:
        """Keep an embedding, a moment later."""
        self._writes.add(CachedEmbedding(text, embedding, self._clock()))

    async def flush(self) -> None:
        """Write what waits to be kept."""
        await self._writes.flush()

    async def close(self) -> None:
        """Write what waits to be kept and end."""
        await self._writes.close()

    def _used(self, kept: CachedEmbedding | None, elapsed_s: float) -> bytes | None:
        if kept is None:
            self._caches.observe(Layer.EMBEDDINGS, LayerOutcome.MISS, elapsed_s)
            return None
        if not is_sound(kept.embedding, self._policy.dimension):
            self._caches.observe(Layer.EMBEDDINGS, LayerOutcome.ERROR)
            return None
        self._caches.observe(Layer.EMBEDDINGS, LayerOutcome.HIT, elapsed_s)
        now = self._clock()
        if kept.used_at <= now - USED_EVERY:
            self._writes.add(replace(kept, used_at=now))
        return kept.embedding

    async def _read(self, texts: Sequence[TextKey]) -> Sequence[CachedEmbedding | None]:
        # The deadline here frees the connection; the one above frees the caller, whatever a connection does.
        async with asyncio.timeout(self._policy.deadline_s):
            return await self._table.find(texts)

    def _failed(self, error: Exception) -> None:  # noqa: ARG002 - the signature is WriteBehind's
        self._caches.observe(Layer.EMBEDDINGS, LayerOutcome.ERROR)


@dataclass(frozen=True, slots=True)
class _Flight:
    """A question that is being embedded, and whose workspaces' shards are to keep it."""

    task: "asyncio.Task[bytes]"
    workspaces: set[str] = field(default_factory=set)


class CachingEmbedder:
    """Embeds each text once, as long as a cache remembers it; what fails in a cache is a miss.

    Questions are looked up by their request's one round trip to the shard, before they come here.
    Here the table is asked, then the model; the new embedding is kept in both.

    Args:
        embedder: Asks the model.
        caches: The shards.
        table: What outlives them; ``None`` if it is switched off.
        policy: What is kept.
    """

    def __init__(
        self, embedder: Embedder, caches: SharedCaches, table: TableCache | None, policy: EmbeddingPolicy
    ) -> None:
        self._embedder = embedder
        self._caches = caches
        self._table = table
        self._policy = policy
        self._flights: dict[TextKey, _Flight] = {}

    async def embed_question(self, scope: Scope, text: str) -> bytes:
        """Return float32 bytes of a question's unit vector; who asks the same at the same time shares the work.

        Raises:
            Unavailable: If the model does not answer.
        """
        flight, is_mine = self._flight(scope, text)
        try:
            return await asyncio.shield(flight.task)
        except Exception:
            if is_mine:
                raise
        # That one was begun before this call, and may have waited for too long.
        again, _ = self._flight(scope, text)
        return await asyncio.shield(again.task)

    async def embed_texts(self, scope: Scope, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text; for writing, where a text often is the question just asked.

        One round trip tells which short texts the workspace's shard knows; the others are embedded
        in one call. They are kept nowhere: vectors of memories are stored with them, and in the
        shard they would push questions out.

        Raises:
            Unavailable: If the model does not answer.
        """
        space = (scope.tenant, scope.workspace)
        known = await self._known(space, [text for text in texts if _is_one_chunk(text)])
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        embedded = await self._embedder.embed_chunks(missing) if missing else []
        if len(embedded) != len(missing):
            raise Unavailable("embedder", f"it returned {len(embedded)} results for {len(missing)} texts")
        new = dict(zip(missing, embedded, strict=True))
        return [known.get(text) or new[text] for text in texts]

    async def flush(self) -> None:
        """Write what waits to be kept in the table."""
        if self._table is not None:
            await self._table.flush()

    async def close(self) -> None:
        """Let what is being embedded end, and write what waits to be kept."""
        if self._flights:
            tasks = [flight.task for flight in self._flights.values()]
            await asyncio.wait(tasks, timeout=self._policy.embed_deadline_s)
        if self._table is not None:
            await self._table.close()

    def _flight(self, scope: Scope, text: str) -> tuple[_Flight, bool]:
        """Return the flight that embeds this text for the tenant, and whether it was begun now."""
        name = text_key(scope.tenant, text)
        flight = self._flights.get(name)
        if flight is not None:
            flight.workspaces.add(scope.workspace)
            return flight, False
        workspaces = {scope.workspace}
        flight = _Flight(asyncio.create_task(self._fly(name, text, workspaces)), workspaces)
        self._flights[name] = flight
        flight.task.add_done_callback(lambda task: self._landed(name, task))
        return flight, True

    def _landed(self, name: TextKey, task: "asyncio.Task[bytes]") -> None:
        del self._flights[name]
        if not task.cancelled():
            task.exception()  # Looked at, in case nobody waits any more.

    async def _fly(self, name: TextKey, text: str, workspaces: set[str]) -> bytes:
        kept = await self._table.find(name) if self._table is not None else None
        embedding = kept or await self._asked(text)
        if kept is None and self._table is not None and is_sound(embedding, self._policy.dimension):
            self._table.keep(name, embedding)
        for workspace in workspaces:
            self._keep((name.tenant, workspace), text, embedding)
        return embedding

    async def _asked(self, text: str) -> bytes:
        """Return what the model says."""
        async with deadline("embedder", self._policy.embed_deadline_s):
            rows: NDArray[np.float32] = await self._embedder.embed([text])
        return bytes(checked(rows, 1, self._policy.dimension)[0].tobytes())

    def _keep(self, space: Space, text: str, embedding: bytes) -> None:
        if is_sound(embedding, self._policy.dimension):
            key = embedding_key(self._policy.generation, text)
            self._caches.keep(CacheEntry(space, key, embedding, len(embedding) + ENTRY_BYTES))

    async def _known(self, space: Space, texts: Sequence[str]) -> dict[str, tuple[Chunk, ...]]:
        """Return the chunk that each text is, of those that the shard knows."""
        keys = {text: embedding_key(self._policy.generation, text) for text in texts}
        found = await self._caches.find(ShardQuery(space, pieces=tuple(keys.values())))
        pieces = {text: found.pieces.get(key) for text, key in keys.items()}
        return {
            text: (Chunk(0, len(text), piece),)
            for text, piece in pieces.items()
            if isinstance(piece, bytes) and is_sound(piece, self._policy.dimension)
        }


def _is_one_chunk(text: str) -> bool:
    """Tell whether a text surely is one chunk, whose vector is the text's own."""
    return len(text) <= ONE_CHUNK_CHARS
