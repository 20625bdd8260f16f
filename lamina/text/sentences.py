"""Where sentences end."""

import regex

# The dot of an initial ("George W. Bush") or of a short title ("Dr. Lee") ends nothing.
# Of regex, not of re: it lets other threads run while it searches a long text.
_SENTENCE_END = regex.compile(
    r"(?<=[.!?])(?<!\b[A-HJ-Z]\.)(?<!\b(?:Mr|Ms|Dr|St|Mt)\.)(?<!\bMrs\.)(?<!\bProf\.)(?<!\b[ei]\.[ge]\.)\s++"
    # Each run of blanks is tried once, from its start: from each of its blanks the work would be quadratic.
    r"|(?<!\s)[^\S\n]*+\n\s*+"
)


def sentences(text: str) -> list[str]:
    """Split a text at sentence ends and line breaks; every sentence is trimmed and non-empty."""
    return [sentence for part in _SENTENCE_END.split(text) if (sentence := part.strip())]
