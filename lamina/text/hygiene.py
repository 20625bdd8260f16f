"""Hygiene for every input: sizes, and nothing that no store can hold.

Texts are stored as they were sent; whoever compares or reads them composes them first. Ids are compared as they are,
and so are composed before they are stored.
"""

import json
import math
import unicodedata
from itertools import islice

from lamina.errors import InvalidInput
from lamina.text.normal_forms import normalised
from lamina.text.patterns import regex

MAX_ID_CHARS = 128
MAX_CONTENT_CHARS = 1_000_000
MAX_QUERY_CHARS = 100_000
MAX_JSON_DEPTH = 64
# A letter of Greek with three accents is four characters before it is composed; none is more.
_MOST_COMPOSED = 4
_MOST_SHOWN = 80

# Controls, formats such as zero-width marks, blanks and line ends of every script, surrogates.
_VISIBLE = regex.compile(r"(?V1)[^\p{Cc}\p{Cf}\p{Z}\p{Cs}]")
_LINE_BREAK = regex.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")  # Those of str.splitlines.


def clean(value: str, field: str, *, limit: int = MAX_CONTENT_CHARS) -> str:
    """Return the text as it is, or say why it cannot be stored.

    Raises:
        InvalidInput: For NUL, a lone surrogate, or more than ``limit`` characters in NFC.
    """
    if (characters := excess(value, limit)) is not None:
        raise InvalidInput(field, f"has {characters} characters; at most {limit} are accepted")
    if "\x00" in value:
        raise InvalidInput(field, "contains a NUL character; remove it")
    if _has_surrogate(value):
        raise InvalidInput(field, "contains a lone surrogate; send well-formed Unicode")
    return value


def excess(text: str, limit: int) -> int | None:
    """Return the length of a text that has more than ``limit`` characters in NFC; ``None`` for one that has not.

    One that cannot be composed to so few is not composed.
    """
    if len(text) <= limit // _MOST_COMPOSED:  # Few characters become up to three when they are composed.
        return None
    characters = len(text) if len(text) > _MOST_COMPOSED * limit else len(composed(text))
    return characters if characters > limit else None


def composed(text: str) -> str:
    """Return the text in NFC, in which texts are compared."""
    return normalised("NFC", text)


def _has_surrogate(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def clean_text(value: str, field: str, *, limit: int = MAX_CONTENT_CHARS) -> str:
    """Return the text as it is; refuse one that shows nothing.

    Raises:
        InvalidInput: As :func:`clean`, and for text without one visible character.
    """
    text = clean(value, field, limit=limit)
    if is_blank(text):
        raise InvalidInput(field, "is blank; send at least one visible character")
    return text


def clean_id(value: str, field: str) -> str:
    """Return an identifier in NFC: 1 to 128 printable characters of any script.

    Raises:
        InvalidInput: As :func:`clean_name`.
    """
    return composed(clean_name(value, field))


def clean_name(value: str, field: str) -> str:
    """Return a name as it is: 1 to 128 printable characters of any script.

    Raises:
        InvalidInput: For an empty or longer name, control characters, or blanks alone.
    """
    text = clean_text(value, field, limit=MAX_ID_CHARS)
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise InvalidInput(field, "contains a control character; ids are printable")
    return text


def clean_json(value: object, field: str) -> object:
    """Return a JSON value as it is, or say why it cannot be stored.

    Raises:
        InvalidInput: As :func:`clean`, naming the path; also for a number that JSON cannot hold,
            and for more than 64 levels.
    """
    return _clean_json(value, field, MAX_JSON_DEPTH)


def _clean_json(value: object, field: str, depth: int) -> object:
    if depth == 0:
        raise InvalidInput(field.split(".", maxsplit=1)[0], f"is nested deeper than {MAX_JSON_DEPTH} levels")
    match value:
        case str():
            return clean(value, field)
        case float() if not math.isfinite(value):
            raise InvalidInput(field, f"is {value}; JSON numbers are finite")
        case dict():
            return {
                clean(str(key), f"{field}: key"): _clean_json(item, f"{field}.{shorten(str(key))}", depth - 1)
                for key, item in value.items()
            }
        case list():
            return [_clean_json(item, f"{field}.{place}", depth - 1) for place, item in enumerate(value)]
        case _:
            return value


def json_bytes(value: object) -> int:
    """Return the size of a JSON value in UTF-8, without blanks."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def has_more_values(value: object, most: int) -> bool:
    """Tell whether a JSON value has more than so many values and keys, itself and all within it; counts no further."""
    count, rest = 0, [value]
    while rest and count + len(rest) <= most:
        match rest.pop():
            case dict() as found:
                count += 1 + len(found)
                rest.extend(islice(found.values(), most))
            case list() as found:
                count += 1
                rest.extend(islice(found, most))
            case _:
                count += 1
    return count + len(rest) > most


def shorten(text: str, limit: int = _MOST_SHOWN) -> str:
    """Return a text as errors show it: its beginning, if it is long."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def is_blank(text: str) -> bool:
    """Tell whether no character of the text is visible: spaces, zero-width marks, controls."""
    return _VISIBLE.search(text) is None


def first_visible_line(text: str) -> str:
    """Return the first line with a visible character; empty if there is none.

    However many blank lines there are, they are passed over at once.
    """
    visible = _VISIBLE.search(text)
    if visible is None:
        return ""
    start = visible.start()
    invisible = f"{text[:start]}|".splitlines()[-1][:-1]
    end = _LINE_BREAK.search(text, start)
    return invisible + text[start : end.start() if end else None]
