"""The lines that give a context block its shape, and how text from outside is kept from forging them."""

import json
import re
import unicodedata
from typing import Any

from lamina.text.patterns import regex

# An echo may indent, quote or list the block; the text of a memory may do the same to deceive.
_INDENT = r"[ \t>*•-]{0,16}"
HEADER = re.compile(rf"^{_INDENT}\[Memory: [^\n]*\][ \t\r]*$", re.MULTILINE)
PROFILE = re.compile(rf"^{_INDENT}\[Profile: [^\n]*\][ \t\r]*\n[^\n]*(?:\n|\Z)", re.MULTILINE)
# Of a suffix, its first paragraph: nothing marks where it ends.
SUFFIX = re.compile(rf"^{_INDENT}\[Suffix: [^\n]*\][ \t\r]*\n(?:[^\n]++(?:\n|\Z))*+", re.MULTILINE)
END = re.compile(rf"^{_INDENT}(?:confidence: [\d.]+|related: [^\n]*)[ \t\r]*$", re.MULTILINE)
_MARK = "| "
# A memory of a block in the form of messages, however it is indented or quoted.
_GAP, _STRING = r"[\s>]*+", r'"(?:[^"\\]++|\\.)*+"'
_VALUE = rf"(?:{_STRING}|[\w.+-]++|\[{_GAP}(?:{_STRING}{_GAP},?{_GAP})*+\])"
_ENTRY = rf"{_GAP},{_GAP}{_STRING}{_GAP}:{_GAP}{_VALUE}"
_OBJECT = rf'\{{{_GAP}"kind"{_GAP}:{_GAP}{_STRING}{_GAP},{_GAP}"source"{_GAP}:{_GAP}{_STRING}(?:{_ENTRY})++{_GAP}\}}'
MESSAGES = re.compile(rf"(?:\[{_GAP})?{_OBJECT}(?:{_GAP},{_GAP}{_OBJECT})*+{_GAP}\]?", re.DOTALL)
# All that str.splitlines() takes for the end of a line, beside \n.
_BREAKS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Nothing of it is seen; the blank of braille is a symbol by its category.
_UNSEEN = r"\p{Default_Ignorable_Code_Point}\p{Z}\p{C}\p{M}\u2800"
_BEFORE = regex.compile(rf"(?V1)[{_UNSEEN}>*•\-–—#+~·‣◦|]*+")
_UNSEEN_RUN = regex.compile(rf"(?V1)[{_UNSEEN}]+")
# Square brackets of any form: a round or curly one begins many honest lines.
_OPENING = regex.compile(
    r"(?V1)[[\p{Ps}\u23a1-\u23a3]--[(\u207d\u208d\u2768\u276a\uff08\ufe59\ufe35{\u2774\uff5b\ufe5b\ufe37\u201a\u201e\u2e42]]"
)
_COLON = re.compile(
    "[:\u02d0\u02d1\u0589\u05c3\u0703\u0704\u16ec\u1803\u1809\u205a\u2236\ua4fd\ua789\ufe13\ufe30\ufe55\uff1a]"
)
_CLOSING = regex.compile(r"\p{Pe}")
# A bracket that closes before the colon makes no header: [a link](https://…).
_LAYOUT = re.compile(r"\[[^:\]]{0,96}:|(?:confidence|related|later):")
_HEAD_CHARS = 96
# Letters of other alphabets that look like those of the block's own words.
_LATIN = str.maketrans("аɑαеҽіιӏҍсϲԁɗоοонп𝚛ґгтτ", "aaaeeiiliccddooonnrrrtt")
# Tag characters mirror ASCII and are seen nowhere; only the flags of regions have a use for them.
_TAGS = re.compile("(\U0001f3f4[\U000e0020-\U000e007e]*\U000e007f)|[\U000e0000-\U000e007f]")
_JOINERS = "\u200c\u200d"
# Letters that look like the bar or the colon of a header are no part of a plain name, nor are unseen ones.
_PLAIN = (
    r"[[\p{L}\p{M}\p{N}_.@+/#'’&\-]--[\p{Default_Ignorable_Code_Point}\u01c0\u01c1\u02d0\u02d1\u16ec\u2d4f\u3163"
    r"\u4e28\ua4fd\uffdc]]"
)
_PLAIN_WORD = rf"(?:{_PLAIN}|(?<={_PLAIN}):(?={_PLAIN}))++"
_PLAIN_NAME = regex.compile(rf"(?V1){_PLAIN_WORD}(?: {_PLAIN_WORD})*+")
# What could be read as the end of a quoted name or of its header.
_ENDS_NAME = regex.compile(
    r"(?V1)[[\p{Default_Ignorable_Code_Point}--[\u200c\u200d\ufe0f]]\u2800\p{Ps}\p{Pe}\p{Pi}\p{Pf}|\u00a6\u01c0\u01c1\u02ba\u02bc\u02dd\u05f4\u2016\u2032-\u2037\u2223\u2225\u23a1-\u23ae"
    r"\u23d0\u2502\u2503\u2551\u2758-\u275e\u2d4f\u301d-\u301f\u3163\u4e28\uff02\uff5c\uffdc\uffe8]"
)


def as_content(text: str) -> str:
    r"""Make text safe to stand in a block: no line of it can be taken for one of the block's own.

    Line ends of every kind become ``\n``, and a line that begins like the block's own gets a mark; invisible
    characters, indents, other brackets and colons, and letters of other alphabets do not hide the likeness.
    """
    lines = _BREAKS.sub("\n", _TAGS.sub(r"\1", text)).split("\n")
    return "\n".join(f"{_MARK}{line}" if _is_like_layout(line) else line for line in lines)


def as_label(text: str) -> str:
    """Make text safe to stand within a line of the block: one line, without unseen characters."""
    seen = (char if char.isprintable() or char in _JOINERS else " " for char in text)
    return " ".join("".join(seen).split())


def as_json(value: Any, *, sort_keys: bool = False) -> str:
    """Write a value as JSON on one line; unseen characters are escaped and read back the same."""
    written = json.dumps(value, ensure_ascii=False, sort_keys=sort_keys)
    if written.isprintable():
        return written
    return "".join(char if char.isprintable() or char in _JOINERS else json.dumps(char)[1:-1] for char in written)


def as_name(text: str) -> str:
    r"""Make an id, name or title safe to stand in a header; different ones stay different.

    A plain one stands as it is. Any other stands in quotes as a JSON string, with all that looks like a quote, a
    bracket or a bar escaped: ``"x\u005d"``.
    """
    if _PLAIN_NAME.fullmatch(text):
        return text
    escaped = _ENDS_NAME.sub(lambda match: f"\\u{ord(match[0]):04x}", as_json(text)[1:-1])
    return f'"{escaped}"'


def _is_like_layout(line: str) -> bool:
    start = _BEFORE.match(line)
    head = line[start.end() if start else 0 :][:_HEAD_CHARS]
    seen = _UNSEEN_RUN.sub("", unicodedata.normalize("NFKD", head)).casefold()
    plain = _COLON.sub(":", _CLOSING.sub("]", _OPENING.sub("[", seen))).translate(_LATIN)
    return _LAYOUT.match(plain) is not None
