"""Write-behind: items are gathered and written in batches, without a caller that waits."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from lamina.errors import describe_error

logger = logging.getLogger(__name__)

Item = TypeVar("Item")


class WriteBehind(Generic[Item]):
    """Gathers items and writes them in batches; for copies that may be lost.

    A task runs only while there are items to write; :meth:`close` ends it. Batches are written one after the other,
    in the order of the items. A batch that fails is dropped.

    Args:
        write: Writes a batch.
        part: Name of the store, for the log.
        window_s: Seconds for which items gather, from the first one; with 0 it is written in the loop's next turn.
        max_items: Most items of a batch; a full batch is written at once.
        capacity: Most items that wait; beyond it the newest is dropped.
        deadline_s: Seconds after which a batch counts as failed, and after which closing gives up.
        on_error: Called for each batch that failed.

    Attributes:
        window_s: As above; a change applies from the next batch on.
        dropped: Number of items that were never written: beyond the capacity, or after the end.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Item]], Awaitable[None]],
        *,
        part: str,
        window_s: float,
        max_items: int = 1000,
        capacity: int = 20_000,
        deadline_s: float = 10.0,
        on_error: Callable[[Exception], None] | None = None,
    ) -> None:
        self._write = write
        self._part = part
        self.window_s = window_s
        self._max_items = max_items
        self._capacity = capacity
        self._deadline_s = deadline_s
        self._on_error = on_error
        self._gathered: deque[Item] = deque()
        self._is_due = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self._accepted = 0
        self._settled = 0
        self._is_closed = False
        self.dropped = 0

    def add(self, item: Item) -> None:
        """Queue an item; returns at once. Call it in a running event loop."""
        if self._is_closed or len(self._gathered) >= self._capacity:
            self.dropped += 1
            return
        self._gathered.append(item)
        self._accepted += 1
        if len(self._gathered) >= self._max_items:
            self._is_due.set()
        self._running()

    async def flush(self) -> None:
        """Wait until the items queued so far are written; a cancelled caller does not stop the writing."""
        accepted = self._accepted
        while self._settled < accepted:
            if self._gathered:
                self._is_due.set()
            # Not awaited itself: a cancelled flush would cancel the batch that it waits for.
            await asyncio.wait([self._running()])

    async def close(self) -> None:
        """Write the rest, for at most the deadline of one batch, and end; later items are dropped."""
        self._is_closed = True
        try:
            async with asyncio.timeout(self._deadline_s):
                await self.flush()
        except TimeoutError:
            logger.warning("%s: %d items stay unwritten at the end", self._part, self._accepted - self._settled)
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End at once: drop waiting items, and cancel the batch that is being written."""
        self._is_closed = True
        self.dropped += len(self._gathered)
        self._settled += len(self._gathered)
        self._gathered.clear()
        if self._writing is not None:
            self._writing.cancel()

    def _running(self) -> asyncio.Task[None]:
        """Return the task that writes the next batch, begun if there is none."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_next())
            self._writing.add_done_callback(self._continue)
        return self._writing

    def _continue(self, task: asyncio.Task[None]) -> None:
        if self._gathered and not task.cancelled():
            self._running()

    async def _write_next(self) -> None:
        await self._gather()
        batch = self._take()
        try:
            if batch:
                await self._try_to_write(batch)
        finally:
            self._settled += len(batch)

    async def _gather(self) -> None:
        if self.window_s > 0:
            # Not wait_for: in Python 3.11 it loses a cancellation that comes together with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(self.window_s):
                    await self._is_due.wait()

    def _take(self) -> list[Item]:
        batch = [self._gathered.popleft() for _ in range(min(self._max_items, len(self._gathered)))]
        if len(self._gathered) < self._max_items:
            self._is_due.clear()
        return batch

    async def _try_to_write(self, batch: list[Item]) -> None:
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._write(batch)
        except Exception as error:  # noqa: BLE001 - the batch is given up
            logger.warning("%s: %d items are not written: %s", self._part, len(batch), describe_error(error))
            if self._on_error is not None:
                self._on_error(error)
