import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.caching.rendezvous import encode_ids, owner

KEYS = [("tenant", f"workspace {number}") for number in range(4_000)]
ids = st.tuples(st.text(max_size=4), st.text(max_size=4)) | st.lists(st.text(max_size=3), max_size=4).map(tuple)
few_names = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True)


def named(count: int) -> list[str]:
    return [f"shard {number}" for number in range(count)]


def owners(names: list[str]) -> list[str]:
    return [owner(names, key) for key in KEYS]


@given(few_names, ids)
def test_every_key_has_an_owner_that_does_not_depend_on_the_order_of_names(
    names: list[str], key: tuple[str, ...]
) -> None:
    found = owner(names, key)

    assert found in names
    assert owner(names[::-1], key) == found


@given(few_names.filter(lambda names: len(names) > 1), st.lists(ids, max_size=30))
def test_a_key_that_moves_moves_to_the_new_name(names: list[str], keys: list[tuple[str, ...]]) -> None:
    *old, new = names

    assert all(owner(names, key) in {owner(old, key), new} for key in keys)


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16])
def test_one_name_more_takes_about_its_share_and_nothing_else_moves(count: int) -> None:
    before, after = owners(named(count)), owners([*named(count), "new"])

    moved = [new for old, new in zip(before, after, strict=True) if new != old]

    assert set(moved) == {"new"}
    assert 0.5 < len(moved) / len(KEYS) * (count + 1) < 1.5


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_the_shares_are_about_equal(count: int) -> None:
    shares = Counter(owners(named(count)))

    assert len(shares) == count
    assert all(0.5 < share / len(KEYS) * count < 1.6 for share in shares.values())


@given(ids, ids)
def test_two_keys_never_read_the_same(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (encode_ids(one) == encode_ids(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "bc"), ("ab", "c")),
        (("a", ""), ("a",)),
        (("a", ""), ("", "a")),
        (("a\0", "b"), ("a", "\0b")),
        (("ä",), ("a\u0308",)),
    ],
)
def test_ids_are_told_apart_by_where_they_begin_and_end(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert encode_ids(one) != encode_ids(other)


def test_another_process_finds_the_same_owners() -> None:
    script = (
        "from lamina.policies.caching.rendezvous import owner\n"
        "print(''.join(owner(['a', 'b', 'c'], ('t', str(number))) for number in range(60)))"
    )

    said = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }

    assert said == {"".join(owner(["a", "b", "c"], ("t", str(number))) for number in range(60))}


def test_without_names_there_is_no_owner() -> None:
    with pytest.raises(ValueError, match="empty"):
        owner([], ("t", "w"))
