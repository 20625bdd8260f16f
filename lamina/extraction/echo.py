"""Remove recalled text that an agent was given and says again: it teaches nothing new.

The block is the one that :mod:`lamina.policies.ranking.context_block` lays out. A memory starts with its header
and ends with its
last ``confidence:`` line before the next header, ``related:`` lines included, so that paragraphs inside a memory
belong to it and what is said after it does not. Quoted with ``>``, listed or indented, it is the same block.
A block in the form of messages is recognised by the first keys of its objects.
"""

import re
from itertools import pairwise

from lamina.policies.ranking.block_layout import END, HEADER, MESSAGES, PROFILE, SUFFIX

_INLINE = re.compile(r"\[Memory: [^\]\n|]{1,200}\| \d{4}-\d\d-\d\d(?:\]| \|)[^\n]*")
_MEMORY = "[Memory: "
# Most texts have none of these, and one pattern over a million brackets takes a tenth of a second.
_SIGNS = (("[Profile: ", PROFILE), ("[Suffix: ", SUFFIX), ('"kind"', MESSAGES))
_PARAGRAPH_END = re.compile(r"\n[ \t>]*\n|\Z")


def without_recalled(text: str) -> str:
    """Return the text without the memory blocks that an agent was given and echoes back.

    A header whose memory has lost its ``confidence:`` line takes the rest of its paragraph with it; a memory quoted
    within a line takes the rest of that line.
    """
    spans = _spans(text)
    kept = [text[end:start] for (_, end), (start, _) in zip([(0, 0), *spans], [*spans, (len(text), 0)], strict=True)]
    return _INLINE.sub("", "\n".join(kept))


def _spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of recalled text, in order, none overlapping."""
    headers = [match.start() for match in HEADER.finditer(text)] if _MEMORY in text else []
    memories = [_recalled_span(text, start, end) for start, end in pairwise((*headers, len(text)))]
    others = [match.span() for sign, pattern in _SIGNS if sign in text for match in pattern.finditer(text)]
    joined: list[tuple[int, int]] = []
    for start, end in sorted([*memories, *others]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _recalled_span(text: str, start: int, limit: int) -> tuple[int, int]:
    """Return the span of the memory whose header starts here; the next header, or the text's end, limits it."""
    ends = [match.end() for match in END.finditer(text, start, limit)]
    if ends:
        return start, ends[-1]
    paragraph = _PARAGRAPH_END.search(text, start, limit)
    return start, paragraph.start() if paragraph else limit
