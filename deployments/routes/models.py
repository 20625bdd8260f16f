"""The shapes of requests and answers; types only, the library checks the text itself."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from lamina.core.memories import (
    MAX_MESSAGES,
    MAX_TTL_S,
    Category,
    Message,
    Note,
    NoteVersion,
    Profile,
    Role,
    StoredNote,
    clean_expiry,
)
from lamina.core.scope import DEFAULT_NAMESPACE, DEFAULT_WORKSPACE, Scope
from lamina.errors import InvalidInput
from lamina.stores.postgres.messages import SessionMessage

MAX_BATCH = 1000
SCOPE_FIELDS = ("workspace", "namespace", "user", "agent", "session", "swarm")

_ABSENT = cast("str", None)  # An id that is left out; null in the request is refused.
Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]
Count = Annotated[int, Field(strict=True)]
TimeToLive = Annotated[float, Field(strict=True, gt=0, le=MAX_TTL_S)]


class Strict(BaseModel):
    """Refuses unknown fields, so that a typing error is never silently ignored."""

    model_config = ConfigDict(extra="forbid")


class ScopeIn(Strict):
    """The ids of a request; the tenant comes from the API key."""

    workspace: str = Field(DEFAULT_WORKSPACE, description="Project that the memory belongs to.")
    namespace: str = Field(DEFAULT_NAMESPACE, description="Subdivision of the workspace.")
    user: str = Field(_ABSENT, description="Person the memory is about; its memories are added to the shared ones.")
    agent: str = Field(_ABSENT, description="Agent that writes or asks.")
    session: str = Field(_ABSENT, description="Conversation; in a search it narrows the messages to this one.")
    swarm: str = Field(_ABSENT, description="Group of agents that share caches.")

    def scope(self, tenant: str) -> Scope:
        """Return the scope of the request.

        Raises:
            InvalidInput: Naming the id that is not 1 to 128 printable characters.
        """
        return Scope(tenant, **{name: getattr(self, name) for name in SCOPE_FIELDS if name in self.model_fields_set})


class MessageIn(Strict):
    """One message of a turn."""

    role: Role = Field(Role.USER, description="Who speaks: user, assistant, system or tool.")
    content: str = Field(description="What is said.")
    name: str = Field(_ABSENT, description="The speaker's name; search sees it.")
    ref: str = Field(_ABSENT, description="Your own id of the message; delivering it again changes nothing.")
    occurred_at: datetime = Field(
        cast("datetime", None), description="When it was said, ISO 8601; without an offset it is UTC. Default: now."
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Your data, returned untouched.")

    def message(self) -> Message:
        """Return the message as the library knows it."""
        return Message(self.role, self.content, self.name, self.ref, self.occurred_at, self.metadata)


class TurnIn(ScopeIn):
    """What was said in one turn of a session."""

    messages: list[MessageIn] = Field(description=f"1 to {MAX_MESSAGES} messages, in order.")


class StoredMessage(BaseModel):
    """What became of a message."""

    id: UUID = Field(description="Id of the message.")
    position: int = Field(description="Its place in the session, from 1.")
    existed: bool = Field(description="Whether the session already had it.")


class PutResult(BaseModel):
    """What became of a note."""

    id: UUID = Field(description="Id of the note, or of the equal note that was there before.")
    existed: bool = Field(description="Whether the scope already had a note of this text.")
    merged: bool = Field(
        default=False, description="Whether it had one that says the same in other words; that one now matters more."
    )


class TurnOut(BaseModel):
    """A turn that is durable."""

    messages: list[StoredMessage] = Field(description="One entry a message, in their order.")
    notes: list[PutResult] = Field(description="Notes that were drawn from the messages.")
    profile_version: int | None = Field(description="The user's profile version if the turn taught something of them.")
    epoch: int = Field(description="How often the namespace was written; caches are keyed by it.")


class NoteFields(Strict):
    """What a note consists of."""

    content: str = Field(description="The text. Long texts are split for search, never cut.")
    category: Category = Field(Category.NOTE, description="decision, outcome, strategy, note or interaction.")
    importance: Fraction = Field(0.5, description="How much it matters, 0 to 1.")
    confidence: Fraction = Field(1.0, description="How sure it is, 0 to 1.")
    tags: list[str] = Field(default_factory=list, description="Labels, each compared whole.")
    event_at: datetime = Field(
        cast("datetime", None), description="When it happened, ISO 8601; without an offset it is UTC. Default: now."
    )
    source: str = Field("api", description="Where it comes from, at most 1 024 characters.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Your data, returned untouched.")
    derived_from: list[UUID] = Field(
        default_factory=list,
        max_length=MAX_BATCH,
        description="Notes that this one was made from, as a summary is: it is deleted with any of them.",
    )
    ttl_s: TimeToLive = Field(cast("float", None), description="Seconds after which nobody sees it any more.")
    expires_at: datetime = Field(
        cast("datetime", None),
        description="When nobody sees it any more, instead of ttl_s; without an offset it is UTC. Default: never.",
    )

    def note(self, now: datetime, path: str = "") -> Note:
        """Return the note as the library knows it.

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


class BatchItem(BaseModel):
    """What became of one item of a batch."""

    status: Literal["created", "existed", "invalid"] = Field(description="What became of it.")
    id: UUID | None = Field(None, description="Id of the note; none for an invalid item.")
    error: str | None = Field(None, description="What is wrong with an invalid item, naming its field.")


class BatchOut(BaseModel):
    """One result an item, in their order."""

    results: list[BatchItem] = Field(description="One entry an item, in their order.")
    epoch: int | None = Field(None, description="The namespace's epoch; none if nothing was stored.")


class NotePatch(Strict):
    """Fields of a note to change; what is left out stays."""

    content: str = Field(_ABSENT, description="New text; it is embedded and indexed again.")
    category: Category = Field(cast("Category", None), description="New category.")
    importance: Fraction = Field(cast("float", None), description="New importance, 0 to 1.")
    confidence: Fraction = Field(cast("float", None), description="New confidence, 0 to 1.")
    tags: list[str] = Field(cast("list[str]", None), description="New tags, in place of all old ones.")
    event_at: datetime = Field(cast("datetime", None), description="New time of the event.")
    metadata: dict[str, Any] = Field(cast("dict[str, Any]", None), description="New metadata, in place of the old.")
    ttl_s: TimeToLive = Field(cast("float", None), description="Seconds from now after which nobody sees it any more.")
    expires_at: datetime | None = Field(
        None, description="When nobody sees it any more, instead of ttl_s; null keeps it for ever."
    )

    def changes(self, now: datetime) -> dict[str, Any]:
        """Return the fields that were sent.

        Args:
            now: The time of day, from which ``ttl_s`` counts.

        Raises:
            InvalidInput: If both ``ttl_s`` and ``expires_at`` were sent, or the note would have expired already.
        """
        sent = {name: getattr(self, name) for name in self.model_fields_set - {"ttl_s"}}
        if "ttl_s" in self.model_fields_set and "expires_at" in self.model_fields_set:
            raise InvalidInput("ttl_s", "is given beside expires_at; send one of them")
        if {"ttl_s", "expires_at"} & self.model_fields_set:
            sent["expires_at"] = clean_expiry(self.ttl_s, self.expires_at, now)
        return sent | ({"tags": tuple(sent["tags"])} if "tags" in sent else {})


class NoteOut(BaseModel):
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
    version: int = Field(description="1 at first, one more with every change.")
    hits: int = Field(description="How often it was found, from 1.")
    created_at: datetime = Field(description="When it was stored, UTC.")
    updated_at: datetime = Field(description="When it was last changed, UTC.")
    last_hit_at: datetime = Field(description="When it was last found or changed, UTC.")
    temperature: Literal["warm", "cold"] = Field(description="cold after nobody found it for its lifespan.")
    weight: float = Field(description="What idle days have left of it, 0 to 1; below context.min_weight no context.")
    expires_at: datetime | None = Field(description="When nobody sees it any more, UTC; null means never.")

    @classmethod
    def of(cls, stored: StoredNote) -> Self:
        """Return the note as the API shows it."""
        note = stored.note
        fields = {name: getattr(stored, name) for name in cls.model_fields if hasattr(stored, name)}
        return cls(**fields, **{name: getattr(note, name) for name in cls.model_fields if hasattr(note, name)})


class NotesOut(BaseModel):
    """A page of notes."""

    notes: list[NoteOut] = Field(description="The latest event first.")


class NoteVersionOut(BaseModel):
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

    @classmethod
    def of(cls, version: NoteVersion) -> Self:
        """Return the version as the API shows it."""
        return cls(**{name: getattr(version, name) for name in cls.model_fields})


class NoteVersionsOut(BaseModel):
    """Every state of a note."""

    versions: list[NoteVersionOut] = Field(description="Oldest first.")


class SessionMessageOut(BaseModel):
    """A message of a session's history."""

    id: UUID = Field(description="Id of the message.")
    position: int = Field(description="Its place in the session, from 1.")
    role: Role = Field(description="Who speaks.")
    content: str = Field(description="What was said.")
    name: str | None = Field(description="The speaker's name.")
    ref: str | None = Field(description="Your own id of the message.")
    occurred_at: datetime | None = Field(description="When it was said, UTC.")
    metadata: dict[str, Any] = Field(description="Your data.")
    user: str | None = Field(description="Person the session is with.")
    agent: str | None = Field(description="Agent that wrote it.")
    is_summary: bool = Field(description="Whether it stands for older messages, of which the last had its position.")
    compacted_into: UUID | None = Field(description="The summary that stands for it, with include_compacted.")

    @classmethod
    def of(cls, item: SessionMessage) -> Self:
        """Return the message as the API shows it."""
        own = ("id", "position", "user", "agent", "is_summary", "compacted_into")
        fields = {name: getattr(item, name) for name in own}
        names = ("role", "content", "name", "ref", "occurred_at", "metadata")
        return cls(**fields, **{name: getattr(item.message, name) for name in names})


class HistoryOut(BaseModel):
    """Messages of a session."""

    messages: list[SessionMessageOut] = Field(description="In their order.")


class ProfilePatch(ScopeIn):
    """A change of a user's profile."""

    patch: dict[str, Any] = Field(
        description="Objects merge deeply, scalars are replaced, lists become an ordered union, null deletes."
    )


class ProfileOut(BaseModel):
    """A user's profile."""

    user: str = Field(description="Whose profile it is.")
    document: dict[str, Any] = Field(description="The whole profile.")
    version: int = Field(description="One more with every change; 0 if nothing was ever written.")
    updated_at: datetime | None = Field(description="When it was last changed, UTC.")

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Return the profile as the API shows it."""
        return cls(**{name: getattr(profile, name) for name in cls.model_fields})


class LagOut(BaseModel):
    """How far a projection is behind Postgres."""

    pending: int = Field(description="Memories still to apply.")
    oldest_s: float = Field(description="Age of the oldest of them, in seconds.")


class BuildOut(BaseModel):
    """A projection that is built anew beside the one that searches use."""

    number: int = Field(description="Number of the build, from 1.")
    pending: int = Field(description="Memories that it still has to take over before it is used.")


class ReadyOut(BaseModel):
    """Whether the service can do its work."""

    ready: bool = Field(description="Whether every part answers.")
    parts: dict[str, str] = Field(description="Each part: ok, or what is wrong with it.")
    stores: dict[str, str] = Field(
        description="The store of each projection: ok, or why it does not answer. Then searches are degraded and its "
        "changes wait; the service is ready."
    )
    outbox: dict[str, LagOut] = Field(description="How far each projection is behind.")
    builds: dict[str, BuildOut] = Field(description="Projections that are being built anew.")
    version: str = Field(description="Version of Lamina.")


class ProblemOut(BaseModel):
    """An error, as RFC 9457 describes it."""

    type: str = Field(description="Kind of error.")
    title: str = Field(description="The kind in words.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="What is wrong and what would be right.")
    errors: list[dict[str, str]] | None = Field(None, description="The fields that are wrong: field and reason.")
    fields: dict[str, Any] | None = Field(None, description="The error's own values: part and reason, kind and id, …")
