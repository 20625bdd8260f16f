"""A store that comes back older, as from a snapshot, is noticed by the number of its last flush, and mended."""

import logging
import time
from dataclasses import dataclass, field
from typing import Any

from lamina.aio.single_flight import SingleFlight
from lamina.core.ports import AuditableProjection, Marked
from lamina.core.tiers import ProjectionName
from lamina.projections.audit import audit
from lamina.stores.postgres.builds import raise_mark, read_mark, tenants_of
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.outbox import Outbox

logger = logging.getLogger(__name__)


@dataclass
class HighWaterMark:
    """Numbers the flushes of a store, there and in Postgres.

    The store gets its number before the flush, Postgres after it: a crash in between leaves the store ahead by one. A
    store that is behind was restored from an older state, one that is further ahead saw Postgres restored. Either is
    compared with Postgres, and what differs is applied anew.

    Args:
        pool: Connections to Postgres.
        projection: The projection.
        store: Its content.
        keeper: Keeps the number beside it.
        mended_at: When the mending of a store ordered what it lacked, on a clock that never goes back; ``None`` once
            that was taken notice of.
    """

    pool: Pool
    projection: ProjectionName
    store: AuditableProjection[Any]
    keeper: Marked
    mended_at: float | None = None
    _mending: SingleFlight[None, None] = field(default_factory=SingleFlight)

    async def before_flush(self) -> int | None:
        """Give the store the number of the next flush, and return it; ``None`` where no service keeps the projection.

        Raises:
            Unavailable: If the store does not answer, or takes no changes.
        """
        applied = await read_mark(self.pool, self.projection)
        if applied is None:
            return None
        if not _is_level(applied, await self.keeper.mark()):
            await self.mend()
        await self.keeper.set_mark(applied + 1)
        return applied + 1

    async def after_flush(self, mark: int | None) -> None:
        """Record that the flush of this number is done."""
        if mark is not None:
            await raise_mark(self.pool, self.projection, mark)

    async def is_level(self) -> bool:
        """Report whether the store has all that was applied to it."""
        applied = await read_mark(self.pool, self.projection)
        return applied is None or _is_level(applied, await self.keeper.mark())

    async def mend(self) -> None:
        """Have everything applied anew in which the store differs from Postgres; callers share one comparison.

        Raises:
            Unavailable: If the store does not answer, or takes no changes.
        """
        # It goes on when a caller gives up: a health check waits for a second.
        await self._mending.run(None, self._mend)

    async def level(self) -> None:
        """Give the store the number of the last flush: all that it lacks is in the outbox."""
        applied = await read_mark(self.pool, self.projection)
        if applied is not None:
            await self.keeper.set_mark(applied)

    async def _mend(self) -> None:
        logger.warning("%s: its store is not as it was left, as after a restore; it is compared", self.projection)
        self.mended_at = time.monotonic()
        outbox = Outbox(self.pool)
        for tenant in await tenants_of(self.pool):
            drift = await audit(outbox, self.projection, self.store, tenant)
            await outbox.enqueue(self.projection, tenant, drift.ids())
        self.mended_at = time.monotonic()
        # Last: a crash before it repeats the comparison.
        await self.level()


def _is_level(applied: int, mark: int) -> bool:
    return applied <= mark <= applied + 1
