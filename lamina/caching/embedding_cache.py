"""The innermost layer of the caches: embed each question once."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lamina.aio.circuit_breaker import BreakerPolicy, CircuitBreaker
from lamina.aio.coalescing import Coalescer
from lamina.aio.deadline import deadline, time_limit
from lamina.aio.single_flight import SingleFlight
from lamina.aio.write_behind import WriteBehind
from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import ENTRY_BYTES, CacheEntry, Layer, ShardQuery, Space
from lamina.core.cache_stats import LayerOutcome
from lamina.core.memories import Chunk
from lamina.core.ports import Clock, Embedder
from lamina.core.scope import Scope
from lamina.core.stamps import Remembered
from lamina.errors import Unavailable
from lamina.models.batching import checked
from lamina.policies.caching.cache_keys import embedding_key
from lamina.stores.postgres.embedding_cache import CachedEmbedding, TextKey, text_key

# No model of ours reads fewer than 128 word pieces, its own two among them, and each is a character at least.
ONE_CHUNK_CHARS = 126
# A use is written once a day at most, so that a hit costs no write.
USED_EVERY = timedelta(days=1)
MAX_FIND = 256
MAX_KEEP = 500
MAX_WAITING = 5000
# Far above the error of float32, far below a vector that was not normalised.
UNIT_TOLERANCE = 0.01


class EmbeddingStore(Protocol):
    """A table of embeddings of one generation."""

    async def find(self, texts: Sequence[TextKey]) -> Sequence[CachedEmbedding | None]:
        """Return the embedding of each text, or ``None``, in their order.

        Raises:
            Unavailable: If the table does not answer.
        """
        ...

    async def keep(self, items: Sequence[CachedEmbedding]) -> None:
        """Keep embeddings, or the new times of their use.

        Raises:
            Unavailable: If the table does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingPolicy:
    """Sizes and waiting times of the layer.

    Args:
        generation: The active generation of vectors.
        dimension: Length of its vectors.
        breaker: When the table is a miss, and for how long it is not asked.
        embed_deadline_s: Seconds after which the model counts as failed.
        window_s: Seconds for which new embeddings gather before they are written together.
        write_deadline_s: Seconds after which such a write counts as failed.
        is_symmetric: Whether a question and an equal text that is written have one vector.
    """

    generation: int
    dimension: int
    breaker: BreakerPolicy
    embed_deadline_s: float = 2.0
    window_s: float = 0.1
    write_deadline_s: float = 2.0
    is_symmetric: bool = True


def is_sound(embedding: object, dimension: int) -> bool:
    """Check for float32 bytes of a unit vector of this dimension."""
    if not isinstance(embedding, bytes) or len(embedding) != 4 * dimension:
        return False
    length = float(np.linalg.norm(np.frombuffer(embedding, dtype=np.float32).astype(np.float64)))
    return abs(length - 1) <= UNIT_TOLERANCE  # No comparison with NaN holds.


class TableCache:
    """Uses the table as a cache: a failure is a miss, and writes are gathered.

    Its hits and misses count for :attr:`Layer.EMBEDDINGS`, beside those of the shard before it.

    Args:
        table: The table.
        caches: Count hits and misses.
        policy: How long to wait for it.
        clock: The time of day.

    Attributes:
        writes: The embeddings that wait to be written.
    """

    def __init__(self, table: EmbeddingStore, caches: SharedCaches, policy: EmbeddingPolicy, clock: Clock) -> None:
        self._table = table
        self._caches = caches
        self._policy = policy
        self._clock = clock
        self._breaker = CircuitBreaker("embedding cache", policy.breaker)
        self._reads: Coalescer[TextKey, CachedEmbedding | None] = Coalescer(
            self._read, part="embedding cache", max_items=MAX_FIND
        )
        self.writes: WriteBehind[CachedEmbedding] = WriteBehind(
            table.keep,
            part="embedding cache",
            window_s=policy.window_s,
            max_items=MAX_KEEP,
            capacity=MAX_WAITING,
            deadline_s=policy.write_deadline_s,
            on_error=self._count_error,
        )

    async def find(self, text: TextKey) -> bytes | None:
        """Return the text's embedding, or ``None`` if it has no sound one or the table does not answer in time."""
        began = time.perf_counter()
        try:
            kept = await self._breaker.call(lambda: self._reads.submit(text))
        except Exception as error:  # noqa: BLE001 - a cache that fails is a miss
            self._count_error(error)
            return None
        return self._checked(kept, time.perf_counter() - began)

    def take(self, text: TextKey, remembered: Remembered) -> bytes | None:
        """Return the text's embedding as it was read with something else, or ``None`` if there is no sound one."""
        if remembered.embedding is None or remembered.used_at is None:
            return self._checked(None, 0.0)
        return self._checked(CachedEmbedding(text, remembered.embedding, remembered.used_at), 0.0)

    def keep(self, text: TextKey, embedding: bytes) -> None:
        """Keep an embedding, a moment later."""
        self.writes.add(CachedEmbedding(text, embedding, self._clock()))

    def _checked(self, kept: CachedEmbedding | None, elapsed_s: float) -> bytes | None:
        if kept is None:
            self._caches.observe(Layer.EMBEDDINGS, LayerOutcome.MISS, elapsed_s)
            return None
        if not is_sound(kept.embedding, self._policy.dimension):
            self._caches.observe(Layer.EMBEDDINGS, LayerOutcome.ERROR)
            return None
        self._caches.observe(Layer.EMBEDDINGS, LayerOutcome.HIT, elapsed_s)
        now = self._clock()
        if kept.used_at <= now - USED_EVERY:
            self.writes.add(replace(kept, used_at=now))
        return kept.embedding

    async def _read(self, texts: Sequence[TextKey]) -> Sequence[CachedEmbedding | None]:
        # This deadline frees the connection. The breaker's frees the caller, even from a connection that hangs.
        async with time_limit(self._policy.breaker.deadline_s):
            return await self._table.find(texts)

    def _count_error(self, error: Exception) -> None:  # noqa: ARG002 - the signature is WriteBehind's
        self._caches.observe(Layer.EMBEDDINGS, LayerOutcome.ERROR)


class CachingEmbedder:
    """Embeds each text once, as long as a cache has it; a failure of a cache is a miss.

    Questions are looked up by their request's one round trip to the shard, before they come here.
    Here the table is asked, then the model; the new embedding is kept in both.

    Args:
        embedder: Asks the model.
        caches: The shards.
        table: Outlives them; ``None`` if it is switched off.
        policy: How long to wait, and which vectors are kept.
    """

    def __init__(
        self, embedder: Embedder, caches: SharedCaches, table: TableCache | None, policy: EmbeddingPolicy
    ) -> None:
        self._embedder = embedder
        self._caches = caches
        self._table = table
        self._policy = policy
        self._flights = SingleFlight[TextKey, bytes]()
        self._workspaces: defaultdict[TextKey, set[str]] = defaultdict(set)

    async def embed_question(self, scope: Scope, text: str, remembered: Remembered | None = None) -> bytes:
        """Return float32 bytes of a question's unit vector; equal questions at the same time share the work.

        Args:
            scope: Who asks.
            text: The question.
            remembered: What the table has of it, where that was read with the request's stamp.

        Raises:
            Unavailable: If the model does not answer.
        """
        name = text_key(scope.tenant, text)
        # Callers of several workspaces share one flight; its end gives each workspace's shard the embedding.
        self._workspaces[name].add(scope.workspace)
        return await self._flights.run(name, partial(self._embed_once, name, text, scope.workspace, remembered))

    async def embed_texts(self, scope: Scope, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text; for writing, where a text often is the question just asked.

        One round trip finds the short texts that the workspace's shard has; the others are embedded
        in one call. They are kept nowhere: vectors of memories are stored with them, and in the
        shard they would push questions out.

        Raises:
            Unavailable: If the model does not answer.
        """
        space = (scope.tenant, scope.workspace)
        # The embedding of a text of several chunks is their mean, not what is written.
        short = [text for text in texts if len(text) <= ONE_CHUNK_CHARS] if self._policy.is_symmetric else []
        known = await self._find_chunks(space, short)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        embedded = await self._embedder.embed_chunks(missing) if missing else []
        if len(embedded) != len(missing):
            raise Unavailable("embedder", f"it returned {len(embedded)} results for {len(missing)} texts")
        new = dict(zip(missing, embedded, strict=True))
        return [known.get(text) or new[text] for text in texts]

    async def flush(self) -> None:
        """Write the embeddings that wait for the table."""
        if self._table is not None:
            await self._table.writes.flush()

    async def close(self) -> None:
        """Wait for running embeddings, and write those that wait for the table."""
        await self._flights.close(self._policy.embed_deadline_s)
        if self._table is not None:
            await self._table.writes.close()

    async def _embed_once(self, name: TextKey, text: str, workspace: str, remembered: Remembered | None) -> bytes:
        try:
            kept = await self._find(name, remembered)
            embedding = kept or await self._ask_model(text)
        finally:  # Also after a failure, or the names of failed texts would stay.
            workspaces = self._workspaces.pop(name, set()) | {workspace}
        if is_sound(embedding, self._policy.dimension):
            if kept is None and self._table is not None:
                self._table.keep(name, embedding)
            for place in workspaces:
                key = embedding_key(self._policy.generation, text)
                size = len(embedding) + ENTRY_BYTES
                self._caches.keep(CacheEntry((name.tenant, place), key, embedding, size))
        return embedding

    async def _find(self, name: TextKey, remembered: Remembered | None) -> bytes | None:
        if self._table is None:
            return None
        return await self._table.find(name) if remembered is None else self._table.take(name, remembered)

    async def _ask_model(self, text: str) -> bytes:
        async with deadline("embedder", self._policy.embed_deadline_s):
            rows: NDArray[np.float32] = await self._embedder.embed([text])
        return bytes(checked(rows, 1, self._policy.dimension)[0].tobytes())

    async def _find_chunks(self, space: Space, texts: Sequence[str]) -> dict[str, tuple[Chunk, ...]]:
        """Return the chunk of each text whose embedding the shard has."""
        keys = {text: embedding_key(self._policy.generation, text) for text in texts}
        found = await self._caches.find(ShardQuery(space, pieces=tuple(keys.values())))
        pieces = {text: found.pieces.get(key) for text, key in keys.items()}
        return {
            text: (Chunk(0, len(text), piece),)
            for text, piece in pieces.items()
            if isinstance(piece, bytes) and is_sound(piece, self._policy.dimension)
        }
