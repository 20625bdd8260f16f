"""A tier's searcher as a deployment; it also applies the changes of the tier's projections."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from actors.instruments import replica_meter, watch
from deployments.replica import begin_replica
from deployments.scaling import Work
from lamina.aio.probing import Probe, states_of
from lamina.core.erasures import Remnant
from lamina.core.links import FollowedLink, Frontier
from lamina.core.ports import Change, Projection, Rebuildable
from lamina.core.queries import Failure, Query, Ranking
from lamina.core.tiers import PROJECTIONS, ProjectionName, Source, TierName
from lamina.errors import Unavailable
from lamina.host.private_files import deny_others
from lamina.projections.audit import Drift, audit
from lamina.projections.lost_data import StoreWatch
from lamina.projections.ownership import claim_installation, claim_projection
from lamina.settings.loading import Settings
from lamina.stores.postgres.builds import read_installation
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.outbox import Outbox, enqueue_all
from lamina.wiring.stores import build_pool, postgres_url
from lamina.wiring.tiers import build_tier

# Far beyond the deadline of every source: a query that takes longer hangs where no deadline reaches.
STALLED_S = 60.0

# Changes that are taken over at once: a search that comes meanwhile waits for no more.
CHANGES_AT_ONCE = 64
# While there are searches, changes are taken over in a quarter of the time.
SEARCHES_FIRST = 3.0

# Below the deadline of the router that asks for the states.
STORE_DEADLINE_S = 1.0


class SearcherDeployment:
    """One replica of one tier.

    Args:
        tier: Which tier.
        settings: Its stores and limits.
        generation: The vectors of its indexes.
        shared: Connections to Postgres that it shares with others of its process, which watch them; its own if not
            given.
    """

    def __init__(self, tier: TierName, settings: Settings, generation: Generation, shared: Pool | None = None) -> None:
        deny_others()
        pool = build_pool(settings) if shared is None else shared
        self._outbox = Outbox(pool)
        self._generation = generation
        self._work = Work()
        begin_replica(settings.logs)
        meter = replica_meter()
        if shared is None:
            watch(self, "searcher", meter, pool)
        parts = build_tier(tier, settings, pool, generation)
        self._parts = replace(parts, searcher=replace(parts.searcher, meter=meter))
        for projection in self._parts.projections:
            # After a first start, a loss of its files or a move, Postgres fills it.
            is_new = projection in self._parts.new
            connect = self._parts.connect[projection]
            claim_installation(settings, postgres_url(settings), projection, generation, connect, is_new=is_new)
            claim_projection(settings, postgres_url(settings), projection, generation, is_new=is_new)
        url = postgres_url(settings)
        installation, projections = read_installation(url), self._parts.projections
        self._watches = {
            name: StoreWatch(
                name, keeper, installation, partial(enqueue_all, url, name), self._outbox, projections[name].marks
            )
            for name, keeper in self._parts.keepers.items()
        }

    async def search_many(self, queries: Sequence[Query]) -> list[Mapping[Source, Ranking | Failure]]:
        """Return every source's ranking or failure, for each query."""
        return await asyncio.gather(*map(self.search, queries))

    async def search(self, query: Query) -> Mapping[Source, Ranking | Failure]:
        """Return every source's ranking or failure."""
        for watch_of_store in self._watches.values():
            watch_of_store.glance()
        with self._work.counted(1):
            outcomes = await self._parts.searcher.search(self._comparable(query))
        filling = {name: watched.reason for name, watched in self._watches.items() if watched.is_filling}
        # What it has by now may be a tenth of what it had: an answer that does not say so misleads.
        return {**outcomes, **{PROJECTIONS[name].source: Failure(reason) for name, reason in filling.items()}}

    def _comparable(self, query: Query) -> Query:
        """Return the query, without a vector that the indexes cannot compare with theirs: then words alone must do.

        While one application takes another's place, its router may ask this searcher.
        """
        if query.generation == self._generation.number:
            return query
        return replace(query, embedding=None, generation=self._generation.number)

    async def apply(self, projection: ProjectionName, changes: Sequence[Change[Any]], build: int | None = None) -> None:
        """Take over the given states and return when they are visible: in the store of a build, if one is named."""
        store = self._store(projection, build)
        if store is None:
            return
        for start in range(0, len(changes), CHANGES_AT_ONCE):
            began = time.monotonic()
            await store.apply(changes[start : start + CHANGES_AT_ONCE])
            await self._work.over(SEARCHES_FIRST * (time.monotonic() - began))

    async def flush(self, projection: ProjectionName, build: int | None = None) -> None:
        """Return when everything applied so far is durable."""
        store = self._store(projection, build)
        if store is not None:
            await store.flush()

    async def switch(self, projection: ProjectionName, build: int) -> None:
        """Have searches use the store of the build from now on."""
        kept = self._parts.projections[projection]
        if isinstance(kept, Rebuildable):
            await kept.switch(build)

    def _store(self, projection: ProjectionName, build: int | None) -> Projection[Any] | None:
        """Return the store of a build; ``None`` if the projection is built anew in place."""
        kept = self._parts.projections[projection]
        if build is None:
            return kept
        return kept.beside(build) if isinstance(kept, Rebuildable) else None

    async def audit(self, projection: ProjectionName, tenant: str) -> Drift:
        """Return how a projection differs from Postgres."""
        return await audit(self._outbox, projection, self._parts.projections[projection], tenant)

    async def compact(self, projection: ProjectionName, tenant: str) -> Sequence[Remnant]:
        """Write the store of a projection anew, without its deleted rows; return where some may be left."""
        return await self._parts.projections[projection].compact(tenant)

    async def expand(self, frontier: Frontier) -> Sequence[FollowedLink]:
        """Return the links of the nodes; only the graph's searcher has any."""
        return () if self._parts.graph is None else await self._parts.graph.expand(frontier)

    async def probe_stores(self) -> dict[str, str]:
        """Return the state of each projection's store."""
        probes: dict[str, Probe] = {name: partial(self._probe_store, name) for name in self._parts.projections}
        return await states_of(probes, STORE_DEADLINE_S)

    async def _probe_store(self, projection: ProjectionName) -> None:
        await self._parts.probes[projection]()
        if projection in self._watches:
            await self._watches[projection].look()

    async def ping(self) -> None:
        """Return at once."""

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Return how many queries are in hand; Ray asks for it by this name."""
        return self._work.report()

    async def check_health(self) -> None:
        """Return at once: a loop that is stuck does not, and the replica is replaced.

        Raises:
            Unavailable: If there are queries and none was answered for a minute.
        """
        if (stalled := self._work.stalled_s()) > STALLED_S:
            raise Unavailable("searcher", f"no query was answered for {stalled:.0f} s")
