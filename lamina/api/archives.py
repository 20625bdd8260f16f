"""Archived notes: requests and answers."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.api.fields import Output, PageOut, Strict
from lamina.core.memories import RestoreStatus

MAX_RESTORED = 1000


class ArchivedNoteOut(Output):
    """The place of an archived note; its content is in the file alone."""

    id: UUID = Field(description="Id of the note, which it keeps when it is restored.")
    user: str | None = Field(description="Person the note is about.")
    file: str = Field(description="Its file, from the root of the archive, without .parquet.")
    archived_at: datetime = Field(description="When it was archived, UTC.")


class ArchivedNotesOut(PageOut):
    """A page of archived notes."""

    notes: list[ArchivedNoteOut] = Field(description="In the order of their ids.")


class RestoreIn(Strict):
    """Archived notes to restore."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_RESTORED)] = Field(
        description="Ids of 1 to 1000 archived notes."
    )


class RestoredNoteOut(Output):
    """The result of restoring one note."""

    id: UUID = Field(description="Id of the note.")
    status: RestoreStatus = Field(
        description="restored; existed: its scope has the same text again, and it stays archived; corrected: the "
        "message that it was drawn from says something else by now, and it stays archived; not_archived; unreadable: "
        "its file is damaged, and nothing changed."
    )
    lacks_vectors: bool = Field(description="Whether it waits for the job reembed before it is found by meaning.")
    error: str | None = Field(description="Why it is unreadable.")


class RestoredOut(BaseModel):
    """The results of restoring notes."""

    results: list[RestoredNoteOut] = Field(description="One for each id, in the order of the request.")
    restored: int = Field(description="How many came back.")
    without_vectors: int = Field(description="Of these, how many wait for the job reembed.")
