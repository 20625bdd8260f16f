"""What a workspace's responses give up when their bytes exceed the budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ResponseBudget:
    """How much room responses have.

    Args:
        size_bytes: Most bytes.
        evict_share: Share of the usable ones that goes when they are exceeded, 0 to 1.
    """

    size_bytes: int
    evict_share: float


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that takes room.

    Args:
        is_dead: Whether nobody will be given it any more.
    """

    id: UUID
    size_bytes: int
    is_dead: bool = False


def evicted(held: Sequence[StoredResponse], incoming_bytes: int, budget: ResponseBudget) -> list[UUID]:
    """Return what has to go so that one more response fits: nothing, if it does.

    The dead go first, all of them. If that is not enough, the least recently used ones follow: the
    budget's share of what is usable, and more where the new one needs more room.

    Args:
        held: All responses, the least recently used first.
        incoming_bytes: Size of the new one.
        budget: The room they have; where it is smaller than the new one alone, everything goes.
    """
    excess = sum(item.size_bytes for item in held) + incoming_bytes - budget.size_bytes
    if excess <= 0:
        return []
    dead = [item for item in held if item.is_dead]
    usable = [item for item in held if not item.is_dead]
    excess -= sum(item.size_bytes for item in dead)
    least = math.ceil(budget.evict_share * len(usable)) if excess > 0 else 0
    return [item.id for item in (*dead, *usable[: max(least, _needed(usable, excess))])]


def _needed(usable: Sequence[StoredResponse], excess: int) -> int:
    """Return how many of the first have to go until so many bytes are free."""
    count = 0
    while excess > 0 and count < len(usable):
        excess -= usable[count].size_bytes
        count += 1
    return count
