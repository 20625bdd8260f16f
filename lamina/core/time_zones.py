"""Time zones by name or offset."""

from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from lamina.errors import InvalidInput
from lamina.text.patterns import regex

MAX_ZONE_CHARS = 64
_NAME = regex.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_OFFSET = regex.compile(r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>[0-5]\d))?")
_MOST_HOURS = 14
_OF_THIS_MACHINE = ("localtime", "posixrules", "Factory")


@lru_cache(maxsize=256)
def zone_named(name: str, field: str) -> tzinfo:
    """Return the time zone of a name like ``Europe/Berlin``, or of an offset like ``+02:00``.

    Raises:
        InvalidInput: If there is none.
    """
    if name in ("UTC", "Z"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None and int(offset["hours"]) <= _MOST_HOURS:
        ahead = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
        return timezone(ahead if offset["sign"] == "+" else -ahead)
    if offset is None and name not in _OF_THIS_MACHINE and _NAME.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (KeyError, OSError, ValueError):  # no such zone, a folder of zones, no file of a zone
            pass
    shown = name if name.isprintable() else ascii(name)[1:-1]
    raise InvalidInput(
        field, f'is "{shown}", which is no time zone; send a name like Europe/Berlin or an offset like +02:00'
    )
