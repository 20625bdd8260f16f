"""What the routes of sessions return."""

from datetime import datetime
from typing import Literal, Self

from pydantic import BaseModel, Field

from lamina.maintenance.compaction import SessionForecast


class ForecastOut(BaseModel):
    """How full a session is, and when its older messages become a summary."""

    used_tokens: int = Field(description="Estimated tokens of what stands in the session, whoever may read it.")
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

    @classmethod
    def of(cls, found: SessionForecast) -> Self:
        """Return a forecast as the API shows it."""
        told = found.forecast
        names = ("used_tokens", "budget_tokens", "share", "state", "tokens_left", "messages_left", "due_at")
        return cls(
            **{name: getattr(told, name) for name in names},
            would_compact=list(told.compacts),
            was_compacted=found.was_compacted,
        )
