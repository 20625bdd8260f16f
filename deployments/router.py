"""The HTTP ingress and fusion as a deployment."""

from typing import Any

from fastapi import FastAPI
from ray.serve.handle import DeploymentHandle

from deployments.api import build_api
from deployments.handles import EmbedderHandle, TierHandle, call
from deployments.services import KeyCheck, Probe, Services
from lamina.queries import Tier
from lamina.settings import Settings
from lamina.stores.postgres.generations import Generation
from lamina.wiring import build_pool, build_reads, build_recorder, build_search


class Router:
    """One replica of the ingress.

    Args:
        settings: Limits and defaults.
        generation: The active generation of vectors.
        embedder: The deployment of the model.
        sessions: The deployment of tier 1.
        notes: The deployment of tier 2.
        indexer: The deployment that feeds the projections.
    """

    def __init__(
        self,
        settings: Settings,
        generation: Generation,
        embedder: DeploymentHandle[Any],
        sessions: DeploymentHandle[Any],
        notes: DeploymentHandle[Any],
        indexer: DeploymentHandle[Any],
    ) -> None:
        pool = build_pool(settings)
        model = EmbedderHandle(embedder)
        tiers = {Tier.SESSIONS: TierHandle(sessions, "sessions"), Tier.NOTES: TierHandle(notes, "notes")}
        reads = build_reads(pool)
        probes: dict[str, Probe] = {
            "postgres": reads.outbox.lag,
            "embedder": lambda: call(embedder, "ping", "embedder"),
            "sessions": tiers[Tier.SESSIONS].probe,
            "notes": tiers[Tier.NOTES].probe,
            "indexer": lambda: call(indexer, "ping", "indexer"),
        }
        self._services = Services(
            settings=settings,
            search=build_search(settings, model, dict(tiers), generation.number),
            recorder=build_recorder(settings, pool, model, generation.number),
            reads=reads,
            key_check=KeyCheck(reads.keys, trust_s=settings.write.key_cache_s),
            probes=probes,
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Return the HTTP application; called once by Serve after the constructor."""
        return build_api(self._services)
