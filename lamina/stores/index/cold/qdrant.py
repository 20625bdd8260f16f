"""Cold notes on a Qdrant server: a collection for each (tenant, workspace, namespace), or one for all."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from qdrant_client import AsyncQdrantClient

from lamina.core.fingerprints import chunk_fingerprints
from lamina.core.ports import Change, PlacedRecord
from lamina.core.queries import Query
from lamina.settings.stores import QdrantServerSettings
from lamina.stores.index.cold.collections import Layout, by_collection, collection_of
from lamina.stores.index.ports import ChunkHit
from lamina.stores.index.qdrant.collections import Collections, collection_of_build, connect
from lamina.stores.index.qdrant.index import QdrantBuild, QdrantIndex
from lamina.stores.index.qdrant.installation import OwnedCollections


class QdrantColdIndex(OwnedCollections):
    """Collections of cold notes; one appears with its first note, and reading makes none.

    Args:
        settings: The server, and how it is searched.
        name: What the collections' aliases begin with.
        dimension: Length of the vectors.
        layout: A collection for each namespace, or one for all.
        client: In place of one of its own.
    """

    def __init__(
        self,
        settings: QdrantServerSettings,
        name: str,
        *,
        dimension: int,
        layout: Layout,
        client: AsyncQdrantClient | None = None,
    ) -> None:
        super().__init__(settings, client or connect(settings, name), f"{name}.")
        self._prefix = f"{name}."
        self._mark = f"{name}.current"
        self._dimension = dimension
        self._layout = layout
        self._collections = Collections(settings, self._client, dimension=dimension)

    async def prepare(self) -> bool:
        """Report whether there is no cold note at all.

        Raises:
            Misconfigured: If the server is too old, or refuses the key.
            Unavailable: If it does not answer.
        """
        await self._collections.refuse_old_server()
        return not await self._held()

    async def apply(self, changes: Sequence[Change[PlacedRecord]]) -> None:
        """Take over the given states; searches see them when the call returns.

        A memory that Postgres does not know any more is removed from every collection.
        """
        held = await self._held()
        everywhere = held if any(change.record is None for change in changes) else ()
        for alias, part in by_collection(changes, self._alias, everywhere).items():
            if alias in held or any(change.record for change in part):
                await self._index(alias).apply(part)

    async def by_vector(self, query: Query) -> list[ChunkHit]:
        """Return the nearest chunks by cosine, best first; none where nothing is cold."""
        scope = query.scope
        return await self._index(self._alias(scope.tenant, scope.workspace, scope.namespace)).by_vector(query)

    async def inventory(self, tenant: str) -> Mapping[UUID, str]:
        """Return every memory of the tenant in any collection with the fingerprint of its chunks."""
        chunks = [chunk for alias in await self._held() async for chunk in self._index(alias).chunks(tenant)]
        return chunk_fingerprints(chunks)

    def beside(self, build: int) -> QdrantBuild[PlacedRecord]:
        """Return the collections of a build, each made when it takes its first changes."""
        return QdrantBuild(self, build)

    async def switch(self, build: int) -> None:
        """Point every alias to its collection of the build, in one step; where the build has nothing, nothing is left.

        In the same step an alias of its own, behind which nothing is stored, takes note of the build: a repeated
        switch must not take away what has been applied since.
        """
        held = await self._collections.aliases(self._prefix)
        if held.get(self._mark) == collection_of_build(self._mark, build):
            return
        built = await self._collections.built(self._prefix, build)
        await self._collections.switch(sorted(built | {self._mark}), build, freed=sorted(held.keys() - built))

    async def probe(self) -> None:
        """Return if the server answers."""
        await self._held()

    async def apply_beside(self, build: int, changes: Sequence[Change[PlacedRecord]]) -> None:
        """Take over the given states in the collections of a build."""
        everywhere = await self._collections.built(self._prefix, build) - {self._mark}
        for alias, part in by_collection(changes, self._alias, everywhere).items():
            if alias in everywhere or any(change.record for change in part):
                await self._index(alias).apply_beside(build, part)

    async def _held(self) -> frozenset[str]:
        return frozenset(await self._collections.aliases(self._prefix)) - {self._mark}

    def _alias(self, tenant: str, workspace: str, namespace: str) -> str:
        return self._prefix + collection_of(self._layout, tenant, workspace, namespace).name(self._layout)

    def _index(self, alias: str) -> QdrantIndex:
        return QdrantIndex(
            self._settings,
            alias,
            dimension=self._dimension,
            is_lasting=False,
            client=self._client,
            collections=self._collections,
        )
