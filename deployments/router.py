"""The HTTP ingress and fusion as a deployment."""

import gc
from collections.abc import Mapping

from fastapi import FastAPI

from actors.directory import Directory
from actors.instruments import replica_meter, watch
from deployments.api import build_api
from deployments.handles import CalledDeployment, EmbedderHandle, Handle, ProjectionHandle, RerankerHandle, TierHandle
from deployments.replica import begin_replica
from deployments.services import POSTGRES, ServiceParts, build_services
from lamina.aio.probing import Probe
from lamina.core.tiers import TIERS, Tier, TierName
from lamina.settings.loading import Settings
from lamina.stores.postgres.generations import Generation
from lamina.wiring.caches import shard_limits, shards_edition, shards_namespace
from lamina.wiring.services import build_reads
from lamina.wiring.stores import build_pool

YOUNG_OBJECTS = 10_000
"""New objects after which garbage is looked for; a search makes some thousand, of which none is any."""


class RouterDeployment:
    """One replica of the ingress.

    Args:
        settings: Limits and defaults.
        generation: The active generation of vectors.
        embedder: The deployment of the model.
        tiers: The deployments of the tiers.
        indexer: The deployment that feeds the projections.
        reranker: The deployment of the reranker; ``None`` if it is off.
    """

    def __init__(
        self,
        settings: Settings,
        generation: Generation,
        embedder: Handle,
        tiers: Mapping[TierName, Handle],
        indexer: Handle,
        reranker: Handle | None = None,
    ) -> None:
        begin_replica(settings.logs)
        self._pool = pool = build_pool(settings)
        meter = replica_meter()
        watch(self, "router", meter, pool)
        model = EmbedderHandle(embedder)
        searchers = {TIERS[name].tier: TierHandle(handle, name) for name, handle in tiers.items()}
        reads = build_reads(settings, pool)
        probes: dict[str, Probe] = {
            POSTGRES: reads.outbox.lag,
            "embedder": model.ping,
            **{name: searchers[TIERS[name].tier].ping for name in tiers},
            "indexer": CalledDeployment(indexer, "indexer").ping,
        }
        projections = {
            projection: ProjectionHandle(handle, projection)
            for tier, handle in tiers.items()
            for projection in TIERS[tier].projections
        }
        audits = {name: projection.audit for name, projection in projections.items()}
        compactions = {name: projection.compact for name, projection in projections.items()}
        caches = directory_of(settings, generation).shards()
        ranked = None if reranker is None else RerankerHandle(reranker)
        links = searchers.get(Tier.GRAPH)
        parts = ServiceParts(pool, model, searchers, links, generation, caches, model.report, ranked)
        stores = [searchers[TIERS[name].tier].probe_stores for name in tiers if TIERS[name].projections]
        self._services = build_services(
            settings, parts, reads, probes=probes, stores=stores, audits=audits, compactions=compactions, meter=meter
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Return the HTTP application; called once by Serve after the constructor."""
        api = build_api(self._services)
        # Reads the models of all routes: 0.7 s, for which the first requests would wait all together.
        api.openapi()
        # What was imported and built so far stays: a full collection would walk through all of it each time, and hold
        # every request up for a tenth of a second.
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS)
        return api

    async def check_health(self) -> None:
        """Return if this process can work: its loop turns and its pool is open, or can be opened.

        Nothing else is asked: to replace a router does not bring Postgres, or a shared actor, back.
        """
        # A pool opens in the event loop that uses it, which the constructor does not have.
        if self._pool.closed:
            await self._pool.open()
        self._services.erasures.start()
        self._services.operations.start()


def directory_of(settings: Settings, generation: Generation) -> Directory:
    """Return which actors are the cache shards."""
    return Directory(
        count=settings.caches.shards,
        namespace=shards_namespace(settings),
        edition=shards_edition(settings, generation),
        limits=shard_limits(settings.caches),
        resources=settings.caches.resources,
    )
