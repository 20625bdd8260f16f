"""Settings of events."""

from pydantic import Field

from lamina.settings.section import Section


class EventsSettings(Section):
    """Events: which memories changed, for readers who follow them."""

    keep_days: float = Field(
        7.0,
        gt=0,
        description="Days for which events are kept; then the job caches removes them. A reader that was away for "
        "longer is told that events are missing.",
    )
    streams: int = Field(
        50,
        ge=1,
        description="Most open streams of events of one router; each is one of `serve.router.max_ongoing_requests`.",
    )
    tenant_streams: int = Field(20, ge=1, description="The same of one tenant; more are answered 429.")
    poll_s: float = Field(
        0.25, gt=0, description="Seconds between two looks of a router for new events, while it has open streams."
    )
    heartbeat_s: float = Field(15.0, gt=0, description="Seconds without an event after which a stream says so.")
    stream_s: float = Field(
        3600.0, gt=0, description="Seconds after which a stream ends; its client comes back with `Last-Event-ID`."
    )
