"""Embeddings of questions, where they outlive processes: by tenant, generation and the SHA-256 of the text."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("embedding_cache.sql")


@dataclass(frozen=True, slots=True)
class TextKey:
    """A tenant's text, by its hash.

    Args:
        tenant: Whose.
        digest: SHA-256 of the text.
    """

    tenant: str
    digest: bytes


def text_key(tenant: str, text: str) -> TextKey:
    """Return the name under which a tenant's embedding of a text is kept."""
    return TextKey(tenant, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())


@dataclass(frozen=True, slots=True)
class CachedEmbedding:
    """An embedding and when it was last used.

    Args:
        text: Of what.
        embedding: Float32 bytes of a unit vector.
        used_at: In UTC; where it is kept, up to a day earlier than it was.
    """

    text: TextKey
    embedding: bytes
    used_at: datetime


@dataclass(frozen=True, slots=True)
class EmbeddingStats:
    """What a tenant has in the table: embeddings of all generations, and their rows' bytes."""

    entries: int
    size_bytes: int


class EmbeddingTable:
    """Reads and writes embeddings of one generation; nothing of another one is ever found.

    Args:
        pool: Connections to Postgres.
        generation: The generation of vectors.
    """

    def __init__(self, pool: Pool, generation: int) -> None:
        self._pool = pool
        self._generation = generation

    async def find(self, texts: Sequence[TextKey]) -> list[CachedEmbedding | None]:
        """Return what is kept of each text, in their order, by one statement.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["find_embeddings"], self._names(texts))
            rows = {row["place"] - 1: row async for row in cursor}
        return [
            CachedEmbedding(text, bytes(rows[place]["embedding"]), rows[place]["last_used_at"])
            if place in rows
            else None
            for place, text in enumerate(texts)
        ]

    async def keep(self, items: Sequence[CachedEmbedding]) -> None:
        """Keep embeddings, or take note of their use, by one statement; the last one of a text counts.

        Raises:
            Unavailable: If Postgres does not answer; none is kept.
        """
        distinct = list({item.text: item for item in items}.values())
        parameters = self._names([item.text for item in distinct]) | {
            "embeddings": [item.embedding for item in distinct],
            "used": [item.used_at for item in distinct],
        }
        await self._changed(QUERIES["keep_embeddings"], parameters)

    async def purge_expired(self, now: datetime, ttl_days: float, tenant: str | None = None) -> int:
        """Forget embeddings that were not used for so many days, of a tenant or of every one; return how many.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return await self._changed(
            QUERIES["purge_expired_embeddings"], {"cutoff": now - timedelta(days=ttl_days), "tenant": tenant}
        )

    async def purge(self, tenant: str) -> int:
        """Forget a tenant's embeddings of every generation; return how many.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return await self._changed(QUERIES["purge_embeddings"], {"tenant": tenant})

    async def stats(self, tenant: str) -> EmbeddingStats:
        """Return what the tenant has; reads all of its rows.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["embedding_figures"], {"tenant": tenant})
            row = await cursor.fetchone()
        assert row is not None  # noqa: S101 - an aggregate is one row
        return EmbeddingStats(**row)

    def _names(self, texts: Sequence[TextKey]) -> dict[str, Any]:
        return {
            "tenants": [text.tenant for text in texts],
            "text_hashes": [text.digest for text in texts],
            "generation": self._generation,
        }

    async def _changed(self, query: bytes, parameters: dict[str, Any]) -> int:
        """Return how many rows a statement changed; a deadlock with another one is tried again."""

        async def act(connection: Connection) -> int:
            return (await connection.execute(query, parameters)).rowcount

        return await in_transaction(self._pool, act)
