"""Cut long texts where they part best."""

from collections.abc import Iterator


def parts(text: str, start: int, end: int, most_chars: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of at most so many characters, cut between paragraphs, lines, sentences or words if it can be."""
    while end - start > most_chars:
        first, last = start + most_chars // 2, start + most_chars
        gaps = (text.rfind(gap, first, last) + len(gap) for gap in ("\n\n", "\n", ". ", " "))
        cut = next((cut for cut in gaps if cut > first), last)
        yield start, cut
        start = cut
    yield start, end


def ends_of(text: str, most_chars: int) -> str:
    """Return a text, or both its ends where it is longer.

    >>> ends_of("a long question", 8)
    'a lo tion'
    """
    half = most_chars // 2
    return text if len(text) <= most_chars else f"{text[:half]} {text[-half:]}"
