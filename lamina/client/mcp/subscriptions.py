"""Changes of resources as they happen: `subscriptions/listen` over the events of the API."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from lamina.client.mcp.resources import KINDS, LISTED, uri_of
from lamina.client.mcp.tools import Json
from lamina.errors import LaminaError

Follow = Callable[[], AbstractAsyncContextManager[AsyncIterator[Json]]]
"""Opens the stream of events from the next one on."""
_COMING_AND_GOING = frozenset({"created", "written", "deleted", "restored"})
_OF_MANY = frozenset({"user.erased", "scope.renamed"})


def changes_in(event: Json) -> list[ServerEvent]:
    """Return the changes that an event tells: of its resources, and of their list if one came or went."""
    if event["kind"] in _OF_MANY:
        return [ResourcesListChanged()]
    kind, _, change = event["kind"].partition(".")
    if kind not in KINDS:
        return []
    changes: list[ServerEvent] = [ResourceUpdated(uri_of(kind, id_)) for id_ in event["ids"]]
    return [*changes, ResourcesListChanged()] if kind in LISTED and change in _COMING_AND_GOING else changes


async def listen(
    follow: Follow, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
) -> types.SubscriptionsListenResult:
    """Serve one subscription until its client leaves or the stream of events ends, and keep nothing afterwards.

    Raises:
        LaminaError: If the events cannot be followed; before the subscription is acknowledged.
    """
    bus = InMemorySubscriptionBus()
    handler = ListenHandler(bus)
    async with follow() as events, anyio.create_task_group() as tasks:
        tasks.start_soon(_publish, events, bus, handler)
        try:
            return await handler(ctx, params)
        except MCPError as error:
            refusal = error  # Raised behind the group, which would wrap it.
        finally:
            tasks.cancel_scope.cancel()
    raise refusal


async def _publish(events: AsyncIterator[Json], bus: InMemorySubscriptionBus, handler: ListenHandler) -> None:
    try:
        async for event in events:
            for change in changes_in(event):
                await bus.publish(change)
    except LaminaError:
        pass  # The stream broke; the client listens again.
    finally:
        handler.close()
