from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.text.hygiene import has_more_values

VALUES = st.recursive(
    st.integers() | st.text(max_size=3) | st.none(),
    lambda within: st.lists(within, max_size=4) | st.dictionaries(st.text(max_size=3), within, max_size=4),
    max_leaves=20,
)


def count(value: object) -> int:
    match value:
        case dict():
            return 1 + len(value) + sum(map(count, value.values()))
        case list():
            return 1 + sum(map(count, value))
        case _:
            return 1


@given(VALUES, st.integers(-2, 2))
def test_values_and_keys_are_counted_as_far_as_needed(value: object, more: int) -> None:
    most = count(value) + more

    assert has_more_values(value, most) == (more < 0)


@pytest.mark.parametrize("make", [lambda: {f"k{number}": number for number in range(10**6)}, lambda: [[0] * 10**6] * 3])
def test_of_a_million_values_only_some_are_looked_at(make: Callable[[], object]) -> None:
    assert has_more_values(make(), 5_000)
