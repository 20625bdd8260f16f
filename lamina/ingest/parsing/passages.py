"""Cut documents into passages at headings, paragraphs and sentences."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from lamina.core.documents import Parsed, Section, Span
from lamina.core.media_types import MARKDOWN
from lamina.text.hygiene import is_blank
from lamina.text.opaque import language_spans
from lamina.text.parts import parts

_PART_CHARS = 20_000  # The splitter's time grows with the square of a text's length.


def split(parsed: Parsed, media_type: str, *, passage_chars: int) -> tuple[Span, ...]:
    """Return the passages of a document: in order, each within its section, together all of its text.

    Args:
        parsed: The document.
        media_type: Its format; Markdown is also cut at its own blocks.
        passage_chars: Most characters of a passage, beside blanks at its end.
    """
    splitter = _splitter(passage_chars, is_markdown=media_type == MARKDOWN)
    return tuple(span for section in parsed.sections for span in _spans(parsed.text, section, splitter))


def _spans(text: str, section: Section, splitter: Any) -> Iterator[Span]:
    """Yield the passages of a section; blanks belong to the passage before them, the first ones to the first."""
    starts = [
        begin + start
        for begin, end in _parts(text, section.start, section.end)
        for start, chunk in splitter.chunk_indices(text[begin:end])
        if not is_blank(chunk)
    ]
    for start, end in pairwise([section.start, *starts[1:], section.end] if starts else []):
        yield Span(start, end, section.heading, section.page)


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a long section where it is parted best; the first character of what is no language stands for a passage."""
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


@cache
def _splitter(passage_chars: int, *, is_markdown: bool) -> Any:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter  # noqa: PLC0415 - only writers need it

    kind = MarkdownSplitter if is_markdown else TextSplitter
    return kind(passage_chars, trim=False)
