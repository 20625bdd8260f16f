"""Router, searchers, indexer and often the model as one deployment: the same classes, called in one process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from actors.instruments import replica_meter, watch
from deployments.embedder import EmbedderDeployment
from deployments.handles import Handle, InProcessHandle
from deployments.indexer import IndexerDeployment
from deployments.router import RouterDeployment
from deployments.searcher import SearcherDeployment
from lamina.core.tiers import TIERS, ProjectionName
from lamina.projections.audit import Drift
from lamina.settings.loading import Settings, served_tiers
from lamina.stores.postgres.generations import Generation
from lamina.wiring.stores import build_model, build_pool

logger = logging.getLogger(__name__)


class LoadingEmbedder:
    """The embedder in this process, whose model is loaded in a thread: the words are searched meanwhile.

    Args:
        settings: Which model, and how.
        generation: Of the vectors that it makes.
    """

    def __init__(self, settings: Settings, generation: Generation) -> None:
        self._settings = settings
        self._generation = generation
        self._loading = ThreadPoolExecutor(1, "model").submit(build_model, settings, "cpu")
        self._replica: EmbedderDeployment | None = None

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any) -> Any:
            return await getattr(await self._loaded(), method)(*arguments)

        return call

    async def check_health(self) -> None:
        """Return while the model is loaded, and then if it works.

        Raises:
            Exception: That with which loading ended.
            Unavailable: If texts wait and none was embedded for ten minutes.
        """
        if self._loading.done():
            await (await self._loaded()).check_health()

    async def _loaded(self) -> EmbedderDeployment:
        if self._replica is not None:  # As for every question but the first ones.
            return self._replica
        model = await asyncio.shield(asyncio.wrap_future(self._loading))
        if self._replica is None:  # Another caller may have waited, too.
            self._replica = EmbedderDeployment(self._settings, "cpu", self._generation.identity, model)
        return self._replica


class CompactDeployment(RouterDeployment):
    """One replica of the ingress, with every searcher and the indexer in it.

    Args:
        settings: Limits and defaults.
        generation: The active generation of vectors.
        embedder: The deployment of the model; ``None`` to run it in this process.
        reranker: The deployment of the reranker; ``None`` if it is off.
    """

    def __init__(
        self, settings: Settings, generation: Generation, embedder: Handle | None, reranker: Handle | None = None
    ) -> None:
        self._model = None if embedder else LoadingEmbedder(settings, generation)
        shared = build_pool(settings)
        # A gauge has one value for each part of a process, so that the searchers have one pool.
        watch(self, "searcher", replica_meter(), shared)
        self._searchers = {
            name: SearcherDeployment(name, settings, generation, shared) for name in served_tiers(settings)
        }
        tiers = {name: InProcessHandle(searcher) for name, searcher in self._searchers.items()}
        self._indexer = IndexerDeployment(settings, tiers)
        model = embedder or InProcessHandle(self._model)
        super().__init__(settings, generation, model, tiers, InProcessHandle(self._indexer), reranker)

    async def audit(self, projection: ProjectionName, tenant: str) -> Drift:
        """Return how a projection differs from Postgres."""
        (owner,) = (name for name in self._searchers if projection in TIERS[name].projections)
        return await self._searchers[owner].audit(projection, tenant)

    async def check_health(self) -> None:
        """Return if the router can work, and neither a searcher nor the model is stuck.

        Raises:
            Unavailable: If one is stuck: the replica is replaced.
        """
        await super().check_health()
        if self._model is not None:
            await self._model.check_health()
        for searcher in self._searchers.values():
            await searcher.check_health()
        try:
            await self._indexer.check_health()
        except Exception:
            # To replace all that answers requests would cost more than to begin again.
            logger.exception("the indexer ended, and begins again")
            self._indexer.restart()
