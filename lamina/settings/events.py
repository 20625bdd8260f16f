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


class WebhooksSettings(Section):
    """Webhooks: events that are sent to addresses."""

    most: int = Field(20, ge=0, description="Most webhooks of one tenant; 0 allows none.")
    attempts: int = Field(
        10,
        ge=1,
        le=100,
        description="Attempts to deliver an event, with pauses of 5 s, 10 s and so on up to an hour; then it is a dead "
        "letter.",
    )
    timeout_s: float = Field(10.0, gt=0, le=60, description="Seconds after which an attempt without an answer failed.")
    poll_s: float = Field(0.5, gt=0, description="Seconds between two looks for events to deliver.")
    rotation_s: float = Field(
        86_400.0, ge=0, description="Seconds for which the secret of before signs beside the new one."
    )
    allow_private: bool = Field(
        default=False,
        description="Whether webhooks may go to private, link-local and other addresses that are not public.",
    )
    allow_http: bool = Field(default=False, description="Whether webhooks may go over http, unencrypted.")
