"""Word and vector search on a Qdrant server, by the same weights and statistics as the embedded index."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Protocol
from uuid import UUID

import numpy as np
from qdrant_client import AsyncQdrantClient, models

from lamina.core.fingerprints import chunk_fingerprints
from lamina.core.ports import Change, Record, State
from lamina.core.queries import Query
from lamina.policies.ranking.scores import widening
from lamina.settings.stores import QdrantServerSettings
from lamina.stores.index.filters import outdated_chunks, query_filter, scope_filter
from lamina.stores.index.points import (
    DENSE,
    WORDS,
    are_enough,
    vector_hits,
    weights_of_question,
    weights_of_text,
    word_hits,
)
from lamina.stores.index.ports import STATE_FIELD, ChunkHit, chunk_id, chunk_payload, chunk_state
from lamina.stores.index.qdrant.collections import (
    CollectionMissing,
    Collections,
    collection_of_build,
    connect,
    library_errors,
)
from lamina.stores.index.qdrant.filters import DIALECT
from lamina.stores.index.qdrant.installation import OwnedCollections

POINTS_OF_A_CALL = 256
SCROLL_PAGE = 1000
Request = models.QueryRequest
Point = models.ScoredPoint


class QdrantIndex(OwnedCollections):
    """Chunks of memories with their words and, if it has any, their vectors; any number of processes may use it.

    A change is visible to all when the call returns. It is in the server's write-ahead log then, which survives the
    server's process; against the loss of a machine Qdrant has replicas.

    Args:
        settings: The server, and how it is searched.
        name: Its alias on the server.
        dimension: Length of the dense vectors; ``None`` for an index of words alone.
        by_session: Whether a query's session narrows it; messages belong to one, notes outlive it.
        is_lasting: Whether there is always such a collection; otherwise reads of one that is missing find nothing.
        client: In place of one of its own.
        collections: The same.
    """

    def __init__(
        self,
        settings: QdrantServerSettings,
        name: str,
        *,
        dimension: int | None,
        by_session: bool = False,
        is_lasting: bool = True,
        client: AsyncQdrantClient | None = None,
        collections: Collections | None = None,
    ) -> None:
        super().__init__(settings, client or connect(settings, name), name)
        self._name = name
        self._dimension = dimension
        self._by_session = by_session
        self._is_lasting = is_lasting
        self._collections = collections or Collections(settings, self._client, dimension=dimension)

    async def prepare(self) -> bool:
        """Make the collection, if there is none; report whether it is empty.

        Raises:
            Misconfigured: If the server is too old, refuses the key, or holds other vectors under this name.
            Unavailable: If it does not answer.
        """
        await self._collections.refuse_old_server()
        await self._collections.ensure(self._name)
        return await self.count() == 0

    async def apply(self, changes: Sequence[Change[Record]]) -> None:
        """Replace the chunks of these memories; searches see them when the call returns."""
        await self._collections.ensure(self._name)
        try:
            await self._apply_to(self._name, changes)
        except CollectionMissing:
            self._collections.forget(self._name)  # Another process took it away: the next try makes it.
            raise

    async def by_words(self, query: Query) -> list[ChunkHit]:
        """Return the best chunks by BM25 within the query's scope, best first; none for a query without words."""
        words = self._words_request(query)
        return [] if words is None else word_hits(query, await self._widened(query, words))

    async def by_vector(self, query: Query) -> list[ChunkHit]:
        """Return the nearest chunks by cosine, best first; none for a query without a vector."""
        vector = self._vector_request(query)
        return [] if vector is None else vector_hits(await self._widened(query, vector))

    async def by_both(self, query: Query) -> tuple[list[ChunkHit], list[ChunkHit]]:
        """Return the best chunks by BM25, with their cosines, and the nearest ones: in one call, as a rule."""
        words, vector = self._words_request(query), self._vector_request(query)
        if words is None or vector is None:
            return await self.by_words(query), await self.by_vector(query)
        first = next(iter(widening(query.limit)))
        requests = [request.model_copy(update={"limit": first}) for request in (words, vector)]
        of_words, of_vector = await self._ask(requests)
        if not are_enough(query, of_words, first):
            of_words = await self._widened(query, words)
        if not are_enough(query, of_vector, first):
            of_vector = await self._widened(query, vector)
        return word_hits(query, of_words), vector_hits(of_vector)

    async def count(self) -> int:
        """Return the number of chunks."""
        await self._collections.ensure(self._name)
        async with library_errors(self._settings.write_timeout_s):
            return (await self._client.count(self._name, exact=True)).count

    async def inventory(self, tenant: str) -> Mapping[UUID, str]:
        """Return every memory of the tenant with the fingerprint of its chunks."""
        await self._collections.ensure(self._name)
        return chunk_fingerprints([chunk async for chunk in self.chunks(tenant)])

    def beside(self, build: int) -> "QdrantBuild[Record]":
        """Return the collection of a build, which is made when it takes its first changes."""
        return QdrantBuild(self, build)

    async def switch(self, build: int) -> None:
        """Point the alias to the collection of the build, at once for every replica, and remove those before."""
        await self._collections.switch([self._name], build)

    async def probe(self) -> None:
        """Return if the server answers."""
        await self._collections.aliases(self._name)

    async def apply_beside(self, build: int, changes: Sequence[Change[Record]]) -> None:
        """Replace the chunks of these memories in the collection of a build."""
        name = collection_of_build(self._name, build)
        await self._collections.make(name)
        await self._apply_to(name, changes)

    async def _apply_to(self, name: str, changes: Sequence[Change[Record]]) -> None:
        points = (point for change in changes if change.record for point in self._points(change.id, change.record))
        # First the new, then what is left of the old: a search in between misses nothing.
        while part := list(islice(points, POINTS_OF_A_CALL)):
            async with library_errors(self._settings.write_timeout_s):
                await self._client.upsert(name, part, wait=True)
        if changes:
            outdated = models.FilterSelector(filter=models.Filter(must=[outdated_chunks(changes, DIALECT)]))
            async with library_errors(self._settings.write_timeout_s):
                await self._client.delete(name, outdated, wait=True)

    def _points(self, id_: UUID, record: Record) -> list[models.PointStruct]:
        fields = chunk_payload(id_, record)
        return [
            models.PointStruct(
                id=str(chunk_id(id_, chunk)), vector=self._vectors(record, chunk), payload={**fields, "chunk": chunk}
            )
            for chunk in range(len(record.texts))
        ]

    def _vectors(self, record: Record, chunk: int) -> Any:
        weights = weights_of_text(record.texts[chunk])
        words = models.SparseVector(indices=list(weights.indices), values=list(weights.values))
        return {WORDS: words} if self._dimension is None else {WORDS: words, DENSE: _floats(record.embeddings[chunk])}

    def _words_request(self, query: Query) -> Request | None:
        weights = weights_of_question(query.words)
        if not weights.indices:
            return None
        corpus = models.IdfCorpusParams(corpus=scope_filter(query.scope, DIALECT))
        return Request(
            query=models.SparseVector(indices=list(weights.indices), values=list(weights.values)),
            using=WORDS,
            filter=query_filter(query, DIALECT, by_session=self._by_session),
            params=models.SearchParams(idf=corpus),
            with_payload=["memory", "chunk"],
            with_vector=[DENSE] if self._dimension is not None else False,
        )

    def _vector_request(self, query: Query) -> Request | None:
        if query.embedding is None or self._dimension is None:
            return None
        return Request(
            query=_floats(query.embedding),
            using=DENSE,
            filter=query_filter(query, DIALECT, by_session=self._by_session),
            params=self._search_params(),
            with_payload=["memory", "chunk"],
        )

    def _search_params(self) -> models.SearchParams | None:
        if self._settings.is_local:
            return None  # It looks at every vector.
        rescored = models.QuantizationSearchParams(rescore=True, oversampling=2.0)
        return models.SearchParams(hnsw_ef=self._settings.ef_search, quantization=rescored)

    async def _widened(self, query: Query, request: Request) -> list[Point]:
        """Return chunks of at least ``limit`` memories, if there are so many."""
        for limit in widening(query.limit):
            (found,) = await self._ask([request.model_copy(update={"limit": limit})])
            if are_enough(query, found, limit):
                break
        return found

    async def _ask(self, requests: Sequence[Request]) -> list[list[Point]]:
        if self._is_lasting:
            await self._collections.ensure(self._name)
        try:
            async with library_errors(self._settings.read_timeout_s):
                answers = await self._client.query_batch_points(self._name, list(requests))
        except CollectionMissing:
            if self._is_lasting:
                raise
            return [[] for _ in requests]
        return [list(answer.points) for answer in answers]

    async def chunks(self, tenant: str) -> AsyncIterator[tuple[UUID, str]]:
        """Yield the memory of every chunk of a tenant with the fingerprint of its state."""
        own, offset = models.Filter(must=[DIALECT.equals("tenant", tenant)]), None
        while True:
            async with library_errors(self._settings.write_timeout_s):
                points, offset = await self._client.scroll(
                    self._name,
                    own,
                    limit=SCROLL_PAGE,
                    offset=offset,
                    with_payload=["memory", STATE_FIELD],
                    with_vectors=False,
                )
            for point in points:
                yield chunk_state(point.payload)
            if offset is None:
                return


class BuildWriter(Protocol[State]):
    """Writes to the collections of a build."""

    async def apply_beside(self, build: int, changes: Sequence[Change[State]]) -> None:
        """Take over the given states in the collections of a build."""
        ...


@dataclass(frozen=True, slots=True)
class QdrantBuild(Generic[State]):
    """Collections that are built beside those that searches use.

    Args:
        index: Their index.
        build: Their number.
    """

    index: BuildWriter[State]
    build: int

    async def apply(self, changes: Sequence[Change[State]]) -> None:
        """Take over the given states."""
        await self.index.apply_beside(self.build, changes)

    async def flush(self) -> None:
        """Return at once: the server has the changes in its log."""


def _floats(embedding: bytes) -> list[float]:
    return [float(number) for number in np.frombuffer(embedding, dtype=np.float32)]
