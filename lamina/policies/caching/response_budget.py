"""Choose the responses to delete when a workspace's bytes exceed their budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ResponseBudget:
    """Room for the responses of a workspace.

    Args:
        size_bytes: Most bytes.
        evict_share: Share of the usable ones that is deleted when they are exceeded, 0 to 1.
    """

    size_bytes: int
    evict_share: float


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that takes room.

    Args:
        is_dead: Whether it answers no more.
    """

    id: UUID
    size_bytes: int
    is_dead: bool = False


def evicted(held: Sequence[StoredResponse], incoming_bytes: int, budget: ResponseBudget) -> list[UUID]:
    """Return the responses to delete so that one more fits: none, if it does.

    The dead come first, all of them. If that is not enough, the least recently used ones follow: the
    budget's share of the usable ones, and more where the new one needs more room.

    Args:
        held: All responses, the least recently used first.
        incoming_bytes: Size of the new one.
        budget: Their room; where it is smaller than the new one alone, all are deleted.
    """
    excess = sum(item.size_bytes for item in held) + incoming_bytes - budget.size_bytes
    if excess <= 0:
        return []
    dead = [item for item in held if item.is_dead]
    usable = [item for item in held if not item.is_dead]
    excess -= sum(item.size_bytes for item in dead)
    least = math.ceil(budget.evict_share * len(usable)) if excess > 0 else 0
    needed = 0
    while excess > 0 and needed < len(usable):
        excess -= usable[needed].size_bytes
        needed += 1
    return [item.id for item in (*dead, *usable[: max(least, needed)])]
