"""Clearing the caches, purging what expired, and what their tables hold."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamina.caching.shared_caches import SharedCaches
from lamina.core.cache_layers import Layer
from lamina.policies.caching.model_responses import ResponseFigures
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.embedding_cache import EmbeddingFigures, EmbeddingTable
from lamina.stores.postgres.epochs import raise_epochs
from lamina.stores.postgres.provider_metrics import HitRates, ProviderMetrics
from lamina.stores.postgres.responses import Responses, count_expired

PREFETCHED = (Layer.TURN, Layer.NEGATIVE)
"""What answers a whole request before anything is searched."""
WEEK = timedelta(days=7)
Step = Callable[[], Awaitable[int]]


class Cascade:
    """Clears caches from the inside out, so that no layer is filled again from one that is still to be cleared.

    The epochs are raised first, in Postgres: from then on no replica serves anything that was kept
    before, whatever shard cannot be reached.

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
            Unavailable: If Postgres does not answer; what was cleared by then stays so.
        """
        if agent is None:
            await raise_epochs(self._pool, tenant, workspace)  # first: nothing kept before is found any more
        steps = self._steps(tenant, workspace, agent)
        return {name: await step() for name, step in steps.items()}

    def _steps(self, tenant: str, workspace: str | None, agent: str | None) -> Mapping[str, Step]:
        async def semantic() -> int:
            count = await self._responses.purge(tenant, workspace, agent)
            await self._caches.purge(tenant, workspace, (Layer.AGENTS,))
            return count

        if agent is not None:
            return {"semantic": semantic}

        async def embeddings() -> int:
            count = await self._embeddings.purge(tenant) if workspace is None else 0
            return count + await self._caches.purge(tenant, workspace, (Layer.EMBEDDINGS,))

        return {
            "graph": lambda: self._caches.purge(tenant, workspace, (Layer.GRAPH,)),
            "swarm": lambda: self._caches.purge(tenant, workspace, (Layer.SWARM,)),
            "prefetch": lambda: self._caches.purge(tenant, workspace, PREFETCHED),
            "semantic": semantic,
            "embeddings": embeddings,
        }


@dataclass(frozen=True, slots=True)
class TableFigures:
    """What the caches' tables hold of a tenant.

    Args:
        responses: Of the semantic cache.
        embeddings: Of all the tenant's workspaces.
        providers: Hit rates of the providers' own caches, of a week, the best first.
    """

    responses: ResponseFigures
    embeddings: EmbeddingFigures
    providers: tuple[HitRates, ...]


@dataclass(frozen=True, slots=True)
class CacheTables:
    """The tables behind the caches.

    Args:
        pool: Connections to Postgres.
        embedding_days: Days after its last use that an embedding stays.
        provider_days: Days that a provider's figures stay.
    """

    pool: Pool
    responses: Responses
    embeddings: EmbeddingTable
    providers: ProviderMetrics
    embedding_days: float
    provider_days: float

    async def figures(self, tenant: str, workspace: str | None, now: datetime) -> TableFigures:
        """Return what they hold of a tenant, or of one of its workspaces; embeddings belong to the tenant.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        responses, embeddings, rates = await asyncio.gather(
            self.responses.figures(tenant, workspace, now),
            self.embeddings.stats(tenant),
            self.providers.rates(tenant, now - WEEK, workspace),
        )
        return TableFigures(responses, embeddings, tuple(rates))

    async def count_expired(self, now: datetime, tenant: str) -> int:
        """Return how many rows of a tenant are over by their time; a response may be over for other reasons, too.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return await count_expired(
            self.pool,
            tenant,
            responses=self.responses.cutoff(now),
            embeddings=now - timedelta(days=self.embedding_days),
            providers=now - timedelta(days=self.provider_days),
        )

    async def purge_expired(self, now: datetime, tenant: str | None = None) -> Mapping[str, int]:
        """Remove what is over, of a tenant or of every one; return how many rows of each table.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return {
            "responses": await self.responses.purge_expired(now, tenant),
            "embeddings": await self.embeddings.purge_expired(now, self.embedding_days, tenant),
            "provider_metrics": await self.providers.purge_expired(now, self.provider_days, tenant),
        }
