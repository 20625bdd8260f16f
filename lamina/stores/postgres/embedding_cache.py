"""The table of cached embeddings, by tenant, generation and SHA-256 of the text; it outlives processes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lamina.stores.postgres.connection import Connection, Pool, in_transaction, read_rows
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_row, run_statement

QUERIES = load_queries("embedding_cache.sql")


@dataclass(frozen=True, slots=True)
class TextKey:
    """Key of a tenant's text.

    Args:
        tenant: Owner of the text.
        digest: SHA-256 of the text.
    """

    tenant: str
    digest: bytes


def text_key(tenant: str, text: str) -> TextKey:
    """Return the key of a tenant's text."""
    return TextKey(tenant, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())


@dataclass(frozen=True, slots=True)
class CachedEmbedding:
    """An embedding and when it was last used.

    Args:
        text: Key of the embedded text.
        embedding: Float32 bytes of a unit vector.
        used_at: In UTC. The table may hold a time up to a day earlier.
    """

    text: TextKey
    embedding: bytes
    used_at: datetime


@dataclass(frozen=True, slots=True)
class EmbeddingStats:
    """Number of a tenant's embeddings of all generations, and the bytes of their rows."""

    entries: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class EmbeddingTable:
    """Reads and writes cached embeddings of one generation.

    Args:
        pool: Connections to Postgres.
        generation: The generation of vectors.
    """

    pool: Pool
    generation: int

    async def find(self, texts: Sequence[TextKey]) -> list[CachedEmbedding | None]:
        """Return the cached embedding of each text, in order; ``None`` where there is none. One statement.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        kept = await read_rows(self.pool, QUERIES["find_embeddings"], self._keys(texts), by_key=True)
        rows = {row["place"] - 1: row for row in kept}
        return [
            CachedEmbedding(text, bytes(rows[place]["embedding"]), rows[place]["last_used_at"])
            if place in rows
            else None
            for place, text in enumerate(texts)
        ]

    async def keep(self, items: Sequence[CachedEmbedding]) -> None:
        """Store embeddings or the time of their use, in one statement; the last one of a text counts.

        Raises:
            Unavailable: If Postgres does not answer; none is stored.
        """
        # An upsert may not touch a row twice in one statement.
        distinct = list({item.text: item for item in items}.values())
        parameters = self._keys([item.text for item in distinct]) | {
            "embeddings": [item.embedding for item in distinct],
            "used": [item.used_at for item in distinct],
        }
        await run_statement(self.pool, QUERIES["put_embeddings"], parameters)

    async def purge_expired(self, now: datetime, ttl_days: float, tenant: str) -> int:
        """Delete a tenant's embeddings that were not used for ``ttl_days``; return how many.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return await self._execute(
            QUERIES["purge_expired_embeddings"], {"cutoff": now - timedelta(days=ttl_days), "tenant": tenant}
        )

    async def purge(self, tenant: str) -> int:
        """Delete a tenant's embeddings of every generation; return how many.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return await self._execute(QUERIES["purge_embeddings"], {"tenant": tenant})

    async def stats(self, tenant: str) -> EmbeddingStats:
        """Count the tenant's embeddings; reads all of its rows.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        row = await fetch_row(self.pool, QUERIES["count_embeddings"], {"tenant": tenant})
        assert row is not None  # noqa: S101 - an aggregate is one row
        return EmbeddingStats(**row)

    def _keys(self, texts: Sequence[TextKey]) -> dict[str, Any]:
        return {
            "tenants": [text.tenant for text in texts],
            "text_hashes": [text.digest for text in texts],
            "generation": self.generation,
        }

    async def _execute(self, query: bytes, parameters: dict[str, Any]) -> int:
        """Run a statement, again after a deadlock; return how many rows it changed."""

        async def act(connection: Connection) -> int:
            return (await connection.execute(query, parameters)).rowcount

        return await in_transaction(self.pool, act)
