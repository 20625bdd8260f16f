"""Memories of any kind by their ids: requests and answers."""

from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.api.documents import DocumentOut, FileText, PassageOut
from lamina.api.facts import FactOut
from lamina.api.fields import ABSENT, Content, Fraction, Id, Moment, SourceName, Strict, Tags, Title
from lamina.api.graph import Aliases, EntityOut
from lamina.api.notes import NoteOut
from lamina.api.procedures import ProcedureOut
from lamina.api.sessions import SessionMessageOut
from lamina.core.memories import MemoryKind


class MemoryOut(BaseModel):
    """A memory of any kind; the field of its kind holds it."""

    id: UUID = Field(description="Id of the memory.")
    kind: MemoryKind = Field(description="What it is, and the field that holds it.")
    note: NoteOut | None = Field(None, description="The note.")
    message: SessionMessageOut | None = Field(None, description="The message.")
    document: DocumentOut | None = Field(None, description="The document, or that of the passage, without text.")
    passage: PassageOut | None = Field(None, description="The passage.")
    procedure: ProcedureOut | None = Field(None, description="The procedure.")
    entity: EntityOut | None = Field(None, description="The entity.")
    fact: FactOut | None = Field(None, description="The fact.")


class DocumentPatch(Strict):
    """Fields of a document to change; the others stay."""

    content: FileText = Field(ABSENT, description="New text.")
    title: Title = Field(ABSENT, description="New title.")
    tags: Tags = Field(ABSENT, description="New labels, in place of all old ones.")
    metadata: dict[str, Any] = Field(ABSENT, description="New metadata, in place of the old.")


class TextPatch(Strict):
    """The text of a file, or of a passage, to change."""

    content: FileText = Field(description="New text.")


class EntityPatch(Strict):
    """Fields of an entity to change; the others stay."""

    type: Id = Field(ABSENT, description="What it is.")
    aliases: Aliases = Field(ABSENT, description="Further names; those that it has stay.")
    confidence: Fraction = Field(ABSENT, description="How sure it is, 0 to 1.")


class MessagePatch(Strict):
    """Fields of a message to change; the others stay."""

    content: Content = Field(ABSENT, description="New text; what was drawn from the old one follows.")
    metadata: dict[str, Any] = Field(ABSENT, description="New metadata, in place of the old.")
    importance: Fraction = Field(ABSENT, description="How much it matters, 0 to 1.")


class FactPatch(Strict):
    """A correction of a fact; fields that are left out keep their values."""

    subject: Id = Field(ABSENT, description="Name of the entity that it is about.")
    relation: Id = Field(ABSENT, description="How it stands to the object.")
    object: Id = Field(ABSENT, description="Name of the entity at the other side.")
    valid_from: Moment = Field(
        ABSENT, description="Since when it holds, and the old one no longer. Default: the old one never held."
    )
    confidence: Fraction = Field(ABSENT, description="How sure this source is of it, 0 to 1.")
    source: SourceName = Field("api", description="Where it is from; one source counts once.")


class ForgottenOut(BaseModel):
    """What was deleted."""

    id: UUID = Field(description="Its id; of a passage, that of its document, which goes with it.")
    kind: MemoryKind = Field(description="What it was.")
