"""Cut documents into passages at headings, paragraphs and sentences."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from lamina.core.documents import Parsed, Section, Span, Table
from lamina.core.media_types import MARKDOWN
from lamina.text.hygiene import is_blank
from lamina.text.opaque import language_spans
from lamina.text.parts import parts

# Numbers and codes take twice as many tokens as prose: rows that a model reads in two parts have the head in one alone.
_ROWS_SHARE = 2
_MOST_OF_HEAD = 3  # A head takes at most a third of that.
_ROOM_STEP = 10  # So that few splitters serve heads of all lengths.
_PART_CHARS = 20_000  # The splitter's time grows with the square of a text's length.


def split(parsed: Parsed, media_type: str, *, passage_chars: int) -> tuple[Span, ...]:
    """Return the passages of a document: in order, each within its section, together all of its text.

    The later passages of a table that does not fit one have its head, which counts towards their length.

    Args:
        parsed: The document.
        media_type: Its format; Markdown is also cut at its own blocks.
        passage_chars: Most characters of a passage, beside blanks at its end.
    """
    plain = _splitter(passage_chars, is_markdown=media_type == MARKDOWN)
    long = [table for table in parsed.tables if table.end - table.start > passage_chars]
    return tuple(
        span for section in parsed.sections for span in _spans(parsed.text, section, long, plain, passage_chars)
    )


def _spans(text: str, section: Section, tables: Sequence[Table], splitter: Any, passage_chars: int) -> Iterator[Span]:
    """Yield the passages of a section; blanks belong to the passage before them, the first ones to the first."""
    starts: list[tuple[int, str | None]] = []
    place = section.start
    for table in tables:
        if section.start <= table.start and table.end <= section.end:
            starts += ((start, None) for start in _starts(text, place, table.start, splitter))
            starts += _starts_in_table(text, table, passage_chars)
            place = table.end
    starts += ((start, None) for start in _starts(text, place, section.end, splitter))
    begins = [section.start, *(start for start, _ in starts[1:]), section.end] if starts else []
    for (start, end), (_, head) in zip(pairwise(begins), starts, strict=True):
        yield Span(start, end, section.heading, section.page, head)


def _starts_in_table(text: str, table: Table, passage_chars: int) -> Iterator[tuple[int, str | None]]:
    """Yield where the passages of a long table begin, each but the first with the head, cut if it is too long."""
    most = passage_chars // _ROWS_SHARE
    head = text[table.start : table.body].strip()[: most // _MOST_OF_HEAD].rstrip()
    room = most - len(head) - 1
    splitter = _splitter(room - room % _ROOM_STEP or room, is_markdown=False)
    for start in _starts(text, table.start, table.end, splitter):
        yield start, None if start <= table.start else head or None


def _starts(text: str, begin: int, end: int, splitter: Any) -> Iterator[int]:
    for start, stop in _parts(text, begin, end):
        for place, chunk in splitter.chunk_indices(text[start:stop]):
            if not is_blank(chunk):
                yield start + place


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a long section where it is parted best; the first character of a stretch in no language stands for it."""
    place = start
    for begin, stop in language_spans(text[start:end]):
        yield from _first_visible(text, place, start + begin)
        yield from parts(text, start + begin, start + stop, _PART_CHARS)
        place = start + stop
    yield from _first_visible(text, place, end)


def _first_visible(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    blanks = len(text[start:end]) - len(text[start:end].lstrip())
    if start + blanks < end:
        yield start + blanks, start + blanks + 1


@lru_cache(maxsize=64)
def _splitter(passage_chars: int, *, is_markdown: bool) -> Any:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter  # noqa: PLC0415 - only writers need it

    kind = MarkdownSplitter if is_markdown else TextSplitter
    return kind(passage_chars, trim=False)
