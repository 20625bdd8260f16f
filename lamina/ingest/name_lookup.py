"""Finding what texts name, inside a transaction: piece by piece, and off the event loop."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from lamina.core.scope import Scope
from lamina.extraction.name_linking import STRETCH_WORDS, Reading, Span, Stretch, around, longest, places_of, stretches
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.entities import find_names, find_openings

MAX_MENTIONS = 1_000
MAX_KEYS = 20_000
MAX_PLACES = 64
Names = Mapping[str, Sequence[UUID]]
"""The entities of each name, by its key."""
Piece = tuple[int, Stretch]
"""A part of a text, with the place of the text among all."""


@dataclass(slots=True)
class _Known:
    """What is known of a scope's names, as far as texts needed it."""

    asked: set[str] = field(default_factory=set)
    openings: set[str] = field(default_factory=set)
    names: dict[str, tuple[UUID, ...]] = field(default_factory=dict)


async def names_in(connection: Connection, scope: Scope, readings: Sequence[Reading]) -> list[Names]:
    """Return the known names that each text mentions, in the order of their first mention.

    Of names that overlap, the longest from left to right counts. A text mentions 1 000 entities at most, the first.
    """
    pieces = ((place, stretch) for place, reading in enumerate(readings) for stretch in stretches(reading))
    return await _names_in(connection, scope, pieces, len(readings))


async def names_at(
    connection: Connection, scope: Scope, readings: Sequence[Reading], keys: Collection[str]
) -> list[Names]:
    """Return as :func:`names_in` does, but of these names alone; only the first 64 places of each are looked at."""
    pieces = ((place, stretch) for place, reading in enumerate(readings) for stretch in _around(reading, keys))
    found = await _names_in(connection, scope, pieces, len(readings))
    return [{key: entities for key, entities in names.items() if key in keys} for names in found]


def _around(reading: Reading, keys: Collection[str]) -> Iterator[Stretch]:
    places = places_of(reading, keys, MAX_PLACES)
    return around(reading, {span for spans in places.values() for span in spans})


async def _names_in(connection: Connection, scope: Scope, pieces: Iterator[Piece], count: int) -> list[Names]:
    known = _Known()
    spans: list[dict[str, list[Span]]] = [{} for _ in range(count)]
    packs = _packs(pieces)
    while pack := await asyncio.to_thread(next, packs, None):
        await _learn_openings(connection, scope, pack, known)
        candidates = await asyncio.to_thread(_candidates, pack, known.openings)
        await _learn_names(connection, scope, candidates, known)
        for (place, _), found in zip(pack, candidates, strict=True):
            for key in found.keys() & known.names.keys():
                spans[place].setdefault(key, []).extend(found[key])
    return await asyncio.to_thread(lambda: [_mentioned(found, known.names) for found in spans])


def _packs(pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces in groups of 2 000 to 4 000 words, so that many short texts need few statements."""
    pack: list[Piece] = []
    length = 0
    for place, stretch in pieces:
        pack.append((place, stretch))
        length += stretch.length
        if length >= STRETCH_WORDS:
            yield pack
            pack, length = [], 0
    if pack:
        yield pack


def _candidates(pack: Sequence[Piece], openings: Collection[str]) -> list[dict[str, tuple[Span, ...]]]:
    return [stretch.candidates(openings) for _, stretch in pack]


async def _learn_openings(connection: Connection, scope: Scope, pack: Sequence[Piece], known: _Known) -> None:
    new = {word for _, stretch in pack for word in stretch.openings()} - known.asked
    known.openings |= await find_openings(connection, scope, new)
    known.asked |= new


async def _learn_names(
    connection: Connection, scope: Scope, candidates: Sequence[Mapping[str, object]], known: _Known
) -> None:
    keys = sorted({key for found in candidates for key in found} - known.names.keys())
    for start in range(0, len(keys), MAX_KEYS):
        known.names |= await find_names(connection, scope, keys[start : start + MAX_KEYS])


def _mentioned(spans: Mapping[str, Sequence[Span]], names: Names) -> Names:
    left = MAX_MENTIONS
    found: dict[str, Sequence[UUID]] = {}
    for key in longest(spans, names):
        found[key] = names[key][:left]
        left -= len(found[key])
        if left == 0:
            break
    return found
