"""Count and purge the rows of the caches' tables."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamina.policies.caching.model_responses import ResponseFigures
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.embedding_cache import EmbeddingStats, EmbeddingTable
from lamina.stores.postgres.idempotency import purge_answers
from lamina.stores.postgres.provider_metrics import HitRates, ProviderMetrics
from lamina.stores.postgres.responses import Responses, count_expired

WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class TableFigures:
    """Sizes of a tenant's rows in the caches' tables.

    Args:
        responses: Of the semantic cache.
        embeddings: Of all the tenant's workspaces; ``None`` for a reader of a part of them.
        providers: Hit rates of the providers' own caches, of a week, the best first.
    """

    responses: ResponseFigures
    embeddings: EmbeddingStats | None
    providers: tuple[HitRates, ...]


@dataclass(frozen=True, slots=True)
class CacheTables:
    """The tables behind the caches.

    Args:
        pool: Connections to Postgres.
        embedding_days: Days after its last use that an embedding stays.
        provider_days: Days that a provider's figures stay.
        answer_days: Days that an answer under an Idempotency-Key is given again.
    """

    pool: Pool
    responses: Responses
    embeddings: EmbeddingTable
    providers: ProviderMetrics
    embedding_days: float
    provider_days: float
    answer_days: float

    async def figures(
        self, tenant: str, workspace: str | None, now: datetime, agent: str | None = None
    ) -> TableFigures:
        """Return the sizes for a tenant, one of its workspaces, or an agent; embeddings belong to the tenant.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        responses, embeddings, rates = await asyncio.gather(
            self.responses.figures(tenant, workspace, now, agent),
            self.embeddings.stats(tenant),
            self.providers.rates(tenant, now - WEEK, workspace, agent),
        )
        return TableFigures(responses, embeddings, tuple(rates))

    async def count_expired(self, now: datetime, tenant: str) -> int:
        """Count the rows of a tenant that have expired; a response may have ended for other reasons, too.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return await count_expired(
            self.pool,
            tenant,
            responses=self.responses.cutoff(now),
            embeddings=now - timedelta(days=self.embedding_days),
            providers=now - timedelta(days=self.provider_days),
            answers=now - timedelta(days=self.answer_days),
        )

    async def purge_expired(self, now: datetime, tenant: str) -> Mapping[str, int]:
        """Delete the expired rows of a tenant; return how many of each table.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return {
            "responses": await self.responses.purge_expired(now, tenant),
            "embeddings": await self.embeddings.purge_expired(now, self.embedding_days, tenant),
            "provider_metrics": await self.providers.purge_expired(now, self.provider_days, tenant),
            "idempotency_keys": await purge_answers(self.pool, tenant, now - timedelta(days=self.answer_days)),
        }
