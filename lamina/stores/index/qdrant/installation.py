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


async def read_installation(client: AsyncQdrantClient, settings: QdrantServerSettings) -> str | None:
    """Return the identity of the installation; ``None`` if there is none.

    Raises:
        Unavailable: If the server does not answer.
    """
    found = await _read(client, settings, _POINT)
    return None if found is None else str(found[INSTALLATION])


async def write_installation(client: AsyncQdrantClient, settings: QdrantServerSettings, installation: str) -> None:
    """Write the identity of the installation.

    Raises:
        Unavailable: If the server does not answer.
    """
    await _write(client, settings, _POINT, {INSTALLATION: installation})


async def read_mark(client: AsyncQdrantClient, settings: QdrantServerSettings, name: str) -> int:
    """Return the number of the last flush of the part with this name; 0 if there is none.

    Raises:
        Unavailable: If the server does not answer.
    """
    found = await _read(client, settings, str(uuid5(_MARKS, name)))
    return 0 if found is None else int(found[MARK])


async def write_mark(client: AsyncQdrantClient, settings: QdrantServerSettings, name: str, mark: int) -> None:
    """Write the number of a flush.

    Raises:
        Unavailable: If the server does not answer.
    """
    await _write(client, settings, str(uuid5(_MARKS, name)), {MARK: mark})


async def _read(client: AsyncQdrantClient, settings: QdrantServerSettings, point: int | str) -> dict[str, Any] | None:
    try:
        async with library_errors(settings.write_timeout_s):
            points = await client.retrieve(_collection(settings), [point], with_payload=True)
    except CollectionMissing:
        return None
    return (points[0].payload or {}) if points else None


async def _write(
    client: AsyncQdrantClient, settings: QdrantServerSettings, id_: int | str, payload: dict[str, Any]
) -> None:
    name = _collection(settings)
    async with library_errors(settings.write_timeout_s):
        if not await client.collection_exists(name):
            size = models.VectorParams(size=len(_NOWHERE), distance=models.Distance.DOT)
            await client.create_collection(name, size, replication_factor=settings.replicas)
        await client.upsert(name, [models.PointStruct(id=id_, vector=_NOWHERE, payload=payload)], wait=True)


def _collection(settings: QdrantServerSettings) -> str:
    return f"{settings.prefix}_{INSTALLATION}"
