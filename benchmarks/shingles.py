"""Texts as sets of their runs of characters, which the benchmark of duplicates compares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lamina.policies.retention.set_join import NONE, Ints, Tokens, TokenSets, blocks, hashed, offsets_of, ragged

PACKED_BITS = 62  # Of an int64, without its sign.
ID_BITS = 31  # Of an int32 id, without its sign: two ids fit into PACKED_BITS.
_NO_CHARACTER = 0x110000  # The first number after the last code point.


def shingled(texts: Sequence[str], size: int) -> TokenSets:
    """Build the set of all runs of ``size`` characters of each text; a shorter text is one run by itself.

    Cost:
        About 0.06 s and 15 MB a million characters.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    sizes = np.maximum(lengths, size)
    starts = offsets_of(sizes)
    points = np.frombuffer("".join(text.ljust(size) for text in texts).encode("utf-32-le", "surrogatepass"), np.int32)
    short = np.flatnonzero(lengths < size)
    if len(short):
        # frombuffer gives a read-only array.
        points = points.copy()
        points[ragged(starts[short] + lengths[short], size - lengths[short])] = _NO_CHARACTER
    ids = _gram_ids(_Codes(points, _alphabet(points)), size)
    return TokenSets(_without_seams(ids, starts, size), offsets_of(sizes - size + 1))


def _alphabet(points: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number the code points in use from 0, in their order."""
    seen = np.zeros(_NO_CHARACTER + 1, dtype=np.bool_)
    for part in blocks(len(points)):
        seen[points[part]] = True
    return np.cumsum(seen, dtype=np.int32) - 1


@dataclass(frozen=True, slots=True)
class _Codes:
    """A text as code points, and the place of each in the alphabet in use."""

    points: NDArray[np.int32]
    places: NDArray[np.int32]

    @property
    def width(self) -> int:
        """The number of bits of a place."""
        return max(1, int(self.places[-1]).bit_length())

    def packed(self, part: slice, size: int) -> Ints:
        """Pack each run that starts in a part into a number."""
        # The last runs of a part reach into the next one.
        codes = self.places[self.points[part.start : part.stop + size - 1]].astype(np.int64)
        count = part.stop - part.start
        run = codes[:count].copy()
        for place in range(1, size):
            run <<= self.width
            run |= codes[place : place + count]
        return run


def _gram_ids(codes: _Codes, size: int) -> Tokens:
    """Number the runs of codes, equal ones the same; a long run is a pair of shorter ones."""
    total = max(0, len(codes.points) - size + 1)
    if size * codes.width <= PACKED_BITS:
        return _ids(lambda part: codes.packed(part, size), total)
    half = size // 2
    first, second = _gram_ids(codes, half), _gram_ids(codes, size - half)[half:]
    return _ids(lambda part: (first[part].astype(np.int64) << ID_BITS) | second[part], total)


def _without_seams(ids: Tokens, starts: Ints, size: int) -> Tokens:
    """Drop the runs that reach from one text into the next, in place: a copy would take as much memory again."""
    kept = np.ones(len(ids), dtype=np.bool_)
    for back in range(1, size):
        kept[starts[1:-1] - back] = False
    end = 0
    for part in blocks(len(ids)):
        found = ids[part][kept[part]]
        ids[end : end + len(found)] = found
        end += len(found)
    return ids[:end]


def _ids(keys: Callable[[slice], Ints], total: int, turn: int = 0) -> Tokens:
    """Number keys without sorting them, equal keys the same.

    Each key is written to the slot of its hash, and the last one there owns the slot. Keys that read another key in
    their slot try again in a further table, under another hash.
    """
    # Texts repeat their runs, so a quarter to half as many slots as keys are enough at first. Keys that lost their slot
    # are mostly different ones: their table has two to four slots for each.
    bits = max(1, total.bit_length() + (1 if turn else -2))
    table = np.empty(1 << bits, dtype=np.int64)
    for part in blocks(total):
        some = keys(part)
        table[hashed(some, bits, turn)] = some
    ids = np.empty(total, dtype=np.int32)
    lost, lost_keys = [NONE], [NONE]
    for part in blocks(total):
        some = keys(part)
        ids[part] = slots = hashed(some, bits, turn)
        losers = np.flatnonzero(table[slots] != some)
        lost.append(losers + part.start)
        lost_keys.append(some[losers])
    places, rest = np.concatenate(lost), np.concatenate(lost_keys)
    if len(places):
        # Beyond the numbers of this table's slots.
        ids[places] = _ids(lambda part: rest[part], len(rest), turn + 1) + (1 << bits)
    return ids
