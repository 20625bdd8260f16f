"""Cut long texts where they part best."""

from collections.abc import Callable, Iterator


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


def ends_within(text: str, most: int, size: Callable[[str], int]) -> str:
    """Return a text, or as much of both ends of a larger one as has this size together.

    Args:
        text: The text.
        most: The largest size.
        size: Size of a text; of two in a row, the sum of theirs.

    >>> ends_within("kurz, 长长长长的问题", 21, lambda text: len(text.encode()))
    'kurz, 长 的问题'
    """
    if size(text) <= most:
        return text
    half = (most - size(" ")) // 2
    first, last = _fitting_chars(text, half, size), _fitting_chars(text[::-1], half, size)
    return f"{text[:first]} {text[len(text) - last :]}"


def _fitting_chars(text: str, most: int, size: Callable[[str], int]) -> int:
    """Return how many characters from the beginning of a text have at most this size."""
    chars, step = 0, 1 << len(text).bit_length()
    while step := step // 2:  # Halved pieces: together they are measured for no more than the text's length.
        if chars + step <= len(text) and (taken := size(text[chars : chars + step])) <= most:
            chars, most = chars + step, most - taken
    return chars
