"""The indexer: applies the outbox to the projections, at least once, in batches."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from operator import methodcaller
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from lamina.aio.cancelling import cancel_all
from lamina.aio.repeating import repeat
from lamina.core.ports import Projection, Rebuildable
from lamina.core.tiers import PROJECTIONS, ProjectionName
from lamina.errors import describe_error
from lamina.stores.postgres.builds import Builds, order_outdated
from lamina.stores.postgres.connection import Connection, listen
from lamina.stores.postgres.outbox import CHANNEL, Outbox
from lamina.stores.postgres.stale_words import StaleWords

logger = logging.getLogger(__name__)
FIRST_PAUSE_S = 0.05
GATHER_S = 0.03
"""Seconds from one application to the next: a lone change is applied at once, many are applied together."""
LONGEST_PAUSE_S = 5.0
# Their sequence numbers are a parameter of every query for further rows, and a crash repeats them.
MAX_UNFLUSHED = 4096
FLUSH_SHARE, LONGEST_UNFLUSHED_S = 20, 1.5
"""While changes keep coming, flushes take a twentieth of the time; but no change waits longer than this for its own:
until then no answer of its scope is kept, and no erasure is complete."""
LOOK_S = 1.0
GIVE_UP_EVERY_S = 3600.0
# Projections of whose rows a part is taken at once, though more wait.
IN_TURNS = frozenset[ProjectionName]({"cold"})
# After each time that a build does not take changes; after the last it is given up.
BUILD_PAUSES_S = (0.1, 0.5, 1.0)
# A projection that no service has kept for so long takes over everything if it comes back.
UNKEPT = timedelta(days=30)
_LOCK = 0x6F7574626F78  # "outbox"


class Indexer:
    """Keeps projections up to date.

    Changes become visible at once and are flushed together now and then; a row leaves the outbox
    after the flush. A crash in between repeats the application, which is idempotent. One indexer
    works at a time: an advisory lock on the listening connection keeps a second one waiting.

    Args:
        url: Postgres, for the listening connection.
        outbox: The outbox.
        builds: The builds under way.
        projections: Their stores. Rows of other projections stay in the outbox.
        batch_size: Most rows applied at once.
        poll_interval_s: Longest sleep without a notification.
        flush_interval_s: How long applied changes wait to be flushed together.
        stale_words: The texts whose words an earlier release indexed otherwise.
    """

    def __init__(
        self,
        url: str,
        outbox: Outbox,
        builds: Builds,
        projections: Mapping[ProjectionName, Projection[Any]],
        *,
        stale_words: StaleWords,
        batch_size: int,
        poll_interval_s: float,
        flush_interval_s: float,
    ) -> None:
        self._url = url
        self._poll_interval_s = poll_interval_s
        self._stale_words = stale_words
        self._outbox = outbox
        self._kept = list(projections)
        self._of_words = [name for name in projections if PROJECTIONS[name].store == "hybrid"]
        self._followers = [
            Follower(name, outbox, builds, projection, batch_size=batch_size, flush_interval_s=flush_interval_s)
            for name, projection in projections.items()
        ]

    async def run(self) -> None:
        """Apply the outbox until cancelled, through outages of Postgres and of the projections."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                async with await listen(self._url, CHANNEL, name="lamina indexer", lock=_LOCK) as connection:
                    pause = FIRST_PAUSE_S
                    await self._follow(connection)
            except (psycopg.Error, OSError) as error:
                logger.warning("indexer: postgres does not answer, retrying: %s", describe_error(error))
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE_S, pause * 2)

    async def drain(self) -> int:
        """Apply and flush everything that is in the outbox now; return the number of rows applied."""
        counts = await asyncio.gather(*(follower.drain() for follower in self._followers))
        return sum(counts)

    async def renew(self) -> bool:
        """Bring the entries of an earlier release up to the words of this one; report whether none is left.

        Stores are built anew beside those that searches use; texts in Postgres are indexed anew page by page.
        """
        is_ordered = await asyncio.to_thread(order_outdated, self._url, self._of_words)
        while await self._stale_words.renew():
            pass
        return is_ordered

    async def give_up_unkept(self) -> int:
        """Delete old changes of projections that are not kept here; return how many."""
        return await self._outbox.give_up(self._kept, datetime.now(UTC) - UNKEPT)

    async def _follow(self, connection: Connection) -> None:
        """Follow each projection by a task of its own, and end them all with the connection."""
        renew = repeat(self.renew, "indexer: words of an earlier release are not renewed yet", every_s=LONGEST_PAUSE_S)
        give_up = repeat(
            self.give_up_unkept, "indexer: changes that nobody takes are not removed yet", every_s=GIVE_UP_EVERY_S
        )
        works = (*(follower.run() for follower in self._followers), renew, give_up)
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await self._wake_when_notified(connection)
        finally:
            await cancel_all(tasks)

    async def _wake_when_notified(self, connection: Connection) -> None:
        while True:
            heard = connection.notifies(timeout=self._poll_interval_s, stop_after=1)
            payloads = [notification.payload async for notification in heard]
            if not payloads:
                await AsyncConnectionPool.check_connection(connection)  # a dead connection notifies nobody
            for follower in self._followers:
                follower.hear(payloads)


def is_for(projection: ProjectionName, payloads: Sequence[str]) -> bool:
    """Report whether notifications concern a projection.

    Args:
        projection: The projection.
        payloads: Each with the names of some, or without one for all; there are none after a timeout, which is for all.
    """
    return not payloads or any(not payload or projection in payload.split(",") for payload in payloads)


def flush_due(began: float, applied_at: float, *, interval_s: float, flush_s: float) -> float:
    """Return when applied changes are flushed: after a pause of the writers, or in time while they go on.

    The embedded index holds the interpreter while the disk writes, 20 to 270 ms: everybody waits for it.

    Args:
        began: When the first of them was applied, in seconds, like every other time here.
        applied_at: When the last one was.
        interval_s: How long they wait for more.
        flush_s: How long the last flush took.
    """
    latest_s = max(interval_s, min(FLUSH_SHARE * flush_s, LONGEST_UNFLUSHED_S))
    return min(applied_at + interval_s, began + latest_s)


class Follower:
    """Keeps one projection up to date; a failing one holds up no other.

    While the projection is rebuilt, both stores take the changes; the new one replaces the old one when it has
    everything that existed when the build was ordered.

    Args:
        name: Name of the projection.
        outbox: The outbox.
        builds: The builds under way.
        projection: Its store.
        batch_size: Most rows applied at once.
        flush_interval_s: How long applied changes wait to be flushed together.
    """

    def __init__(
        self,
        name: ProjectionName,
        outbox: Outbox,
        builds: Builds,
        projection: Projection[Any],
        *,
        batch_size: int,
        flush_interval_s: float,
    ) -> None:
        self._name = name
        self._outbox = outbox
        self._builds = builds
        self._projection = projection
        self._beside: Projection[Any] | None = None
        self._next_look = 0.0
        self._batch_size = batch_size
        self._flush_interval_s = flush_interval_s
        self._applied: list[int] = []
        self._applied_at = -GATHER_S
        self._flush_s = 0.0
        self._turn = asyncio.Lock()
        self.wake = asyncio.Event()

    def hear(self, payloads: Sequence[str]) -> None:
        """Wake up if one of these notifications concerns the projection."""
        if is_for(self._name, payloads):
            self.wake.set()

    async def run(self) -> None:
        """Apply changes until cancelled; a projection that fails is tried again, ever more slowly."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                await self._step()
                pause = FIRST_PAUSE_S
            except Exception as error:  # noqa: BLE001 - the rows stay in the outbox
                logger.warning("indexer: %s does not take changes, retrying: %s", self._name, describe_error(error))
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE_S, pause * 2)

    async def drain(self) -> int:
        """Apply and flush everything that is in the outbox now; return the number of rows applied."""
        async with self._turn:
            count = await self._apply()
            await self._flush()
            await self._switch_if_full()
            return count

    async def _step(self) -> None:
        await self._apply_together()
        async with self._turn:
            if not self._applied:
                await self._look_for_build()
        if not self._applied:
            await self.wake.wait()
            return
        await self._gather_more()
        async with self._turn:
            await self._flush()
            await self._look_for_build()

    async def _gather_more(self) -> None:
        """Apply all changes that come until the next flush, so that one serves them."""
        began = time.monotonic()
        while len(self._applied) < MAX_UNFLUSHED:
            due = flush_due(began, self._applied_at, interval_s=self._flush_interval_s, flush_s=self._flush_s)
            if (left := due - time.monotonic()) <= 0:
                break
            # Not wait_for: in Python 3.11 it loses a cancellation that comes together with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self.wake.wait()
            await self._apply_together()

    async def _apply_together(self) -> None:
        """Apply all waiting changes, and those that come right after the last application."""
        await asyncio.sleep(max(0.0, self._applied_at + GATHER_S - time.monotonic()))
        # Cleared before the outbox is read: a notification that comes while it is read must not be lost.
        self.wake.clear()
        async with self._turn:
            if await self._apply():
                self._applied_at = time.monotonic()

    async def _apply(self) -> int:
        total = 0
        while (batch := await self._outbox.take(self._name, self._batch_size, self._applied)).seqs:
            changes = await self._outbox.changes(self._name, batch.ids, batch.seqs)
            if batch.build is not None and isinstance(self._projection, Rebuildable):
                self._beside = self._projection.beside(batch.build)
            else:
                self._beside = None
            # First the store that searches use: a build that fails must not keep a change from it.
            await self._projection.apply(changes)
            await self._do_beside(methodcaller("apply", changes))
            self._applied += batch.seqs
            total += len(batch.seqs)
            if len(self._applied) >= MAX_UNFLUSHED:
                await self._flush()
            if len(batch.seqs) < self._batch_size and self._name not in IN_TURNS:
                break  # There were no more, and what came meanwhile has woken this follower.
        return total

    async def _flush(self) -> None:
        # A store that cannot flush may have lost changes: then they are all applied again.
        applied, self._applied = self._applied, []
        if applied:
            began = time.monotonic()
            await self._projection.flush()
            self._flush_s = time.monotonic() - began
            await self._do_beside(methodcaller("flush"))
            # Only after the flush: a row that left the outbox before would be lost in a crash.
            await self._outbox.finish(applied)

    async def _do_beside(self, act: Callable[[Projection[Any]], Awaitable[None]]) -> None:
        """Call the build, or give it up: it must not hold up the projection that searches use."""
        if self._beside is None:
            return
        for pause_s in BUILD_PAUSES_S:
            try:
                await act(self._beside)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the build's alone
                logger.warning("indexer: the build of %s does not take changes: %s", self._name, describe_error(error))
                await asyncio.sleep(pause_s)
            else:
                return
        await self._give_up()

    async def _give_up(self) -> None:
        build = await self._builds.asked(self._name)
        if build is not None:
            await self._builds.finish(self._name, build)
            logger.error("indexer: build %s of %s is given up; order it again when its store works", build, self._name)
        self._beside = None

    async def _look_for_build(self) -> None:
        """Switch to a build that is full; without one, every write wakes this follower, and once a second is enough."""
        now = time.monotonic()
        if self._beside is not None or now >= self._next_look:
            self._next_look = now + LOOK_S
            await self._switch_if_full()

    async def _switch_if_full(self) -> None:
        build = await self._builds.full(self._name)
        if build is None:
            return
        if isinstance(self._projection, Rebuildable):
            await self._projection.switch(build)
        await self._builds.finish(self._name, build)
        self._beside = None
