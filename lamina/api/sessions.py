"""Sessions: their messages and forecasts."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from lamina.api.fields import Output, PageOut
from lamina.core.memories import Role


class ForecastOut(Output):
    """How full a session is, and when its older messages become a summary."""

    used_tokens: int = Field(
        description="Estimated tokens of all messages in the session, whether the user may read them or not."
    )
    budget_tokens: int = Field(description="Tokens that a session may hold.")
    share: float = Field(description="Share of the budget that is used; above 1 if it is overdrawn.")
    state: Literal["ok", "near", "due"] = Field(description="Whether compaction is far, near or due.")
    tokens_left: int = Field(description="Tokens until it is due.")
    messages_left: int | None = Field(
        description="Messages of the latest ones' size until it is due, if that is known."
    )
    due_at: datetime | None = Field(description="When it is due at the pace of the latest messages, UTC, if known.")
    would_compact: list[int] = Field(
        description="Positions of the messages that it would take now; with a user, of those that the user may read. "
        "None while the state is ok."
    )
    was_compacted: bool = Field(description="Whether summaries stand in the session for older messages.")


class SessionMessageOut(Output):
    """A message of a session's history."""

    id: UUID = Field(description="Id of the message.")
    position: int = Field(description="Its place in the session, from 1.")
    role: Role = Field(description="Who speaks.")
    content: str = Field(description="What was said.")
    name: str | None = Field(description="The speaker's name.")
    ref: str | None = Field(description="Your own id of the message.")
    occurred_at: datetime | None = Field(description="When it was said, UTC.")
    metadata: dict[str, Any] = Field(description="Your data.")
    importance: float = Field(description="How much it matters, 0 to 1.")
    user: str | None = Field(description="Person the session is with.")
    agent: str | None = Field(description="Agent that wrote it.")
    is_summary: bool = Field(description="Whether it stands for older messages, of which the last had its position.")
    compacted_into: UUID | None = Field(description="The summary that stands for it, with include_compacted.")


class HistoryOut(PageOut):
    """Messages of a session."""

    messages: list[SessionMessageOut] = Field(description="In their order.")
