"""The token budget of a session: its forecast, and the choice of the messages that a summary replaces."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Literal

# Messages by which the size and the pace of those to come are judged.
LATEST_MESSAGES = 10
LEAST_COMPACTED = 2
# 0.7 * 10 is 7 in floats, 0.07 * 100 a little more: a session at a share must count as there.
_TOLERANCE = 1e-9
BudgetState = Literal["ok", "near", "due"]


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """A message in a session, or the summary of earlier ones.

    Args:
        position: Its place in the session; later ones are higher.
        tokens: Its estimated tokens.
        occurred_at: In UTC.
    """

    position: int
    tokens: int
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """When and how far a session is compacted.

    Args:
        budget_tokens: Most tokens of a session.
        near: Share of the budget from which compaction is forecast, 0..1.
        due: Share from which it is due.
        target: Most of the budget that is used after it, the summary at its longest included.
        keep: How many of the latest messages always stay.
        summary_tokens: Most tokens of a summary.
    """

    budget_tokens: int = 8192
    near: float = 0.70
    due: float = 0.85
    target: float = 0.50
    keep: int = 4
    summary_tokens: int = 1024


@dataclass(frozen=True, slots=True)
class Compaction:
    """The messages of a session that summaries are to replace.

    Args:
        positions: Of the messages, oldest first, at least two.
        tokens: Of all of them.
    """

    positions: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class BudgetForecast:
    """How full a session is, and when it will be compacted.

    Args:
        share: Of the budget that is used, from 0; above 1 if it is overdrawn.
        tokens_left: Until compaction is due; 0 if it is.
        messages_left: How many messages of the latest ones' size make it due; ``None`` if their size is unknown.
        due_at: When that is, at the pace since the first of the latest messages; ``None`` if unknown or very far.
        compacts: Positions of the messages that would be compacted now, oldest first; none while the state is ok.
    """

    used_tokens: int
    budget_tokens: int
    share: float
    state: BudgetState
    tokens_left: int
    messages_left: int | None
    due_at: datetime | None
    compacts: tuple[int, ...]


def forecast(messages: Sequence[SessionMessage], policy: CompactionPolicy, now: datetime) -> BudgetForecast:
    """Forecast when a session is due for compaction, by its latest ten messages.

    Args:
        messages: All messages of the session, in the order of positions.
        policy: When compaction is near and due.
        now: In UTC. Silence up to now slows the pace; if compaction is due, it is due now.
    """
    used = sum(message.tokens for message in messages)
    left = max(0, math.ceil(policy.due * policy.budget_tokens - _TOLERANCE) - used)
    latest = messages[-LATEST_MESSAGES:]
    count = _messages_until(left, latest)
    state = _state(used, policy)
    compaction = None if state == "ok" else _compaction_of_oldest(messages, policy)
    return BudgetForecast(
        used_tokens=used,
        budget_tokens=policy.budget_tokens,
        share=used / policy.budget_tokens,
        state=state,
        tokens_left=left,
        messages_left=count,
        due_at=_due_at(count, latest, now),
        compacts=compaction.positions if compaction else (),
    )


def plan_compaction(messages: Sequence[SessionMessage], policy: CompactionPolicy) -> Compaction | None:
    """Choose the messages that summaries are to replace; ``None`` if nothing is due or nothing would be saved.

    The oldest ones go, as few as bring the session to the target, at least two, never the latest ``keep``. Where the
    latest ones alone exceed the target, everything before them goes. An earlier summary is a message like the others.
    """
    if _state(sum(message.tokens for message in messages), policy) != "due":
        return None
    return _compaction_of_oldest(messages, policy)


def _compaction_of_oldest(messages: Sequence[SessionMessage], policy: CompactionPolicy) -> Compaction | None:
    used = sum(message.tokens for message in messages)
    most = policy.target * policy.budget_tokens + _TOLERANCE
    totals = list(accumulate(message.tokens for message in messages[: max(0, len(messages) - policy.keep)]))
    enough = (place for place, tokens in enumerate(totals, start=1) if used - tokens + policy.summary_tokens <= most)
    count = max(LEAST_COMPACTED, next(enough, len(totals)))
    if len(totals) < count or totals[count - 1] <= policy.summary_tokens:
        return None
    return Compaction(tuple(message.position for message in messages[:count]), totals[count - 1])


def _state(used: int, policy: CompactionPolicy) -> BudgetState:
    share = used / policy.budget_tokens
    if share >= policy.due:
        return "due"
    return "near" if share >= policy.near else "ok"


def _messages_until(tokens: int, latest: Sequence[SessionMessage]) -> int | None:
    size = sum(message.tokens for message in latest)
    if tokens == 0:
        return 0
    return math.ceil(tokens * len(latest) / size) if size else None


def _due_at(count: int | None, latest: Sequence[SessionMessage], now: datetime) -> datetime | None:
    if not count:
        return None if count is None else now
    span = now - latest[0].occurred_at
    if len(latest) < LEAST_COMPACTED or span <= timedelta(0):
        return None
    try:
        return now + count * span / len(latest)
    except OverflowError:  # Beyond the year 9999.
        return None
