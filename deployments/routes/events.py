"""Events: which memories changed, as a list or as a stream."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.types import Receive, Scope, Send

from deployments.access import MEMORIES, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.services import PrincipalDep, Services, ServicesDep
from lamina.aio.cancelling import cancel_all
from lamina.api.events import EventOut, EventsOut
from lamina.api.fields import Id
from lamina.core.events import EventFilter, EventKind, StoredEvent
from lamina.core.principals import Principal, Verb
from lamina.errors import InvalidInput, LaminaError
from lamina.projections.event_feed import Start, Subscription, place_after
from lamina.text.hygiene import clean_id
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/events", tags=["read"], route_class=JsonRoute)
STREAM = "text/event-stream"
RETRY_MS = 2_000
KEY_CHECK_S = 1.0
"""Pause between two looks at the key of a stream; most of them are answered from memory."""
MISSING = "events.missing"


@router.get(
    "",
    response_model=EventsOut,
    responses={
        200: {
            "description": "Events, or with `Accept: text/event-stream` a stream of them.",
            "content": {STREAM: {"schema": {"type": "string"}}},
        }
    },
)
@allow(Access(Verb.READ, MEMORIES))
async def events(
    request: Request,
    services: ServicesDep,
    principal: PrincipalDep,
    workspace: Annotated[Id | None, Query(description="Only this project's.")] = None,
    namespace: Annotated[Id | None, Query(description="Only those of this subdivision.")] = None,
    user: Annotated[Id | None, Query(description="Only those of this person and of none.")] = None,
    by: Annotated[Id | None, Query(description="Only what this agent changed.")] = None,
    kind: Annotated[list[EventKind] | None, Query(max_length=100, description="Only these.")] = None,
    after: Annotated[UUID | None, Query(description="Only those after this event; `next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Most events of a page.")] = 100,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", max_length=64, description="The same as `after`, of a stream that goes on."),
    ] = None,
) -> EventsOut | Response:
    """List events, the oldest first; or follow them, with `Accept: text/event-stream`."""
    names = {"workspace": workspace, "namespace": namespace, "user": user, "agent": by}
    ids = {name: None if value is None else clean_id(value, name) for name, value in names.items()}
    wanted = EventFilter(**ids, kinds=frozenset(kind or ()))
    last = after if last_event_id is None else _read_id(last_event_id)
    table, tenant = services.events.table, principal.tenant
    start = None if last is None else await place_after(table, tenant, last, utc_now)
    if STREAM in request.headers.get("accept", ""):
        return EventStream(request, services, principal, wanted, start)
    start = start or Start(0)
    page = await table.page(tenant, wanted, start.position, limit)
    return EventsOut(
        events=[EventOut.from_stored(one) for one in page.events],
        next=page.events[-1].id if page.events else last,
        more=page.is_full,
        missing=start.is_missing_some,
    )


def _read_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidInput("Last-Event-ID", "is no id of an event; leave it out to begin with the next one") from error


class EventStream(Response):
    """Server-sent events, until the client goes, its key ends, or it has lasted for long.

    Args:
        request: The request, whose key is looked at again and again.
        services: The feed and its settings.
        principal: Of the request.
        wanted: Which events.
        start: Where to begin; with the next event if not given.
    """

    def __init__(
        self, request: Request, services: Services, principal: Principal, wanted: EventFilter, start: Start | None
    ) -> None:
        super().__init__(media_type=STREAM, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._request = request
        self._services = services
        self._principal = principal
        self._wanted = wanted
        self._start = start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - Starlette's signature
        """Send the events.

        Raises:
            LimitReached: If too many streams are open.
        """
        with self._services.events.feed.subscribe(self._principal.tenant) as subscription:
            start = self._start or Start(await self._services.events.table.settled())
            await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": self.raw_headers})
            if not getattr(self._request.state, "is_head", False):
                tasks = [
                    asyncio.create_task(self._send(subscription, start, send)),
                    asyncio.create_task(self._until_key_ends()),
                    asyncio.create_task(_gone(receive)),
                ]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    await cancel_all(tasks)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, subscription: Subscription, start: Start, send: Send) -> None:
        exchange = getattr(self._request.state, "exchange", None)
        async for text in self._texts(subscription, start):
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
            if exchange is not None and exchange.is_cut:  # The client reads nothing.
                return

    async def _texts(self, subscription: Subscription, start: Start) -> AsyncIterator[str]:
        chosen = self._services.settings.events
        ends_at = time.monotonic() + chosen.stream_s
        yield f"retry: {RETRY_MS}\n\n"
        if start.is_missing_some:
            yield f"event: {MISSING}\ndata: {{}}\n\n"
        feed = self._services.events.feed
        try:
            async for found in feed.follow(subscription, self._wanted, start.position, chosen.heartbeat_s):
                yield "".join(map(_as_text, found)) or ":\n\n"
                if time.monotonic() >= ends_at:
                    return
        except LaminaError:  # Postgres does not answer: the client comes back.
            return

    async def _until_key_ends(self) -> None:
        key = self._request.headers.get("authorization", "").partition(" ")[2].strip()
        with suppress(LaminaError):
            while True:
                await asyncio.sleep(KEY_CHECK_S)
                await self._services.key_check.check(key)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _as_text(stored: StoredEvent) -> str:
    data = EventOut.from_stored(stored).model_dump_json()
    return f"id: {stored.id}\nevent: {stored.event.kind}\ndata: {data}\n\n"
