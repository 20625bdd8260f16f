"""The whole application in this process: the same classes as on Ray, over the same real stores."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI

from actors.cache import CacheShardActor
from deployments.api import build_api
from deployments.services import ServiceParts, Services, build_services
from lamina.aio.cancelling import cancel_all
from lamina.aio.probing import states_of
from lamina.core.metrics import UNMEASURED, Meter
from lamina.core.ports import CacheShard, Embedder, Model, ModelReport, Reranker
from lamina.core.principals import KeyRole
from lamina.core.tiers import TIERS, TierName
from lamina.embedded import EmbeddedFalkorDB
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.models.prefixes import prefixes_of
from lamina.projections.audit import audit
from lamina.projections.indexer import Indexer
from lamina.search.admission import AdmittedSearch
from lamina.search.fused_search import Search
from lamina.settings.loading import Settings, served_tiers
from lamina.settings.models import HashingSettings
from lamina.settings.stores import FalkorDBServerSettings, NoGraphSettings, PostgresServerSettings
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.keys import create_key
from lamina.wiring.caches import shard_limits
from lamina.wiring.services import build_indexer, build_reads
from lamina.wiring.stores import build_pool
from lamina.wiring.tiers import TierParts, build_tier

PATIENCE_S = 30.0
OPERATION_S = 120.0


@dataclass
class Application:
    """One replica of everything, and what a test needs to reach into it."""

    url: str
    settings: Settings
    model: Model
    pool: Pool
    tiers: Mapping[TierName, TierParts]
    indexer: Indexer
    services: Services
    api: FastAPI
    tenant: str
    key: str
    follows: bool
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        """Return an HTTP client of the application, authorised by the key (the writer's by default)."""
        transport = httpx.ASGITransport(self.api, raise_app_exceptions=False)
        headers = {"Authorization": f"Bearer {key or self.key}"}
        client = httpx.AsyncClient(transport=transport, base_url="http://lamina", headers=headers, timeout=30)
        self.clients.append(client)
        return client

    def admin(self) -> httpx.AsyncClient:
        """Return an HTTP client with a new admin's key."""
        return self.client(self.new_key(self.tenant, KeyRole.ADMIN))

    def for_tenant(self, tenant: str) -> "Application":
        """Return the same application with a key of another tenant."""
        return replace(self, tenant=tenant, key=self.new_key(tenant), clients=[])

    async def close_clients(self) -> None:
        """Close the clients that this test made."""
        for client in self.clients:
            await client.aclose()

    def new_key(self, tenant: str, role: KeyRole = KeyRole.WRITER) -> str:
        """Return a new key of a tenant."""
        return create_key(self.url, tenant=tenant, role=role, name="test")

    async def indexed(self) -> None:
        """Apply everything that is in the outbox."""
        await self.indexer.drain()

    async def drift(self) -> dict[str, tuple[UUID, ...]]:
        """Return the memories of the tenant that differ in a projection from Postgres, once everything is applied."""
        await self.counted()  # A note that was found becomes warm, whenever its hit is counted.
        await self.indexed()
        drifts = {name: (await audit(self.tenant)).ids() for name, audit in self.services.audits.items()}
        return {name: ids for name, ids in drifts.items() if ids}

    async def followed(self) -> None:
        """Wait for the indexer where it follows the outbox; where it does not, the test applies it when it wants to."""
        if self.follows:
            await self.indexer.drain()

    async def counted(self) -> None:
        """Write the hits of every answer so far."""
        await self.services.hits.flush()


async def sent(client: httpx.AsyncClient, method: str, path: str, **options: Any) -> Any:
    """Send a request that succeeds; return its answer, read."""
    answer = await client.request(method, path, **options)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def ended(client: httpx.AsyncClient, answer: dict[str, Any]) -> dict[str, Any]:
    """Follow an operation, or that of an answer, to its end."""
    operation: dict[str, Any] = answer.get("operation", answer)
    async with asyncio.timeout(OPERATION_S):
        while operation["state"] != "complete":
            await asyncio.sleep(0.05)
            operation = await sent(client, "GET", f"/v1/operations/{operation['id']}")
    return operation


def settings_for(url: str, data_dir: Path, **overrides: Any) -> Settings:
    """Return settings for a test; `write.key_cache_s` is 0, so that a revoked key is noticed at once.

    All tests have one address, and many of them try wrong keys. On a machine that is busy with other tests a search
    waits long for its turn and for its sources, which is no failure of what is tested: a test of what hangs sets the
    deadline of that part.
    """
    deadlines = dict.fromkeys(("source_deadline_s", "tier_deadline_s", "embed_deadline_s"), PATIENCE_S)
    search = {"max_wait_s": PATIENCE_S, **deadlines, **overrides.pop("search", {})}
    chosen: dict[str, Any] = {
        "serve": {"front_door": {"wrong_keys_per_minute": 100_000, "unkeyed_requests_per_minute": 1_000_000}},
        "postgres": PostgresServerSettings(url=url),
        "data_dir": data_dir,
        "embedding": HashingSettings(),
        "graph": NoGraphSettings(),
        "write": {"key_cache_s": 0},
        "erasure": {"wait_s": 120},
        "pool": {"min_size": 0, "max_size": 8, "timeout_s": PATIENCE_S},
        "search": search,
        "caches": {"deadline_s": PATIENCE_S, **overrides.pop("caches", {})},
        **overrides,
    }
    return Settings(**chosen)


@asynccontextmanager
async def running(
    settings: Settings,
    url: str,
    model: Model,
    *,
    embedder: Embedder | None = None,
    follow: bool = True,
    shards: Mapping[str, CacheShard] | None = None,
    meter: Meter = UNMEASURED,
    reranker: Reranker | None = None,
) -> AsyncIterator[Application]:
    """Run the application.

    Args:
        settings: Its settings.
        url: Its database, migrated.
        model: Its embedding model.
        embedder: In place of the one over the model.
        follow: Whether the indexer follows the outbox; otherwise ``indexed`` applies it.
        shards: In place of one cache shard of its own.
        meter: Takes what its router does.
        reranker: Of its second stage, where the settings have one.
    """
    generation = claim_generation(url, model.identity)
    pool = build_pool(settings)
    tiers = {name: build_tier(name, settings, pool, generation) for name in served_tiers(settings)}
    indexer = build_indexer(
        settings, pool, {key: value for parts in tiers.values() for key, value in parts.projections.items()}
    )
    used = embedder or BatchingEmbedder(model, prefixes=prefixes_of(settings.embedding))
    searchers = {TIERS[name].tier: parts.searcher for name, parts in tiers.items()}
    reads = build_reads(settings, pool)
    audits = {
        name: partial(audit, reads.outbox, name, projection)
        for parts in tiers.values()
        for name, projection in parts.projections.items()
    }
    compactions = {name: kept.compact for parts in tiers.values() for name, kept in parts.projections.items()}
    graph = tiers["graph"].graph if "graph" in tiers else None
    caches = shards or {"cache-0": CacheShardActor(shard_limits(settings.caches))}
    report = partial(report_of, model)
    parts_of_it = ServiceParts(pool, used, searchers, graph, generation, caches, report, reranker)
    probes = {"postgres": reads.outbox.lag}
    stores = [partial(states_of, parts.probes, 1.0) for parts in tiers.values()]
    services = build_services(
        settings,
        parts_of_it,
        reads,
        probes=probes,
        stores=stores,
        audits=audits,
        compactions=compactions,
        meter=meter,
    )
    key = create_key(url, tenant="acme", role=KeyRole.WRITER, name="test")
    api = build_api(services)
    application = Application(url, settings, model, pool, tiers, indexer, services, api, "acme", key, follow)
    following = asyncio.create_task(indexer.run()) if follow else None
    try:
        yield application
    finally:
        await cancel_all([] if following is None else [following])
        await application.close_clients()
        await services.close()
        await pool.close()
        for parts in tiers.values():
            parts.close()
            await parts.aclose()


@asynccontextmanager
async def running_with_graph(
    url: str, falkordb: EmbeddedFalkorDB, folder: Path, model: Model, **overrides: Any
) -> AsyncIterator[Application]:
    """Run the application over a database, and the graph of the test run."""
    settings = settings_for(url, folder, graph=FalkorDBServerSettings(url=falkordb.url), **overrides)
    async with running(settings, url, model) as app:
        yield app


@asynccontextmanager
async def another_router(one: Application, shards: Mapping[str, CacheShard]) -> AsyncIterator[Application]:
    """Run a second router replica over the same database, tiers and cache shards as a running application."""
    settings = one.settings
    pool = build_pool(settings)
    searchers = {TIERS[name].tier: parts.searcher for name, parts in one.tiers.items()}
    graph = one.tiers["graph"].graph if "graph" in one.tiers else None
    generation = claim_generation(one.url, one.model.identity)
    report = partial(report_of, one.model)
    parts = ServiceParts(pool, BatchingEmbedder(one.model), searchers, graph, generation, shards, report)
    reads = build_reads(settings, pool)
    compactions = {name: kept.compact for tier in one.tiers.values() for name, kept in tier.projections.items()}
    services = build_services(
        settings,
        parts,
        reads,
        probes={"postgres": reads.outbox.lag},
        audits=one.services.audits,
        compactions=compactions,
    )
    application = replace(one, pool=pool, services=services, api=build_api(services), clients=[])
    try:
        yield application
    finally:
        await application.close_clients()
        await services.close()
        await pool.close()


async def report_of(model: Model) -> ModelReport:
    """Return the report of a model in this process; a double has that of hashed words."""
    found: ModelReport = getattr(model, "report", HashingModel().report)
    return found


@contextmanager
def giving_up_the_embedder(app: Application, seconds: float = 1.0) -> Iterator[None]:
    """Have nobody wait longer than a moment for a question's vector: for an embedder that hangs.

    That holds for those who come later, too: they would wait for the same vector.
    """
    search, questions = fused_search(app), app.services.caches.embedder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_deadlines", replace(search._deadlines, embed_s=seconds))
        patch.setattr(app.services.procedures.matcher, "_embed_deadline_s", seconds)
        patch.setattr(questions, "_policy", replace(questions._policy, embed_deadline_s=seconds))
        yield


def fused_search(app: Application) -> Search:
    """Return the search behind the caches and the admission."""
    search = app.services.search._search
    search = search._search if isinstance(search, AdmittedSearch) else search
    assert isinstance(search, Search)
    return search


def index_of(app: Application, tier: TierName, projection: str) -> Any:
    """Return the embedded index of a projection that searches use now, without what guards it."""
    kept: Any = app.tiers[tier].projections[projection]  # type: ignore[index]  # its name is a literal there
    return kept.store.current
