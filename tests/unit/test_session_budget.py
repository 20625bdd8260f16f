from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.policies.retention.session_budget import CompactionPolicy, SessionMessage, forecast, plan_compaction

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
POLICY = CompactionPolicy(budget_tokens=1000, summary_tokens=100)
SIZES = st.lists(st.integers(0, 400), max_size=40)
POLICIES = st.builds(
    CompactionPolicy,
    budget_tokens=st.integers(10, 5000),
    keep=st.integers(0, 6),
    summary_tokens=st.integers(1, 300),
)


def session(*tokens: int) -> list[SessionMessage]:
    """Messages of these sizes, a minute apart, positions from 10, the last at 11:59."""
    first = NOON - len(tokens) * MINUTE
    return [SessionMessage(10 + place, size, first + place * MINUTE) for place, size in enumerate(tokens)]


@pytest.mark.parametrize(
    ("used", "state", "left"),
    [(0, "ok", 850), (699, "ok", 151), (700, "near", 150), (849, "near", 1), (850, "due", 0), (2000, "due", 0)],
)
def test_compaction_is_near_at_70_percent_and_due_at_85(used: int, state: str, left: int) -> None:
    found = forecast(session(used), POLICY, NOON)

    assert (found.state, found.tokens_left, found.used_tokens, found.share) == (state, left, used, used / 1000)


def test_the_forecast_tells_messages_and_moment_by_the_latest_ten() -> None:
    found = forecast(session(300, *[40] * 10), POLICY, NOON)

    assert found.messages_left == 4  # 150 tokens of 40 each
    assert found.due_at == NOON + 4 * MINUTE


def test_silence_slows_the_pace() -> None:
    messages = session(*[70] * 10)

    assert forecast(messages, POLICY, NOON + 10 * MINUTE).due_at == NOON + 10 * MINUTE + 3 * 2 * MINUTE


def test_what_is_due_is_due_now() -> None:
    found = forecast(session(*[100] * 9), POLICY, NOON)

    assert (found.messages_left, found.due_at) == (0, NOON)


@pytest.mark.parametrize("messages", [[], session(0, 0)])
def test_without_sizes_nothing_is_foretold(messages: list[SessionMessage]) -> None:
    found = forecast(messages, POLICY, NOON)

    assert (found.state, found.messages_left, found.due_at, found.compacts) == ("ok", None, None, ())


def test_one_message_or_messages_of_one_moment_have_no_pace() -> None:
    at_once = [SessionMessage(place, 10, NOON) for place in range(5)]

    assert forecast(session(10), POLICY, NOON).due_at is None
    assert forecast(at_once, POLICY, NOON).due_at is None


def test_a_moment_beyond_the_calendar_is_unknown() -> None:
    old = [SessionMessage(1, 0, NOON - timedelta(days=300_000)), SessionMessage(2, 1, NOON)]

    assert forecast(old, replace(POLICY, budget_tokens=100_000_000), NOON).due_at is None


def test_the_forecast_names_what_the_plan_would_take() -> None:
    near, due = session(*[100] * 8), session(*[100] * 9)

    assert forecast(session(*[100] * 6), POLICY, NOON).compacts == ()
    assert forecast(near, POLICY, NOON).compacts == (10, 11, 12, 13)
    assert forecast(due, POLICY, NOON).compacts == (10, 11, 12, 13, 14)
    compaction = plan_compaction(due, POLICY)
    assert compaction is not None
    assert compaction.positions == (10, 11, 12, 13, 14)


def test_as_few_of_the_oldest_go_as_bring_the_session_to_half() -> None:
    compaction = plan_compaction(session(300, 300, 100, 50, 50, 50, 50), POLICY)

    assert compaction is not None
    assert (compaction.positions, compaction.tokens) == ((10, 11), 600)


def test_at_least_two_go() -> None:
    compaction = plan_compaction(session(800, 10, 10, 10, 10, 10), POLICY)

    assert compaction is not None
    assert compaction.positions == (10, 11)


def test_the_latest_stay_though_they_exceed_the_target() -> None:
    compaction = plan_compaction(session(150, 150, 300, 300, 300, 300), POLICY)

    assert compaction is not None
    assert compaction.positions == (10, 11)


@pytest.mark.parametrize(
    "messages",
    [
        session(*[100] * 8),
        session(500, 500),
        session(900, 10, 10, 10, 10),
        session(50, 50, 300, 300, 300, 300),
        [],
    ],
    ids=["not due", "too few", "one old one", "no gain", "empty"],
)
def test_nothing_is_planned_where_nothing_is_due_or_won(messages: list[SessionMessage]) -> None:
    assert plan_compaction(messages, POLICY) is None


@given(SIZES, POLICIES)
def test_a_plan_takes_a_beginning_keeps_the_end_and_makes_the_session_smaller(
    sizes: list[int], policy: CompactionPolicy
) -> None:
    messages = session(*sizes)
    compaction = plan_compaction(messages, policy)

    if compaction is not None:
        count = len(compaction.positions)
        left = sum(sizes[count:]) + policy.summary_tokens
        assert compaction.positions == tuple(message.position for message in messages[:count])
        assert 2 <= count <= len(sizes) - policy.keep
        assert compaction.tokens == sum(sizes[:count])
        assert left < sum(sizes)
        if count > 2:
            before = sum(sizes[count - 1 :]) + policy.summary_tokens
            assert before > policy.target * policy.budget_tokens


@given(SIZES, POLICIES)
def test_a_session_is_due_exactly_when_no_tokens_are_left(sizes: list[int], policy: CompactionPolicy) -> None:
    found = forecast(session(*sizes), policy, NOON)
    more = forecast(session(*sizes, found.tokens_left), policy, NOON)

    assert (found.state == "due") == (found.tokens_left == 0) == (found.messages_left == 0)
    assert more.state == "due"
    if found.tokens_left > 1:
        assert forecast(session(*sizes, found.tokens_left - 1), policy, NOON).state != "due"
