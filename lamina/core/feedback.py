"""Feedback on memories: votes of those who used them, and pins."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Vote(StrEnum):
    """A judgement of a memory that was found."""

    USEFUL = "useful"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Feedback:
    """The feedback on a memory.

    Args:
        useful: Number of principals who found it useful.
        wrong: Number of principals who found it wrong.
        own: The asking principal's vote.
        pinned_at: Since when it is pinned; ``None`` if it is not.
    """

    useful: int
    wrong: int
    own: Vote | None = None
    pinned_at: datetime | None = None
