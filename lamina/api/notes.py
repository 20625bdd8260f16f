"""Notes: requests and answers."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.api.fields import ABSENT, MAX_BATCH, Content, Fraction, Moment, Output, PageOut, SourceName, Strict, Tags
from lamina.api.scope import ScopeIn
from lamina.core.memories import MAX_TTL_S, Category, Note, StoredNote, clean_expiry, joint_name
from lamina.errors import InvalidInput
from lamina.text.paraphrase import Difference

TimeToLive = Annotated[float, Field(strict=True, gt=0, le=MAX_TTL_S)]


class PutResult(Output):
    """The result of storing a note."""

    id: UUID = Field(description="Id of the note, or of the one that was there before and says the same.")
    existed: bool = Field(description="Whether the scope already had a note of this text.")
    merged: bool = Field(
        default=False, description="Whether it had one that says the same in other words; that one now matters more."
    )
    difference: Difference | None = Field(
        None, description="How a merged text differs from that note: spelling, forms, synonyms or wording."
    )


class NoteFields(Strict):
    """The fields of a note."""

    content: Content = Field(description="The text. Long texts are split for search, never cut.")
    category: Category = Field(
        Category.NOTE,
        description="decision, outcome, strategy, note or interaction; fact, preference, skill or insight.",
    )
    importance: Fraction = Field(0.5, description="How much it matters, 0 to 1.")
    confidence: Fraction = Field(1.0, description="How sure it is, 0 to 1.")
    tags: Tags = Field(default_factory=list, description="Labels, each compared whole.")
    event_at: Moment = Field(
        ABSENT, description="When it happened, ISO 8601; without an offset it is UTC. Default: now."
    )
    source: SourceName = Field("api", description="Where it comes from, at most 1 024 characters.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Your data, returned untouched.")
    derived_from: list[UUID] = Field(
        default_factory=list,
        max_length=MAX_BATCH,
        description="Notes that this one was made from, as a summary is: it is deleted with any of them.",
    )
    ttl_s: TimeToLive = Field(ABSENT, description="Seconds after which nobody sees it any more.")
    expires_at: Moment = Field(
        ABSENT,
        description="When nobody sees it any more, instead of ttl_s; without an offset it is UTC. Default: never.",
    )

    def note(self, now: datetime, path: str = "") -> Note:
        """Return the note to store.

        Args:
            now: The time of day, from which ``ttl_s`` counts.
            path: Where it stands in the request.

        Raises:
            InvalidInput: If both ``ttl_s`` and ``expires_at`` are given, or the note has expired already.
        """
        return Note(
            content=self.content,
            category=self.category,
            importance=self.importance,
            confidence=self.confidence,
            tags=tuple(self.tags),
            event_at=self.event_at,
            source=self.source,
            metadata=self.metadata,
            derived_from=tuple(self.derived_from),
            expires_at=clean_expiry(self.ttl_s, self.expires_at, now, path),
        )


class NoteIn(ScopeIn, NoteFields):
    """A note to store."""


class BatchIn(ScopeIn):
    """Notes to store together; an item that is wrong does not stop the others."""

    notes: list[Any] = Field(
        min_length=1,
        max_length=MAX_BATCH,
        description="Each a text, or an object with the fields of a note (content, category, tags, …).",
    )


class NoteChanges(Strict):
    """Fields of notes to change; the others stay."""

    category: Category = Field(ABSENT, description="New category.")
    importance: Fraction = Field(ABSENT, description="New importance, 0 to 1.")
    confidence: Fraction = Field(ABSENT, description="New confidence, 0 to 1.")
    tags: Tags = Field(ABSENT, description="New tags, in place of all old ones.")
    event_at: Moment = Field(ABSENT, description="New time of the event.")
    metadata: dict[str, Any] = Field(ABSENT, description="New metadata, in place of the old.")
    ttl_s: TimeToLive = Field(ABSENT, description="Seconds from now after which nobody sees it any more.")
    expires_at: Moment | None = Field(
        None, description="When nobody sees it any more, instead of ttl_s; null keeps it for ever."
    )

    def changes(self, now: datetime) -> dict[str, Any]:
        """Return the fields that were sent.

        Args:
            now: The time of day, from which ``ttl_s`` counts.

        Raises:
            InvalidInput: If both ``ttl_s`` and ``expires_at`` were sent, or the note would have expired already.
        """
        # Not by value: an expiry that was sent as null keeps the note for ever, one that was left out changes nothing.
        sent = {name: getattr(self, name) for name in self.model_fields_set - {"ttl_s"}}
        if "ttl_s" in self.model_fields_set and "expires_at" in self.model_fields_set:
            raise InvalidInput("ttl_s", "is given beside expires_at; send one of them")
        if {"ttl_s", "expires_at"} & self.model_fields_set:
            sent["expires_at"] = clean_expiry(self.ttl_s, self.expires_at, now)
        return sent | ({"tags": tuple(sent["tags"])} if "tags" in sent else {})


class NotePatch(NoteChanges):
    """Fields of a note to change; the others stay."""

    content: Content = Field(ABSENT, description="New text; it is embedded and indexed again.")


class NoteOut(Output):
    """A stored note."""

    id: UUID = Field(description="Id of the note.")
    content: str = Field(description="The whole text.")
    category: Category = Field(description="What kind of observation it is.")
    importance: float = Field(description="How much it matters, 0 to 1.")
    confidence: float = Field(description="How sure it is, 0 to 1.")
    tags: list[str] = Field(description="Labels.")
    event_at: datetime | None = Field(description="When it happened, UTC.")
    source: str = Field(description="Where it comes from.")
    metadata: dict[str, Any] = Field(description="Your data.")
    workspace: str = Field(description="Project it belongs to.")
    namespace: str = Field(description="Subdivision of the workspace.")
    user: str | None = Field(description="Person it is about; none for a shared note.")
    agent: str | None = Field(description="Agent that wrote it.")
    session: str | None = Field(description="Conversation it was written in.")
    name: str | None = Field(None, description="Who said it, if it was drawn from messages that name their speakers.")
    version: int = Field(description="1 at first, one more with every change.")
    hits: int = Field(description="How often it was found, from 1.")
    created_at: datetime = Field(description="When it was stored, UTC.")
    updated_at: datetime = Field(description="When it was last changed, UTC.")
    last_hit_at: datetime = Field(description="When it was last found or changed, UTC.")
    temperature: Literal["warm", "cold"] = Field(description="cold after nobody found it for its lifespan.")
    weight: float = Field(description="What idle days have left of it, 0 to 1; below context.min_weight no context.")
    expires_at: datetime | None = Field(description="When nobody sees it any more, UTC; null means never.")

    @classmethod
    def from_stored(cls, stored: StoredNote) -> Self:
        """Show a stored note."""
        return cls.from_attributes(stored, stored.note, name=joint_name(stored.note.speakers))


class NotesOut(PageOut):
    """A page of notes."""

    notes: list[NoteOut] = Field(description="The latest event first.")


class NoteVersionOut(Output):
    """One state of a note."""

    version: int = Field(description="1 is the first.")
    content: str = Field(description="The text of this version.")
    category: Category = Field(description="The category of this version.")
    importance: float = Field(description="The importance of this version.")
    confidence: float = Field(description="The confidence of this version.")
    tags: list[str] = Field(description="The tags of this version.")
    metadata: dict[str, Any] = Field(description="The metadata of this version.")
    written_at: datetime = Field(description="When this version was written, UTC.")
    is_current: bool = Field(description="Whether the note is in this state now.")


class NoteVersionsOut(BaseModel):
    """Every state of a note that is kept."""

    versions: list[NoteVersionOut] = Field(description="Oldest first.")
    removed: int = Field(description="Number of still earlier versions that are not kept any more.", ge=0)
