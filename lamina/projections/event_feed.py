"""The events of a process's open streams, found by one poll for all of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from lamina.aio.cancelling import cancel_all
from lamina.aio.repeating import repeat
from lamina.core.events import EventFilter, StoredEvent
from lamina.core.ports import Clock
from lamina.errors import InvalidInput, LimitReached
from lamina.stores.postgres.events import Events

MOST_NEW = 1_000
"""Events that one look hands to streams; after more they read for themselves."""
PAGE = 200
HANDED_OVER_S = 5.0
"""A slow reader's batch is read anew after that: a user may have been erased meanwhile."""
RETRY_S = 10
_UUID7 = 7


@dataclass(frozen=True, slots=True)
class Start:
    """The place at which a reader begins.

    Args:
        position: After it.
        is_missing_some: Whether events that the reader did not see are gone.
    """

    position: int
    is_missing_some: bool = False


@dataclass(frozen=True, slots=True)
class _Batch:
    """All that is new for a tenant since its stream was handed something, or since it began to read."""

    until: int
    events: Sequence[StoredEvent]
    at: float


@dataclass(slots=True, eq=False)
class Subscription:
    """An open stream of a tenant."""

    tenant: str
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _batch: _Batch | None = None

    def offer(self, batch: _Batch | None) -> None:
        """Hand over new events, or ``None`` to have them read; one batch waits at most, however slow the reader is."""
        self._batch = None if self._woken.is_set() else batch
        self._woken.set()

    async def take(self, timeout_s: float) -> tuple[bool, _Batch | None]:
        """Wait for new events; report whether there are any, with them if they can be used as they are."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False, None
        batch, self._batch = self._batch, None
        self._woken.clear()
        return True, batch


class EventFeed:
    """Follows the events for all streams of a process.

    One look each ``poll_s`` finds the new events of all tenants that have streams; a reader that is behind reads pages
    for itself. What waits for a reader is one batch at most.

    Args:
        events: Reads events.
        poll_s: Seconds between two looks, while there are streams.
        streams: Most streams.
        tenant_streams: Most streams of one tenant.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        events: Events,
        *,
        poll_s: float,
        streams: int,
        tenant_streams: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._events = events
        self._poll_s = poll_s
        self._streams = streams
        self._tenant_streams = tenant_streams
        self._clock = clock
        self._open: set[Subscription] = set()
        self._following: asyncio.Task[None] | None = None
        self._looked_up_to: int | None = None

    @property
    def open_streams(self) -> int:
        """Number of open streams."""
        return len(self._open)

    @contextmanager
    def subscribe(self, tenant: str) -> Iterator[Subscription]:
        """Open a stream.

        Raises:
            LimitReached: If the tenant, or all together, have the most that they may.
        """
        if sum(one.tenant == tenant for one in self._open) >= self._tenant_streams:
            raise LimitReached("tenant", f"{self._tenant_streams} open streams of events", RETRY_S)
        if len(self._open) >= self._streams:
            raise LimitReached("router", f"{self._streams} open streams of events", RETRY_S)
        subscription = Subscription(tenant)
        self._open.add(subscription)
        if self._following is None or self._following.done():
            self._looked_up_to = None
            following = repeat(self._look, "events: cannot look for new ones", every_s=self._poll_s)
            self._following = asyncio.create_task(following)
        try:
            yield subscription
        finally:
            self._open.discard(subscription)

    async def follow(
        self, subscription: Subscription, wanted: EventFilter, after: int, heartbeat_s: float
    ) -> AsyncIterator[Sequence[StoredEvent]]:
        """Yield events in their order, without an end; an empty list each time that there are none for a while."""
        position, is_behind = after, True
        while True:
            if is_behind:
                page = await self._events.page(subscription.tenant, wanted, position, PAGE)
                position, is_behind = page.until, page.is_full
                if page.events:
                    yield page.events
                continue
            is_news, batch = await subscription.take(heartbeat_s)
            if not is_news:
                yield ()
            elif batch is None or self._clock() - batch.at > HANDED_OVER_S:
                is_behind = True
            else:
                events = [one for one in batch.events if one.position > position and wanted.admits(one.event)]
                position = max(position, batch.until)
                if events:
                    yield events

    async def close(self) -> None:
        """Stop looking for events."""
        if self._following is not None:
            await cancel_all([self._following])

    async def _look(self) -> bool:
        """Hand new events to the streams; report whether none is open any more."""
        if not self._open:
            return True
        settled, position = await self._events.settled(), self._looked_up_to
        if position is None:  # The streams have read up to some place before.
            for subscription in tuple(self._open):
                subscription.offer(None)
        elif settled > position:
            tenants = {subscription.tenant for subscription in self._open}
            found = await self._events.new(tenants, position, settled, MOST_NEW)
            self._hand_over(found, settled)
        self._looked_up_to = settled
        return False

    def _hand_over(self, found: Sequence[StoredEvent], until: int) -> None:
        of_tenant: dict[str, list[StoredEvent]] = {}
        for one in found:
            of_tenant.setdefault(one.event.tenant, []).append(one)
        for subscription in tuple(self._open):
            own = of_tenant.get(subscription.tenant, [])
            if len(found) == MOST_NEW:
                subscription.offer(None)
            elif own:
                subscription.offer(_Batch(until, own, self._clock()))


async def place_after(events: Events, tenant: str, last_id: UUID, now: Clock) -> Start:
    """Return the place after the event that a reader saw last.

    Raises:
        InvalidInput: If the tenant never had such an event.
    """
    position = await events.find(tenant, last_id)
    if position is not None:
        return Start(position)
    oldest = await events.oldest_at(tenant)
    seen_at = (last_id.int >> 80) / 1_000 if last_id.version == _UUID7 else None
    kept_since = now() if oldest is None else oldest
    if seen_at is None or seen_at >= kept_since.timestamp():
        raise InvalidInput("after", f"names {last_id}, which is no event of this tenant; leave it out to begin anew")
    return Start(0, is_missing_some=True)
