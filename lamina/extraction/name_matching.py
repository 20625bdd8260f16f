"""Find known names in a text by the words that all keyword indexes share: in any script and any case."""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import regex

from lamina.text.english import FUNCTION_WORDS, SENTENCE_STARTERS
from lamina.text.words import name_words

MAX_NAME_WORDS = 8
WINDOW_WORDS = 2_000
# Whether a name stands for itself is decided by the longest name before it, and the one before that.
_CONTEXT_WORDS = 2 * MAX_NAME_WORDS

_CAPITALISED = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}_]*(?:['’][\p{L}\p{M}]+)*")
_WORD = regex.compile(r"[^ ]+")

Span = tuple[int, int]
"""The first and one past the last of a text's words."""
NameCandidates = Mapping[str, Sequence[Span]]
"""The runs of words that may be names, by the key they would have, with the places where they stand."""


@dataclass(frozen=True, slots=True)
class TextWords:
    """The words of a text, in the least room.

    Args:
        joined: The words of :func:`lamina.text.words.name_words` in order, joined by blanks.
        common: Those that are no name by themselves.
    """

    joined: str
    common: frozenset[str]


@dataclass(frozen=True, slots=True)
class WordWindow:
    """Consecutive words of a text.

    Args:
        words: The words, and after them those that a name may go on with.
        length: How many of them a name may begin at.
        first: The place of the first among all words of the text.
        common: Words that are no name by themselves.
    """

    words: tuple[str, ...]
    length: int
    first: int
    common: frozenset[str]

    def openings(self) -> set[str]:
        """Return every word that the key of a name in it may begin with."""
        return {opening for word in set(self.words[: self.length]) for opening in _possessive_variants(word)}

    def candidates(self, openings: Container[str] | None = None) -> dict[str, tuple[Span, ...]]:
        """Return its part of :func:`name_candidates`: at most 16 keys a word.

        Args:
            openings: Only names that begin with one of these words are wanted; ``None`` wants all.
        """
        spans: dict[str, list[Span]] = {}
        for start in range(self.length):
            if openings is not None and not any(
                opening in openings for opening in _possessive_variants(self.words[start])
            ):
                continue
            opening, is_common = "", True
            for end, word in enumerate(self.words[start : start + MAX_NAME_WORDS], start + 1):
                for last in _possessive_variants(word):
                    is_no_name = last in FUNCTION_WORDS or (not opening and last in self.common)
                    if not (is_common and is_no_name):
                        spans.setdefault(opening + last, []).append((self.first + start, self.first + end))
                opening, is_common = f"{opening}{word} ", is_common and word in FUNCTION_WORDS
        return {key: tuple(where) for key, where in spans.items()}


def split_words(text: str) -> TextWords:
    """Return the words of a text, for :func:`windows`; a text of a million characters takes about a second."""
    found = name_words(text)
    capitalised = set(name_words(" ".join(_CAPITALISED.findall(text))))
    common = (
        word for word in set(found) if word in FUNCTION_WORDS or (word in SENTENCE_STARTERS and word not in capitalised)
    )
    return TextWords(" ".join(found), frozenset(common))


def windows(text: TextWords, size: int = WINDOW_WORDS) -> Iterator[WordWindow]:
    """Yield the text window by window; no name is lost at a seam, and none stands in two windows.

    Args:
        text: The words.
        size: How many of them a name may begin at in one window, from 1.
    """
    rest = (match.group() for match in _WORD.finditer(text.joined))
    held = list(islice(rest, size + MAX_NAME_WORDS - 1))
    first = 0
    while held:
        yield WordWindow(tuple(held), min(size, len(held)), first, text.common)
        held = [*held[size:], *islice(rest, size)]
        first += size


def windows_around(text: TextWords, spans: Collection[Span]) -> Iterator[WordWindow]:
    """Yield the windows that decide which names stand at these places.

    A name that begins 16 words before a place is still seen, so that of overlapping names the right one wins.
    """
    found = text.joined.split(" ")
    done = 0
    for span in sorted(spans):
        start, end = max(done, span[0] - _CONTEXT_WORDS), span[1]
        if start < end:
            yield WordWindow(tuple(found[start : end + MAX_NAME_WORDS - 1]), end - start, start, text.common)
            done = end


def name_candidates(text: str) -> dict[str, tuple[Span, ...]]:
    """Return every run of words that may be a name, by the key it would have, with its places.

    Keys are those of :func:`lamina.text.words.name_key`: the words of the text, joined by blanks; a run also counts
    without a possessive ending of its last word. Runs of function words alone are left out, and so is a single
    common word that the text never capitalises ("I hope" does not speak of Hope). All of them are held at once,
    up to 16 a word: for texts that are short. Of a long one, look at :func:`windows`.
    """
    spans: dict[str, list[Span]] = {}
    for window in windows(split_words(text)):
        for key, where in window.candidates().items():
            spans.setdefault(key, []).extend(where)
    return {key: tuple(where) for key, where in spans.items()}


def find_places(text: TextWords, keys: Collection[str], limit: int | None = None) -> dict[str, tuple[Span, ...]]:
    """Return the places of these keys in a text, the first ``limit`` of each; the work grows with the text."""
    wanted = frozenset(keys)
    openings = {key.split(" ", 1)[0] for key in wanted}
    found: dict[str, list[Span]] = {}
    for window in windows(text) if wanted else ():
        for key, where in window.candidates(openings).items():
            if key in wanted:
                held = found.setdefault(key, [])
                held.extend(where if limit is None else where[: limit - len(held)])
    return {key: tuple(where) for key, where in found.items()}


def longest_names(candidates: NameCandidates, known_keys: Container[str]) -> tuple[str, ...]:
    """Return the known names that a text mentions, each once, in the order of their first mention.

    From left to right the longest name wins, and its words mention nothing else: "New York Times" is not New York.

    Args:
        candidates: Of the text.
        known_keys: The keys of the known names.
    """
    known = {key: spans for key, spans in candidates.items() if key in known_keys}
    at: dict[int, tuple[int, str]] = {}
    for key, spans in known.items():
        for start, end in spans:
            at[start] = max(at.get(start, (0, "")), (end, key))
    matched: dict[str, None] = {}
    place = 0
    for start in sorted(at):
        if start >= place:
            place, key = at[start]
            matched[key] = None
    return tuple(matched)


def _possessive_variants(word: str) -> tuple[str, ...]:
    return (word, word[:-2]) if word.endswith("'s") and len(word) > len("'s") else (word,)
