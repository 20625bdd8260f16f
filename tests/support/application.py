"""The whole application in this process: the same classes as on Ray, over the same real stores."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from deployments.api import build_api
from deployments.services import KeyCheck, Services
from lamina.embedding.batching import BatchingEmbedder
from lamina.indexing import Indexer
from lamina.ports import Embedder, Model, TierSearcher
from lamina.queries import Tier
from lamina.settings import HashingSettings, PostgresServerSettings, Settings
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.keys import KeyRole, create_key
from lamina.wiring import (
    TierParts,
    build_indexer,
    build_notes,
    build_pool,
    build_reads,
    build_recorder,
    build_search,
    build_sessions,
)


@dataclass
class Application:
    """One replica of everything, and what a test needs to reach into it."""

    url: str
    settings: Settings
    model: Model
    pool: Pool
    sessions: TierParts
    notes: TierParts
    indexer: Indexer
    services: Services
    api: FastAPI
    tenant: str
    key: str
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        """Return an HTTP client of the application, authorised by the key (the writer's by default)."""
        transport = httpx.ASGITransport(self.api, raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {key or self.key}"}
        client = httpx.AsyncClient(transport=transport, base_url="http://lamina", headers=headers, timeout=30)
        self.clients.append(client)
        return client

    def for_tenant(self, tenant: str) -> "Application":
        """Return the same application with a key of another tenant."""
        return replace(self, tenant=tenant, key=self.new_key(tenant), clients=[])

    async def close_clients(self) -> None:
        """Close the clients that this test made."""
        for client in self.clients:
            await client.aclose()

    def new_key(self, tenant: str, role: KeyRole = KeyRole.WRITER) -> str:
        """Return a new key of a tenant."""
        return create_key(self.url, tenant=tenant, role=role, label="test")

    async def indexed(self) -> None:
        """Apply everything that is in the outbox."""
        await self.indexer.drain()


def settings_for(url: str, data_dir: Path, **overrides: Any) -> Settings:
    """Return settings for a test; `write.key_cache_s` is 0, so that a revoked key is noticed at once."""
    chosen: dict[str, Any] = {
        "postgres": PostgresServerSettings(url=url),
        "data_dir": data_dir,
        "embedding": HashingSettings(),
        "pool": {"min_size": 0, "max_size": 8, "timeout_s": 5},
        **overrides,
    }
    return Settings(**chosen)


@asynccontextmanager
async def running(
    settings: Settings, url: str, model: Model, *, embedder: Embedder | None = None, follow: bool = True
) -> AsyncIterator[Application]:
    """Run the application.

    Args:
        settings: Its settings.
        url: Its database, migrated.
        model: Its embedding model.
        embedder: In place of the one over the model.
        follow: Whether the indexer follows the outbox; otherwise ``indexed`` applies it.
    """
    generation = claim_generation(url, model.identity)
    pool = build_pool(settings)
    sessions = build_sessions(settings, pool)
    notes = build_notes(settings, pool, generation.identity.dimension)
    indexer = build_indexer(settings, pool, {"messages": sessions.projection, "notes": notes.projection})
    used = embedder or BatchingEmbedder(model)
    tiers: dict[Tier, TierSearcher] = {Tier.SESSIONS: sessions.searcher, Tier.NOTES: notes.searcher}
    reads = build_reads(pool)
    services = Services(
        settings=settings,
        search=build_search(settings, used, tiers, generation.number),
        recorder=build_recorder(settings, pool, used, generation.number),
        reads=reads,
        key_check=KeyCheck(reads.keys, trust_s=0),
        probes={"postgres": reads.outbox.lag},
    )
    key = create_key(url, tenant="acme", role=KeyRole.WRITER, label="test")
    application = Application(
        url, settings, model, pool, sessions, notes, indexer, services, build_api(services), "acme", key
    )
    following = asyncio.create_task(indexer.run()) if follow else None
    try:
        yield application
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        await application.close_clients()
        await pool.close()
        for parts in (sessions, notes):
            parts.index.close()
