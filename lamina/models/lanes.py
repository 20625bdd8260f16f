"""Two queues before one model: questions first, long work in slices."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from lamina.errors import Overloaded, Unavailable

SLICE_S = 0.25
"""Seconds that a batch should take: a question that comes meanwhile waits for one."""
FIRST_CHARS, LEAST_CHARS = 8_000, 2_000
"""Characters of the first batch, before the speed of the model is known, and of the smallest."""
MOST_IN_A_ROW = 4
"""Batches of questions after which one of the others is due: they are late, but never starve."""

Encode = Callable[[Sequence[str]], Awaitable[Sequence[bytes]]]


@dataclass(slots=True)
class _Call:
    """Texts that wait for their vectors, and the vectors so far."""

    pieces: Sequence[str]
    future: "asyncio.Future[list[bytes]]"
    vectors: list[bytes] = field(default_factory=list)
    taken: int = 0


_Batch = list[tuple[_Call, int]]


class ModelLanes:
    """Runs a model over one batch at a time, whose size follows from the model's speed.

    A call of many texts is embedded slice by slice, in turn with the others of its queue, so that it holds up neither
    a question nor a short write. A batch that fails is embedded again call by call: one fails by its own texts alone.

    Args:
        encode: Embeds a batch.
        max_items: Most texts of a batch.
        max_queued: Most calls that wait in a queue.
    """

    def __init__(self, encode: Encode, *, max_items: int, max_queued: int) -> None:
        self._encode = encode
        self._max_items = max_items
        self._max_queued = max_queued
        self._questions: deque[_Call] = deque()
        self._others: deque[_Call] = deque()
        self._chars = FIRST_CHARS
        self._in_a_row = 0
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, pieces: Sequence[str], *, is_question: bool) -> list[bytes]:
        """Return the vector of each text.

        Raises:
            Overloaded: If the queue is full.
            Exception: Whatever the model raised for a batch of these texts.
        """
        queue = self._questions if is_question else self._others
        waiting = sum(1 for call in queue if not call.taken and not call.future.done())
        if waiting >= self._max_queued:
            raise Overloaded("embedder", f"{self._max_queued} calls are waiting")
        call = _Call(pieces, asyncio.get_running_loop().create_future())
        queue.append(call)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(self._next_batch()))
        return await call.future

    async def _work(self, batch: _Batch) -> None:
        while batch:
            try:
                await self._embed(batch)
            except asyncio.CancelledError:
                stopping = Unavailable("embedder", "the process is stopping")
                _fail([*(call for call, _ in batch), *self._questions, *self._others], stopping)
                raise
            batch = self._next_batch()

    async def _embed(self, batch: _Batch) -> None:
        texts = [text for call, count in batch for text in call.pieces[call.taken - count : call.taken]]
        began = time.perf_counter()
        try:
            vectors = await self._encode(texts)
        except Exception as error:  # noqa: BLE001 - every waiter must learn of it
            if len(batch) == 1:
                _fail([call for call, _ in batch], error)
                return
            for item in batch:
                await self._embed([item])
        else:
            self._follow_speed(sum(map(len, texts)), time.perf_counter() - began)
            _settle(batch, iter(vectors))

    def _follow_speed(self, chars: int, seconds: float) -> None:
        """Set the size of batches by the time of the last; a small one that was quick says nothing of a large one."""
        if chars >= self._chars / 2 or seconds > SLICE_S:
            wanted = int(chars * SLICE_S / max(seconds, 1e-6))
            self._chars = max(LEAST_CHARS, min(wanted, 2 * self._chars))

    def _next_queue(self) -> deque[_Call]:
        # Callers that gave up take no place.
        for queue in (self._questions, self._others):
            waiting = [call for call in queue if not call.future.done()]
            queue.clear()
            queue.extend(waiting)
        is_turn_of_others = bool(self._others) and self._in_a_row >= MOST_IN_A_ROW
        chosen = self._questions if self._questions and not is_turn_of_others else self._others
        self._in_a_row = self._in_a_row + 1 if chosen is self._questions else 0
        return chosen

    def _next_batch(self) -> _Batch:
        """Return the calls of the next batch, each with the number of its texts in it."""
        queue = self._next_queue()
        batch: _Batch = []
        chars = items = 0
        while queue and items < self._max_items and chars < self._chars:
            call = queue.popleft()
            count = _fitting(call, self._max_items - items, self._chars - chars, is_first=not batch)
            if not count:
                queue.appendleft(call)
                break
            items += count
            chars += sum(map(len, call.pieces[call.taken : call.taken + count]))
            call.taken += count
            batch.append((call, count))
            if call.taken < len(call.pieces):
                queue.append(call)
                break
        return batch


def _fitting(call: _Call, items: int, chars: int, *, is_first: bool) -> int:
    """Return how many of a call's next texts fit; at least one, if the batch is empty."""
    count = 0
    for text in call.pieces[call.taken : call.taken + items]:
        chars -= len(text)
        if chars < 0 and not (is_first and count == 0):
            break
        count += 1
    return count


def _settle(batch: _Batch, vectors: Iterator[bytes]) -> None:
    for call, count in batch:
        call.vectors += islice(vectors, count)
        if len(call.vectors) == len(call.pieces) and not call.future.done():
            call.future.set_result(call.vectors)


def _fail(calls: Sequence[_Call], error: Exception) -> None:
    for call in calls:
        if not call.future.done():
            call.future.set_exception(error)
