"""Memories: messages, notes, profiles, and the chunks that make them searchable."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from lamina.core.profiles import ProfileStatement, TimedDocument, state
from lamina.errors import InvalidInput
from lamina.text.hygiene import (
    clean,
    clean_id,
    clean_json,
    clean_name,
    clean_text,
    composed,
    has_more_values,
    json_bytes,
)
from lamina.text.words import content_hash, name_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TAGS = 64
DEFAULT_IMPORTANCE = 0.5
MAX_SOURCE_CHARS = 1024
JOB_SOURCE = "job:"
NAMELESS = ""
"""Among the speakers of a note: a user whose message gives no name."""
MOST_SPEAKERS = 8
"""Of a note, by name."""
MAX_MESSAGES = 256
MAX_ENTITIES = 256
MAX_ALIASES = 64
MAX_TTL_S = 100 * 365 * 86_400
MAX_METADATA_BYTES = 65_536
MAX_METADATA_VALUES = 5_000
"""Values and keys of metadata, however deep they stand."""

Metadata = dict[str, Any]


class Category(StrEnum):
    """Kind of observation that a note holds."""

    DECISION = "decision"
    OUTCOME = "outcome"
    STRATEGY = "strategy"
    NOTE = "note"
    INTERACTION = "interaction"
    # Memory types that callers give; no extraction draws them.
    FACT = "fact"
    PREFERENCE = "preference"
    SKILL = "skill"
    INSIGHT = "insight"


class MemoryKind(StrEnum):
    """Kind of a memory that a search returns."""

    NOTE = "note"
    MESSAGE = "message"
    DOCUMENT = "document"
    PASSAGE = "passage"
    PROCEDURE = "procedure"
    ENTITY = "entity"
    FACT = "fact"


class Role(StrEnum):
    """Who speaks in a message, as chat models name it."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class RestoreStatus(StrEnum):
    """Outcome of restoring a note."""

    RESTORED = "restored"
    EXISTED = "existed"
    CORRECTED = "corrected"
    NOT_ARCHIVED = "not_archived"
    UNREADABLE = "unreadable"


def new_id() -> UUID:
    """Return a UUID of version 7: ids of later rows sort later, which keeps indexes compact."""
    from uuid_utils.compat import uuid7  # noqa: PLC0415 - the client reads the models without it

    return uuid7()


def as_utc(moment: datetime, field_path: str) -> datetime:
    """Return the moment in UTC; a naive one is UTC already, in every time zone of the server.

    Raises:
        InvalidInput: For a moment whose UTC is before year 1 or after year 9999.
    """
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(field_path, f"is {moment.isoformat()}, which has no UTC between years 1 and 9999") from error


@dataclass(frozen=True, slots=True)
class MetadataLimit:
    """How large the metadata of a memory may be that somebody sends; jobs have no such bound.

    Args:
        max_bytes: Of its JSON.
    """

    max_bytes: int = MAX_METADATA_BYTES

    def check_count(self, metadata: Metadata, field_path: str) -> None:
        """Return if the metadata, clean or not, have few enough values and keys: 10^5 take .1 s to clean.

        Raises:
            InvalidInput: Naming the field and the limit.
        """
        if has_more_values(metadata, MAX_METADATA_VALUES):
            raise InvalidInput(field_path, f"has too many values and keys; at most {MAX_METADATA_VALUES} are accepted")

    def check(self, metadata: Metadata, field_path: str) -> None:
        """Return if the metadata, which are clean, are small enough.

        Raises:
            InvalidInput: Naming the field, its size and the limit.
        """
        if (size_bytes := json_bytes(metadata)) > self.max_bytes:
            reason = f"has {size_bytes} bytes as JSON; at most {self.max_bytes} are accepted"
            raise InvalidInput(field_path, f"{reason}; send it as a document, or raise write.max_metadata_bytes")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a text that fits the embedding model.

    Args:
        start: First character in the text, from 0.
        end: One past the last character.
        embedding: Float32 bytes of a unit vector.
    """

    start: int
    end: int
    embedding: bytes

    def vector(self) -> "NDArray[np.float32]":
        """Return the embedding as a read-only float32 vector."""
        import numpy as np  # noqa: PLC0415 - as above

        return np.frombuffer(self.embedding, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a session.

    Args:
        role: Who speaks.
        content: What is said.
        name: The speaker's name; it is part of what search sees.
        ref: The caller's own id of the message; the same ref, role and text is the same message.
        occurred_at: When it was said, in UTC; without it, each delivery is a message of its own.
        metadata: The caller's data, returned untouched.
        importance: 0..1, how much it matters.
    """

    role: Role
    content: str
    name: str | None = None
    ref: str | None = None
    occurred_at: datetime | None = None
    metadata: Metadata = field(default_factory=dict)
    importance: float = DEFAULT_IMPORTANCE

    def speakers(self) -> tuple[str, ...]:
        """Return the speakers of a note that is drawn from this message, as :class:`Note` has them."""
        if self.role is Role.TOOL:
            return ()
        return (self.name,) if self.name else (NAMELESS,) if self.role is Role.USER else ()

    def text(self) -> str:
        """Return the text that is embedded and indexed: the speaker's name, if known, and the content."""
        return f"{self.name}: {self.content}" if self.name else self.content

    def identity_after(self, old: "Message", held: bytes, received_at: datetime) -> bytes:
        """Return the hash of this message, which takes the place of another one that a session held under a hash.

        Both have a time; that of one with the caller's own id may be the time of receipt, which its hash leaves out.
        """
        is_undated = old.ref is not None and replace(old, occurred_at=None).identity(received_at) == held
        return (replace(self, occurred_at=None) if is_undated else self).identity(received_at)

    def identity(self, received_at: datetime) -> bytes:
        """Return the hash under which a session holds this message once.

        A message without a time of its own takes the time of receipt, so that saying the same
        thing twice makes two messages while delivering a dated one twice makes one.
        """
        moment = self.occurred_at or (None if self.ref else received_at)
        parts = (self.role, self.name or "", self.ref or "", moment.isoformat() if moment else "", self.content)
        digest = hashlib.sha256()
        for part in map(composed, parts):
            digest.update(len(part.encode()).to_bytes(8, "big") + part.encode())
        return digest.digest()


def clean_message(message: Message, field_path: str, *, limit: MetadataLimit | None = None) -> Message:
    """Return the message with clean text and UTC time.

    Args:
        message: The message.
        field_path: Where it stands in what was sent.
        limit: Of its metadata.

    Raises:
        InvalidInput: Naming the field under ``field_path``.
    """
    prefix = f"{field_path}." if field_path else ""
    return Message(
        role=message.role,
        content=clean_text(message.content, f"{prefix}content"),
        name=None if message.name is None else clean_name(message.name, f"{prefix}name"),
        ref=None if message.ref is None else clean_name(message.ref, f"{prefix}ref"),
        occurred_at=None if message.occurred_at is None else as_utc(message.occurred_at, f"{prefix}occurred_at"),
        metadata=clean_metadata(message.metadata, f"{prefix}metadata", limit),
        importance=clean_fraction(message.importance, f"{prefix}importance"),
    )


@dataclass(frozen=True, slots=True)
class Note:
    """An observation worth keeping.

    Args:
        content: The text.
        category: What kind of observation it is.
        importance: 0..1, how much it matters.
        confidence: 0..1, how sure it is.
        tags: Free labels, compared whole.
        event_at: When what it tells of happened, in UTC; the time of writing if not given.
        source: Where it comes from (``api``, or the id of the message it was extracted from), at most 1 024
            characters.
        metadata: The caller's data, returned untouched.
        derived_from: Notes that this one was made from; it goes when one of them goes.
        expires_at: When it leaves all reads, in UTC; ``None`` means never.
        speakers: Who said it, as messages name them, of a note that was drawn from these; empty for a user without a
            name. No writer gives it: metadata may hold anything.
    """

    content: str
    category: Category = Category.NOTE
    importance: float = 0.5
    confidence: float = 1.0
    tags: tuple[str, ...] = ()
    event_at: datetime | None = None
    source: str = "api"
    metadata: Metadata = field(default_factory=dict)
    derived_from: tuple[UUID, ...] = ()
    expires_at: datetime | None = None
    speakers: tuple[str, ...] = ()

    def content_hash(self) -> bytes:
        """Return the hash under which a scope holds this note once."""
        return content_hash(self.content)

    def named_speakers(self) -> tuple[str, ...]:
        """Return the names of its speakers, each once; none where a user without a name says the same."""
        return () if NAMELESS in self.speakers else tuple(dict.fromkeys(self.speakers))[:MOST_SPEAKERS]


def joint_name(speakers: Sequence[str]) -> str | None:
    """Return the names of speakers as one; ``None`` where nobody is named."""
    return ", ".join(speakers) or None


def clean_note(note: Note, field_path: str = "", *, by_job: bool = False, limit: MetadataLimit | None = None) -> Note:
    """Return the note with clean text, distinct tags and UTC time.

    Args:
        note: What somebody wants to be stored.
        field_path: Where it stands in what was sent.
        by_job: Whether a job made it; only then its source may begin with ``job:``.
        limit: Of its metadata.

    Raises:
        InvalidInput: Naming the field under ``field_path``.
    """
    prefix = f"{field_path}." if field_path else ""
    return Note(
        content=clean_text(note.content, f"{prefix}content"),
        category=note.category,
        importance=clean_fraction(note.importance, f"{prefix}importance"),
        confidence=clean_fraction(note.confidence, f"{prefix}confidence"),
        tags=clean_tags(note.tags, f"{prefix}tags"),
        event_at=None if note.event_at is None else as_utc(note.event_at, f"{prefix}event_at"),
        source=clean_source(note.source, f"{prefix}source", by_job=by_job),
        metadata=clean_metadata(note.metadata, f"{prefix}metadata", limit),
        derived_from=tuple(dict.fromkeys(note.derived_from)),
        expires_at=None if note.expires_at is None else as_utc(note.expires_at, f"{prefix}expires_at"),
    )


def clean_source(source: str, field_path: str, *, by_job: bool = False) -> str:
    """Return the source as clean text.

    Raises:
        InvalidInput: For unclean text, or for the name of a job where none writes.
    """
    cleaned = clean(source, field_path, limit=MAX_SOURCE_CHARS)
    if cleaned.startswith(JOB_SOURCE) and not by_job:
        raise InvalidInput(field_path, f"is {cleaned!r}; {JOB_SOURCE!r} begins what jobs make, name another source")
    return cleaned


def clean_expiry(
    ttl_s: float | None, expires_at: datetime | None, now: datetime, field_path: str = ""
) -> datetime | None:
    """Return when something is over, in UTC, by the seconds it lives or by the moment itself; never if by neither.

    Raises:
        InvalidInput: If both are given, or the moment is past or out of range.
    """
    prefix = f"{field_path}." if field_path else ""
    if ttl_s is not None:
        if expires_at is not None:
            raise InvalidInput(f"{prefix}ttl_s", "is given beside expires_at; send one of them")
        return _after(now, ttl_s, f"{prefix}ttl_s")
    moment = None if expires_at is None else as_utc(expires_at, f"{prefix}expires_at")
    if moment is not None and moment <= now:
        raise InvalidInput(f"{prefix}expires_at", f"is {moment.isoformat()}, which is past; name a later time or none")
    return moment


def _after(now: datetime, seconds: float, field_path: str) -> datetime:
    if not 0 < seconds <= MAX_TTL_S:
        raise InvalidInput(field_path, f"is {seconds}; expected more than 0, at most {MAX_TTL_S} (100 years)")
    return now + timedelta(seconds=seconds)


def clean_tags(tags: tuple[str, ...], field_path: str) -> tuple[str, ...]:
    """Return the tags in order, each once.

    Raises:
        InvalidInput: For an unclean tag, or more than 64.
    """
    if len(tags) > MAX_TAGS:
        raise InvalidInput(field_path, f"has {len(tags)} tags; at most {MAX_TAGS} are accepted")
    return tuple(dict.fromkeys(clean_id(tag, f"{field_path}.{place}") for place, tag in enumerate(tags)))


def clean_metadata(metadata: Metadata, field_path: str, limit: MetadataLimit | None = None) -> Metadata:
    """Return the metadata as they are, or say why they cannot be stored."""
    if limit is not None:
        limit.check_count(metadata, field_path)
    cleaned = clean_json(metadata, field_path)
    assert isinstance(cleaned, dict)  # noqa: S101 - a dict in is a dict out
    if limit is not None:
        limit.check(cleaned, field_path)
    return cleaned


def clean_fraction(value: float, field_path: str) -> float:
    """Return a share.

    Raises:
        InvalidInput: Unless it is within 0..1.
    """
    if not 0 <= value <= 1:
        raise InvalidInput(field_path, f"is {value}; expected 0 to 1")
    return value


@dataclass(frozen=True, slots=True)
class StoredNote:
    """A note as Postgres holds it.

    Args:
        weight: 0..1, what its idle days have left of it; see lamina.policies.retention.decay.
    """

    id: UUID
    note: Note
    user: str | None
    agent: str | None
    session: str | None
    workspace: str
    namespace: str
    version: int
    hits: int
    created_at: datetime
    updated_at: datetime
    last_hit_at: datetime
    temperature: str = "warm"
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class NoteVersion:
    """One state that a note was or is in; version 1 is the first."""

    version: int
    content: str
    category: Category
    importance: float
    confidence: float
    tags: tuple[str, ...]
    metadata: Metadata
    written_at: datetime
    is_current: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """A user's profile: one JSON document and its version (0: nothing yet).

    Args:
        is_verified: Whether every field was last stated by the user itself, or an admin.
    """

    user: str
    document: Metadata
    version: int
    updated_at: datetime | None = None
    is_verified: bool = False


@dataclass(frozen=True, slots=True)
class ProfileVersion:
    """A state that a profile is or was in; version 1 is the first."""

    version: int
    document: Metadata
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Entity:
    """A person, place, thing or idea that memories mention.

    Args:
        name: As it was written; entities whose names differ in case, width or composition are one.
        type: What it is, in lower case (``person``, ``organisation``, ``place``, ``thing``).
        aliases: Other names.
        confidence: 0..1, how sure it is that this is one.
    """

    name: str
    type: str = "thing"
    aliases: tuple[str, ...] = ()
    confidence: float = 0.8

    @property
    def key(self) -> str:
        """Return its identity within a workspace."""
        return name_key(self.name)

    def all_keys(self) -> tuple[str, ...]:
        """Return every key it is known by, its own first, each once."""
        return tuple(dict.fromkeys((self.key, *map(name_key, self.aliases))))


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed statement: subject, relation, object.

    Args:
        subject: Name of the entity it starts from.
        type: How the two stand, in lower case with underscores (``works_at``).
        object: Name of the entity it points to.
        strength: 0..1, how much following it carries over.
        confidence: 0..1, how sure one source of it is.
        told_by: ``message:<id>`` of the message that states it, where its text need not name the subject: "I".
    """

    subject: str
    type: str
    object: str
    strength: float = 0.8
    confidence: float = 0.8
    told_by: str | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """Notes, profile and graph that extraction drew from a turn.

    Args:
        notes: What is worth keeping.
        statements: What the user states of themself.
        entities: Who and what is mentioned.
        edges: How these stand to each other; entities that only an edge names are implied.
    """

    notes: tuple[Note, ...] = ()
    statements: tuple[ProfileStatement, ...] = ()
    entities: tuple[Entity, ...] = ()
    edges: tuple[Edge, ...] = ()

    @property
    def profile(self) -> Metadata:
        """Return the profile that the statements make by themselves."""
        latest = datetime.max.replace(tzinfo=UTC)
        return dict(state(TimedDocument({}), self.statements, latest).document)
