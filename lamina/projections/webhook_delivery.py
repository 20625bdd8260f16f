"""Deliver events to webhooks: at least once, each webhook in the order of its events, by one process at a time."""

import asyncio
import logging
import random
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from importlib import import_module
from uuid import UUID

from lamina.aio.cancelling import cancel_all
from lamina.aio.repeating import repeat
from lamina.core.events import EventFilter, StoredEvent
from lamina.core.memories import new_id
from lamina.core.ports import Clock
from lamina.core.webhooks import DeliveryPolicy, NotTaken, Webhook, pause_after
from lamina.errors import LaminaError
from lamina.stores.postgres.events import Events
from lamina.stores.postgres.webhooks import WebhookTable

logger = logging.getLogger(__name__)
AT_ONCE = 16
AT_ONCE_OF_TENANT = 4
PAGE = 50
_NOT_SENT_AGAIN = "its event has ended"

# Finds the addresses of a host and port.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Resolver:
    """Finds addresses of hosts, in threads of its own: a server of names may hang."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook names")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host."""
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, look_up)
        return [str(address[4][0]) for address in found]


class WebhookDelivery:
    """Sends events to webhooks.

    A webhook is claimed by one process at a time; it sends one event after another, and records each success before
    the next one. A process that dies leaves a claim that ends by itself, and the event that it sent last may be sent
    once more, under the same id.

    Args:
        events: Reads events.
        table: The webhooks.
        policy: How events are sent.
        resolve: Finds addresses.
        clock: The time of day.
    """

    def __init__(
        self, events: Events, table: WebhookTable, policy: DeliveryPolicy, *, resolve: Resolve, clock: Clock
    ) -> None:
        self._events = events
        self._table = table
        self._policy = policy
        self._resolve = resolve
        self._clock = clock
        self._sending: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Deliver until cancelled, through outages."""
        try:
            await repeat(self.start_due, "webhooks: cannot look for those that are due", every_s=self._policy.poll_s)
        finally:
            await cancel_all(self._sending)

    async def deliver_due(self) -> int:
        """Send everything that is due now; return the number of webhooks that it was sent to."""
        claimed = 0
        while count := await self.start_due():
            claimed += count
            await asyncio.gather(*self._sending)
        return claimed

    async def start_due(self) -> int:
        """Begin to send to webhooks that are due, as many as may be sent to at once; return how many."""
        room = AT_ONCE - len(self._sending)
        if room <= 0:
            return 0
        claim = new_id()
        settled = await self._events.settled()
        found = await self._table.claim(claim, settled, limit=room, of_tenant=AT_ONCE_OF_TENANT)
        for webhook in found:
            task = asyncio.create_task(self._serve(webhook, claim))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        return len(found)

    async def _serve(self, webhook: Webhook, claim: UUID) -> None:
        """Send a webhook its due events, and release it."""
        try:
            if await self._send_letters(webhook, claim):
                await self._send_page(webhook, claim)
        except LaminaError as error:  # The claim ends by itself.
            logger.warning("webhooks: postgres does not answer, retrying: %s", error)
        except Exception:  # Others go on, and this one when its claim has ended.
            logger.exception("webhooks: %s cannot be served, retrying", webhook.id)

    async def _send_letters(self, webhook: Webhook, claim: UUID) -> bool:
        """Send dead letters again, up to the first one that is not taken; report whether later events may follow."""
        for position in await self._table.due_letters(webhook.id, PAGE):
            page = await self._events.page(webhook.tenant, EventFilter(), position - 1, 1)
            if not page.events or page.events[0].position != position:
                await self._table.keep_letter(webhook.id, position, _NOT_SENT_AGAIN, most=0)
                continue
            try:
                await self._send(webhook, page.events[0])
            except NotTaken as error:
                most = self._policy.attempts
                attempts = await self._table.keep_letter(webhook.id, position, str(error), most=most)
                if attempts is not None:
                    await self._table.postpone(webhook.id, claim, str(error), _spread(attempts), is_letter=True)
                return attempts is None
            await self._table.end_letter(webhook.id, position)
            await self._table.advance(webhook.id, claim, webhook.position, 1)
        return True

    async def _send_page(self, webhook: Webhook, claim: UUID) -> None:
        page = await self._events.page(webhook.tenant, webhook.wanted(), webhook.position, PAGE)
        attempts = webhook.attempts
        for stored in page.events:
            try:
                await self._send(webhook, stored)
            except NotTaken as error:
                await self._record_failure(webhook, claim, stored, str(error), attempts + 1)
                return
            attempts = 0
            if not await self._table.advance(webhook.id, claim, stored.position, 1):
                return  # It was deleted, or another process has taken it over.
        await self._table.advance(webhook.id, claim, page.until, 0)
        await self._table.release(webhook.id, claim)

    async def _record_failure(
        self, webhook: Webhook, claim: UUID, stored: StoredEvent, error: str, attempts: int
    ) -> None:
        pause = _spread(attempts)
        logger.info("webhooks: %s did not take event %s (attempt %s): %s", webhook.id, stored.id, attempts, error)
        if attempts >= self._policy.attempts:
            await self._table.give_up(webhook.id, claim, (stored.position, stored.id), error, attempts, pause)
        else:
            await self._table.postpone(webhook.id, claim, error, pause)

    async def _send(self, webhook: Webhook, stored: StoredEvent) -> None:
        """Send an event.

        Raises:
            NotTaken: If it is not taken in time, with the reason.
        """
        # httpx takes a third of a second to import, and most installations have no webhook.
        sender = await asyncio.to_thread(import_module, "lamina.projections.webhook_sender")
        await sender.send_event(webhook, stored, self._policy, self._resolve, self._clock())


def _spread(attempts: int) -> timedelta:
    """Return the pause after failed attempts, somewhat longer or shorter, so that retries do not come all at once."""
    return pause_after(attempts) * random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries
