"""Find the entities that texts name, inside a transaction: window by window, and off the event loop."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from lamina.core.scope import Scope
from lamina.extraction.name_matching import (
    WINDOW_WORDS,
    Span,
    TextWords,
    WordWindow,
    find_places,
    longest_names,
    windows,
    windows_around,
)
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.entities import find_first_words, find_names

MAX_MENTIONS = 1_000
MAX_KEYS = 20_000
# A name that a text repeats all over is found at its first places.
MAX_PLACES = 64
# The entities of each name, by its key.
EntitiesByName = Mapping[str, Sequence[UUID]]
# A window, with the place of its text among all.
TextWindow = tuple[int, WordWindow]


@dataclass(slots=True)
class _ScopeNames:
    """The names of a scope, as far as they were looked up.

    Args:
        first_words: Words that were looked up as the first ones of names.
        openings: Those of them that begin a name.
    """

    first_words: set[str] = field(default_factory=set)
    openings: set[str] = field(default_factory=set)
    names: dict[str, tuple[UUID, ...]] = field(default_factory=dict)


async def find_names_in(connection: Connection, scope: Scope, texts: Sequence[TextWords]) -> list[EntitiesByName]:
    """Return the known names that each text mentions, in the order of their first mention.

    Of names that overlap, the longest from left to right counts. A text mentions 1 000 entities at most, the first.
    """
    found = ((place, window) for place, text in enumerate(texts) for window in windows(text))
    return await _find_in_windows(connection, scope, found, len(texts))


async def find_these_names_in(
    connection: Connection, scope: Scope, texts: Sequence[TextWords], keys: Collection[str]
) -> list[EntitiesByName]:
    """Return as :func:`find_names_in` does, but of these names alone, by the first 64 places of each."""
    around = (
        (place, window)
        for place, text in enumerate(texts)
        for spans in [find_places(text, keys, MAX_PLACES).values()]
        for window in windows_around(text, {span for of_name in spans for span in of_name})
    )
    found = await _find_in_windows(connection, scope, around, len(texts))
    return [{key: entities for key, entities in names.items() if key in keys} for names in found]


async def _find_in_windows(
    connection: Connection, scope: Scope, text_windows: Iterator[TextWindow], count: int
) -> list[EntitiesByName]:
    looked_up = _ScopeNames()
    spans: list[dict[str, list[Span]]] = [{} for _ in range(count)]
    # The texts may be long: all steps that walk over them run in a thread.
    packs = _packs(text_windows)
    while pack := await asyncio.to_thread(next, packs, None):
        await _look_up_openings(connection, scope, pack, looked_up)
        candidates = await asyncio.to_thread(_candidates, pack, looked_up.openings)
        await _look_up_names(connection, scope, candidates, looked_up)
        for (place, _), found in zip(pack, candidates, strict=True):
            for key in found.keys() & looked_up.names.keys():
                spans[place].setdefault(key, []).extend(found[key])
    return await asyncio.to_thread(lambda: [_mentioned(found, looked_up.names) for found in spans])


def _packs(text_windows: Iterator[TextWindow]) -> Iterator[list[TextWindow]]:
    """Yield the windows in groups of 2 000 to 4 000 words, so that many short texts need few statements."""
    pack: list[TextWindow] = []
    length = 0
    for place, window in text_windows:
        pack.append((place, window))
        length += window.length
        if length >= WINDOW_WORDS:
            yield pack
            pack, length = [], 0
    if pack:
        yield pack


def _candidates(pack: Sequence[TextWindow], openings: Collection[str]) -> list[dict[str, tuple[Span, ...]]]:
    return [window.candidates(openings) for _, window in pack]


async def _look_up_openings(
    connection: Connection, scope: Scope, pack: Sequence[TextWindow], looked_up: _ScopeNames
) -> None:
    new = {word for _, window in pack for word in window.openings()} - looked_up.first_words
    looked_up.openings |= await find_first_words(connection, scope, new)
    looked_up.first_words |= new


async def _look_up_names(
    connection: Connection, scope: Scope, candidates: Sequence[Mapping[str, object]], looked_up: _ScopeNames
) -> None:
    keys = sorted({key for found in candidates for key in found} - looked_up.names.keys())
    for start in range(0, len(keys), MAX_KEYS):
        looked_up.names |= await find_names(connection, scope, keys[start : start + MAX_KEYS])


def _mentioned(spans: Mapping[str, Sequence[Span]], names: EntitiesByName) -> EntitiesByName:
    left = MAX_MENTIONS
    found: dict[str, Sequence[UUID]] = {}
    for key in longest_names(spans, names):
        found[key] = names[key][:left]
        left -= len(found[key])
        if left == 0:
            break
    return found
