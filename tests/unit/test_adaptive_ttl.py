import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.caching.adaptive_ttl import TtlPolicy, adaptive_ttl

HOURLY = TtlPolicy(base_s=3600, least_s=600, most_s=7200)
counts = st.integers(0, 10_000)
policies = st.tuples(st.floats(1, 1e6), st.floats(1, 1e5), st.floats(0, 1e6)).map(
    lambda parts: TtlPolicy(parts[0], parts[1], parts[1] + parts[2])
)


def test_without_evidence_a_response_lives_as_long_as_the_base_says() -> None:
    assert adaptive_ttl(0, 0, HOURLY) == pytest.approx(3600)


@pytest.mark.parametrize(
    ("hits", "lookups", "expected_s"),
    [
        (0, 1_000_000, 600),
        (1_000_000, 1_000_000, 7200),
        (500, 1000, 7200 * math.log2(1.5)),
        (0, 16, 7200 * math.log2(1 + (math.sqrt(2) - 1) / 2)),
    ],
)
def test_it_follows_the_hit_rate_as_evidence_grows(hits: int, lookups: int, expected_s: float) -> None:
    assert adaptive_ttl(hits, lookups, HOURLY) == pytest.approx(expected_s, rel=0.01)


@pytest.mark.parametrize(("base_s", "expected_s"), [(60, 600), (100_000, 7200)])
def test_the_bounds_hold_for_any_base(base_s: float, expected_s: float) -> None:
    assert adaptive_ttl(0, 0, TtlPolicy(base_s, 600, 7200)) == expected_s


@given(hits=counts, more=counts, misses=counts, policy=policies)
def test_more_hits_never_shorten_a_life(hits: int, more: int, misses: int, policy: TtlPolicy) -> None:
    lookups = hits + more + misses

    assert adaptive_ttl(hits, lookups, policy) <= adaptive_ttl(hits + more, lookups, policy)


@given(hits=counts, misses=counts, more=counts, policy=policies)
def test_more_misses_never_lengthen_it(hits: int, misses: int, more: int, policy: TtlPolicy) -> None:
    assert adaptive_ttl(hits, hits + misses, policy) >= adaptive_ttl(hits, hits + misses + more, policy)


@given(hits=counts, misses=counts, policy=policies)
def test_it_stays_within_the_bounds(hits: int, misses: int, policy: TtlPolicy) -> None:
    assert policy.least_s <= adaptive_ttl(hits, hits + misses, policy) <= policy.most_s
