"""A store that comes back without its data, or older, is noticed by what it keeps beside them, and filled again."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from lamina.core.ports import Identified
from lamina.core.tiers import ProjectionName
from lamina.errors import Misconfigured, Unavailable, describe_error
from lamina.projections.marks import HighWaterMark
from lamina.stores.postgres.outbox import Outbox

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 5.0
FILLING = "its server came back without its data, which is being filled in again"
MENDING = "its store came back older than it was, and what it lacks is being filled in again"


@dataclass
class StoreWatch:
    """Looks now and then whether a store still has its identity.

    Args:
        projection: Its projection.
        store: The store.
        installation: The identity that it should have.
        fill: Has everything taken over again; blocks.
        outbox: Tells how far that is.
        marks: Tell whether it is as it was left.
    """

    projection: ProjectionName
    store: Identified
    installation: str
    fill: Callable[[], object]
    outbox: Outbox
    marks: HighWaterMark | None = None
    looked_at: float = -LOOK_EVERY_S
    filled_since: float | None = None
    is_mended: bool = False
    looking: "asyncio.Task[None] | None" = None

    @property
    def is_filling(self) -> bool:
        """Whether the store has lost data."""
        return self.filled_since is not None or self._is_mending

    @property
    def reason(self) -> str:
        """Why its answers are not whole while it is filled."""
        return MENDING if self.is_mended or self._is_mending else FILLING

    @property
    def _is_mending(self) -> bool:
        return self.marks is not None and self.marks.mended_at is not None

    def glance(self) -> None:
        """Look in the background, unless it was done a moment ago; needs a running event loop."""
        if time.monotonic() - self.looked_at < LOOK_EVERY_S or (self.looking and not self.looking.done()):
            return
        self.looked_at = time.monotonic()
        self.looking = asyncio.create_task(self._glance())

    async def look(self) -> None:
        """Return if the store has its data; have it filled again if it lost them.

        Raises:
            Unavailable: If it does not answer, or is being filled again.
            Misconfigured: If it belongs to another installation by now.
        """
        found = await self.store.installation()
        if found is None:
            logger.warning("%s: %s", self.projection, FILLING)
            self.filled_since = time.monotonic()
            # In this order: a crash in between repeats both.
            await asyncio.to_thread(self.fill)
            await self.store.belong_to(self.installation)
            if self.marks is not None:
                await self.marks.level()
            self.filled_since, self.is_mended = time.monotonic(), False
        elif found != self.installation:
            what = f"the store of {self.projection} belongs to the installation {found} now"
            raise Misconfigured(what, "start this service again, which says what separates them")
        elif self.marks is not None:
            await self._mend_if_older(self.marks)
        if self.filled_since is not None and not await self._is_full(self.filled_since):
            raise Unavailable(self.projection, self.reason)
        self.filled_since = None

    async def _mend_if_older(self, marks: HighWaterMark) -> None:
        if not await marks.is_level():
            await marks.mend()
        # The indexer may have noticed it first.
        if marks.mended_at is not None:
            self.filled_since, self.is_mended, marks.mended_at = marks.mended_at, True, None

    async def _glance(self) -> None:
        try:
            await self.look()
        except Exception as error:  # noqa: BLE001 - what does not answer fails in the searches
            logger.info("%s: %s", self.projection, describe_error(error))

    async def _is_full(self, since: float) -> bool:
        """Report whether every change that waits came after those of the filling."""
        # Before the question, whose way takes its time: what was ordered last must not seem to be younger.
        asked_at = time.monotonic()
        lag = (await self.outbox.lag())[self.projection]
        return not lag.pending or lag.oldest_s < asked_at - since
