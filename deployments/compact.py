"""Router, searchers, indexer and often the model as one deployment: the same classes, called in one process."""

import logging

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
from lamina.wiring.stores import build_pool

logger = logging.getLogger(__name__)


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
        self._model = None if embedder else EmbedderDeployment(settings, "cpu", generation.identity)
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
