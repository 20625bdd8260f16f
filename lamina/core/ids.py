"""Ids that are read without the checks of the constructor."""

from uuid import UUID, SafeUUID

# The constructor checks its arguments for a microsecond, and a search makes some hundred ids; no other way sets them.
_set_int, _set_is_safe = UUID.__dict__["int"].__set__, UUID.__dict__["is_safe"].__set__
_UNKNOWN = SafeUUID.unknown


def id_of_number(number: int) -> UUID:
    """Return the UUID of a number below 2¹²⁸, in a third of the constructor's time."""
    id_ = object.__new__(UUID)
    _set_int(id_, number)
    _set_is_safe(id_, _UNKNOWN)
    return id_


def id_of_text(text: str) -> UUID:
    """Return the UUID that ``str`` wrote as this text."""
    return id_of_number(int(text.replace("-", ""), 16))
