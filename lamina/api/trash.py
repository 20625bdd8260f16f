"""The trash: answers."""

from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from pydantic import Field

from lamina.api.fields import Output, PageOut
from lamina.core.trash import Discarded, TrashKind


class DiscardedOut(Output):
    """A deleted memory that can be brought back."""

    id: UUID = Field(description="Id of the memory.")
    kind: TrashKind = Field(description="What it is.")
    title: str | None = Field(
        description=(
            "How its text begins, or the title of a document; null for what an earlier release deleted, and for an "
            "entity or a fact that several users know of, each by private memories."
        )
    )
    workspace: str = Field(description="Project.")
    namespace: str = Field(description="Subdivision of the workspace.")
    user: str | None = Field(description="Person to whom it belongs.")
    agent: str | None = Field(description="Agent that wrote it.")
    deleted_at: datetime = Field(description="When it was deleted, UTC.")
    ends_at: datetime = Field(description="Until when it can be brought back, UTC.")

    @classmethod
    def from_discarded(cls, entry: Discarded, kept: timedelta) -> Self:
        """Map an entry."""
        names = ("id", "kind", "title", "workspace", "namespace", "user", "agent", "deleted_at")
        return cls.model_validate(
            {**{name: getattr(entry, name) for name in names}, "ends_at": entry.deleted_at + kept}
        )


class TrashOut(PageOut):
    """Deleted memories, the last one first."""

    entries: list[DiscardedOut] = Field(description="What was deleted.")
