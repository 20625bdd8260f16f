from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.limits.fair_turns import FairTurns


def turns_of(tenants: str) -> FairTurns[str]:
    """Of each tenant's letter, items that are numbered by tenant."""
    turns: FairTurns[str] = FairTurns()
    numbers = Counter[str]()
    for tenant in tenants:
        turns.put(tenant, f"{tenant}{numbers[tenant]}")
        numbers[tenant] += 1
    return turns


def drained(turns: FairTurns[str]) -> list[str]:
    return [turns.take() for _ in range(len(turns))]


@pytest.mark.parametrize(
    ("tenants", "order"),
    [
        ("", []),
        ("aaa", ["a0", "a1", "a2"]),
        ("aaab", ["a0", "b0", "a1", "a2"]),
        ("aabbc", ["a0", "b0", "c0", "a1", "b1"]),
    ],
)
def test_tenants_take_turns_and_each_has_its_own_in_order(tenants: str, order: list[str]) -> None:
    assert drained(turns_of(tenants)) == order


def test_one_that_was_just_served_comes_behind_all_that_wait() -> None:
    turns = turns_of("aab")
    first = turns.take()
    turns.put("a", "a2")
    turns.put("c", "c0")

    assert [first, *drained(turns)] == ["a0", "b0", "a1", "c0", "a2"]


def test_an_item_that_waits_no_more_is_taken_by_nobody() -> None:
    turns = turns_of("aabb")

    turns.remove("a", "a0")
    turns.remove("b", "b0")
    turns.remove("b", "b1")
    turns.remove("b", "b1")
    turns.remove("nobody", "b1")

    assert (len(turns), list(turns)) == (1, ["a1"])
    assert drained(turns) == ["a1"]
    assert not turns


def test_nothing_is_left_of_those_that_were_cleared() -> None:
    turns = turns_of("aabb")

    turns.clear()

    assert (len(turns), list(turns), turns.ahead_of("a")) == (0, [], 0)


@given(st.text("abc", max_size=12), st.sampled_from("abcd"))
def test_as_many_are_ahead_of_the_next_item_as_are_taken_before_it(tenants: str, tenant: str) -> None:
    turns = turns_of(tenants)

    ahead = turns.ahead_of(tenant)
    turns.put(tenant, "the next")

    # A tenant that already waits is never behind more than that; one turn of each other may come later.
    assert drained(turns).index("the next") <= ahead


@given(st.text("abc", min_size=1, max_size=30))
def test_no_tenant_is_taken_twice_while_another_that_waits_is_not_taken(tenants: str) -> None:
    taken = [item[0] for item in drained(turns_of(tenants))]

    assert Counter(taken) == Counter(tenants)
    for place, tenant in enumerate(taken):
        between = taken[place + 1 :].index(tenant) if tenant in taken[place + 1 :] else None
        if between is not None:
            assert set(taken[place + 1 + between :]) - {tenant} <= set(taken[place + 1 : place + 1 + between])
