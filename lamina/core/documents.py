"""Documents as values: uploads, parsed texts, and the passages that searches find."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from lamina.core.media_types import TEXT
from lamina.core.memories import (
    DEFAULT_IMPORTANCE,
    MAX_SOURCE_CHARS,
    Metadata,
    MetadataLimit,
    as_utc,
    clean_fraction,
    clean_metadata,
    clean_tags,
)
from lamina.text.hygiene import clean, clean_name, clean_text, first_visible_line
from lamina.text.patterns import regex
from lamina.text.words import content_hash

MAX_TITLE_CHARS = 500
OPENING_CHARS = 120
# Ends a sentence, in any script; a title may be a question.
_FULL_STOP = regex.compile(r"[\p{Sentence_Terminal}--[!?\u061f\u203c\u2047-\u2049\uff01\uff1f]]", regex.VERSION1)
_CLOSING = regex.compile(r"[\p{Pe}\p{Pf}\"'”]")
LEAST_WORDS_OF_SENTENCE = 3
DEFAULT_MEDIA_TYPE = TEXT


@dataclass(frozen=True, slots=True)
class Upload:
    """A document as its owner sends it.

    Args:
        content: Its text, or the bytes of its file.
        media_type: What it is written in, perhaps with a charset (``text/html; charset=iso-8859-1``).
        key: The owner's own id; without it, the same text is the same document.
        title: Without it, the title that the document gives itself.
        tags: Free labels, compared whole.
        event_at: When what it tells of happened, in UTC; the time of writing if not given.
        source: Where it comes from, at most 1 024 characters.
        metadata: The owner's data, returned untouched.
        importance: 0..1, how much it matters; its passages have it.
    """

    content: str | bytes
    media_type: str = DEFAULT_MEDIA_TYPE
    key: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()
    event_at: datetime | None = None
    source: str = "api"
    metadata: Metadata = field(default_factory=dict)
    importance: float = DEFAULT_IMPORTANCE


def clean_upload(upload: Upload, field_path: str = "", *, limit: MetadataLimit | None = None) -> Upload:
    """Return the upload with everything but its content clean, which its parser checks.

    Args:
        upload: The upload.
        field_path: Where it stands in what was sent.
        limit: Of its metadata.

    Raises:
        InvalidInput: Naming the field under ``field_path``.
    """
    prefix = f"{field_path}." if field_path else ""
    title = None if upload.title is None else clean_text(upload.title, f"{prefix}title", limit=MAX_TITLE_CHARS)
    return Upload(
        content=upload.content,
        media_type=upload.media_type,
        key=None if upload.key is None else clean_name(upload.key, f"{prefix}key"),
        title=title,
        tags=clean_tags(upload.tags, f"{prefix}tags"),
        event_at=None if upload.event_at is None else as_utc(upload.event_at, f"{prefix}occurred_at"),
        source=clean(upload.source, f"{prefix}source", limit=MAX_SOURCE_CHARS),
        metadata=clean_metadata(upload.metadata, f"{prefix}metadata", limit),
        importance=clean_fraction(upload.importance, f"{prefix}importance"),
    )


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a document's text under one heading, or on one page.

    Args:
        start: First character in the text, from 0.
        end: One past the last character.
        heading: The headings above it, outermost first, joined by `` > ``.
        page: Number of the page, from 1, where there are pages.
    """

    start: int
    end: int
    heading: str | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a document's text.

    Args:
        start: First character in the text, from 0.
        end: One past the last character.
        body: Where the rows after its head begin.
    """

    start: int
    end: int
    body: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """The text of a document, with its sections.

    Args:
        text: Its text, with a visible character in it.
        title: The title that it gives itself.
        sections: In order, without gaps: together they are the text.
        tables: Those with a head, in order.
        metadata: The keys and values that it gives itself.
    """

    text: str
    title: str | None
    sections: tuple[Section, ...]
    tables: tuple[Table, ...] = ()
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """A passage: a stretch of a document's text that is embedded, indexed and shown as one.

    Args:
        start: First character in the document's text, from 0.
        end: One past the last character.
        heading: The headings above it, joined by `` > ``.
        page: Number of the page it begins on, from 1, where there are pages.
        table_head: The head of the table whose rows it begins with, if it is a later passage of one.
    """

    start: int
    end: int
    heading: str | None = None
    page: int | None = None
    table_head: str | None = None


@dataclass(frozen=True, slots=True)
class FileMark:
    """The file of a workspace that a document is.

    Args:
        path: Within the workspace, in NFC.
        text_hash: SHA-256 of the text as it was sent.
        is_always: Whether every context block of the workspace shows it.
        mirror: Name of the folder that it mirrors.
        lines: The first and the last line of each passage, from 1.
    """

    path: str
    text_hash: bytes
    is_always: bool = False
    mirror: str | None = None
    lines: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document with the fields of its upload.

    Args:
        key: Names it within its scope.
        media_type: Without parameters.
        content: Its text.
        file: The file of a workspace that it is.
    """

    key: str
    title: str
    media_type: str
    content: str
    passages: tuple[Span, ...]
    tags: tuple[str, ...] = ()
    event_at: datetime | None = None
    source: str = "api"
    metadata: Metadata = field(default_factory=dict)
    file: FileMark | None = None
    importance: float = DEFAULT_IMPORTANCE

    def content_hash(self) -> bytes:
        """Return the hash of everything that replacing it would change, but the folder that a file mirrors."""
        moment = self.event_at.isoformat() if self.event_at else None
        facts = (self.title, self.media_type, self.content, self.tags, moment, self.source, self.metadata)
        cuts = [(span.start, span.end, *filter(None, [span.table_head])) for span in self.passages]
        marks = () if self.file is None else ((self.file.path, self.file.is_always),)
        # Where it is as any other, the hash is that of releases which knew of none.
        weights = () if self.importance == DEFAULT_IMPORTANCE else (self.importance,)
        return hashlib.sha256(json.dumps((facts, cuts, *marks, *weights), sort_keys=True).encode()).digest()

    def texts(self) -> tuple[str, ...]:
        """Return the text of each passage that is embedded and indexed."""
        return tuple(passage_text(self.title, span.heading, self.passage(span)) for span in self.passages)

    def name(self) -> str | None:
        """Return the title, unless it is the first sentence of a text that has none: nobody looks for that name."""
        line = _first_line(self.content)
        is_invented = self.title == opening(self.content)
        return None if is_invented and (len(line) > OPENING_CHARS or _is_sentence(line)) else self.title

    def passage(self, span: Span) -> str:
        """Return a passage as it is shown: rows of a table after its head."""
        content = self.content[span.start : span.end]
        return content if span.table_head is None else f"{span.table_head}\n{content}"


def document_of(upload: Upload, parsed: Parsed, passages: tuple[Span, ...], media_type: str) -> Document:
    """Return the document that an upload is."""
    return Document(
        key=upload.key or content_hash(parsed.text).hex(),
        title=upload.title or parsed.title or opening(parsed.text),
        media_type=media_type,
        content=parsed.text,
        passages=passages,
        tags=upload.tags,
        event_at=upload.event_at,
        source=upload.source,
        metadata=clean_metadata(parsed.metadata, "content") | upload.metadata,
        importance=upload.importance,
    )


def passage_text(title: str, heading: str | None, passage: str) -> str:
    """Return the text of a passage that is embedded and indexed: its headings, then itself.

    A passage found alone has lost its context; the title and the headings give it back. One that
    begins with them already is not told twice.
    """
    title = " ".join(title.split())
    begin = " ".join(passage[: 2 * MAX_TITLE_CHARS].split()).lstrip("# ")
    innermost = heading.rsplit(" > ", maxsplit=1)[-1] if heading else ""
    if _opens(begin, title):
        return passage
    named = heading and heading != title and not _opens(begin, innermost)
    return f"{title}\n{heading}\n{passage}" if named else f"{title}\n{passage}"


def _opens(text: str, words: str) -> bool:
    return f"{text} ".startswith(f"{words} ")


def opening(text: str) -> str:
    """Return the first line that says something, cut at a word to 120 characters."""
    line = _first_line(text)
    if len(line) <= OPENING_CHARS:
        return line
    return line[: OPENING_CHARS + 1].rsplit(" ", maxsplit=1)[0][:OPENING_CHARS]


def _first_line(text: str) -> str:
    return " ".join(first_visible_line(text).split())


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as Postgres holds it.

    Args:
        content: Its text; ``None`` where it was not asked for.
        characters: Length of its text.
        passages: How many passages it has.
        version: 1 at first, one more whenever it is replaced.
    """

    id: UUID
    key: str
    title: str
    media_type: str
    content: str | None
    characters: int
    passages: int
    tags: tuple[str, ...]
    metadata: Metadata
    source: str
    importance: float
    user: str | None
    agent: str | None
    workspace: str
    namespace: str
    version: int
    event_at: datetime
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as Postgres holds it.

    Args:
        position: Which of the document's passages it is, from 1.
        start: First character in the document's text, from 0.
        end: One past the last character.
    """

    id: UUID
    position: int
    content: str
    start: int
    end: int
    heading: str | None
    page: int | None


def _is_sentence(line: str) -> bool:
    """Report whether a line ends with a full stop of any script; "Washington D.C." has too few words for one."""
    end = len(line)
    while end and _CLOSING.match(line, end - 1):
        end -= 1
    if not end or not _FULL_STOP.match(line, end - 1):
        return False
    return line[end - 1] != "." or len(line[:end].split()) >= LEAST_WORDS_OF_SENTENCE
