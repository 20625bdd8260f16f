"""Whose turn it is where several tenants wait: each has one after the other, however much it waits for."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairTurns(Generic[Item]):
    """A queue that serves its tenants in turns, and the items of each in order.

    A tenant alone has every turn. One that comes anew waits for one turn of each other.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Item]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[Item]:
        return (item for items in self._waiting.values() for item in items)

    def put(self, tenant: str, item: Item) -> None:
        """Add an item behind its tenant's others."""
        self._waiting.setdefault(tenant, deque()).append(item)

    def take(self) -> Item:
        """Remove the item whose turn it is, and return it.

        Raises:
            StopIteration: If none waits.
        """
        tenant, items = next(iter(self._waiting.items()))
        item = items.popleft()
        self._waiting.move_to_end(tenant)
        if not items:
            del self._waiting[tenant]
        return item

    def remove(self, tenant: str, item: Item) -> None:
        """Remove an item that waits no more, if it did."""
        items = self._waiting.get(tenant, deque())
        if item in items:
            items.remove(item)
            if not items:
                del self._waiting[tenant]

    def clear(self) -> None:
        """Remove all."""
        self._waiting.clear()

    def ahead_of(self, tenant: str) -> int:
        """Return how many have their turn before the next item of a tenant would."""
        own = len(self._waiting.get(tenant, ()))
        return own + sum(min(len(items), own + 1) for other, items in self._waiting.items() if other != tenant)
