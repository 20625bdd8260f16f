"""Parse uploaded documents: text, Markdown, HTML and PDF become one text with its sections.

Parsing opens no connection and runs nothing: scripts, styles and embedded objects are dropped.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lamina.core.documents import MAX_TITLE_CHARS, Parsed, Section, Table
from lamina.core.media_types import HTML, MARKDOWN, PDF, TEXT
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean, is_blank
from lamina.text.normal_forms import normalised

if TYPE_CHECKING:
    from pypdf import PdfReader

HEADING_JOIN = " > "
_ALIASES = {"text/x-markdown": MARKDOWN, "application/xhtml+xml": HTML, "application/x-pdf": PDF}
MAX_NESTING = 4_000  # Ten times what large pages have.
MAX_REOPENED = 2_000_000  # Some 400 MB.


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """How large a document may be.

    Args:
        max_bytes: Of the file that is uploaded.
        max_chars: Of the text that is in it, however small it was packed.
    """

    max_bytes: int
    max_chars: int


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document that is being parsed.

    Args:
        field: Path of the caller's field that holds the content.
    """

    content: str | bytes
    charset: str | None
    field: str
    limits: DocumentLimits


def parse(
    content: str | bytes,
    media_type: str,
    limits: DocumentLimits,
    *,
    field_path: str = "",
) -> Parsed:
    """Return the text of a document, with its title and sections.

    Args:
        content: Its text, or the bytes of its file.
        media_type: Its format, perhaps with a charset; without one, its own declaration counts, or its bytes tell.
        limits: How large it may be.
        field_path: Path of the document in the caller's request.

    Raises:
        InvalidInput: For an unknown media type, a document that is too large, broken, encrypted or
            not in its charset, and for one without text.
    """
    prefix = f"{field_path}." if field_path else ""
    kind, charset = known_media_type(media_type, f"{prefix}media_type")
    field = f"{prefix}content" if isinstance(content, str) else f"{prefix}content_base64"
    _check_size(content, field, limits.max_bytes)
    parsed = _PARSERS[kind](SourceDocument(content, charset, field, limits))
    if is_blank(parsed.text):
        raise InvalidInput(field, f"has no text in it{_REMEDIES.get(kind, '')}")
    return parsed


def known_media_type(media_type: str, field: str) -> tuple[str, str | None]:
    """Return the media type of a document that can be parsed, and the charset that is named with it, if any.

    Raises:
        InvalidInput: For any other media type.
    """
    header = Message()
    header["Content-Type"] = "".join(char for char in media_type if char.isprintable())
    kind = header.get_content_type()
    kind = _ALIASES.get(kind, kind)
    if kind not in _PARSERS or not media_type.strip().lower().startswith(header.get_content_type()):
        raise InvalidInput(field, f"is {media_type[:100]!r}; expected one of {', '.join(_PARSERS)}")
    charset = header.get_content_charset()
    return kind, None if charset is None else str(charset)


def _check_size(content: str | bytes, field: str, max_bytes: int) -> None:
    size = len(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    if size > max_bytes:
        raise InvalidInput(field, f"has {size} bytes; at most {max_bytes} are accepted, send it in parts")


def _text_of(source: SourceDocument, max_chars: int, *, is_markup: bool = False) -> str:
    """Return the text of a document, lines ended by a line feed alone."""
    decoded = source.content if isinstance(source.content, str) else _decoded(source.content, source, is_markup)
    lines = decoded.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return clean(lines, source.field, limit=max_chars)


def _decoded(content: bytes, source: SourceDocument, is_markup: bool) -> str:
    from lamina.ingest.parsing.charsets import UnreadableError, decode  # noqa: PLC0415 - only writers of files need it

    try:
        return decode(content, source.charset, is_markup=is_markup)
    except UnreadableError as error:
        raise InvalidInput(source.field, str(error)) from error


def _parse_text(source: SourceDocument) -> Parsed:
    text = _text_of(source, source.limits.max_chars)
    return Parsed(text, None, (Section(0, len(text)),))


def _parse_markdown(source: SourceDocument) -> Parsed:
    from lamina.ingest.parsing.front_matter import find_front_matter  # noqa: PLC0415 - only writers of Markdown need it

    whole = _text_of(source, source.limits.max_chars)
    front = find_front_matter(whole)
    # Front matter that cannot be read is text, but makes no heading.
    text, begin = (whole, front.end) if front.values is None else (whole[front.end :].lstrip("\n"), 0)
    headings, tables = _blocks(text, begin)
    first = next((heading.text for heading in headings if heading.level == 1), None)
    values = front.values or {}
    title = values.get("title")
    named = as_title(str(title)) if isinstance(title, str | int | float) else None
    return Parsed(text, named or as_title(first), _sections(text, headings), tables, values)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: its place in the text, its level (1 to 6), and its text."""

    start: int
    level: int
    text: str


@cache
def _markdown() -> Any:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only writers of Markdown need it

    return MarkdownIt("commonmark").enable("table").disable("inline")


def _blocks(text: str, begin: int) -> tuple[list[Heading], tuple[Table, ...]]:
    """Return the headings and tables of a Markdown text from a place on; those in a block of code are none."""
    starts = [begin + start for start in _line_starts(text[begin:])]
    headings, tables = [], []
    for token, inside in pairwise(_markdown().parse(text[begin:])):
        if not token.map or token.level:
            continue
        first, last = starts[token.map[0]], min(starts[token.map[1]], len(text))
        if token.type == "heading_open":
            headings.append(Heading(first, int(token.tag[1]), " ".join(inside.content.split())))
        elif token.type == "table_open":
            tables.append(Table(first, last, starts[token.map[0] + 2]))  # Its head, and the line under it.
    return headings, tuple(tables)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _sections(text: str, headings: Sequence[Heading]) -> tuple[Section, ...]:
    """Return the sections of a text from heading to heading, each with the headings above it."""
    bounds = [heading.start for heading in headings] + [len(text)]
    sections = [] if bounds[0] == 0 and headings else [Section(0, bounds[0])]
    above: tuple[Heading, ...] = ()
    for heading, end in zip(headings, bounds[1:], strict=True):
        above = (*(item for item in above if item.level < heading.level), heading)
        path = HEADING_JOIN.join(item.text for item in above if item.text)
        sections.append(Section(heading.start, end, path or None))
    return tuple(section for section in sections if section.start < section.end)


def _parse_html(source: SourceDocument) -> Parsed:
    from selectolax.lexbor import SelectolaxError  # noqa: PLC0415 - only writers of HTML need it

    from lamina.ingest.parsing.html import nesting, read_html, reopened  # noqa: PLC0415 - the same

    markup = _text_of(source, source.limits.max_bytes, is_markup=True)
    if (depth := nesting(markup)) > MAX_NESTING:
        raise InvalidInput(source.field, f"nests {depth} tags; at most {MAX_NESTING} are read, close what is open")
    if (count := reopened(markup)) > MAX_REOPENED:
        reason = f"leaves formatting open that makes {count} elements; at most {MAX_REOPENED} are read, close it"
        raise InvalidInput(source.field, reason)
    try:
        page = read_html(markup)
    except SelectolaxError as error:  # It has no memory left.
        raise InvalidInput(source.field, "makes too many elements; close what is open, or send it in parts") from error
    text = clean(page.text, source.field, limit=source.limits.max_chars)
    headings = [Heading(start, level, text[start:end].strip()) for start, end, level in page.headings]
    first = next((heading.text for heading in headings if heading.level == 1), None)
    tables = tuple(Table(*places) for places in page.tables)
    return Parsed(text, as_title(page.title) or as_title(first), _sections(text, headings), tables)


def _parse_pdf(source: SourceDocument) -> Parsed:
    from pypdf import PdfReader  # noqa: PLC0415 - only writers of PDF need it

    from lamina.ingest.parsing.line_ends import join_broken_words  # noqa: PLC0415 - the same

    if isinstance(source.content, str):
        raise InvalidInput(source.field, f"is text, but {PDF} is binary; send it as content_base64")
    try:
        reader = PdfReader(io.BytesIO(source.content))
        _check_readable(reader, source.field)
        pages = join_broken_words(list(_pages(reader, source)))
        title = as_title(_printable(str(reader.metadata.title or ""))) if reader.metadata else None
    except InvalidInput:
        raise
    # A file from anywhere can break a parser anywhere; whatever it raises, the file is at fault.
    except Exception as error:
        raise InvalidInput(
            source.field, f"is no readable PDF ({_first_line(error)}); repair it, or send its text"
        ) from error
    text = "".join(pages)
    return Parsed(text, title, tuple(_page_sections(pages)))


def _check_readable(reader: "PdfReader", field: str) -> None:
    # A document that only restricts its use opens with the empty password, as every reader opens it.
    if reader.is_encrypted and not reader.decrypt(""):
        raise InvalidInput(field, "is an encrypted PDF; remove its password")


def _pages(reader: "PdfReader", source: SourceDocument) -> Iterator[str]:
    """Yield the text of each page, ended by a blank line."""
    size = 0
    for page in reader.pages:
        text = normalised("NFC", _printable(page.extract_text())).strip()
        size += len(text) + 2
        if size > source.limits.max_chars:
            raise InvalidInput(source.field, f"has more than {source.limits.max_chars} characters; send it in parts")
        yield f"{text}\n\n" if text else ""


def _page_sections(pages: Sequence[str]) -> Iterator[Section]:
    start = 0
    for number, page in enumerate(pages, start=1):
        if page:
            yield Section(start, start + len(page), page=number)
        start += len(page)


def _printable(text: str) -> str:
    """Remove the marks of broken fonts: NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def as_title(text: str | None) -> str | None:
    """Return a text as a title: one line, not too long; ``None`` if it is blank."""
    line = " ".join((text or "").split())[:MAX_TITLE_CHARS].strip()
    return None if is_blank(line) else line


def _first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0][:200]
    return f"{type(error).__name__}: {_printable(text)}" if text else type(error).__name__


_PARSERS: Mapping[str, Callable[[SourceDocument], Parsed]] = {
    TEXT: _parse_text,
    MARKDOWN: _parse_markdown,
    HTML: _parse_html,
    PDF: _parse_pdf,
}
_REMEDIES = {PDF: "; pages that are only pictures need text recognition first"}
