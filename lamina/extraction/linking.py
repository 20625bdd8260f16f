"""Finding known names in a text: by the words that all keyword indexes share, so in any script and any case."""

from collections.abc import Container, Mapping, Sequence

import regex

from lamina.english import FUNCTION_WORDS, SENTENCE_STARTERS
from lamina.text import words

MAX_NAME_WORDS = 8

_CAPITALISED = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}_]*(?:['’][\p{L}\p{M}]+)*")

Span = tuple[int, int]
"""The first and one past the last of a text's words."""


def name_candidates(text: str, max_words: int = MAX_NAME_WORDS) -> dict[str, tuple[Span, ...]]:
    """Return every run of words that may be a name, by the key it would have, with where it stands.

    Keys are those of :func:`lamina.text.name_key`: the words of the text, joined by blanks; a run also counts without
    a possessive ending of its last word. Runs of function words alone are left out, and so is a single common word
    that the text never capitalises ("I hope" does not speak of Hope). The work grows with the length of the text.
    """
    found = words(text)
    dull = _dull(text, set(found))
    spans: dict[str, list[Span]] = {}
    for start in range(len(found)):
        for end in range(start + 1, min(start + max_words, len(found)) + 1):
            for key in _keys(found[start:end]):
                if not _is_dull(key, end - start, dull):
                    spans.setdefault(key, []).append((start, end))
    return {key: tuple(where) for key, where in spans.items()}


def longest_matches(text: str, known_keys: Container[str]) -> tuple[str, ...]:
    """Return the known names that a text mentions, each once, in the order of their first mention.

    From left to right the longest name wins, and its words mention nothing else: "New York Times" is not New York.
    """
    return longest(name_candidates(text), known_keys)


def longest(candidates: Mapping[str, Sequence[Span]], known_keys: Container[str]) -> tuple[str, ...]:
    """Return what :func:`longest_matches` does, given the candidates of the text."""
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


def _keys(run: list[str]) -> tuple[str, ...]:
    key = " ".join(run)
    return (key, key[:-2]) if key.endswith("'s") and len(run[-1]) > len("'s") else (key,)


def _dull(text: str, found: set[str]) -> set[str]:
    """Return the words of the text that are no name by themselves."""
    capitalised = set(words(" ".join(_CAPITALISED.findall(text))))
    return {word for word in found if word in FUNCTION_WORDS or (word in SENTENCE_STARTERS and word not in capitalised)}


def _is_dull(key: str, count: int, dull: set[str]) -> bool:
    if count == 1:
        return key in dull or key in FUNCTION_WORDS
    return all(word in FUNCTION_WORDS for word in key.split(" "))
