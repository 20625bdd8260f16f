"""Builders of events: their readers, the streams of a process, and the delivery to webhooks."""

from dataclasses import dataclass

from lamina.core.webhooks import DeliveryPolicy
from lamina.projections.event_feed import EventFeed
from lamina.projections.webhook_delivery import Resolve, Resolver, WebhookDelivery
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.events import Events
from lamina.stores.postgres.webhooks import WebhookTable
from lamina.wiring.stores import utc_now


@dataclass(frozen=True, slots=True)
class EventParts:
    """The events of a replica: their table, the feed of its streams, and the table of webhooks."""

    table: Events
    feed: EventFeed
    webhooks: WebhookTable


def build_event_parts(settings: Settings, pool: Pool) -> EventParts:
    """Build the reader of events and the feed of streams."""
    table, chosen = Events(pool), settings.events
    feed = EventFeed(table, poll_s=chosen.poll_s, streams=chosen.streams, tenant_streams=chosen.tenant_streams)
    return EventParts(table, feed, WebhookTable(pool))


def build_webhook_delivery(settings: Settings, pool: Pool, resolve: Resolve | None = None) -> WebhookDelivery:
    """Build the delivery of events to webhooks, by the names of the machine if no other resolver is given."""
    chosen = settings.webhooks
    policy = DeliveryPolicy(
        attempts=chosen.attempts,
        timeout_s=chosen.timeout_s,
        poll_s=chosen.poll_s,
        allows_private=chosen.allow_private,
    )
    return WebhookDelivery(Events(pool), WebhookTable(pool), policy, resolve=resolve or Resolver(), clock=utc_now)
