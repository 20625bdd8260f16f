"""An exact all-pairs join of similar sets: shared rare tokens propose pairs, counted tokens decide.

Sets are compared by Jaccard similarity, the size of the intersection over that of the union. Two sets of at least the
threshold share one of their rarest tokens (prefix filter), so that only sets that do are compared; small sets must
share several, which keeps lists of common words short. Nothing is estimated: hashes only propose pairs.

Source:
    Bayardo, Ma, Srikant, WWW 2007 (prefixes of the rarest tokens); Xiao, Wang, Lin, Yu, WWW 2008 (positions);
    Wang, Li, Feng, SIGMOD 2012 (several shared tokens).
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from lamina.errors import InvalidInput

Ints = NDArray[np.int64]
Tokens = NDArray[np.int32]
Mask = NDArray[np.bool_]
# Rows of the first and of the second of each pair, int64, shape (n,).
Pairs = tuple[Ints, Ints]

# Elements of one step, few enough to stay in the processor's cache.
BLOCK = 1 << 18
PAIRS_AT_ONCE = 1 << 21
# Sharing three rare tokens instead of one keeps the candidates of short texts few: with one, every pair that shares a
# middling word would be a candidate.
SHARED_BY_SMALL_SETS = 3
# Sets of this band have prefixes of at most 3 + 3 tokens: 20 choices of three, a posting each.
MAX_SLACK_OF_SMALL_SETS = 3
LEFT_AT_ONCE = 64  # One bit of a uint64 mark each.
# A product such as 0.07 * 100 = 7.000000000000001 must not be rounded up to 8.
_EPSILON = 1e-9
NONE = np.empty(0, dtype=np.int64)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: Fibonacci hashing.


@dataclass(frozen=True, slots=True)
class TokenSets:
    """Sets of tokens, stored one after the other.

    Args:
        tokens: Ids of the tokens, from 0, int32; a token may stand in a set more than once.
        offsets: The start of each set, and the end of the last, int64, shape (n + 1,).
    """

    tokens: Tokens
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class Reach:
    """The sets that may be compared at all: those of one group whose times are near.

    Args:
        groups: Of each set, int64, shape (n,).
        earliest: The first time of each set, int64, shape (n,), in any unit.
        latest: The last time of each set, which may be its first.
        window: Most distance between the nearest times of two sets.
    """

    groups: Ints
    earliest: Ints
    latest: Ints
    window: int

    def holds(self, first: Ints, second: Ints) -> Mask:
        """Report of each pair of sets whether they are in one group and near in time."""
        gap = np.maximum(self.earliest[first] - self.latest[second], self.earliest[second] - self.latest[first])
        near: Mask = (self.groups[first] == self.groups[second]) & (gap <= self.window)
        return near


# Values to tokens.


def sets_of(items: Iterable[Iterable[Hashable]]) -> TokenSets:
    """Build sets of any values, such as words; equal values are one token."""
    ids: dict[Hashable, int] = {}
    sizes: list[int] = []
    found: list[int] = []
    for item in items:
        before = len(found)
        found += [ids.setdefault(value, len(ids)) for value in item]
        sizes.append(len(found) - before)
    return TokenSets(np.array(found, dtype=np.int32), offsets_of(np.array(sizes, dtype=np.int64)))


def offsets_of(sizes: Ints) -> Ints:
    """Return the start of each stretch of these sizes, and the end of the last."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def ragged(starts: Ints, sizes: Ints) -> Ints:
    """Return the indices of several stretches, given their starts and sizes, one after the other."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    places: Ints = np.repeat(starts - (ends - sizes), sizes)
    places += np.arange(total, dtype=np.int64)
    return places


def blocks(total: int) -> Iterator[slice]:
    """Yield the slices of :data:`BLOCK` elements of an array."""
    for start in range(0, total, BLOCK):
        yield slice(start, min(total, start + BLOCK))


def hashed(keys: Ints, bits: int, turn: int = 0) -> Ints:
    """Hash keys to the upper bits of a product, every turn by another function."""
    mixed = keys.view(np.uint64) ^ np.uint64(turn * 0x632BE59BD9B4E019 & 0xFFFFFFFFFFFFFFFF)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _GOLDEN
    return (mixed >> np.uint64(64 - bits)).view(np.int64)


# Sets with their rarest tokens first.


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Sets, each with its rarest tokens first.

    Args:
        tokens: Ranks of tokens, 0 the rarest; each once a set.
        starts: The start of each set among the tokens.
        sizes: Of the sets.
    """

    tokens: Tokens
    starts: Ints
    sizes: Ints

    def __len__(self) -> int:
        return len(self.sizes)

    def chosen(self, rows: Ints) -> "_Ordered":
        """Return some of the sets, in the order of the rows."""
        return _Ordered(self.tokens, self.starts[rows], self.sizes[rows])

    def places(self, rows: Ints) -> Ints:
        """Return the indices of the tokens of some sets, one set after the other."""
        return ragged(self.starts[rows], self.sizes[rows])


def _rarest_first(sets: TokenSets) -> _Ordered:
    """Sort the tokens of each set by ascending frequency, and drop repeated ones."""
    ranks = _ranks(sets.tokens)
    bits = max(1, len(ranks).bit_length())
    tokens = np.empty_like(sets.tokens)
    sizes = np.empty(len(sets), dtype=np.int64)
    end = 0
    for first, last in _runs(np.diff(sets.offsets), BLOCK):
        found, sizes[first:last] = _sorted_sets(sets, ranks, bits, first, last)
        tokens[end : end + len(found)] = found
        end += len(found)
    return _Ordered(tokens[:end], offsets_of(sizes)[:-1], sizes)


def _sorted_sets(sets: TokenSets, ranks: Tokens, bits: int, first: int, last: int) -> tuple[Tokens, Ints]:
    bounds = sets.offsets[first : last + 1]
    owners = np.repeat(np.arange(last - first, dtype=np.int64), np.diff(bounds))
    # One sort of numbers orders the tokens of all these sets: the set is in the upper bits.
    packed = (owners << bits) | ranks[sets.tokens[bounds[0] : bounds[-1]]]
    packed.sort()
    packed = packed[_is_first(packed)]
    sizes = np.bincount(packed >> bits, minlength=last - first)
    return (packed & ((1 << bits) - 1)).astype(np.int32), sizes


def _is_first(ordered: Ints) -> Mask:
    """Report of each value of an ordered array whether it differs from the one before."""
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _repeated(values: Ints, keys: Ints) -> Ints:
    """Drop the values whose key occurs once; the keys are ordered."""
    first = _is_first(keys)
    last = np.ones_like(first)
    last[:-1] = first[1:]
    kept: Ints = values[~(first & last)]
    return kept


def _ranks(tokens: Tokens) -> Tokens:
    """Rank ids by ascending frequency; ids that do not occur have no rank."""
    counts = np.zeros(int(tokens.max(initial=-1)) + 1, dtype=np.int64)
    for part in blocks(len(tokens)):
        np.add.at(counts, tokens[part], 1)
    present = np.flatnonzero(counts)
    ranks = np.zeros(len(counts), dtype=np.int32)
    ranks[present[np.argsort(counts[present], kind="stable")]] = np.arange(len(present), dtype=np.int32)
    return ranks


def _order(numbers: Ints) -> Ints:
    """Return the stable sorting order of numbers."""
    # Packed with their places they sort much faster than by argsort.
    bits = len(numbers).bit_length()
    return np.sort((numbers << bits) | np.arange(len(numbers))) & ((1 << bits) - 1)


def _runs(sizes: Ints, budget: int) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of runs whose sizes sum to the budget at most, or of a single larger one."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + budget, side="right")))
        yield first, last
        first = last


def _classes(sets: _Ordered, groups: Ints | None) -> Ints:
    """Return for each set the row of the first equal set of the same group.

    Sets of one hash are compared token by token with the first of them. One that equals another than the first, for
    which two hashes must collide, stays a class of its own and is found as a pair.
    """
    hashes = _set_hashes(sets, groups)
    _, firsts, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    representatives = np.where(sets.sizes, firsts[inverse], np.arange(len(sets)))
    others = np.flatnonzero(representatives != np.arange(len(sets)))
    equal = _are_equal(sets, others, representatives[others])
    if groups is not None:
        equal &= groups[others] == groups[representatives[others]]
    representatives[others[~equal]] = others[~equal]
    return representatives


def _set_hashes(sets: _Ordered, groups: Ints | None) -> Ints:
    hashes = np.empty(len(sets), dtype=np.int64)
    for first, last in _runs(sets.sizes, BLOCK):
        rows = np.arange(first, last)
        mixed = hashed(sets.tokens[sets.places(rows)].astype(np.int64), 64)
        # A sum of hashes does not depend on the order of the tokens; the sum may overflow, which wraps.
        hashes[first:last] = np.diff(np.concatenate(([0], np.cumsum(mixed)))[offsets_of(sets.sizes[rows])])
    # Sets whose sums collide rarely have the same size, too.
    hashes ^= sets.sizes
    return hashes if groups is None else hashes ^ hashed(groups, 64, 1)


def _are_equal(sets: _Ordered, first: Ints, second: Ints) -> Mask:
    equal: Mask = sets.sizes[first] == sets.sizes[second]
    for start, stop in _runs(sets.sizes[first], BLOCK):
        rows = np.flatnonzero(equal[start:stop]) + start
        differs = sets.tokens[sets.places(first[rows])] != sets.tokens[sets.places(second[rows])]
        owners = np.repeat(np.arange(len(rows)), sets.sizes[first[rows]])
        equal[rows] = np.bincount(owners, weights=differs, minlength=len(rows)) == 0
    return equal


# Candidates: sets that share rare tokens.


@dataclass(frozen=True, slots=True)
class _Band:
    """A range of sizes of the smaller set of a pair, with the number of tokens that pairs in it must share.

    Args:
        smallest: Least size of the smaller set.
        largest: Its greatest size.
        shared: Of their rarest tokens, the number that two near sets of this band must share.
    """

    smallest: int
    largest: int
    shared: int


def _bands(threshold: float, largest: int) -> list[_Band]:
    """Return the bands for sets of up to the largest size; every size is in one.

    Sets too small to share several tokens, and sets so large that choosing several of them would make many choices,
    must share one.
    """
    shared = SHARED_BY_SMALL_SETS
    # Two near sets of n and n tokens share 2 * n * threshold / (1 + threshold) of them: at least three from this size
    # on.
    least = int(np.ceil(shared * (1 + threshold) / (2 * threshold)))
    most = int(min(largest, np.ceil((MAX_SLACK_OF_SMALL_SETS + 1) / max(1 - threshold, _EPSILON)) - 1))
    bands = [_Band(1, least - 1, 1), _Band(least, most, shared), _Band(max(least, most + 1), largest, 1)]
    return [band for band in bands if band.smallest <= min(band.largest, largest)]


class _Postings:
    """An inverted index from rare tokens to the sets of one band that have them.

    A posting packs a hash of tokens and the row of a set: one sort of numbers groups the sets that may be near, the
    smallest first.
    """

    def __init__(self, sets: _Ordered, band: _Band, threshold: float, groups: Ints | None) -> None:
        self._sizes = sets.sizes
        self._band = band
        self._threshold = threshold
        self._row_bits = max(1, len(sets).bit_length())
        self._least = _least_overlap(sets.sizes, threshold)
        # Two near sets differ in at most size - least tokens of this one: of any size - least + shared of its tokens,
        # also of the rarest, at least `shared` are common.
        self._prefixes = np.minimum(sets.sizes, sets.sizes - self._least + band.shared)
        self._rests = sets.sizes - self._prefixes
        self._ends = np.take(sets.tokens, sets.starts + self._prefixes - 1, mode="clip")
        self._packed = self._sorted(sets, groups)
        self._rows = self._packed & ((1 << self._row_bits) - 1)
        self._order = _order(self._rows)
        self._of_row = offsets_of(np.bincount(self._rows, minlength=len(sets)))

    def _sorted(self, sets: _Ordered, groups: Ints | None) -> Ints:
        """Return the postings in order, without those whose tokens no other set has."""
        largest_partner = self._band.largest / self._threshold + _EPSILON
        rows = np.flatnonzero((sets.sizes >= self._band.smallest) & (sets.sizes <= largest_partner))
        prefixes = self._prefixes[rows]
        parts = [self._choices(sets, rows[prefixes == prefix], int(prefix), groups) for prefix in np.unique(prefixes)]
        packed = np.sort(np.concatenate([NONE, *parts]))
        return _repeated(packed, packed >> self._row_bits)

    def _choices(self, sets: _Ordered, rows: Ints, prefix: int, groups: Ints | None) -> Ints:
        """Build the postings of sets with prefixes of one length."""
        # Sets that share several tokens share one choice of so many: a posting for each choice finds them by one hash.
        choices = np.array(list(combinations(range(prefix), self._band.shared)), dtype=np.int64)
        parts = []
        for part in range(0, len(rows), max(1, BLOCK // len(choices))):
            chosen = rows[part : part + max(1, BLOCK // len(choices))]
            # With the group in the hash, sets of different groups never meet.
            keys = np.zeros((len(chosen), 1), dtype=np.int64) if groups is None else groups[chosen, None]
            for places in choices.T:
                keys = hashed(keys, 64, 1) ^ sets.tokens[sets.starts[chosen, None] + places]
            parts.append(((hashed(keys, 63 - self._row_bits) << self._row_bits) | chosen[:, None]).ravel())
        return np.concatenate(parts)

    @cached_property
    def _after(self) -> tuple[Ints, Ints]:
        """The start and end of the later postings that may belong to near, larger sets, for each posting."""
        # A near set is at most 1 / threshold times as large; rows are in the order of sizes, so these are a range of
        # rows.
        last = np.searchsorted(self._sizes, np.floor(self._sizes / self._threshold + _EPSILON), side="right")
        starts = np.arange(1, len(self._packed) + 1)
        is_smaller = self._sizes[self._rows] <= self._band.largest
        return starts, np.where(is_smaller, np.maximum(starts, self._bounds(last[self._rows])), starts)

    @cached_property
    def _before(self) -> tuple[Ints, Ints]:
        """The start and end of the earlier postings that may belong to near, smaller sets, for each posting."""
        first = np.searchsorted(self._sizes, self._least)
        last = np.searchsorted(self._sizes, self._band.largest, side="right")
        starts = self._bounds(first[self._rows])
        ends = np.minimum(np.arange(len(starts)), self._bounds(np.full(len(starts), last)))
        return starts, np.maximum(starts, ends)

    def _bounds(self, rows: Ints) -> Ints:
        """Return for each posting the first one with the same tokens and at least the given row."""
        return np.searchsorted(self._packed, (self._packed >> self._row_bits << self._row_bits) + rows)

    def costs(self, *, both_ways: bool) -> Ints:
        """Count for each row the postings to look at: of larger sets, or of smaller ones too."""
        lengths = self._after[1] - self._after[0]
        if both_ways:
            lengths = lengths + self._before[1] - self._before[0]
        return np.bincount(self._rows, weights=lengths, minlength=len(self._sizes)).astype(np.int64)

    def found(self, rows: Ints, *, both_ways: bool) -> Pairs:
        """Pair the given rows with the larger rows, or all, that may be near: each pair once, ordered."""
        starts = self._of_row[rows]
        own = self._order[ragged(starts, self._of_row[rows + 1] - starts)]
        ranges = [self._after, self._before] if both_ways else [self._after]
        met = [self._met(own, start[own], end[own]) for start, end in ranges]
        packed = np.concatenate(met)
        packed.sort()
        first = _is_first(packed)
        times = np.diff(np.append(np.flatnonzero(first), len(packed)))
        return self._likely(*_unpacked(packed[first], len(self._sizes)), times)

    def _met(self, own: Ints, starts: Ints, ends: Ints) -> Ints:
        left: Ints = np.repeat(self._rows[own], ends - starts)
        left *= len(self._sizes)
        left += self._rows[ragged(starts, ends - starts)]
        return left

    def _likely(self, left: Ints, right: Ints, times: Ints) -> Pairs:
        """Keep the pairs that share enough of their rarest tokens to reach the threshold with the others.

        Shared tokens are in both prefixes, or else in the rest of the set whose prefix ends at the rarer token.
        """
        rest = self._rests[np.where(self._ends[left] <= self._ends[right], left, right)]
        needed = _least_common(self._sizes[left] + self._sizes[right], self._threshold) - rest
        # Pairs with k shared tokens in their prefixes meet in comb(k, shared) postings.
        choices = np.array([comb(count, self._band.shared) for count in range(int(needed.max(initial=0)) + 1)])
        likely = (times >= choices[np.maximum(needed, 0)]) & (left != right)
        return left[likely], right[likely]


def _least_overlap(sizes: Ints, threshold: float) -> Ints:
    """Return the least overlap of a set with a near one, which is also the least size of a near one."""
    least: Ints = np.ceil(sizes * threshold - _EPSILON).astype(np.int64)
    return least


def _least_common(sizes: Ints, threshold: float) -> Ints:
    """Return the least overlap of two near sets, by the sum of their sizes."""
    least: Ints = np.ceil(sizes * (threshold / (1 + threshold)) - _EPSILON).astype(np.int64)
    return least


# The join itself.


class SetJoin:
    """Joins near sets: equal sets are one class, and the near classes of many classes are found in one lookup.

    Classes are numbered from the smallest sets to the largest. An empty set is near to none, and a class by itself.
    Looking up marks tokens in an array of its own: one thread at a time.

    Args:
        sets: The sets.
        threshold: Least Jaccard similarity of near sets, above 0 and at most 1.
        reach: The pairs that may be compared; all without it. A class holds sets of one group, and is within reach of
            another where the whole spans of their times are.

    Raises:
        InvalidInput: For a threshold out of range.
    """

    def __init__(self, sets: TokenSets, threshold: float, reach: Reach | None = None) -> None:
        if not 0 < threshold <= 1:
            raise InvalidInput("threshold", f"is {threshold}; expected above 0 and at most 1")
        self._threshold = threshold
        self._reach = reach
        ordered = _rarest_first(sets)
        first = _classes(ordered, None if reach is None else reach.groups)
        rows = np.flatnonzero(first == np.arange(len(first)))
        rows = rows[np.argsort(ordered.sizes[rows], kind="stable")]
        numbers = np.empty(len(first), dtype=np.int64)
        numbers[rows] = np.arange(len(rows))
        # The class of each set, int64, shape (n,).
        self.class_of: Ints = numbers[first]
        self._distinct = ordered.chosen(rows)
        self._members = np.argsort(self.class_of, kind="stable")
        self._member_starts = offsets_of(np.bincount(self.class_of, minlength=len(rows)))
        self._class_reach = None if reach is None else self._spans(reach)
        self._marks = np.zeros(int(self._distinct.tokens.max(initial=-1)) + 1, dtype=np.uint64)
        groups = None if self._class_reach is None else self._class_reach.groups
        bands = _bands(threshold, int(self._distinct.sizes.max(initial=0)))
        self._postings = [_Postings(self._distinct, band, threshold, groups) for band in bands]

    def _spans(self, reach: Reach) -> Reach:
        """Return the reach of classes, from that of their members."""
        starts = self._member_starts[:-1]
        if not len(starts):
            return reach
        return Reach(
            reach.groups[self._members[starts]],
            np.minimum.reduceat(reach.earliest[self._members], starts),
            np.maximum.reduceat(reach.latest[self._members], starts),
            reach.window,
        )

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self._distinct)

    def members(self, number: int) -> Ints:
        """Return the sets of a class, ascending."""
        return self._members[self._member_starts[number] : self._member_starts[number + 1]]

    def pairs(self) -> Iterator[Pairs]:
        """Yield all near classes, the lower number first, in blocks: each pair once, ordered."""
        for first, last in _runs(self._costs(both_ways=False), PAIRS_AT_ONCE):
            yield self._near(np.arange(first, last, dtype=np.int64), both_ways=False)

    @cached_property
    def costs(self) -> Ints:
        """The number of candidate pairs of :meth:`partners` for each class, int64."""
        return self._costs(both_ways=True)

    def partners(self, numbers: Ints) -> Pairs:
        """Pair each given class with every other class near to it, ordered."""
        return self._near(numbers, both_ways=True)

    def _costs(self, *, both_ways: bool) -> Ints:
        costs = np.zeros(len(self), dtype=np.int64)
        for postings in self._postings:
            costs += postings.costs(both_ways=both_ways)
        return costs

    def _near(self, rows: Ints, *, both_ways: bool) -> Pairs:
        found = [postings.found(rows, both_ways=both_ways) for postings in self._postings]
        left, right = (np.concatenate([NONE, *(pair[side] for pair in found)]) for side in (0, 1))
        if self._class_reach is not None:
            within = self._class_reach.holds(left, right)
            left, right = left[within], right[within]
        left, right = _unpacked(np.sort(left * len(self) + right), len(self))
        sums = self._distinct.sizes[left] + self._distinct.sizes[right]
        common = self._overlaps(left, right)
        near = common / (sums - common) >= self._threshold
        return left[near], right[near]

    def _overlaps(self, left: Ints, right: Ints) -> Ints:
        """Count the shared tokens of each pair; the pairs are ordered by their left sets."""
        common = np.empty(len(left), dtype=np.int64)
        turn = np.cumsum(_is_first(left)) - 1
        lefts = left[_is_first(left)]
        for start in range(0, len(lefts), LEFT_AT_ONCE):
            first, last = np.searchsorted(turn, (start, start + LEFT_AT_ONCE))
            some = lefts[start : start + LEFT_AT_ONCE]
            common[first:last] = self._counted(some, turn[first:last] - start, right[first:last])
        return common

    def _counted(self, lefts: Ints, bits: Ints, rights: Ints) -> Ints:
        """Count the tokens of each right set that carry the mark of its left set: one bit a left set."""
        sets, marks = self._distinct, self._marks
        for bit, row in enumerate(lefts):
            # 64 left sets are counted in one pass over the right ones.
            marks[sets.tokens[sets.starts[row] : sets.starts[row] + sets.sizes[row]]] |= np.uint64(1 << bit)
        counts = np.empty(len(rights), dtype=np.int64)
        for first, last in _runs(sets.sizes[rights], BLOCK):
            rows = rights[first:last]
            sizes = sets.sizes[rows]
            found = marks[sets.tokens[sets.places(rows)]]
            found >>= np.repeat(bits[first:last].astype(np.uint64), sizes)
            found &= np.uint64(1)
            counts[first:last] = np.add.reduceat(found, offsets_of(sizes)[:-1])
        for row in lefts:
            # Only the marked tokens: clearing the whole array would cost its size for every 64 sets.
            marks[sets.tokens[sets.starts[row] : sets.starts[row] + sets.sizes[row]]] = 0
        return counts

    def near(self) -> Pairs:
        """Pair all near sets, equal ones included, the lower row first: each pair once, in no order.

        Cost:
            Grows with the pairs; of many equal sets that is the square of their number.
        """
        parts = [self._within(*self._equal_pairs())]
        parts += [self._within(*self._expanded(*pairs)) for pairs in self.pairs()]
        left, right = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
        return np.minimum(left, right), np.maximum(left, right)

    def _within(self, left: Ints, right: Ints) -> Pairs:
        if self._reach is None:
            return left, right
        holds = self._reach.holds(left, right)
        return left[holds], right[holds]

    def _equal_pairs(self) -> Pairs:
        sizes = np.diff(self._member_starts)
        places = np.arange(len(self._members))
        rest = np.repeat(self._member_starts[1:], sizes) - places - 1
        return self._members[np.repeat(places, rest)], self._members[ragged(places + 1, rest)]

    def _expanded(self, left: Ints, right: Ints) -> Pairs:
        """Pair every member of the left classes with every member of the right ones."""
        sizes = np.diff(self._member_starts)
        firsts = ragged(self._member_starts[left], sizes[left])
        partners = np.repeat(right, sizes[left])
        first = np.repeat(firsts, sizes[partners])
        return self._members[first], self._members[ragged(self._member_starts[partners], sizes[partners])]


def _unpacked(packed: Ints, total: int) -> Pairs:
    left = packed // max(1, total)
    return left, packed - left * total
