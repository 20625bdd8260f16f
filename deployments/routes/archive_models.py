"""The shapes of requests and answers about archived notes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import BaseModel, Field

from deployments.routes.models import Strict
from lamina.stores.postgres.archived_notes import ArchivedEntry, RestoreOutcome, RestoreStatus

MAX_RESTORED = 1000


class ArchivedNoteOut(BaseModel):
    """Where an archived note is; what it says is in the file alone."""

    id: UUID = Field(description="Id of the note, which it keeps when it is restored.")
    user: str | None = Field(description="Person the note is about.")
    file: str = Field(description="Its file, from the root of the archive, without .parquet.")
    archived_at: datetime = Field(description="When it was archived, UTC.")


class ArchivedNotesOut(BaseModel):
    """A page of archived notes."""

    notes: list[ArchivedNoteOut] = Field(description="In the order of their ids.")

    @classmethod
    def of(cls, entries: Sequence[ArchivedEntry]) -> Self:
        """Return the page as the API shows it."""
        return cls(
            notes=[
                ArchivedNoteOut(id=item.id, user=item.user, file=item.file, archived_at=item.archived_at)
                for item in entries
            ]
        )


class RestoreIn(Strict):
    """Which archived notes come back."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_RESTORED)] = Field(
        description="Ids of 1 to 1000 archived notes."
    )


class RestoredNoteOut(BaseModel):
    """What became of one note."""

    id: UUID = Field(description="Id of the note.")
    status: RestoreStatus = Field(
        description="restored; existed: its scope has the same text again, and it stays archived; not_archived; "
        "unreadable: its file is damaged, and nothing changed."
    )
    lacks_vectors: bool = Field(description="Whether it waits for the job reembed before it is found by meaning.")
    error: str | None = Field(description="Why it is unreadable.")


class RestoredOut(BaseModel):
    """What became of the notes."""

    results: list[RestoredNoteOut] = Field(description="One for each id, in the order that was asked.")
    restored: int = Field(description="How many came back.")
    without_vectors: int = Field(description="Of these, how many wait for the job reembed.")

    @classmethod
    def of(cls, outcomes: Sequence[RestoreOutcome]) -> Self:
        """Return the outcomes as the API shows them."""
        return cls(
            results=[
                RestoredNoteOut(id=item.id, status=item.status, lacks_vectors=item.lacks_vectors, error=item.error)
                for item in outcomes
            ],
            restored=sum(item.status is RestoreStatus.RESTORED for item in outcomes),
            without_vectors=sum(item.lacks_vectors for item in outcomes),
        )
