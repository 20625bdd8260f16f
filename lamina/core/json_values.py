"""JSON values: reading them without ambiguity, and their equality, in which types count."""

import json
from collections import Counter
from typing import Any, NoReturn

from lamina.errors import InvalidInput
from lamina.text.hygiene import shorten

MAX_VALUES = 500_000
"""An object with one key takes 8 bytes as JSON, and 232 in memory."""
MAX_DEPTH = 80
"""Above that of the deepest metadata in the deepest list of a request."""
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def read_json(text: str | bytes, field: str) -> Any:
    """Return the value of a JSON text.

    Args:
        text: As it was sent.
        field: Names it in errors.

    Raises:
        InvalidInput: For anything else than JSON, for a key that stands twice in one object, for what only Python
            takes for a number (NaN, Infinity), and for more than 500 000 values or 80 levels.
    """

    def refuse_number(name: str) -> NoReturn:
        raise InvalidInput(field, f"holds {name}, which is no JSON; JSON numbers are finite")

    def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise InvalidInput(field, f"names {shorten(twice)!r} twice in one object; send it once")
        return found

    _refuse_bomb(text if isinstance(text, bytes) else text.encode("utf-8", "replace"), field)
    try:
        return json.loads(text, object_pairs_hook=read_object, parse_constant=refuse_number)
    except RecursionError as error:
        raise InvalidInput(field, "is nested too deeply") from error
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x} at {error.start}"
        raise InvalidInput(field, f"is no text in {error.encoding}: {byte}; send JSON in UTF-8") from error
    except ValueError as error:  # no JSON, or a number of more digits than Python reads
        raise InvalidInput(field, f"is no JSON: {error}") from error


def _refuse_bomb(text: bytes, field: str) -> None:
    """Refuse a JSON text of too many values or levels before anything is made of it.

    Raises:
        InvalidInput: Naming the limit.
    """
    coding = json.detect_encoding(text)
    sent = text if coding.startswith("utf-8") else text.decode(coding, "replace").encode("utf-8", "replace")
    opened = sent.count(b"[") + sent.count(b"{")
    if opened <= MAX_DEPTH and len(sent) <= MAX_VALUES:
        return
    plain = sent.replace(b"\\\\", b"").replace(b'\\"', b"")
    has_many_texts = plain.count(b'"') > 2 * MAX_VALUES  # Keys among them.
    structure = b"" if has_many_texts else b"".join(plain.split(b'"')[::2])
    if has_many_texts or structure.count(b",") + structure.count(b"[") + structure.count(b"{") > MAX_VALUES:
        raise InvalidInput(field, f"has more than {MAX_VALUES} values; send it in parts")
    depth = 0
    for bracket in structure.translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise InvalidInput(field, f"is nested too deeply; at most {MAX_DEPTH} levels are accepted")


def canonical_json(value: object) -> str:
    """Return one text for a JSON value, in any order of its keys.

    Python takes ``1``, ``1.0`` and ``True`` for equal; as JSON they are three values.
    """
    return json.dumps(value, sort_keys=True)


def is_same_json(one: object, other: object) -> bool:
    """Tell whether two values are the same JSON, types included."""
    return canonical_json(one) == canonical_json(other)
