"""Whose the collections of a prefix are: one point in a collection beside them."""

from qdrant_client import AsyncQdrantClient, models

from lamina.settings.stores import QdrantServerSettings
from lamina.stores.index.qdrant.collections import CollectionMissing, library_errors

INSTALLATION = "installation"
_POINT = 1
_NOWHERE = [1.0]  # A point needs a vector.


async def read_installation(client: AsyncQdrantClient, settings: QdrantServerSettings) -> str | None:
    """Return the identity of the installation; ``None`` if there is none.

    Raises:
        Unavailable: If the server does not answer.
    """
    try:
        async with library_errors(settings.write_timeout_s):
            points = await client.retrieve(_collection(settings), [_POINT], with_payload=True)
    except CollectionMissing:
        return None
    return str((points[0].payload or {})[INSTALLATION]) if points else None


async def write_installation(client: AsyncQdrantClient, settings: QdrantServerSettings, installation: str) -> None:
    """Write the identity of the installation.

    Raises:
        Unavailable: If the server does not answer.
    """
    name = _collection(settings)
    async with library_errors(settings.write_timeout_s):
        if not await client.collection_exists(name):
            size = models.VectorParams(size=len(_NOWHERE), distance=models.Distance.DOT)
            await client.create_collection(name, size, replication_factor=settings.replicas)
        point = models.PointStruct(id=_POINT, vector=_NOWHERE, payload={INSTALLATION: installation})
        await client.upsert(name, [point], wait=True)


def _collection(settings: QdrantServerSettings) -> str:
    return f"{settings.prefix}_{INSTALLATION}"
