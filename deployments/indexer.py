"""The indexer as a deployment: one replica follows the outbox, and delivers events to webhooks."""

import asyncio
from collections.abc import Mapping
from threading import Thread

from actors.instruments import replica_meter, watch
from deployments.handles import Handle, ProjectionHandle
from deployments.replica import begin_replica
from lamina.core.tiers import TIERS, TierName
from lamina.settings.loading import Settings
from lamina.stores.postgres.vector_indexes import choose_index_kinds
from lamina.wiring.events import build_webhook_delivery
from lamina.wiring.services import build_indexer
from lamina.wiring.stores import build_pool, session_url


class IndexerDeployment:
    """Follows the outbox from its first health check on.

    Args:
        settings: Where Postgres is, and how large batches are.
        tiers: The deployments that own the projections, by tier.
    """

    def __init__(self, settings: Settings, tiers: Mapping[TierName, Handle]) -> None:
        begin_replica(settings.logs)
        meter, pool = replica_meter(), build_pool(settings)
        watch(self, "indexer", meter, pool)
        projections = {
            projection: ProjectionHandle(handle, projection, meter=meter)
            for tier, handle in tiers.items()
            for projection in TIERS[tier].projections
        }
        self._indexer = build_indexer(settings, pool, projections)
        self._webhooks = build_webhook_delivery(settings, pool)
        # A daemon: an index may take hours, and a replica that is replaced ends meanwhile.
        chosen = (session_url(settings), settings.postgres.ivfflat_rows)
        self._choosing = Thread(target=choose_index_kinds, args=chosen, daemon=True)
        self._following: asyncio.Task[None] | None = None
        self._delivering: asyncio.Task[None] | None = None

    async def check_health(self) -> None:
        """Start to follow the outbox, or raise the error that ended it, so that the replica is replaced.

        The first call also has the kinds of vector indexes chosen, and does not wait for that.
        """
        if self._choosing.ident is None:
            self._choosing.start()
        # Constructors run outside the event loop, and health checks in it.
        if self._following is None:
            self._following = asyncio.create_task(self._indexer.run())
        elif self._following.done():
            self._following.result()
        if self._delivering is None:
            self._delivering = asyncio.create_task(self._webhooks.run())
        elif self._delivering.done():
            self._delivering.result()

    def restart(self) -> None:
        """Follow the outbox anew from the next health check on, after an error ended it."""
        self._following = None
        if self._delivering is not None and self._delivering.done():
            self._delivering = None

    async def ping(self) -> None:
        """Return if the outbox is followed."""
        await self.check_health()
