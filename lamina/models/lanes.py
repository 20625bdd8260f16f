"""Two queues before one model: questions first, and tenants in turns."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

from lamina.errors import Overloaded, Unavailable
from lamina.models.passes import ENOUGH_TOKENS, passes
from lamina.policies.limits.company import Company
from lamina.policies.limits.fair_queue import FairQueue, QueuedCall

PASS_S = 0.1
"""Seconds that a pass should take: a question that comes meanwhile waits for one."""
FIRST_TOKENS, LEAST_TOKENS = 2_048, 256
"""Tokens of the first pass, before the speed of the model is known, and of the smallest."""
MOST_IN_A_ROW = 4
"""Passes of questions after which one of the others is due: they are late, but never starve."""
QUIET_S = 1.0
"""Seconds after a question for which one processor of several is left to questions and the rest of their searches."""
_LATEST = 2
"""Tenants of which it is known when they asked: enough to say of each whether another one does."""
PASSES_PLANNED = 4
"""Passes of what is written that are sorted by length together; a question is embedded between any two of them."""

Encode = Callable[[Sequence[str], Sequence[int], bool], Awaitable[Sequence[bytes]]]


@dataclass(slots=True, eq=False)
class _Call(QueuedCall):
    """Texts that wait for their vectors, and the vectors so far, by their places."""

    pieces: Sequence[str] = ()
    vectors: dict[int, bytes] = field(default_factory=dict)
    future: "asyncio.Future[list[bytes]]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fail(self, error: Exception) -> None:
        """Tell the caller of an error; nothing more of the call is embedded."""
        self.is_given_up = True
        if not self.future.done():
            self.future.set_exception(error)

    def settle(self, place: int, vector: bytes) -> None:
        """Keep a vector, and answer the caller if it was the last one."""
        self.vectors[place] = vector
        if len(self.vectors) == len(self.pieces) and not self.future.done():
            self.future.set_result([self.vectors[number] for number in range(len(self.pieces))])


_Items = list[tuple[_Call, int]]


@dataclass(frozen=True, slots=True)
class _Pass:
    """Texts that are embedded together, each as its call and its place there."""

    items: _Items
    is_question: bool


class _Lane:
    """One queue, and those of its texts that were sorted into passes.

    Args:
        most_calls: Most calls that wait.
        is_question: Whether its texts are questions.
    """

    def __init__(self, most_calls: int, *, is_question: bool) -> None:
        self.queue: FairQueue[_Call] = FairQueue(most_calls)
        self._is_question = is_question
        self._planned = 1 if is_question else PASSES_PLANNED
        self._passes: deque[_Items] = deque()
        self._is_turn_of_plan = False

    def next_pass(self, most_tokens: int, most_texts: int) -> _Pass | None:
        """Return the next pass, without the texts for which nobody waits any more.

        A tenant of which no text is planned yet has a pass before those that are, with one of these after it.
        """
        planned = {call.tenant for items in self._passes for call, _ in items}
        if planned and not self._is_turn_of_plan and self.queue.has_others_than(planned):
            self._passes.extendleft(reversed(self._plan(1, most_tokens, most_texts)))
            self._is_turn_of_plan = True
        else:
            self._is_turn_of_plan = False
        while True:
            if not self._passes:
                self._passes.extend(self._plan(self._planned, most_tokens, most_texts))
            if not self._passes:
                return None
            wanted = [item for item in self._passes.popleft() if not item[0].is_given_up]
            if wanted:
                return _Pass(wanted, self._is_question)

    def has_full_pass(self, most_tokens: int) -> bool:
        """Report whether as much waits as one pass takes, or a part of a plan."""
        return bool(self._passes) or self.queue.tokens() >= most_tokens

    def has_others_than(self, tenants: Collection[str]) -> bool:
        """Report whether a text of another tenant waits."""
        planned = (call for items in self._passes for call, _ in items if not call.is_given_up)
        return self.queue.has_others_than(tenants) or any(call.tenant not in tenants for call in planned)

    def calls(self) -> list[_Call]:
        """Return all calls of which a text waits."""
        return [*self.queue.calls(), *(call for planned in self._passes for call, _ in planned)]

    def _plan(self, count: int, most_tokens: int, most_texts: int) -> list[_Items]:
        taken = self.queue.take(count * most_tokens, count * most_texts)
        lengths = [call.tokens[place] for call, place in taken]
        found = passes(lengths, most_texts=most_texts, most_tokens=most_tokens)
        return [[taken[number] for number in numbers] for numbers in found]


class ModelLanes:
    """Runs a model over a pass at a time, or several side by side, whose size follows from the model's speed.

    A call of many texts is embedded in parts, in turn with the others of its queue, so that it holds up neither a
    question nor a short write. A pass that fails is embedded again call by call: one fails by its own texts alone.

    Args:
        encode: Embeds texts, given their tokens and whether they are questions.
        most_texts: Most texts of a pass.
        most_tokens: Most tokens of a pass, padding included.
        at_once: Passes that run side by side.
        most_calls: Calls that may wait in each queue.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        encode: Encode,
        *,
        most_texts: int,
        most_tokens: int,
        at_once: int = 1,
        most_calls: int = 512,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._encode = encode
        self._most_texts = most_texts
        self._most_tokens = most_tokens
        self._at_once = at_once
        self._clock = clock
        self._questions = _Lane(most_calls, is_question=True)
        self._others = _Lane(most_calls, is_question=False)
        self._tokens = min(FIRST_TOKENS, most_tokens)
        self._in_a_row = 0
        self._asked_at = -QUIET_S
        self._askers: OrderedDict[str, float] = OrderedDict()
        self._company = Company()
        self._waiting_since = 0.0
        self._hair: asyncio.TimerHandle | None = None
        self._has_waited = False
        self._running: dict[asyncio.Task[None], _Pass] = {}

    async def submit(
        self, pieces: Sequence[str], tokens: Sequence[int], *, tenant: str, is_question: bool
    ) -> list[bytes]:
        """Return the vector of each text.

        Args:
            pieces: The texts.
            tokens: Of each text.
            tenant: Who waits for them.
            is_question: Whether somebody waits for an answer.

        Raises:
            Overloaded: If the queue is full.
            Exception: Whatever the model raised for a pass of these texts.
        """
        if not pieces:
            return []
        lane = self._questions if is_question else self._others
        if lane.queue.is_full_for(tenant):
            raise Overloaded("embedder", "its queue is full")
        if is_question:
            self._asked_at = self._askers[tenant] = self._clock()
            self._askers.move_to_end(tenant)
            if len(self._askers) > _LATEST:
                self._askers.popitem(last=False)
            if not lane.calls():
                self._waiting_since = self._asked_at
        call = _Call(tenant, tokens, pieces=pieces)
        lane.queue.put(call)
        self._start()
        try:
            return await call.future
        finally:
            call.is_given_up = True

    def _start(self) -> None:
        self._wait_for_company()
        while len(self._running) < self._at_once and (batch := self._next_pass()):
            worker = asyncio.create_task(self._embed(batch))
            self._running[worker] = batch
            worker.add_done_callback(self._ended)

    def _ended(self, worker: asyncio.Task[None]) -> None:
        batch = self._running.pop(worker)
        if worker.cancelled():
            for call in (*(call for call, _ in batch.items), *self._questions.calls(), *self._others.calls()):
                call.fail(Unavailable("embedder", "the process is stopping"))
        else:
            self._start()

    async def _embed(self, batch: _Pass) -> None:
        tokens = [call.tokens[place] for call, place in batch.items]
        began = self._clock()
        try:
            pieces = [call.pieces[place] for call, place in batch.items]
            vectors = await self._encode(pieces, tokens, batch.is_question)
        except Exception as error:  # noqa: BLE001 - every waiter must learn of it
            calls = list(dict.fromkeys(call for call, _ in batch.items))
            if len(calls) == 1:
                calls[0].fail(error)
                return
            for call in calls:
                if not call.is_given_up:  # Its caller may go while another is embedded.
                    own = [item for item in batch.items if item[0] is call]
                    await self._embed(_Pass(own, batch.is_question))
        else:
            self._follow_speed(sum(tokens), self._clock() - began)
            for (call, place), vector in zip(batch.items, vectors, strict=True):
                call.settle(place, vector)

    def _follow_speed(self, tokens: int, seconds: float) -> None:
        """Set the size of passes by the time of the last; a small one that was quick says nothing of a large one."""
        if tokens >= self._tokens / 2 or seconds > PASS_S:
            wanted = int(tokens * PASS_S / max(seconds, 1e-6))
            self._tokens = min(self._most_tokens, max(LEAST_TOKENS, min(wanted, 2 * self._tokens)))

    def _next_pass(self) -> _Pass | None:
        lanes = [lane for lane in (self._questions, self._others) if self._has_place(lane)]
        if self._in_a_row >= MOST_IN_A_ROW:
            lanes.reverse()
        for lane in lanes:
            if found := lane.next_pass(self._tokens, self._most_texts):
                if found.is_question:
                    self._has_waited = False
                    self._company.add(len({id(call) for call, _ in found.items}))
                self._in_a_row = self._in_a_row + 1 if found.is_question else 0
                return found
        return None

    def _wait_for_company(self) -> None:
        """Begin or end the waiting of the questions for more of them."""
        is_over = self._has_waited or self._questions.has_full_pass(self._tokens)
        waited_s = self._clock() - self._waiting_since
        wait_s = 0.0 if is_over else self._company.wait_s(len(self._questions.calls()), waited_s)
        if wait_s and self._hair is None:
            self._hair = asyncio.get_running_loop().call_later(wait_s, self._end_waiting)
        elif not wait_s and self._hair is not None:
            self._hair.cancel()
            self._hair = None

    def _end_waiting(self) -> None:
        self._has_waited, self._hair = True, None
        self._start()

    def _may_ask_beside(self) -> bool:
        """Report whether questions may be embedded beside others.

        The last place is left to another tenant that asks, too: the longest questions of one would take all processors
        from the rest of its requests as well. It takes it at once if it would wait for a long pass.
        """
        running = [item for batch in self._running.values() if batch.is_question for item in batch.items]
        has_others = self._questions.has_others_than({call.tenant for call, _ in running})
        if has_others and sum(call.tokens[place] for call, place in running) >= ENOUGH_TOKENS:
            return True
        is_last = len(self._running) >= self._at_once - 1
        is_shared = sum(1 for at in self._askers.values() if self._clock() - at < QUIET_S) > 1
        return self._questions.has_full_pass(self._tokens) and (has_others or not (is_last and is_shared))

    def _has_place(self, lane: _Lane) -> bool:
        """Report whether a pass of the lane may begin.

        Questions that come while others are embedded are the next pass together, which costs less than one for each;
        a second one runs beside it only if it is full. While questions come, one place is left to them, and while they
        wait for more, also the only one.
        """
        asking = sum(1 for batch in self._running.values() if batch.is_question)
        if lane is self._questions:
            return self._hair is None and (not asking or self._may_ask_beside())
        if self._hair is not None:
            return len(self._running) - asking < self._at_once - 1
        is_asked = self._clock() - self._asked_at < QUIET_S
        return len(self._running) - asking < (max(1, self._at_once - 1) if is_asked else self._at_once)
