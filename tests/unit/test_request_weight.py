from typing import Any

import pytest

from lamina.policies.limits.request_weight import BODY_BYTES, MOST_SEARCHES, most_cost, request_weight


@pytest.mark.parametrize(
    ("body", "weight"),
    [
        (None, 1),
        ([1] * 1_000, 1),
        ({"query": "a ship"}, 1),
        ({"query": "a ship", "limit": 50, "explain": False, "rerank": False}, 1),
        ({"query": "a ship", "limit": 51}, 2),
        ({"query": "a ship", "limit": 100, "explain": True}, 3),
        ({"query": "a ship", "limit": 1_000, "explain": True, "rerank": "a model"}, 22),
        ({"notes": ["a note"] * 9}, 1),
        ({"notes": ["a note"] * 100, "tags": ["a tag"] * 10}, 12),
        ({"searches": ["a ship"]}, 1),
        ({"searches": ["a ship", {"query": "a ship", "limit": 100}, {"explain": True}]}, 5),
    ],
)
def test_a_body_weighs_by_what_it_asks_for(body: Any, weight: int) -> None:
    assert request_weight(0, body, {}) == weight


@pytest.mark.parametrize(
    ("query", "weight"),
    [({}, 1), ({"limit": "250"}, 1), ({"limit": "1000"}, 4), ({"limit": "10", "offset": "10000"}, 41)],
)
def test_a_list_weighs_by_the_rows_that_it_reads(query: dict[str, str], weight: int) -> None:
    assert request_weight(0, None, query) == weight


def test_a_long_body_weighs_by_its_length() -> None:
    sizes = (0, BODY_BYTES - 1, BODY_BYTES, 64 * BODY_BYTES)

    assert [request_weight(size, None, {}) for size in sizes] == [1, 1, 2, 65]


@pytest.mark.parametrize(
    "body",
    [
        {"limit": True, "explain": None},
        {"limit": -1_000},
        {"limit": "1000"},
        {"limit": 2.5e9},
        {"limit": {}, "explain": [], "rerank": {}},
        {"searches": 5},
        {"searches": []},
        {"searches": [None]},
    ],
)
def test_what_is_wrong_weighs_no_less_than_a_plain_request(body: Any) -> None:
    assert request_weight(-5, body, {"limit": "-1", "offset": "many"}) == 1


def test_what_no_route_accepts_weighs_no_more_than_the_most_that_one_does() -> None:
    most = request_weight(0, {"searches": [{"limit": 1_000}] * MOST_SEARCHES}, {})

    assert request_weight(0, {"limit": 10**400}, {"limit": "9" * 5_000}) == request_weight(0, {"limit": 1_000}, {})
    assert request_weight(0, {"searches": [{"limit": 10**9}] * 1_000_000}, {}) == most


@pytest.mark.parametrize(
    ("weight", "amount", "cost"),
    [(1, 1, 1), (5, 1, 1), (5, 3, 1), (5, 4, 2), (5, 10, 5), (5, 600, 5), (9_000, 600, 300)],
)
def test_no_request_costs_more_than_half_of_a_quota(weight: int, amount: int, cost: int) -> None:
    assert most_cost(weight, amount) == cost
