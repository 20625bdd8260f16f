"""Characters that a terminal obeys instead of showing, written out."""

import re
from typing import Final

# Controls but for tab and line feed (ESC and C1 begin sequences), line and paragraph separators, embeddings, overrides
# and isolates of writing direction (CVE-2021-42574), deprecated format characters, surrogates, and tags, which spell
# hidden texts. Plain direction marks and joiners stay: Arabic, Hebrew, Persian and emoji need them.
_OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def show_controls(text: str) -> str:
    r"""Return a text in which each character that a terminal would obey stands as its escape (``\x1b``, ``\u202e``)."""
    return _OBEYED.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004
