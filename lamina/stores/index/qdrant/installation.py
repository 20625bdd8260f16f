"""Whose the collections of a prefix are, and how far each was applied: points in a collection beside them."""

from typing import Any
from uuid import UUID, uuid5

from qdrant_client import AsyncQdrantClient, models

from lamina.settings.stores import QdrantServerSettings
from lamina.stores.index.qdrant.collections import CollectionMissing, library_errors

INSTALLATION = "installation"
MARK = "mark"
_POINT = 1
_MARKS = UUID("5b0f6c9e-8a53-4f0b-9f5e-1c2d3a4b5c6d")
_NOWHERE = [1.0]  # A point needs a vector.


class OwnedCollections:
    """Collections of one name on a server, which belong to an installation.

    Args:
        settings: The server, and the prefix that the installation has on it.
        client: The connections; closed with this.
        name: The name under which the mark of these collections is kept.
    """

    def __init__(self, settings: QdrantServerSettings, client: AsyncQdrantClient, name: str) -> None:
        self._settings = settings
        self._client = client
        self._mark_id = str(uuid5(_MARKS, name))
        self._identities = f"{settings.prefix}_{INSTALLATION}"

    async def flush(self) -> None:
        """Return at once: the server has the changes in its log."""

    async def close(self) -> None:
        """Release the connections."""
        await self._client.close()

    async def installation(self) -> str | None:
        """Return the identity of the installation that the prefix belongs to; ``None`` if there is none.

        Raises:
            Unavailable: If the server does not answer.
        """
        found = await self._kept(_POINT)
        return None if found is None else str(found[INSTALLATION])

    async def belong_to(self, installation: str) -> None:
        """Have the prefix belong to an installation from now on.

        Raises:
            Unavailable: If the server does not answer.
        """
        await self._keep(_POINT, {INSTALLATION: installation})

    async def mark(self) -> int:
        """Return the number of the last flush; 0 if there is none.

        Raises:
            Unavailable: If the server does not answer.
        """
        found = await self._kept(self._mark_id)
        return 0 if found is None else int(found[MARK])

    async def set_mark(self, mark: int) -> None:
        """Keep the number of a flush.

        Raises:
            Unavailable: If the server does not answer.
        """
        await self._keep(self._mark_id, {MARK: mark})

    async def _kept(self, point: int | str) -> dict[str, Any] | None:
        try:
            async with library_errors(self._settings.write_timeout_s):
                points = await self._client.retrieve(self._identities, [point], with_payload=True)
        except CollectionMissing:
            return None
        return (points[0].payload or {}) if points else None

    async def _keep(self, id_: int | str, payload: dict[str, Any]) -> None:
        async with library_errors(self._settings.write_timeout_s):
            if not await self._client.collection_exists(self._identities):
                size = models.VectorParams(size=len(_NOWHERE), distance=models.Distance.DOT)
                replicas = self._settings.replicas
                await self._client.create_collection(self._identities, size, replication_factor=replicas)
            point = models.PointStruct(id=id_, vector=_NOWHERE, payload=payload)
            await self._client.upsert(self._identities, [point], wait=True)
