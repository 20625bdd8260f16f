"""Shapes of documents that others read: what keys there are, and what stands behind them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lamina.config_check.findings import Finding, Place, meant, unknown
from lamina.core.masking import is_secret, masked

MOST_SHOWN = 60
OF_KEY = "[key]"
"""Stands in a place for the key itself, in place of what it holds."""


class Shape(Protocol):
    """What a value has to be."""

    def check(self, value: Any, place: Place) -> Iterator[Finding]:
        """Return what is wrong with a value."""
        ...


def shown(value: object, place: Place) -> str:
    """Return a value as it may be told: short, and never a secret."""
    if any(is_secret(part) for part in place if part != OF_KEY):
        return "…"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    said = masked(repr(value))
    return said if len(said) <= MOST_SHOWN else f"{said[:MOST_SHOWN]}…"


def _not(value: object, place: Place, expected: str) -> Finding:
    return Finding(place, f"is {'empty' if value is None else shown(value, place)}", f"write {expected}")


@dataclass(frozen=True, slots=True)
class Anything:
    """What is not looked at."""

    def check(self, value: Any, place: Place) -> Iterator[Finding]:  # noqa: ARG002 - the protocol's
        """Find nothing."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Text:
    """A text.

    Args:
        choices: The texts there are; any if empty.
        pattern: What all of it matches.
        meaning: How the pattern is told.
    """

    choices: tuple[str, ...] = ()
    pattern: str = ""
    meaning: str = "a text"

    def check(self, value: Any, place: Place) -> Iterator[Finding]:
        """Return what is wrong with a value."""
        if not isinstance(value, str) or (self.pattern and not re.fullmatch(self.pattern, value)):
            hint = " in quotes: YAML reads on, off, yes and no as true and false" if isinstance(value, bool) else ""
            yield _not(value, place, f"{self.meaning}{hint}")
        elif self.choices and value not in self.choices:
            yield Finding(place, f"is {shown(value, place)}", meant(value, self.choices))


@dataclass(frozen=True, slots=True)
class Number:
    """A number.

    Args:
        least: Its lower bound.
        most: Its upper bound.
        is_whole: Whether it counts something.
    """

    least: float = 0
    most: float = float("inf")
    is_whole: bool = False

    def check(self, value: Any, place: Place) -> Iterator[Finding]:
        """Return what is wrong with a value."""
        types = (int,) if self.is_whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, types) or not self.least <= value <= self.most:
            kind = "a whole number" if self.is_whole else "a number"
            bound = "" if self.most == float("inf") else f", at most {self.most:g}"
            yield _not(value, place, f"{kind}, at least {self.least:g}{bound}")


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def check(self, value: Any, place: Place) -> Iterator[Finding]:
        """Return what is wrong with a value."""
        if not isinstance(value, bool):
            yield _not(value, place, "true or false")


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of things of one shape."""

    item: Shape
    least: int = 0

    def check(self, value: Any, place: Place) -> Iterator[Finding]:
        """Return what is wrong with a value."""
        if not isinstance(value, list) or len(value) < self.least:
            yield _not(value, place, f"a list{f' of at least {self.least}' if self.least else ''}")
            return
        for number, item in enumerate(value):
            yield from self.item.check(item, (*place, number))


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping whose keys are the writer's own."""

    value: Shape

    def check(self, value: Any, place: Place) -> Iterator[Finding]:
        """Return what is wrong with a value."""
        if not isinstance(value, Mapping):
            yield _not(value, place, "a mapping")
            return
        for name, item in value.items():
            yield from self.value.check(item, (*place, str(name)))


@dataclass(frozen=True, slots=True)
class Keyed:
    """A mapping with known keys; an unknown one is a mistake, which its reader may well overlook."""

    keys: Mapping[str, Shape]
    required: tuple[str, ...] = field(default=())

    def check(self, value: Any, place: Place) -> Iterator[Finding]:
        """Return what is wrong with a value."""
        if not isinstance(value, Mapping):
            yield _not(value, place, "a mapping")
            return
        yield from (
            Finding((*place, name), "is missing", "write it; it has no default")
            for name in self.required
            if value.get(name) is None
        )
        for name, item in value.items():
            if name not in self.keys:
                yield unknown(place, str(name), self.keys)
            elif item is not None:
                yield from self.keys[name].check(item, (*place, name))


@dataclass(frozen=True, slots=True)
class Either:
    """One of several shapes, the most usual one first."""

    shapes: Sequence[Shape]

    def check(self, value: Any, place: Place) -> Iterator[Finding]:
        """Return what is wrong with a value, as the first shape sees it."""
        found = [list(shape.check(value, place)) for shape in self.shapes]
        if all(found):
            yield from found[0]


ANYTHING = Anything()
TEXT = Text()
FLAG = Flag()
NUMBER = Number()
COUNT = Number(is_whole=True)
POSITIVE = Number(least=1, is_whole=True)
PORT = Number(least=1, most=65535, is_whole=True)
TEXTS = Listed(TEXT)
LABELS = Mapped(TEXT)
OPEN = Mapped(ANYTHING)


def keyed(required: str = "", /, **keys: Shape) -> Keyed:
    """Return the shape of a mapping: the names of its required keys, and every key's shape."""
    return Keyed(keys, tuple(required.split()))


def unchecked(names: str) -> dict[str, Shape]:
    """Return keys, separated by spaces, whose values are not looked at."""
    return dict.fromkeys(names.split(), ANYTHING)
