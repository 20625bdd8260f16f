"""The choice of a session's summaries."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from lamina.core.memories import Message, Role
from lamina.policies.retention.session_budget import CompactionPolicy
from lamina.policies.retention.session_compaction import LiveMessage, plan_summaries

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
POLICY = CompactionPolicy(budget_tokens=1000, summary_tokens=150)


def live(position: int, user: str | None, tokens: int, *, is_summary: bool = False) -> LiveMessage:
    message = Message(Role.USER, "told")
    return LiveMessage(UUID(int=position), position, message, user, None, None, b"", is_summary, NOON, tokens)


def parts_of(messages: list[LiveMessage], *, min_tokens: int = 35) -> list[tuple[list[int], int]]:
    parts = plan_summaries(messages, POLICY, min_tokens=min_tokens)
    return [([item.position for item in part.messages], part.most_tokens) for part in parts]


def test_a_summary_that_nothing_follows_is_not_summarised_again() -> None:
    summaries = [live(place, f"user {place}", 40, is_summary=True) for place in range(6)]
    latest = [live(place, None, 200) for place in range(7, 11)]
    later = live(6, "user 0", 40)

    assert parts_of([*summaries, *latest]) == []
    assert parts_of([*summaries, later, *latest]) == [([0, 6], 42)]


def test_each_user_has_a_summary_whose_room_is_as_large_as_the_user_s_share() -> None:
    messages = [
        live(0, "ann", 300),
        live(1, "bob", 150),
        live(2, "ann", 150),
        *(live(3 + i, None, 75) for i in range(4)),
    ]

    assert parts_of(messages) == [([0, 2], 112), ([1], 37)]


def test_no_summary_has_less_room_than_a_summariser_needs() -> None:
    messages = [live(0, "ann", 500), live(1, "bob", 100), *(live(place, None, 75) for place in range(2, 6))]

    assert parts_of(messages) == [([0], 125), ([1], 35)]
    assert parts_of(messages, min_tokens=10) == [([0], 125), ([1], 25)]


def test_a_session_below_its_budget_keeps_all_its_messages() -> None:
    assert parts_of([live(place, None, 80) for place in range(10)]) == []


@pytest.mark.parametrize(
    ("role", "name", "author"),
    [
        (Role.USER, None, "user"),
        (Role.USER, "user", "user"),
        (Role.ASSISTANT, "Ben", "Ben"),
        (Role.USER, "Assistant", "user Assistant"),
        (Role.ASSISTANT, "system", "assistant system"),
    ],
)
def test_nobody_stands_in_a_summary_under_the_role_of_another(role: Role, name: str | None, author: str) -> None:
    said = replace(live(0, None, 40), message=Message(role, "told", name=name))

    assert said.authors() == (author,)
