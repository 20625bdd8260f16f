"""The shapes of requests and answers; types only, the library checks the text itself."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from lamina.memories import MAX_MESSAGES, Category, Message, Note, NoteVersion, Profile, Role, StoredNote
from lamina.queries import MAX_LIMIT, Answer, Filters, FusedHit, Tier
from lamina.ranking.budget import ContextBlock
from lamina.scope import DEFAULT_NAMESPACE, DEFAULT_WORKSPACE, Scope
from lamina.stores.postgres.messages import SessionMessage

MAX_BATCH = 1000
TIER_NAMES: dict[str, Tier] = {"sessions": Tier.SESSIONS, "notes": Tier.NOTES}
SCOPE_FIELDS = ("workspace", "namespace", "user", "agent", "session", "swarm")

_ABSENT = cast("str", None)  # An id that is left out; null in the request is refused.
Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]
Count = Annotated[int, Field(strict=True)]
TierName = Literal["sessions", "notes"]


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
    source: str = Field("api", description="Where it comes from.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Your data, returned untouched.")

    def note(self) -> Note:
        """Return the note as the library knows it."""
        return Note(
            content=self.content,
            category=self.category,
            importance=self.importance,
            confidence=self.confidence,
            tags=tuple(self.tags),
            event_at=self.event_at,
            source=self.source,
            metadata=self.metadata,
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

    def changes(self) -> dict[str, Any]:
        """Return the fields that were sent."""
        sent = {name: getattr(self, name) for name in self.model_fields_set}
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
    last_hit_at: datetime = Field(description="When it was last found, UTC.")

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

    @classmethod
    def of(cls, item: SessionMessage) -> Self:
        """Return the message as the API shows it."""
        fields = {name: getattr(item, name) for name in ("id", "position", "user", "agent")}
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


class SearchIn(ScopeIn):
    """What to look for."""

    query: str = Field(description="A question, or the latest message.")
    limit: Count = Field(cast("int", None), ge=1, le=MAX_LIMIT, description="Most results. Default: search.limit.")
    tiers: list[TierName] = Field(["sessions", "notes"], min_length=1, description="Tiers to search.")
    tags: list[str] = Field(default_factory=list, description="Only memories with all of these tags.")
    since: datetime = Field(cast("datetime", None), description="Only what happened at or after this time.")
    until: datetime = Field(cast("datetime", None), description="Only what happened before this time.")
    min_confidence: Fraction = Field(
        cast("float", None), description="Only memories at least this sure. Default: search.min_confidence."
    )
    explain: bool = Field(default=False, description="Show each source's rank and raw figures with every result.")

    def filters(self, default_confidence: float) -> Filters:
        """Return the filters, with the configured confidence where none was sent."""
        sent = self.min_confidence if "min_confidence" in self.model_fields_set else default_confidence
        return Filters(tuple(self.tags), self.since, self.until, sent)


class ContextIn(SearchIn):
    """What a prompt needs to know."""

    budget_tokens: Count = Field(
        cast("int", None), ge=16, le=1_000_000, description="Most estimated tokens. Default: context.budget_tokens."
    )


class PlacementOut(BaseModel):
    """Where one source put a result."""

    rank: int = Field(description="From 1, the best.")
    score: float = Field(description="The source's score, 0 to 1.")
    raw: dict[str, float] = Field(description="The engine's own figures: cosine, bm25, ts_rank_cd.")


class ResultOut(BaseModel):
    """A memory that was found."""

    id: UUID = Field(description="Id of the note or message.")
    tier: str = Field(description="Where it lives: sessions or notes.")
    kind: str = Field(description="message, or the note's category.")
    content: str = Field(description="The stretch of its text that matched.")
    score: float = Field(description="Fused score, 0 to 1; 1 is first in every source of its tier.")
    occurred_at: datetime = Field(description="When it was said or happened, UTC.")
    confidence: float = Field(description="How sure it is, 0 to 1.")
    importance: float = Field(description="How much it matters, 0 to 1.")
    tags: list[str] = Field(description="Labels of a note.")
    user: str | None = Field(description="Person it is about.")
    agent: str | None = Field(description="Agent that wrote it.")
    session: str | None = Field(description="Conversation it comes from.")
    name: str | None = Field(description="Speaker of a message.")
    ref: str | None = Field(description="Your own id of a message.")
    source: str | None = Field(description="Where a note comes from, or a message's role.")
    metadata: dict[str, Any] = Field(description="Your data.")
    explain: dict[str, PlacementOut] | None = Field(None, description="Rank and figures per source, on request.")

    @classmethod
    def of(cls, hit: FusedHit, *, explain: bool) -> Self:
        """Return the result as the API shows it."""
        memory = hit.memory
        taken = {name: getattr(memory, name) for name in cls.model_fields if hasattr(memory, name)}
        placements = {
            source.value: PlacementOut(rank=place.rank, score=place.score, raw=dict(place.raw))
            for source, place in hit.placements.items()
        }
        shown = {"tier": memory.tier.name.lower(), "score": hit.score, "explain": placements if explain else None}
        return cls(**(taken | shown))


class SearchOut(BaseModel):
    """The fused results."""

    results: list[ResultOut] = Field(description="Best first.")
    sources: dict[str, int] = Field(description="Hits of each source that answered, before fusion.")
    degraded: list[str] = Field(description="What did not answer: sources, or embedder.")
    reasons: dict[str, str] | None = Field(None, description="Why, by source; on request with explain.")

    @classmethod
    def of(cls, answer: Answer, *, explain: bool) -> Self:
        """Return the answer as the API shows it."""
        return cls(
            results=[ResultOut.of(hit, explain=explain) for hit in answer.hits],
            sources={source.value: count for source, count in answer.answered.items()},
            degraded=sorted(answer.degraded),
            reasons=dict(answer.degraded) if explain else None,
        )


class ContextOut(BaseModel):
    """A block ready for a prompt."""

    text: str = Field(description="The profile in full, then the memories, best first.")
    tokens: int = Field(description="Estimated tokens of the text; at most the budget.")
    budget_tokens: int = Field(description="The budget that held.")
    results: list[ResultOut] = Field(description="The memories in the text, in their order.")
    omitted: list[str] = Field(description="What the budget left out.")
    degraded: list[str] = Field(description="What did not answer.")

    @classmethod
    def of(cls, block: ContextBlock, budget_tokens: int, degraded: list[str], *, explain: bool) -> Self:
        """Return the block as the API shows it."""
        return cls(
            text=block.text,
            tokens=block.tokens,
            budget_tokens=budget_tokens,
            results=[ResultOut.of(hit, explain=explain) for hit in block.used],
            omitted=list(block.omitted),
            degraded=sorted(degraded),
        )


class LagOut(BaseModel):
    """How far a projection is behind Postgres."""

    pending: int = Field(description="Memories still to apply.")
    oldest_s: float = Field(description="Age of the oldest of them, in seconds.")


class ReadyOut(BaseModel):
    """Whether the service can do its work."""

    ready: bool = Field(description="Whether every part answers.")
    parts: dict[str, str] = Field(description="Each part: ok, or what is wrong with it.")
    outbox: dict[str, LagOut] = Field(description="How far each projection is behind.")
    version: str = Field(description="Version of Lamina.")


class ProblemOut(BaseModel):
    """An error, as RFC 9457 describes it."""

    type: str = Field(description="Kind of error.")
    title: str = Field(description="The kind in words.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="What is wrong and what would be right.")
    errors: list[dict[str, str]] | None = Field(None, description="The fields that are wrong: field and reason.")
    fields: dict[str, Any] | None = Field(None, description="The error's own values: part and reason, kind and id, …")
