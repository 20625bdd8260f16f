"""A tier's searcher as a deployment; it also applies the changes of the tier's projection."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal

from lamina.ports import Change
from lamina.queries import Failure, Query, Ranking, Source
from lamina.settings import Settings
from lamina.stores.postgres.outbox import enqueue_all
from lamina.wiring import TierParts, build_notes, build_pool, build_sessions, postgres_url

TierName = Literal["sessions", "notes"]


class Searcher:
    """One replica of one tier.

    Args:
        tier: Which tier.
        settings: Everything else.
        dimension: Length of the vectors.
    """

    def __init__(self, tier: TierName, settings: Settings, dimension: int) -> None:
        self._pool = build_pool(settings)
        self._parts = self._build(tier, settings, dimension)
        if self._parts.index.is_new:
            # A first start, or the files were lost: Postgres has what belongs in here.
            enqueue_all(postgres_url(settings), "messages" if tier == "sessions" else "notes")

    def _build(self, tier: TierName, settings: Settings, dimension: int) -> TierParts:
        if tier == "sessions":
            return build_sessions(settings, self._pool)
        return build_notes(settings, self._pool, dimension)

    async def search_many(self, queries: Sequence[Query]) -> list[Mapping[Source, Ranking | Failure]]:
        """Return every source's ranking or failure, for each query."""
        return await asyncio.gather(*(self._parts.searcher.search(query) for query in queries))

    async def apply(self, changes: Sequence[Change]) -> None:
        """Take over the given states and return when they are visible."""
        await self._parts.projection.apply(changes)

    async def flush(self) -> None:
        """Return when everything applied so far is durable."""
        await self._parts.projection.flush()

    async def ping(self) -> None:
        """Return at once."""
