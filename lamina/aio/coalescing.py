"""Batching of small calls without a delay."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from lamina.errors import Overloaded, Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")


class Coalescer(Generic[Item, Result]):
    """Batches the items that queue up while earlier calls are in flight.

    At low load every item is sent at once, alone; under load the batches grow by themselves. A caller that is
    cancelled loses only its own result: its batch goes on.

    Args:
        call: Takes items, returns as many results in their order.
        part: Name of what is called, for errors.
        max_items: Most items of one call.
        max_in_flight: Most calls at the same time.
        max_queued: Most items that wait; beyond it the newest is refused.
        weigh: Cost of an item in units of ``max_items``; 1 each by default.
        is_sent_singly: Whether a batch that fails is sent again item by item, so that nobody fails by what another
            one asked, nor learns of it.
        patience_s: How long items wait for the last call to end, with which more of them would travel together, before
            a further one begins beside it.
        enough: As many items wait for nothing.
    """

    def __init__(
        self,
        call: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        part: str,
        max_items: int = 32,
        max_in_flight: int = 2,
        max_queued: int = 1024,
        weigh: Callable[[Item], int] = lambda _: 1,
        is_sent_singly: bool = False,
        patience_s: float = 0.0,
        enough: int = 1,
    ) -> None:
        self._is_sent_singly = is_sent_singly
        self._call = call
        self._part = part
        self._max_items = max_items
        self._max_in_flight = max_in_flight
        self._max_queued = max_queued
        self._weigh = weigh
        self._patience_s = patience_s
        self._enough = enough
        self._began_at = 0.0
        self._waiting: asyncio.TimerHandle | None = None
        self._queue: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._in_flight: set[asyncio.Task[None]] = set()

    async def submit(self, item: Item) -> Result:
        """Return the item's result.

        Raises:
            Overloaded: If the queue is full.
            Unavailable: If the call returned another number of results than it was given items.
            Exception: Any error that the call raised for the item's batch; where batches that fail are sent singly,
                for the item alone, but for an :class:`Overloaded`.
        """
        if len(self._queue) >= self._max_queued:
            # Entries of cancelled callers do not count. They are removed only here, since each removal searches the
            # whole queue.
            self._queue = deque(entry for entry in self._queue if not entry[1].done())
        if len(self._queue) >= self._max_queued:
            raise Overloaded(self._part, f"{self._max_queued} calls are waiting")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue.append((item, future))
        self._pump()
        return await future

    def _pump(self) -> None:
        while self._queue and len(self._in_flight) < self._max_in_flight and not self._waits_for_company():
            self._began_at = asyncio.get_running_loop().time()
            task = asyncio.create_task(self._send(self._take()))
            self._in_flight.add(task)
            task.add_done_callback(self._landed)

    def _waits_for_company(self) -> bool:
        """Report whether calls are better sent when the last one has ended; look again when patience ends."""
        loop = asyncio.get_running_loop()
        left_s = self._began_at + self._patience_s - loop.time()
        if not self._in_flight or len(self._queue) >= self._enough or left_s <= 0:
            return False
        if self._waiting is None:
            self._waiting = loop.call_later(left_s, self._end_waiting)
        return True

    def _end_waiting(self) -> None:
        self._waiting = None
        self._pump()

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        self._pump()

    def _take(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        weight = 0
        # The first item goes out whatever it weighs; it would wait forever otherwise.
        while self._queue and (not batch or weight + self._weigh(self._queue[0][0]) <= self._max_items):
            entry = self._queue.popleft()
            if not entry[1].done():
                batch.append(entry)
                weight += self._weigh(entry[0])
        return batch

    async def _send(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        waiting = [entry for entry in batch if not entry[1].done()]
        if not waiting:  # All its callers were cancelled.
            return
        try:
            results = await self._call([item for item, _ in waiting])
            self._settle(waiting, results)
        except asyncio.CancelledError:
            _fail(waiting, Unavailable(self._part, "the process is stopping"))
            raise
        except Exception as error:  # noqa: BLE001 - every waiter must learn of it
            # A full queue is nobody's fault among them.
            if self._is_sent_singly and len(waiting) > 1 and not isinstance(error, Overloaded):
                await self._send_each(waiting)
            else:
                _fail(waiting, error)

    async def _send_each(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            for entry in batch:
                await self._send([entry])
        except asyncio.CancelledError:
            _fail(batch, Unavailable(self._part, "the process is stopping"))
            raise

    def _settle(self, batch: list[tuple[Item, asyncio.Future[Result]]], results: Sequence[Result]) -> None:
        if len(results) != len(batch):
            raise Unavailable(self._part, f"it returned {len(results)} results for {len(batch)} items")
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)


def _fail(batch: Sequence[tuple[object, "asyncio.Future[Result]"]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
