"""Conditions for Meilisearch, and the form of the fields that they look at.

Meilisearch compares texts without regard to case, width, composition and blanks at their ends, takes a text that reads
as a number for one, and knows only the first 468 bytes of it: ``Acme``, ``acme`` and ``acme `` would be one tenant.
Texts that are filtered by are therefore kept as tokens (:func:`token`), which survive all of that and need no quoting.
It keeps numbers as floats, and reads those of a document less exactly than those of a filter. Moments and fractions are
therefore kept as two whole numbers each (:func:`halves`), which compare like the one that they stand for.
"""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from lamina.stores.index.filters import Dialect
from lamina.stores.index.ports import KEYWORD_FIELDS, TIME_FIELD

MARK = "_"
# Fields that are compared by size, kept in two fields each.
HALVED = (TIME_FIELD, "confidence", "importance")
ORDERED = tuple(f"{field}_{half}" for field in HALVED for half in ("high", "low"))
FILTERABLE = ("id", *KEYWORD_FIELDS, *ORDERED, "chunk")
_MAX_TOKEN_CHARS = 200
_OTHER = re.compile(r"[^a-z0-9_-]")
_YEAR_1 = datetime(1, 1, 1, tzinfo=UTC)
_SIGNLESS = 2**63 - 1
_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def token(text: str) -> str:
    """Return the token of a text in the index: another one for every other text, in signs that need no quoting.

    Lower-case ASCII letters, digits, ``_`` and ``-`` stay; any other character becomes its code point between dots;
    a token that would be too long is hashed. The mark in front keeps it from reading as a number.

    >>> token("john_doe"), token("Ann"), token("")
    ('_john_doe', '_.41.nn', '_')
    """
    plain = MARK + _OTHER.sub(lambda match: f".{ord(match.group()):x}.", text)
    if len(plain) <= _MAX_TOKEN_CHARS:
        return plain
    # No text begins with an empty code point.
    return f"{MARK}..{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def halves(value: float | datetime) -> tuple[int, int]:
    """Return two numbers that compare, the first first, like the values of one type do; each is exact as a float.

    A moment's are its seconds since the year 1 and its microseconds; a number's are the halves of its 64 bits.
    """
    if isinstance(value, datetime):
        passed = value - _YEAR_1
        return passed.days * 86_400 + passed.seconds, passed.microseconds
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return divmod(bits if bits >= 0 else -(bits & _SIGNLESS), 2**32)


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition as Meilisearch reads it.

    It reads no more than 37 brackets within each other, so there are none that its order of operators does not ask for:
    ``NOT`` before ``AND`` before ``OR``.

    Args:
        text: The condition.
        outermost: The operator that joins its parts.
    """

    text: str
    outermost: Literal["AND", "OR"] | None = None

    def __str__(self) -> str:
        return self.text

    def within(self, *outer: str) -> str:
        """Return the text as a part of a condition, in brackets unless one of these operators joins its parts."""
        return self.text if self.outermost is None or self.outermost in outer else f"({self.text})"


EVERYTHING, NOTHING = Expression("memory EXISTS"), Expression("memory NOT EXISTS")


def _one_of(field: str, values: Sequence[str]) -> Expression:
    listed = ", ".join(f'"{token(value)}"' for value in values)
    return Expression(f"{field} IN [{listed}]") if listed else NOTHING


def _all_of(parts: Sequence[Expression]) -> Expression:
    match parts:
        case []:
            return EVERYTHING
        case [part]:
            return part
        case _:
            return Expression(" AND ".join(part.within("AND") for part in parts), "AND")


def _any_of(parts: Sequence[Expression]) -> Expression:
    match parts:
        case []:
            return NOTHING
        case [part]:
            return part
        case _:
            return Expression(" OR ".join(part.within("AND", "OR") for part in parts), "OR")


def _compared(field: str, name: str, bound: tuple[int, int]) -> Expression:
    high, low = bound
    sign = _SIGNS[name]
    beyond = f"{field}_high {sign[0]} {high}"
    return Expression(f"{beyond} OR {field}_high = {high} AND {field}_low {sign} {low}", "OR")


# Conditions as texts.
DIALECT: Dialect[Expression] = Dialect(
    equals=lambda field, value: Expression(f'{field} = "{token(value)}"'),
    one_of=_one_of,
    between=lambda field, bounds: _all_of([_compared(field, name, halves(bound)) for name, bound in bounds.items()]),
    is_missing=lambda field: Expression(f"{field} NOT EXISTS"),
    all_of=_all_of,
    any_of=_any_of,
    negation=lambda part: Expression(f"NOT {part.within()}"),
)
