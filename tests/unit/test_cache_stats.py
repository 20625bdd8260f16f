import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.cache_layers import Layer
from lamina.core.cache_stats import LATENCY_BOUNDS_S, Holding, LayerCounts, LayerOutcome, Tally

Asking = tuple[Layer, LayerOutcome, float | None]

# Multiples of a power of two add up exactly, in any order.
exact_seconds = st.integers(0, 4_096).map(lambda ticks: ticks / 1_024)
askings = st.lists(
    st.tuples(st.sampled_from(Layer), st.sampled_from(LayerOutcome), st.none() | exact_seconds), max_size=40
)
counts = st.builds(
    LayerCounts,
    hits=st.integers(0, 99),
    misses=st.integers(0, 99),
    stale=st.integers(0, 99),
    errors=st.integers(0, 99),
    buckets=st.tuples(*[st.integers(0, 9)] * (len(LATENCY_BOUNDS_S) + 1)),
    seconds=exact_seconds,
)
holdings = st.builds(Holding, st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))


def tallied(seen: list[Asking]) -> Tally:
    tally = Tally()
    for layer, outcome, elapsed_s in seen:
        tally.observe(layer, outcome, elapsed_s)
    return tally


@given(counts, counts, counts)
def test_counts_add_up_in_any_order(one: LayerCounts, other: LayerCounts, third: LayerCounts) -> None:
    assert one + other == other + one
    assert (one + other) + third == one + (other + third)
    assert one + LayerCounts() == one


@given(holdings, holdings, holdings)
def test_holdings_add_up_in_any_order(one: Holding, other: Holding, third: Holding) -> None:
    assert one + other == other + one
    assert (one + other) + third == one + (other + third)
    assert one + Holding() == one


@given(askings)
def test_every_asking_is_counted_once_and_every_timed_one_is_in_a_bucket(seen: list[Asking]) -> None:
    read = tallied(seen).read()

    for layer in Layer:
        count = read.get(layer, LayerCounts())
        here = [(outcome, elapsed_s) for other, outcome, elapsed_s in seen if other is layer]
        assert [count.hits, count.misses, count.stale, count.errors] == [
            sum(outcome is counted for outcome, _ in here) for counted in LayerOutcome
        ]
        assert sum(count.buckets) == sum(elapsed_s is not None for _, elapsed_s in here)
        assert count.seconds == sum(elapsed_s or 0.0 for _, elapsed_s in here)


@given(askings, askings)
def test_the_counts_of_two_replicas_are_those_of_one_that_saw_it_all(here: list[Asking], there: list[Asking]) -> None:
    together = tallied(here)

    together.add(tallied(there).take())

    assert together.read() == tallied([*here, *there]).read()


@pytest.mark.parametrize(
    ("elapsed_s", "bucket"),
    [(0.0, 0), (0.0005, 0), (0.0006, 1), (0.01, 4), (0.0101, 5), (1.0, 9), (1.001, 10), (60.0, 10)],
)
def test_a_bucket_takes_what_is_not_slower_than_its_bound(elapsed_s: float, bucket: int) -> None:
    read = tallied([(Layer.TURN, LayerOutcome.HIT, elapsed_s)]).read()

    assert read[Layer.TURN].buckets.index(1) == bucket


def test_what_is_taken_is_not_counted_again_and_what_is_read_is() -> None:
    tally = tallied([(Layer.GRAPH, LayerOutcome.MISS, None)])

    assert tally.read() == {Layer.GRAPH: LayerCounts(misses=1)}
    assert tally.take() == {Layer.GRAPH: LayerCounts(misses=1)}
    assert tally.take() == {}


def test_what_was_read_does_not_change_with_what_comes_later() -> None:
    tally = tallied([(Layer.GRAPH, LayerOutcome.MISS, None)])
    before = tally.read()

    tally.observe(Layer.GRAPH, LayerOutcome.STALE)

    assert before == {Layer.GRAPH: LayerCounts(misses=1)}
    assert tally.read() == {Layer.GRAPH: LayerCounts(misses=1, stale=1)}
