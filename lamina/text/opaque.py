"""Tell language from the rest: encoded bytes, dumps, minified code, rows of numbers, repetitions.

A model of language makes nothing of them, and a single data URL has more tokens than a day of talk. Writing without
blanks is language (Thai, Khmer, Chinese), and so are code, compact JSON, logs and tables with words. Measured: of
448 000 chats, papers and package descriptions with 122 million characters, nothing counts as opaque but a base-64
image, rows of "+" and two tables of ids; of 5 905 source files 0.7 % of the characters do: serialised bytes, tables of
numbers, lists of code points.
"""

import re
from collections.abc import Callable, Iterator

import regex

Span = tuple[int, int]

MIN_CHARS = 512
"""A shorter text is language: it costs one or two chunks, whatever it is."""
_RUN_CHARS = 256
_NUMBERS_CHARS = 8_192
_DUMP_CHARS = 1_024
_WINDOW_CHARS = 512
_CODE_WINDOW_CHARS = 2_048
_RUN_PART_CHARS = 65_536
_FEW_CHARACTERS = 4
_FEW_BLANKS = 0.08
_JOINED_CHARS, _DENSE_CHARS = 64, 8_192

# Scripts that part words by blanks: no word of theirs has 256 letters.
_RUN = regex.compile(r"[\p{Latin}\p{Cyrillic}\p{Greek}\p{M}\p{Nd}+/=_%~-]++")
_UNBROKEN = re.compile(r"[!-~]++")
_WORD_IN_RUN = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}")
_NUMBERS = re.compile(r"[\d\s,.;:+\-\[\](){}|]++")
_LETTERS = re.compile(r"[A-Za-z_$]++")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_BROKEN = re.compile("[\ufffd\x01-\x08\x0e-\x1f\x7f-\x9f]")
_LONG_RUN = re.compile(r"\S{24,}")
_HEX_GROUP = re.compile(r"(?:0x|\\x)?(?:[0-9a-fA-F]{2}|[0-9a-fA-F]{4}|[0-9a-fA-F]{8}|[0-9a-fA-F]{16}),?")
_ENCODED_LINE = re.compile(r"[A-Za-z0-9+/=_-]{40,}+")
# Bytes in hexadecimal fill more of a line than the hash of a commit.
_HEX_LINE = re.compile(r"[0-9a-fA-F]{56,}+")
_DIGITS = frozenset("0123456789")
_LEAST_GROUPS = 6
# As many groups of two digits, and a blank between each; a million empty lines took two seconds without it.
_LEAST_DUMP_LINE_CHARS = 3 * _LEAST_GROUPS - 1


def language_spans(text: str) -> list[Span]:
    """Return the stretches of a text that are language, in order; none if nothing of it is."""
    if len(text) < MIN_CHARS:
        return [(0, len(text))]
    start, spans = 0, []
    for begin, end in _joined(text, sorted(_opaque(text))):
        spans.append((start, begin))
        start = max(start, end)
    spans.append((start, len(text)))
    return [(begin, end) for begin, end in spans if text[begin:end].strip()]


def without_opaque(text: str) -> str:
    """Return the text with a blank in place of each stretch that is no language."""
    spans = language_spans(text)
    return text if spans == [(0, len(text))] else " ".join(text[start:end] for start, end in spans)


def _opaque(text: str) -> Iterator[Span]:
    yield from (found.span() for found in _RUN.finditer(text) if len(found[0]) >= _RUN_CHARS)
    yield from (found.span() for found in _UNBROKEN.finditer(text) if _is_encoded(found[0]))
    yield from (found.span() for found in _NUMBERS.finditer(text) if len(found[0]) >= _NUMBERS_CHARS)
    yield from _repetitions(text)
    yield from _in_windows(text, _WINDOW_CHARS, _is_broken, _BROKEN)
    yield from _in_windows(text, _CODE_WINDOW_CHARS, _is_minified, _LONG_RUN)
    yield from _dumps(text)


def _joined(text: str, spans: list[Span]) -> Iterator[Span]:
    """Yield the spans in order, those that nearly touch as one."""
    begin, end = -1, -1
    for start, stop in spans:
        if end < 0:
            begin, end = start, stop
        elif start - end <= _JOINED_CHARS or _is_dense(text[end : min(start, end + _DENSE_CHARS + 1)]):
            end = max(end, stop)
        else:
            yield begin, end
            begin, end = start, stop
    if end >= 0:
        yield begin, end


def _is_dense(between: str) -> bool:
    """Report whether the text between two opaque stretches has as few blanks as minified code."""
    return len(between) <= _DENSE_CHARS and between.isascii() and _blanks(between) < _FEW_BLANKS * len(between)


def _blanks(text: str) -> int:
    return sum(map(text.count, " \t\n"))


def _is_encoded(run: str) -> bool:
    """Report whether an unbroken run of ASCII has hardly a word in it, as base 85 and the like."""
    if len(run) < MIN_CHARS:
        return False
    # In parts: one search of a million brackets holds the interpreter for a tenth of a second.
    parts = (run[start : start + _RUN_PART_CHARS] for start in range(0, len(run), _RUN_PART_CHARS))
    return sum(len(word) for part in parts for word in _WORD_IN_RUN.findall(part)) < 0.15 * len(run)


def _repetitions(text: str) -> Iterator[Span]:
    for start in range(0, len(text) - _WINDOW_CHARS + 1, _WINDOW_CHARS):
        if len(set(text[start : start + _WINDOW_CHARS])) <= _FEW_CHARACTERS:
            yield start, start + _WINDOW_CHARS


def _in_windows(text: str, size: int, is_opaque: Callable[[str], bool], sign: re.Pattern[str]) -> Iterator[Span]:
    """Yield of each window that is opaque the part from the first sign of it to the last: prose may stand around."""
    for start in range(0, len(text), size):
        window = text[start : start + size]
        if len(window) >= _WINDOW_CHARS and is_opaque(window):
            signs = [found.span() for found in sign.finditer(window)]
            if signs:
                yield start + signs[0][0], start + signs[-1][1]


def _is_broken(window: str) -> bool:
    return len(_BROKEN.findall(window)) > 0.2 * len(window)


def _is_minified(window: str) -> bool:
    """Report whether a window is code without blanks, most of whose names are single letters."""
    if _blanks(window) > _FEW_BLANKS * len(window) or len(_PUNCTUATION.findall(window)) < 0.12 * len(window):
        return False
    names = _LETTERS.findall(window)
    return sum(1 for name in names if len(name) == 1) >= 0.3 * max(1, len(names))


def _dumps(text: str) -> Iterator[Span]:
    """Yield runs of lines that are hexadecimal dumps or wrapped base 64."""
    begin, end, place = 0, 0, 0
    for line in text.split("\n"):
        if len(line) >= _LEAST_DUMP_LINE_CHARS and _is_dump(line):
            begin = begin if end else place
            end = place + len(line)
        elif line.strip() or not end:
            if end - begin >= _DUMP_CHARS:
                yield begin, end
            end = 0
        place += len(line) + 1
    if end and end - begin >= _DUMP_CHARS:
        yield begin, end


def _is_dump(line: str) -> bool:
    stripped = line.strip(" \t\r>\"'+,;")
    # Base 64 has letters of both cases and digits.
    is_encoded = _ENCODED_LINE.fullmatch(stripped) is not None and not _DIGITS.isdisjoint(stripped)
    if _HEX_LINE.fullmatch(stripped) or (is_encoded and stripped.lower() != stripped != stripped.upper()):
        return True
    groups = [group for group in stripped.split() if _HEX_GROUP.fullmatch(group)]
    shown = sum(map(len, groups))
    lettered = sum(1 for group in groups if any(letter in "abcdefABCDEF" for letter in group))
    return (
        len(groups) >= _LEAST_GROUPS and shown >= 0.5 * len(stripped.replace(" ", "")) and lettered >= 0.1 * len(groups)
    )
