from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.caching.response_budget import ResponseBudget, StoredResponse, evicted

ROOM = ResponseBudget(size_bytes=100, evict_share=0.25)
helds = st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=30).map(
    lambda items: [StoredResponse(UUID(int=place), size, is_dead) for place, (size, is_dead) in enumerate(items)]
)


def held(*sizes: int, dead: tuple[int, ...] = ()) -> list[StoredResponse]:
    return [StoredResponse(UUID(int=place), size, place in dead) for place, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("items", "incoming", "gone"),
    [
        ([], 100, []),
        (held(25, 25, 25), 25, []),
        (held(25, 25, 25), 26, [0]),
        (held(10, 10, 10, 10, 10, 10, 10, 10), 21, [0, 1]),
        (held(10, 10, 10, 10, 10, 10, 10, 10), 51, [0, 1, 2, 3]),
        (held(25, 25, 25, 20, dead=(2,)), 10, [2]),
        (held(5, 25, 5, 25, 40, dead=(2,)), 10, [2, 0]),
        (held(5, 25, 5, 25, 40, dead=(2,)), 11, [2, 0, 1]),
        (held(50, 50), 200, [0, 1]),
    ],
)
def test_what_goes_is_dead_or_least_recently_used(items: list[StoredResponse], incoming: int, gone: list[int]) -> None:
    assert [id_.int for id_ in evicted(items, incoming, ROOM)] == gone


@given(items=helds, incoming=st.integers(1, 100), share=st.floats(0.01, 1))
def test_what_is_left_fits_with_what_comes(items: list[StoredResponse], incoming: int, share: float) -> None:
    gone = set(evicted(items, incoming, ResponseBudget(100, share)))

    assert sum(item.size_bytes for item in items if item.id not in gone) + incoming <= 100


@given(items=helds, incoming=st.integers(1, 100), share=st.floats(0.01, 1))
def test_nothing_usable_goes_while_something_older_or_dead_stays(
    items: list[StoredResponse], incoming: int, share: float
) -> None:
    gone = set(evicted(items, incoming, ResponseBudget(100, share)))

    usable = [item.id in gone for item in items if not item.is_dead]
    assert usable == sorted(usable, reverse=True)
    assert not any(usable) or all(item.id in gone for item in items if item.is_dead)
