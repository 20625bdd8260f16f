"""JSON values: reading them without ambiguity, and their equality, in which types count."""

import json
from collections import Counter
from typing import Any, NoReturn

from lamina.errors import InvalidInput


def read_json(text: str | bytes, field: str) -> Any:
    """Return the value of a JSON text.

    Args:
        text: As it was sent.
        field: Names it in errors.

    Raises:
        InvalidInput: For anything else than JSON, for a key that stands twice in one object, and for what only Python
            takes for a number (NaN, Infinity).
    """

    def refuse_number(name: str) -> NoReturn:
        raise InvalidInput(field, f"holds {name}, which is no JSON; JSON numbers are finite")

    def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise InvalidInput(field, f"names {twice!r} twice in one object; send it once")
        return found

    try:
        return json.loads(text, object_pairs_hook=read_object, parse_constant=refuse_number)
    except RecursionError as error:
        raise InvalidInput(field, "is nested too deeply") from error
    except ValueError as error:  # no JSON, no text, or a number of more digits than Python reads
        raise InvalidInput(field, f"is no JSON: {error}") from error


def canonical_json(value: object) -> str:
    """Return one text for a JSON value, whatever the order of its keys.

    Python takes ``1``, ``1.0`` and ``True`` for equal; as JSON they are three values.
    """
    return json.dumps(value, sort_keys=True)


def is_same_json(one: object, other: object) -> bool:
    """Tell whether two values are the same JSON, types included."""
    return canonical_json(one) == canonical_json(other)
