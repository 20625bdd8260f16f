"""Feedback on memories: requests and answers."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from lamina.api.fields import Output, Strict
from lamina.core.feedback import Vote


class VoteIn(Strict):
    """A judgement of a memory that was found."""

    vote: Vote = Field(description="useful or wrong.")


class FeedbackOut(Output):
    """The feedback on a memory."""

    id: UUID = Field(description="Id of the memory.")
    useful: int = Field(description="Keys and agents that found it useful.")
    wrong: int = Field(description="Keys and agents that found it wrong.")
    own: Vote | None = Field(description="Your own vote; a later one takes its place.")
    pinned_at: datetime | None = Field(description="Since when it is pinned, UTC.")
