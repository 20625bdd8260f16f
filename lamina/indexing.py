"""The indexer: applies the outbox to the projections, at least once, in batches."""

import asyncio
import logging
import time
from collections.abc import Mapping

import psycopg
from psycopg.rows import dict_row

from lamina.ports import Projection
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.outbox import CHANNEL, Lag, Outbox, ProjectionName

logger = logging.getLogger(__name__)
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 5.0
MAX_UNFLUSHED = 4096
_LOCK = 0x6F7574626F78  # "outbox"


class Indexer:
    """Keeps projections up to date.

    Changes become visible at once and are flushed together now and then; a row leaves the outbox
    after the flush. A crash in between repeats the application, which is idempotent. One indexer
    works at a time: an advisory lock on the listening connection keeps a second one waiting.

    Args:
        url: Postgres, for the listening connection.
        outbox: The outbox.
        projections: Where each kind of memory goes.
        batch_size: Most rows applied at once.
        poll_interval_s: Longest sleep without a notification.
        flush_interval_s: How long applied changes wait to be flushed together.
    """

    def __init__(
        self,
        url: str,
        outbox: Outbox,
        projections: Mapping[ProjectionName, Projection],
        *,
        batch_size: int,
        poll_interval_s: float,
        flush_interval_s: float,
    ) -> None:
        self._url = url
        self._outbox = outbox
        self._projections = projections
        self._batch_size = batch_size
        self._poll_interval_s = poll_interval_s
        self._flush_interval_s = flush_interval_s
        self._applied: dict[ProjectionName, list[int]] = {name: [] for name in projections}
        self._flush_at = float("inf")

    async def run(self) -> None:
        """Apply the outbox until cancelled, through outages of Postgres and of the projections."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                async with await _listen(self._url) as connection:
                    pause = FIRST_PAUSE_S
                    await self._follow(connection)
            except (psycopg.Error, OSError) as error:
                logger.warning("indexer: postgres does not answer, retrying", extra={"error": str(error)})
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE_S, pause * 2)

    async def lag(self) -> Mapping[str, Lag]:
        """Return how far each projection is behind."""
        return await self._outbox.lag()

    async def _follow(self, connection: Connection) -> None:
        pause = FIRST_PAUSE_S
        while True:
            try:
                await self._apply_all()
                if time.monotonic() >= self._flush_at:
                    await self._flush_all()
                pause = FIRST_PAUSE_S
            except Exception as error:  # noqa: BLE001 - the rows stay in the outbox and are tried again
                logger.warning("indexer: a projection does not take changes, retrying", extra={"error": str(error)})
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE_S, pause * 2)
                continue
            await self._sleep_until_notified(connection)

    async def _sleep_until_notified(self, connection: Connection) -> None:
        longest = min(self._poll_interval_s, max(0.0, self._flush_at - time.monotonic()))
        async for _ in connection.notifies(timeout=longest, stop_after=1):
            return

    async def drain(self) -> int:
        """Apply and flush everything that is in the outbox now; return the number of rows applied."""
        count = await self._apply_all()
        await self._flush_all()
        return count

    async def _apply_all(self) -> int:
        counts = await asyncio.gather(*(self._apply(name) for name in self._projections))
        if any(self._applied.values()):
            self._flush_at = min(self._flush_at, time.monotonic() + self._flush_interval_s)
        return sum(counts)

    async def _apply(self, name: ProjectionName) -> int:
        total = 0
        while batch := await self._outbox.take(name, self._batch_size, self._applied[name]):
            changes = await self._outbox.changes(name, [id_ for _, id_ in batch])
            await self._projections[name].apply(changes)
            self._applied[name] += [seq for seq, _ in batch]
            total += len(batch)
            if len(self._applied[name]) >= MAX_UNFLUSHED:
                await self._flush(name)
        return total

    async def _flush_all(self) -> None:
        await asyncio.gather(*(self._flush(name) for name in self._projections))
        self._flush_at = float("inf")

    async def _flush(self, name: ProjectionName) -> None:
        applied, self._applied[name] = self._applied[name], []
        if not applied:
            return
        try:
            await self._projections[name].flush()
            await self._outbox.finish(applied)
        except BaseException:
            self._applied[name] += applied
            raise


async def _listen(url: str) -> Connection:
    connection = await psycopg.AsyncConnection.connect(
        url, autocommit=True, connect_timeout=5, row_factory=dict_row, application_name="lamina indexer"
    )
    try:
        await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        await connection.execute(f"LISTEN {CHANNEL}".encode())
    except BaseException:
        await connection.close()
        raise
    return connection
