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
