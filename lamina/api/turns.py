"""Turns of a conversation: messages to store, and the answer."""

from typing import Any
from uuid import UUID

from pydantic import Field

from lamina.api.fields import ABSENT, Content, Id, Moment, Output, Strict
from lamina.api.notes import PutResult
from lamina.api.scope import ScopeIn
from lamina.core.memories import MAX_MESSAGES, Message, Role


class MessageIn(Strict):
    """One message of a turn."""

    role: Role = Field(Role.USER, description="Who speaks: user, assistant, system or tool.")
    content: Content = Field(description="What is said.")
    name: Id = Field(ABSENT, description="The speaker's name; search sees it.")
    ref: Id = Field(ABSENT, description="Your own id of the message; delivering it again changes nothing.")
    occurred_at: Moment = Field(
        ABSENT, description="When it was said, ISO 8601; without an offset it is UTC. Default: now."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Your data, returned untouched.")

    def message(self) -> Message:
        """Return the message to store."""
        return Message(self.role, self.content, self.name, self.ref, self.occurred_at, self.metadata)


class TurnIn(ScopeIn):
    """The messages of one turn of a session."""

    messages: list[MessageIn] = Field(max_length=MAX_MESSAGES, description=f"1 to {MAX_MESSAGES} messages, in order.")


class StoredMessage(Output):
    """The result of storing a message."""

    id: UUID = Field(description="Id of the message.")
    position: int = Field(description="Its place in the session, from 1.")
    existed: bool = Field(description="Whether the session already had it.")


class TurnOut(Output):
    """A turn that is durable."""

    messages: list[StoredMessage] = Field(description="One entry a message, in their order.")
    notes: list[PutResult] = Field(description="Notes that were drawn from the messages.")
    profile_version: int | None = Field(description="The user's profile version if the turn taught something of them.")
    epoch: int = Field(description="How often the namespace was written; caches are keyed by it.")
