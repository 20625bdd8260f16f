import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.aio.circuit_breaker import BreakerState

FAILURES = 3
PAUSE_S = 2.0
NOON = 1000.0


def breaker(outcomes: str = "") -> BreakerState:
    """Return one that saw successes (``+``) and failures (``-``) at noon."""
    seen = BreakerState(failures=FAILURES, pause_s=PAUSE_S)
    for outcome in outcomes:
        if outcome == "+":
            seen.record_success()
        else:
            seen.record_failure(NOON)
    return seen


def test_it_refuses_for_a_pause_after_the_last_failure() -> None:
    assert [breaker("---").refuses(NOON + after) for after in (0, 0.9 * PAUSE_S, PAUSE_S)] == [True, True, False]
    assert not breaker("--").refuses(NOON)


@pytest.mark.parametrize(
    ("outcomes", "allows"),
    [
        ("", True),
        ("--", True),
        ("---", False),
        ("-----", False),
        ("--+--", True),
        ("--+---", False),
        ("---+", True),
        ("---+--", True),
    ],
)
def test_failures_in_a_row_end_the_calls(outcomes: str, *, allows: bool) -> None:
    assert breaker(outcomes).allows(NOON) == allows


@pytest.mark.parametrize(
    ("later_s", "allowed"),
    [
        ((0.0, 1.0, 1.999), (False, False, False)),
        ((2.0, 2.0, 2.0), (True, False, False)),
        ((9.0, 9.0, 10.9), (True, False, False)),
        ((2.0, 3.9, 4.0, 4.1, 6.0), (True, False, True, False, True)),
    ],
)
def test_one_trial_goes_through_after_each_pause(later_s: tuple[float, ...], allowed: tuple[bool, ...]) -> None:
    broken = breaker("---")

    assert tuple(broken.allows(NOON + later) for later in later_s) == allowed


def test_a_trial_that_succeeds_lets_all_through() -> None:
    broken = breaker("---")
    broken.allows(NOON + 2)

    broken.record_success()

    assert [broken.allows(NOON + 2) for _ in range(5)] == [True] * 5


def test_a_trial_that_fails_begins_another_pause() -> None:
    broken = breaker("---")
    broken.allows(NOON + 2)

    broken.record_failure(NOON + 3)

    assert [broken.allows(NOON + later) for later in (3.0, 4.9, 5.0, 5.0)] == [False, False, True, False]


@given(st.integers(1, 5), st.lists(st.tuples(st.floats(0, 3), st.sampled_from(["+", "-", "lost"])), max_size=40))
def test_while_a_part_fails_calls_are_at_least_a_pause_apart(failures: int, calls: list[tuple[float, str]]) -> None:
    seen = BreakerState(failures=failures, pause_s=PAUSE_S)
    now, in_a_row, last_at = 0.0, 0, 0.0

    for wait_s, outcome in calls:
        now += wait_s
        is_due = in_a_row < failures or now >= last_at + PAUSE_S
        assert seen.allows(now) == is_due
        if not is_due:
            continue
        last_at = now
        if outcome == "+":
            seen.record_success()
            in_a_row = 0
        elif outcome == "-":
            seen.record_failure(now)
            in_a_row += 1
