"""Read bytes in the right charset, or refuse them: garbage is worse than no text."""

import codecs
import re
from collections.abc import Iterator

from charset_normalizer import CharsetMatch, from_bytes
from w3lib.encoding import html_body_declared_encoding, resolve_encoding

# Codecs of Python that are no charset of a document, or that smuggle markup past whoever looks at bytes.
_NO_CHARSETS = frozenset({"utf-7", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "hz"})
# The longer marks first: that of UTF-16 begins that of UTF-32.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ESCAPED = ((re.compile(rb"\x1b\$\)C"), "iso2022_kr"), (re.compile(rb"\x1b(?:\$[@B]|\(J|\$\()"), "iso2022_jp_ext"))
_SUPERSETS = {"iso2022_jp": "iso2022_jp_ext"}
_LOOKED_AT = 65_536  # A detector needs no more.
# Detection is believed if the text reads like a language, and no other charset makes about as good a text of it.
_LEAST_COHERENCE = 0.1
_RIVAL_COHERENCE = 0.5
_RIVAL_CHAOS = 0.05


class UnreadableError(ValueError):
    """Bytes in no charset that can be told; its text says why, and the remedy."""


def decode(content: bytes, named: str | None, *, is_markup: bool = False) -> str:
    """Return the text of bytes: by their byte order mark, the named charset, their own declaration, or detection.

    Args:
        content: The bytes.
        named: The charset that came with them, if any.
        is_markup: Whether they may declare a charset themselves, in a ``meta`` element or an XML declaration.

    Raises:
        UnreadableError: If they are not in that charset, or none can be told for sure.

    Source:
        WHATWG, HTML, "Determining the character encoding"; WHATWG, Encoding.
    """
    for mark, charset in _MARKS:
        if content.startswith(mark):
            return _decode_as(content[len(mark) :], charset, "by its byte order mark")
    if named is not None:
        return _decode_as(content, named, "as it was sent")
    if is_markup and (declared := _declared_charset(content)):
        return _decode_as(content, declared, "as it says itself")
    return _detected(content)


def _declared_charset(content: bytes) -> str | None:
    """Return the charset that a page declares; it is not UTF-16 where the declaration can be read."""
    label = re.search(rb"""<meta[^>]{1,500}charset\s*=\s*["']?\s*([\w-]+)""", content[:4096], re.IGNORECASE)
    declared = html_body_declared_encoding(content)
    if declared is None and label is not None and _is_refused(label.group(1).decode()):
        return label.group(1).decode()
    if declared is not None and declared.startswith("utf-16"):
        return "utf-8"
    return declared


def _decode_as(content: bytes, charset: str, origin: str) -> str:
    if _is_refused(charset):
        raise UnreadableError(f"has the charset {charset!r} {origin}, which is not read; convert it to UTF-8")
    failure: UnicodeError | None = None
    for codec in _codecs_of(charset):
        try:
            text = content.decode(codec)
        except UnicodeError as error:
            failure = failure or error
        except LookupError:
            continue
        else:
            return text
    if failure is None:
        raise UnreadableError(f"has the unknown charset {charset!r} {origin}; convert it to UTF-8")
    reason = f"is not {charset} {origin}: {failure}"
    raise UnreadableError(f"{reason}; convert it to UTF-8, or name its charset in media_type")


def _is_refused(charset: str) -> bool:
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        return False
    return name in _NO_CHARSETS or charset.lower() in _NO_CHARSETS


def _codecs_of(charset: str) -> Iterator[str]:
    """Yield the codecs to try: the one that browsers take the name for, then the one of this very name."""
    resolved = resolve_encoding(charset) or charset
    yield _SUPERSETS.get(resolved, resolved)
    yield charset


def _detected(content: bytes) -> str:
    for pattern, charset in _ESCAPED:
        if pattern.search(content):
            return _decode_as(content, charset, "by its escape sequences")
    if wide := _width_without_mark(content):
        return _decode_as(content, wide, "by its zero bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        failure = error
    candidates = list(from_bytes(content[:_LOOKED_AT]))
    if candidates and _is_sure(candidates[0], candidates[1:]):
        return _decode_as(content, candidates[0].encoding, "by its bytes")
    raise UnreadableError(
        f"is not utf-8: {failure}, and names no charset; convert it to UTF-8, or name its charset in media_type"
    )


def _width_without_mark(content: bytes) -> str | None:
    """Return UTF-16 of either order if every other of the first bytes is zero, as in markup and most Latin text."""
    if len(content) % 2:
        return None
    head = content[:512]
    even, odd = head[::2].count(0), head[1::2].count(0)
    most = 0.4 * len(head) / 2
    if odd > most and even == 0:
        return "utf-16-le"
    if even > most and odd == 0:
        return "utf-16-be"
    return None


def _is_sure(best: CharsetMatch, others: list[CharsetMatch]) -> bool:
    if best.coherence < _LEAST_COHERENCE:
        return False
    return not any(
        str(other) != str(best)
        and other.chaos <= best.chaos + _RIVAL_CHAOS
        and other.coherence >= _RIVAL_COHERENCE * best.coherence
        for other in others
    )
