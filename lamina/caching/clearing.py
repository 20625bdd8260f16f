"""Clear the caches."""

from collections.abc import Mapping
from functools import partial

from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import Layer
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.embedding_cache import EmbeddingTable
from lamina.stores.postgres.epochs import raise_epochs
from lamina.stores.postgres.responses import Responses

# The layers that answer a whole request before anything is searched.
PREFETCHED = (Layer.TURN, Layer.NEGATIVE)


class CacheClearing:
    """Clears caches from the inside out, so that no layer is filled again from one that is still to be cleared.

    Args:
        pool: Connections to Postgres.
        caches: The shards.
        responses: The semantic cache.
        embeddings: The table of embeddings; it is the tenant's, and cleared with all of it.
    """

    def __init__(self, pool: Pool, caches: SharedCaches, responses: Responses, embeddings: EmbeddingTable) -> None:
        self._pool = pool
        self._caches = caches
        self._responses = responses
        self._embeddings = embeddings

    async def clear(self, tenant: str, workspace: str | None = None, agent: str | None = None) -> Mapping[str, int]:
        """Clear the caches of a tenant or one of its workspaces, or the responses of one agent.

        Returns:
            How many entries each step removed, in the order of the steps.

        Raises:
            Unavailable: If Postgres does not answer; the steps before stay done.
        """
        if agent is not None:
            return {"semantic": await self._clear_responses(tenant, workspace, agent)}
        # First: from now on no replica serves anything that was kept before, even from a shard that cannot be reached.
        await raise_epochs(self._pool, tenant, workspace)
        purge = partial(self._caches.purge, tenant, workspace)
        return {
            "graph": await purge((Layer.GRAPH,)),
            "swarm": await purge((Layer.SWARM,)),
            "prefetch": await purge(PREFETCHED),
            "semantic": await self._clear_responses(tenant, workspace),
            "embeddings": (await self._embeddings.purge(tenant) if workspace is None else 0)
            + await purge((Layer.EMBEDDINGS,)),
        }

    async def _clear_responses(self, tenant: str, workspace: str | None, agent: str | None = None) -> int:
        count = await self._responses.purge(tenant, workspace, agent)
        await self._caches.purge(tenant, workspace, (Layer.AGENTS,))
        return count
