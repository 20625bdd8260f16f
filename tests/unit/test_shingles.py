"""Texts as sets of their runs of characters."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import shingles
from benchmarks.shingles import shingled
from lamina.policies.retention import set_join
from lamina.policies.retention.set_join import TokenSets


def runs(text: str, size: int) -> frozenset[str]:
    return frozenset(text[start : start + size] for start in range(max(1, len(text) - size + 1)))


def grouped(sets: TokenSets) -> list[frozenset[int]]:
    bounds = sets.offsets.tolist()
    return [frozenset(sets.tokens[start:stop].tolist()) for start, stop in pairwise(bounds)]


TEXTS = st.lists(st.text("ab\x00 é語\U0010ffff", max_size=12) | st.text(max_size=12), max_size=8)


@given(TEXTS, st.sampled_from([1, 2, 5, 9, 40]), st.sampled_from([3, 1 << 18]))
def test_tokens_are_the_same_for_the_same_runs_alone(texts: list[str], size: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_join, "BLOCK", block)
        found = grouped(shingled(texts, size))

    expected = [runs(text, size) for text in texts]
    assert [len(tokens) for tokens in found] == [len(some) for some in expected]
    for (one, tokens), (other, others) in combinations(zip(expected, found, strict=True), 2):
        assert len(tokens & others) == len(one & other)


def test_tokens_of_a_large_alphabet_are_the_same_for_the_same_runs_alone() -> None:
    generator = np.random.default_rng(7)
    letters = [chr(0x4E00 + number) for number in range(9_000)]
    texts = ["".join(letters[place] for place in generator.integers(0, 9_000, size=3_000)) for _ in range(4)]
    texts.append(texts[0][:2_000] + texts[1][:1_000])

    found = grouped(shingled(texts, 5))

    expected = [runs(text, 5) for text in texts]
    for one, other in combinations(range(5), 2):
        assert len(found[one] & found[other]) == len(expected[one] & expected[other])


@given(st.lists(st.integers(0, 9) | st.integers(0, 2**62 - 1), max_size=200))
def test_ids_tell_keys_apart_even_where_all_hashes_collide_at_first(keys: list[int]) -> None:
    array = np.array(keys, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        hashed = shingles.hashed
        patch.setattr(shingles, "hashed", lambda some, bits, turn=0: hashed(some, bits, turn) if turn > 1 else some * 0)
        ids = shingles._ids(lambda part: array[part], len(array)).tolist()

    assert len(set(ids)) == len(set(keys)) == len(set(zip(keys, ids, strict=True)))
