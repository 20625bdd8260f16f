"""Events: answers."""

from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import Field

from lamina.api.fields import Output
from lamina.core.events import EventKind, Fact, StoredEvent


class EventOut(Output):
    """A change of memories."""

    id: UUID = Field(description="Id of the event; a reader goes on after it.")
    kind: EventKind | str = Field(description="What happened; another text in an event of a newer release.")
    at: datetime = Field(description="When, UTC.")
    workspace: str | None = Field(description="Project; null for a change of the whole tenant.")
    namespace: str | None = Field(description="Subdivision of the workspace; null for a change of all of it.")
    user: str | None = Field(description="Person whose memories they are.")
    agent: str | None = Field(description="Agent that made the change.")
    session: str | None = Field(description="Session of a turn.")
    ids: list[UUID] = Field(description="Of what changed, of the kind that `kind` names first; never contents.")
    facts: dict[str, Fact] = Field(description="Small facts, such as counts and versions.")

    @classmethod
    def from_stored(cls, stored: StoredEvent) -> Self:
        """Map a stored event."""
        event = stored.event
        return cls(
            id=stored.id,
            kind=event.kind,
            at=stored.at,
            workspace=event.workspace,
            namespace=event.namespace,
            user=event.user,
            agent=event.agent,
            session=event.session,
            ids=list(event.ids),
            facts=dict(event.facts),
        )


class EventsOut(Output):
    """Events, the oldest first."""

    events: list[EventOut] = Field(description="The events.")
    next: UUID | None = Field(description="Send it as `after` for those that follow; null before the first event.")
    more: bool = Field(description="Whether further ones are there already.")
    missing: bool = Field(
        description="Whether events after `after` are gone, since they are kept for `events.keep_days`."
    )
