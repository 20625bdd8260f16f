"""Documents: requests and answers."""

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.api.fields import ABSENT, Fraction, Id, MediaType, Moment, Output, PageOut, SourceName, Strict, Tags, Title
from lamina.api.scope import ScopeIn
from lamina.core.documents import DEFAULT_MEDIA_TYPE, Upload
from lamina.core.memories import DEFAULT_IMPORTANCE
from lamina.errors import InvalidInput

MAX_DOCUMENTS = 256
# Above what `documents.max_bytes` lets through by default; the route's limit of a body holds it in any case.
MAX_FILE_CHARS = 32 * 1024 * 1024
FileText = Annotated[str, Field(max_length=MAX_FILE_CHARS)]


class DocumentFields(Strict):
    """The fields of a document."""

    content: FileText = Field(ABSENT, description="Its text.")
    content_base64: FileText = Field(ABSENT, description="The bytes of its file in base64, instead of `content`.")
    media_type: MediaType = Field(
        DEFAULT_MEDIA_TYPE,
        description="text/plain, text/markdown, text/html or application/pdf, perhaps with a charset.",
    )
    key: Id = Field(ABSENT, description="Your own id: the same key replaces the document. Default: hash of its text.")
    title: Title = Field(ABSENT, description="Default: the title that it gives itself.")
    tags: Tags = Field(default_factory=list, description="Labels, each compared whole.")
    occurred_at: Moment = Field(
        ABSENT,
        description="When what it tells of happened, ISO 8601; without an offset it is UTC. Default: now.",
    )
    source: SourceName = Field("api", description="Where it comes from.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Your data, returned untouched.")
    importance: Fraction = Field(
        DEFAULT_IMPORTANCE, description="How much it matters, 0 to 1; the composite relevance weighs its passages so."
    )

    def upload(self, field_path: str = "") -> Upload:
        """Return the document to store.

        Raises:
            InvalidInput: Unless it has one content, in well-formed base64 if in any.
        """
        prefix = f"{field_path}." if field_path else ""
        return Upload(
            content=self._content(prefix),
            media_type=self.media_type,
            key=self.key,
            title=self.title,
            tags=tuple(self.tags),
            event_at=self.occurred_at,
            source=self.source,
            metadata=self.metadata,
            importance=self.importance,
        )

    def _content(self, prefix: str) -> str | bytes:
        sent = {"content", "content_base64"} & self.model_fields_set
        if len(sent) != 1:
            state = "is sent with content_base64; send one of them" if sent else "is missing; send it or content_base64"
            raise InvalidInput(f"{prefix}content", state)
        if "content" in sent:
            return self.content
        try:
            return base64.b64decode(self.content_base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidInput(f"{prefix}content_base64", f"is no base64: {error}") from error


class DocumentIn(ScopeIn, DocumentFields):
    """A document to store."""


class DocumentsIn(ScopeIn):
    """Documents to store together; an item that is wrong does not stop the others."""

    documents: list[Any] = Field(
        min_length=1, max_length=MAX_DOCUMENTS, description="Each an object with the fields of a document."
    )


class PutDocumentOut(Output):
    """The result of storing a document."""

    id: UUID = Field(description="Id of the document; it stays when the document is replaced.")
    key: str = Field(description="What names it within its scope.")
    status: Literal["created", "replaced", "existed"] = Field(
        description="existed: the scope had the same one, and nothing was written."
    )
    version: int = Field(description="1 at first, one more whenever it is replaced.")
    passages: int = Field(description="How many passages it is found by.")


class DocumentItem(Output):
    """The result of one document of a batch."""

    status: Literal["created", "replaced", "existed", "invalid"] = Field(description="What became of it.")
    id: UUID | None = Field(None, description="Id of the document; none for an invalid item.")
    key: str | None = Field(None, description="What names it within its scope.")
    version: int | None = Field(None, description="1 at first, one more whenever it is replaced.")
    passages: int | None = Field(None, description="How many passages it is found by.")
    error: str | None = Field(None, description="What is wrong with an invalid item, naming its field.")


class PutDocumentsOut(BaseModel):
    """One result an item, in their order."""

    results: list[DocumentItem] = Field(description="One entry an item, in their order.")
    epoch: int | None = Field(None, description="The namespace's epoch; none if nothing was stored.")


class DocumentOut(Output):
    """A stored document."""

    id: UUID = Field(description="Id of the document.")
    key: str = Field(description="What names it within its scope.")
    title: str = Field(description="Its title.")
    media_type: str = Field(description="What it was written in.")
    content: str | None = Field(description="Its text; none in lists, or where it was not asked for.")
    characters: int = Field(description="Length of its text.")
    passages: int = Field(description="How many passages it is found by.")
    tags: list[str] = Field(description="Labels.")
    occurred_at: datetime = Field(description="When what it tells of happened, UTC.")
    source: str = Field(description="Where it comes from.")
    metadata: dict[str, Any] = Field(description="Your data.")
    importance: float = Field(description="How much it matters, 0 to 1.")
    workspace: str = Field(description="Project it belongs to.")
    namespace: str = Field(description="Subdivision of the workspace.")
    user: str | None = Field(description="Person it belongs to; none for a shared one.")
    agent: str | None = Field(description="Agent that wrote it.")
    version: int = Field(description="1 at first, one more whenever it is replaced.")
    created_at: datetime = Field(description="When it was stored first, UTC.")
    updated_at: datetime = Field(description="When it was last replaced, UTC.")


class DocumentsOut(PageOut):
    """A page of documents."""

    documents: list[DocumentOut] = Field(description="The latest event first, without their text.")


class PassageOut(Output):
    """A passage of a document."""

    id: UUID = Field(description="Id of the passage, as search returns it.")
    position: int = Field(description="Which of the document's passages it is, from 1.")
    content: str = Field(description="Its text; rows of a long table after its head.")
    start: int = Field(description="First character in the document's text, from 0.")
    end: int = Field(description="One past the last character.")
    heading: str | None = Field(description="The headings above it, outermost first.")
    page: int | None = Field(description="The page it is on, from 1.")


class PassagesOut(PageOut):
    """Passages of a document."""

    passages: list[PassageOut] = Field(description="In their order; together they are the whole text.")
