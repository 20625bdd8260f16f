"""A tier's searcher as a deployment; it also applies the changes of the tier's projections."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lamina.auditing import Drift, audit
from lamina.links import Followed, Frontier
from lamina.ports import Change
from lamina.queries import Failure, Query, Ranking, Source, TierName
from lamina.settings import Settings
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.outbox import Outbox, ProjectionName, enqueue_all
from lamina.wiring import build_pool, build_tier, postgres_url


class Searcher:
    """One replica of one tier.

    Args:
        tier: Which tier.
        settings: Everything else.
        dimension: Length of the vectors.
        generation: Which vectors its indexes hold; the first if not given.
    """

    def __init__(
        self, tier: TierName, settings: Settings, dimension: int, generation: Generation | None = None
    ) -> None:
        pool = build_pool(settings)
        self._outbox = Outbox(pool)
        self._generation = generation
        self._parts = build_tier(tier, settings, pool, dimension, generation)
        for projection in self._parts.new:
            # A first start, or the files were lost: Postgres has what belongs in here.
            enqueue_all(postgres_url(settings), projection)

    async def search_many(self, queries: Sequence[Query]) -> list[Mapping[Source, Ranking | Failure]]:
        """Return every source's ranking or failure, for each query."""
        return await asyncio.gather(*(self._parts.searcher.search(self._comparable(query)) for query in queries))

    def _comparable(self, query: Query) -> Query:
        """Return the query, without a vector that the indexes' cannot be compared with: then words alone must do.

        While one application takes another's place, its router may ask this searcher.
        """
        own = self._generation
        if own is None or query.generation == own.number:
            return query
        return replace(query, embedding=None, generation=own.number)

    async def apply(self, projection: ProjectionName, changes: Sequence[Change[Any]]) -> None:
        """Take over the given states and return when they are visible."""
        await self._parts.projections[projection].apply(changes)

    async def flush(self, projection: ProjectionName) -> None:
        """Return when everything applied so far is durable."""
        await self._parts.projections[projection].flush()

    async def audit(self, projection: ProjectionName, tenant: str) -> Drift:
        """Return how a projection differs from Postgres."""
        return await audit(self._outbox, projection, self._parts.projections[projection], tenant)

    async def expand(self, frontier: Frontier) -> Sequence[Followed]:
        """Return the links of the nodes; the graph's searcher alone has some."""
        return () if self._parts.graph is None else await self._parts.graph.expand(frontier)

    async def ping(self) -> None:
        """Return at once."""
