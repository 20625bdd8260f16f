"""When a session's messages outgrow their budget, and which of them a summary then stands for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Literal

LATEST = 10
LEAST_COMPACTED = 2
_TOLERANCE = 1e-9
State = Literal["ok", "near", "due"]


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """A message that still stands in a session, or the summary of earlier ones.

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
        budget_tokens: What a session may hold.
        near: Share of the budget from which compaction is forecast, 0..1.
        due: Share from which it is due.
        target: Most of the budget that is left after it, the summary at its longest included.
        keep: So many latest messages always stay.
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
    """What one summary is to stand for.

    Args:
        positions: Of the messages, oldest first, at least two.
        tokens: What they hold together.
        left_tokens: Most tokens of the session afterwards.
    """

    positions: tuple[int, ...]
    tokens: int
    left_tokens: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """How full a session is, and when it will be compacted.

    Args:
        share: Of the budget that is used, from 0; above 1 if it is overdrawn.
        tokens_left: Until compaction is due; 0 if it is.
        messages_left: So many messages of the size of the latest ones make it due; ``None`` if their size is unknown.
        due_at: When that is, at the pace since the first of the latest messages; ``None`` if unknown or very far.
        compacts: Positions of what would be compacted now, oldest first; nothing while the state is ok.
    """

    used_tokens: int
    budget_tokens: int
    share: float
    state: State
    tokens_left: int
    messages_left: int | None
    due_at: datetime | None
    compacts: tuple[int, ...]


def forecast(messages: Sequence[SessionMessage], policy: CompactionPolicy, now: datetime) -> Forecast:
    """Return how full a session is and when it is due, judged by its latest ten messages.

    Args:
        messages: Everything that stands in the session, in the order of positions.
        policy: When compaction is near and due.
        now: In UTC. Silence up to now slows the pace; if compaction is due, it is due now.
    """
    used = sum(message.tokens for message in messages)
    left = max(0, _due_tokens(policy) - used)
    count = _messages_until(left, messages[-LATEST:])
    state = _state(used, policy)
    would = None if state == "ok" else _oldest(messages, policy)
    return Forecast(
        used_tokens=used,
        budget_tokens=policy.budget_tokens,
        share=used / policy.budget_tokens,
        state=state,
        tokens_left=left,
        messages_left=count,
        due_at=_due_at(count, messages[-LATEST:], now),
        compacts=would.positions if would else (),
    )


def plan(messages: Sequence[SessionMessage], policy: CompactionPolicy) -> Compaction | None:
    """Return which messages a summary is to stand for; ``None`` if nothing is due or nothing would be won.

    The oldest ones go, as few as bring the session to the target, at least two, never the latest ``keep``. Where the
    latest ones alone exceed the target, everything before them goes. An earlier summary is a message like the others.
    """
    if _state(sum(message.tokens for message in messages), policy) != "due":
        return None
    return _oldest(messages, policy)


def _oldest(messages: Sequence[SessionMessage], policy: CompactionPolicy) -> Compaction | None:
    used = sum(message.tokens for message in messages)
    most = policy.target * policy.budget_tokens + _TOLERANCE
    gone = list(accumulate(message.tokens for message in messages[: max(0, len(messages) - policy.keep)]))
    enough = (place for place, tokens in enumerate(gone, start=1) if used - tokens + policy.summary_tokens <= most)
    count = max(LEAST_COMPACTED, next(enough, len(gone)))
    if len(gone) < count or gone[count - 1] <= policy.summary_tokens:
        return None
    tokens = gone[count - 1]
    positions = tuple(message.position for message in messages[:count])
    return Compaction(positions, tokens, used - tokens + policy.summary_tokens)


def _state(used: int, policy: CompactionPolicy) -> State:
    share = used / policy.budget_tokens
    if share >= policy.due:
        return "due"
    return "near" if share >= policy.near else "ok"


def _due_tokens(policy: CompactionPolicy) -> int:
    return math.ceil(policy.due * policy.budget_tokens - _TOLERANCE)


def _messages_until(tokens: int, latest: Sequence[SessionMessage]) -> int | None:
    held = sum(message.tokens for message in latest)
    if tokens == 0:
        return 0
    return math.ceil(tokens * len(latest) / held) if held else None


def _due_at(count: int | None, latest: Sequence[SessionMessage], now: datetime) -> datetime | None:
    if not count:
        return None if count is None else now
    span = now - latest[0].occurred_at
    if len(latest) < LEAST_COMPACTED or span <= timedelta(0):
        return None
    try:
        return now + count * span / len(latest)
    except OverflowError:
        return None
