"""Dedup's decision: groups of near-duplicate notes, and the note that each group is merged into.

Two notes are near when they belong to one user, were written at most 30 days apart, share most of their words, and
make the same statement. The newest survives and absorbs those near to itself, never those near to a note it
absorbed: A near B near C does not make A and C one.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from uuid import UUID

import numpy as np

from lamina.core.memories import MAX_TAGS
from lamina.policies.retention.set_join import Ints, Reach, SetJoin, sets_of
from lamina.text.paraphrase import is_same_statement, statement_kinds
from lamina.text.words import words

MIN_JACCARD = 0.85
WINDOW = timedelta(days=30)
# One lookup of many classes costs little more than one of a single class: the arrays' overhead is shared.
CLASSES_AT_ONCE = 4096
# Candidate pairs of one lookup, which are in memory together.
CANDIDATES_AT_ONCE = 1 << 20
# Candidate pairs a text above which they are not counted exactly.
MANY_CANDIDATES = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class MergeCandidate:
    """A note of a scope, with the columns that a merge reads.

    Args:
        user: Its owner; notes of different users are never merged, and ``None`` is a user of its own.
        created_at: With a time zone.
        hits: How often it was found, from 1: writing it counts as the first.
        importance: 0..1.
        confidence: 0..1.
        last_hit_at: When it was last found or written.
        speakers: Who said it; words of different people are never merged.
    """

    id: UUID
    user: str | None
    content: str
    created_at: datetime
    hits: int
    importance: float
    confidence: float
    last_hit_at: datetime
    tags: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """A note that survives, those it absorbs, and its values afterwards.

    Args:
        survivor_id: The newest of them; its text stays as it is.
        absorbed_ids: The others, newest first; at least one.
        hits: The sum of theirs.
        importance: The greatest of theirs. It is not raised further, so that a second run changes nothing.
        last_hit_at: The latest of theirs.
        confidence: The greatest of theirs.
        tags: The survivor's, then those of the others, newest first; 64 at most.
    """

    survivor_id: UUID
    absorbed_ids: tuple[UUID, ...]
    hits: int
    importance: float
    last_hit_at: datetime
    confidence: float
    tags: tuple[str, ...]


def decide_merges(
    notes: Iterable[MergeCandidate], *, min_jaccard: float = MIN_JACCARD, window: timedelta = WINDOW
) -> list[Merge]:
    """Choose the merges, newest survivor first; a second run after them finds nothing to merge.

    From the newest note to the oldest, each that is left survives and absorbs every older one near to it that is
    left. Survivors thus are not near to each other, and none is absorbed. Ties in time go to the greater id.

    Args:
        notes: All notes of one scope, in any order.
        min_jaccard: Least Jaccard similarity of the word sets.
        window: How far apart two notes may have been written.

    Cost:
        Grows with the notes and with the pairs of near texts, not with the square of equal texts.
    """
    newest_first = sorted(notes, key=lambda note: (note.created_at, note.id), reverse=True)
    if not newest_first:
        return []
    groups = _Grouping(newest_first, min_jaccard, window).groups()
    return [_merge(note, absorbed) for note, absorbed in groups if absorbed]


def _merge(survivor: MergeCandidate, absorbed: Sequence[MergeCandidate]) -> Merge:
    members = [survivor, *absorbed]
    return Merge(
        survivor.id,
        tuple(note.id for note in absorbed),
        hits=sum(note.hits for note in members),
        importance=max(note.importance for note in members),
        last_hit_at=max(note.last_hit_at for note in members),
        confidence=max(note.confidence for note in members),
        tags=tuple(islice(dict.fromkeys(tag for note in members for tag in note.tags), MAX_TAGS)),
    )


class _Grouping:
    """One pass over the notes of a scope, newest first.

    Equal texts of a user are one row. The notes of a row are settled from the newest on, so that a count a row is
    enough to know which ones are left.

    Args:
        notes: Newest first, at least one.
    """

    def __init__(self, notes: Sequence[MergeCandidate], min_jaccard: float, window: timedelta) -> None:
        self._notes = notes
        self._times = [(note.created_at - _EPOCH) // _TICK for note in notes]
        self._window = window // _TICK
        rows: dict[tuple[Hashable, str], list[int]] = {}
        for place, note in enumerate(notes):
            rows.setdefault(((note.user, note.speakers), note.content), []).append(place)
        self._members = list(rows.values())
        self._texts = [text for _, text in rows]
        self._row_of = {place: row for row, members in enumerate(self._members) for place in members}
        self._settled = [0] * len(rows)
        self._is_open = np.ones(len(rows), dtype=np.bool_)
        self._join = self._build_join([owner for owner, _ in rows], min_jaccard)
        self._near: dict[int, Ints] = {}

    def _build_join(self, owners: Sequence[Hashable], min_jaccard: float) -> SetJoin:
        """Prepare the word sets for comparison within an owner, or within an owner and a kind of statement.

        Args:
            owners: The user and the speakers of each text.
            min_jaccard: Least share of words that two texts have in common.
        """
        sets = sets_of(set(words(text)) for text in self._texts)
        by_user = SetJoin(sets, min_jaccard, self._reach(owners))
        # To find the kind of a text costs about as much as to compare a pair: it pays only where many texts are near.
        if _has_few_pairs(by_user):
            return by_user
        class_of = by_user.class_of
        compared = np.flatnonzero((by_user.costs > 0)[class_of] | (np.bincount(class_of) > 1)[class_of]).tolist()
        kinds = dict(zip(compared, statement_kinds([self._texts[row] for row in compared]), strict=True))
        return SetJoin(sets, min_jaccard, self._reach([(owner, kinds.get(row)) for row, owner in enumerate(owners)]))

    def _reach(self, groups: Sequence[Hashable]) -> Reach:
        latest = np.array([self._times[members[0]] for members in self._members], dtype=np.int64)
        earliest = np.array([self._times[members[-1]] for members in self._members], dtype=np.int64)
        numbers: dict[Hashable, int] = {}
        numbered = np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=np.int64)
        return Reach(numbered, earliest, latest, self._window)

    def groups(self) -> Iterator[tuple[MergeCandidate, list[MergeCandidate]]]:
        """Yield each survivor, newest first, with the notes it absorbs, newest first."""
        for place, note in enumerate(self._notes):
            # Members of a row are settled from the newest on, so this note is left if it is the next one of its row.
            row = self._row_of[place]
            if self._is_open[row] and self._members[row][self._settled[row]] == place:
                self._settle(row, 1)
                absorbed = sorted(self._absorb(place, row))
                yield note, [self._notes[other] for other in absorbed]

    def _settle(self, row: int, count: int) -> None:
        self._settled[row] += count
        self._is_open[row] = self._settled[row] < len(self._members[row])

    def _absorb(self, place: int, row: int) -> Iterator[int]:
        """Settle the notes that the survivor absorbs, and yield them."""
        for other in self._partners(place, row):
            start, since = self._settled[other], self._times[place] - self._window
            # Times fall along a row, bisection needs them to rise: hence the signs.
            end = bisect_right(self._members[other], -since, lo=start, key=lambda member: -self._times[member])
            if end > start and (other == row or is_same_statement(self._texts[row], self._texts[other])):
                self._settle(other, end - start)
                yield from self._members[other][start:end]

    def _partners(self, place: int, row: int) -> list[int]:
        """Return the rows with notes left and near words, the given row first."""
        own = int(self._join.class_of[row])
        if own not in self._near:
            self._near = self._find_near(place)
        near = [self._join.members(number) for number in (own, *self._near[own].tolist())]
        rows = np.concatenate(near)
        others = rows[self._is_open[rows] & (rows != row)]
        return [*([row] if self._is_open[row] else []), *others.tolist()]

    def _find_near(self, place: int) -> dict[int, Ints]:
        """Find the near classes of the next notes that are left, from the given one on: many in one lookup."""
        numbers = np.array(list(self._next_classes(place)), dtype=np.int64)
        left, right = self._join.partners(numbers)
        bounds = np.searchsorted(left, np.sort(numbers))
        return dict(zip(np.sort(numbers).tolist(), np.split(right, bounds[1:]), strict=True))

    def _next_classes(self, place: int) -> Iterator[int]:
        """Yield classes, each once, up to the bounds of one lookup; that of the given note in any case."""
        seen = {int(self._join.class_of[self._row_of[place]])}
        yield from seen
        cost = 0
        for row in (self._row_of[other] for other in range(place + 1, len(self._notes))):
            number = int(self._join.class_of[row])
            if self._is_open[row] and number not in seen:
                cost += int(self._join.costs[number])
                if cost > CANDIDATES_AT_ONCE or len(seen) == CLASSES_AT_ONCE:
                    return
                seen.add(number)
                yield number


def _has_few_pairs(join: SetJoin) -> bool:
    """Report whether there are at most as many near pairs as texts; many candidates are taken for many pairs."""
    texts = len(join.class_of)
    sizes = np.bincount(join.class_of)
    equal = int((sizes * (sizes - 1) // 2).sum())
    if equal > texts or int(join.costs.sum()) > MANY_CANDIDATES * texts:
        return False
    return equal + sum(len(left) for left, _ in join.pairs()) <= texts
