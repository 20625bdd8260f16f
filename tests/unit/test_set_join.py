"""The exact join of near sets, compared with comparing all with all."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import InvalidInput
from lamina.policies.retention import set_join
from lamina.policies.retention.set_join import Reach, SetJoin, TokenSets, sets_of

THRESHOLDS = st.sampled_from([0.1, 0.34, 0.5, 0.6, 0.75, 0.8, 0.85, 0.9, 1.0]) | st.floats(0.05, 1)
Pair = tuple[int, int]


def jaccard(first: set[int], second: set[int]) -> float:
    return len(first & second) / len(first | second) if first | second else 0.0


def all_with_all(sets: Sequence[set[int]], threshold: float) -> set[Pair]:
    return {pair for pair in combinations(range(len(sets)), 2) if jaccard(*(sets[row] for row in pair)) >= threshold}


def near(join: SetJoin) -> set[Pair]:
    left, right = join.near()
    found = list(zip(left.tolist(), right.tolist(), strict=True))
    assert len(found) == len(set(found))
    return set(found)


@st.composite
def families(draw: st.DrawFn, largest: int = 60) -> list[set[int]]:
    """Sets that differ in a few tokens from a few others, so that many are near the threshold."""
    tokens = st.integers(0, draw(st.sampled_from([6, 30, 300])))
    bases = draw(st.lists(st.sets(tokens, max_size=largest), min_size=1, max_size=4))
    changes = st.tuples(st.sampled_from(bases), st.sets(tokens, max_size=3), st.integers(0, 4))
    found = draw(st.lists(changes, max_size=14))
    return [*bases, *(set(sorted(base ^ change)[skipped:]) for base, change, skipped in found)]


@given(families(), THRESHOLDS)
def test_the_pairs_are_those_of_comparing_all_with_all(sets: list[set[int]], threshold: float) -> None:
    assert near(SetJoin(sets_of(sets), threshold)) == all_with_all(sets, threshold)


@given(families(), THRESHOLDS)
def test_the_size_of_blocks_changes_nothing(sets: list[set[int]], threshold: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_join, "BLOCK", 5)
        patch.setattr(set_join, "PAIRS_AT_ONCE", 3)
        patch.setattr(set_join, "LEFT_AT_ONCE", 2)

        assert near(SetJoin(sets_of(sets), threshold)) == all_with_all(sets, threshold)


@given(families(), THRESHOLDS)
def test_hashes_that_collide_cost_time_and_no_pair(sets: list[set[int]], threshold: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_join, "_set_hashes", lambda found, _groups: np.zeros(len(found), dtype=np.int64))
        patch.setattr(set_join, "hashed", lambda keys, _bits, _turn=0: keys % 2)

        assert near(SetJoin(sets_of(sets), threshold)) == all_with_all(sets, threshold)


@given(families(largest=20), THRESHOLDS, st.data())
def test_only_sets_of_a_group_within_the_window_are_near(
    sets: list[set[int]], threshold: float, data: st.DataObject
) -> None:
    window = data.draw(st.integers(0, 5))
    rows = st.tuples(st.integers(0, 1), st.integers(-9, 9), st.integers(0, 3))
    groups, earliest, lasting = zip(*data.draw(st.lists(rows, min_size=len(sets), max_size=len(sets))), strict=True)
    spans = [set(range(start, start + length + 1)) for start, length in zip(earliest, lasting, strict=True)]
    latest = np.array([max(span) for span in spans])
    reach = Reach(np.array(groups), np.array(earliest), latest, window)

    found = near(SetJoin(sets_of(sets), threshold, reach))

    def are_within(first: int, second: int) -> bool:
        gap = min(abs(one - other) for one in spans[first] for other in spans[second])
        return groups[first] == groups[second] and gap <= window

    assert found == {pair for pair in all_with_all(sets, threshold) if are_within(*pair)}


@given(families(), THRESHOLDS, st.data())
def test_partners_are_the_near_classes_of_those_asked_for(
    sets: list[set[int]], threshold: float, data: st.DataObject
) -> None:
    join = SetJoin(sets_of(sets), threshold)
    asked = data.draw(st.lists(st.integers(0, len(join) - 1), unique=True))

    left, right = join.partners(np.array(asked, dtype=np.int64))

    pairs = {pair for block in join.pairs() for pair in zip(*(side.tolist() for side in block), strict=True)}
    both_ways = pairs | {(second, first) for first, second in pairs}
    found = list(zip(left.tolist(), right.tolist(), strict=True))
    assert found == sorted(pair for pair in both_ways if pair[0] in asked)
    assert all(first < second for first, second in pairs)


@given(families())
def test_classes_hold_the_equal_sets(sets: list[set[int]]) -> None:
    join = SetJoin(sets_of(sets), 0.85)

    for number in range(len(join)):
        members = join.members(number).tolist()
        assert members == [row for row, other in enumerate(sets) if join.class_of[row] == number]
        assert len({frozenset(sets[row]) for row in members}) == 1
    assert len(join) == len({frozenset(item) for item in sets if item}) + sum(not item for item in sets)


def test_an_empty_set_is_near_to_none_not_even_to_another() -> None:
    assert near(SetJoin(sets_of([[], [], [1]]), 0.1)) == set()


def test_no_sets_have_no_pairs() -> None:
    assert near(SetJoin(sets_of([]), 0.85)) == set()
    assert near(SetJoin(sets_of([]), 0.85, Reach(*np.zeros((3, 0), dtype=np.int64), 1))) == set()


def test_a_token_that_stands_in_a_set_twice_counts_once() -> None:
    sets = TokenSets(np.array([7, 7, 7, 3, 3, 7], dtype=np.int32), np.array([0, 4, 6]))

    assert near(SetJoin(sets, 1)) == {(0, 1)}


def test_a_similarity_of_just_the_threshold_is_near() -> None:
    assert near(SetJoin(sets_of([range(17), range(20)]), 0.85)) == {(0, 1)}
    assert near(SetJoin(sets_of([range(17), range(20)]), 0.8500001)) == set()


@pytest.mark.parametrize("threshold", [0, -0.1, 1.01, float("nan")])
def test_a_threshold_out_of_range_is_refused(threshold: float) -> None:
    with pytest.raises(InvalidInput, match="threshold: is"):
        SetJoin(sets_of([[1]]), threshold)


def test_many_equal_sets_are_one_class_and_no_pairs_of_classes() -> None:
    sets = sets_of([range(9)] * 50_000 + [range(10)])

    join = SetJoin(sets, 0.85)
    blocks = list(join.pairs())

    assert len(join) == 2
    assert sum(len(left) for left, _ in blocks) == 1


def test_small_sets_of_few_words_are_not_all_compared() -> None:
    generator = np.random.default_rng(7)
    sets = sets_of(generator.choice(200, size=8, replace=False).tolist() for _ in range(20_000))

    assert SetJoin(sets, 0.85).costs.sum() < 2_000_000


def grouped(sets: TokenSets) -> list[frozenset[int]]:
    bounds = sets.offsets.tolist()
    return [frozenset(sets.tokens[start:stop].tolist()) for start, stop in pairwise(bounds)]


def test_words_are_one_token_wherever_they_stand() -> None:
    first, second = grouped(sets_of([["tea", "green", "tea"], {"green"}]))

    assert second < first
    assert len(first) == 2
