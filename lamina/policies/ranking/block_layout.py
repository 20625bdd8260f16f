"""The lines that give a context block its shape, and how a memory's own text is kept from forging them."""

import re

# An echo may indent, quote or list the block; the text of a memory may do the same to deceive.
_INDENT = r"[ \t>*•-]{0,16}"
HEADER = re.compile(rf"^{_INDENT}\[Memory: [^\n]*\][ \t\r]*$", re.MULTILINE)
PROFILE = re.compile(rf"^{_INDENT}\[Profile: [^\n]*\][ \t\r]*\n[^\n]*(?:\n|\Z)", re.MULTILINE)
END = re.compile(rf"^{_INDENT}(?:confidence: [\d.]+|related: [^\n]*)[ \t\r]*$", re.MULTILINE)
_FORGED = re.compile(rf"^(?={_INDENT}(?:\[(?:Memory|Profile): |confidence: |related: ))", re.MULTILINE)
_MARK = "| "


def as_content(text: str) -> str:
    """Return a memory's text with a mark before every line that looks like one of the block's own."""
    return _FORGED.sub(_MARK, text)
