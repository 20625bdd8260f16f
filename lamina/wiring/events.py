"""Builders of events: their readers, and the streams of a process."""

from dataclasses import dataclass

from lamina.projections.event_feed import EventFeed
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.events import Events


@dataclass(frozen=True, slots=True)
class EventParts:
    """The events of a replica: the table, and the feed of its streams."""

    table: Events
    feed: EventFeed


def build_event_parts(settings: Settings, pool: Pool) -> EventParts:
    """Build the reader of events and the feed of streams."""
    table, chosen = Events(pool), settings.events
    feed = EventFeed(table, poll_s=chosen.poll_s, streams=chosen.streams, tenant_streams=chosen.tenant_streams)
    return EventParts(table, feed)
