"""Unicode's normal forms, in time that grows with the text.

Normalising sorts the combining marks behind a letter, and Python's sort of them takes the square of their number: 17
seconds for 240 KB of marks. No script puts more than 30 behind one letter, which is the bound of Unicode's stream-safe
text format (UAX 15, section 13). A letter with more is left as it is written; all around it is normalised.
"""

import unicodedata
from typing import Literal

from lamina.text.patterns import regex

MOST_MARKS = 30
# Characters that decompose into marks alone: those of a combining class, and five that have none themselves.
_MARK = r"\P{Canonical_Combining_Class=0}\u0f73\u0f75\u0f81\uff9e\uff9f"
_TOO_MANY_MARKS = regex.compile(rf"[{_MARK}]{{{MOST_MARKS + 1},}}+")


def normalised(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return a text composed (C) or decomposed (D); K also drops differences of width, ligatures and the like."""
    if text.isascii():
        return text
    parts: list[str] = []
    end = 0
    for marks in _TOO_MANY_MARKS.finditer(text):
        letter = max(end, marks.start() - 1)
        parts += unicodedata.normalize(form, text[end:letter]), text[letter : marks.end()]
        end = marks.end()
    rest = unicodedata.normalize(form, text[end:])
    return "".join((*parts, rest)) if parts else rest
