"""A pool of open things: opens them at need, closes the least recently used."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from lamina.errors import Unavailable

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
DEADLINE_S = 30.0


class _Slot(Generic[Item]):
    """Room for one open item, and how many use it now."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.item: Item | None = None
        self.users = 0


class OpenPool(Generic[Key, Item]):
    """Lends items that are costly to keep open, to any number of threads.

    A borrowed item stays open until it is given back. Opening one holds up only those who want the same.

    Args:
        open_one: Opens the item of a key.
        close_one: Closes it.
        most: Most items that are open at a time.
        part: Their name in errors.
    """

    def __init__(
        self,
        open_one: Callable[[Key], Item],
        close_one: Callable[[Key, Item], None],
        *,
        most: int,
        part: str,
    ) -> None:
        self._open_one = open_one
        self._close_one = close_one
        self._most = most
        self._part = part
        self._slots: OrderedDict[Key, _Slot[Item]] = OrderedDict()
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._slots)

    @contextmanager
    def borrow(self, key: Key) -> Iterator[Item]:
        """Lend the item of a key.

        Raises:
            Unavailable: If all that may be open are in use for 30 seconds.
        """
        slot = self._take(key)
        try:
            with slot.opening:
                if slot.item is None:
                    slot.item = self._open_one(key)
            yield slot.item
        finally:
            self._give_back(key, slot)

    def close(self) -> None:
        """Close all of them, each after its last user."""
        with self._changed:
            while self._slots:
                if not self._close_idle() and not self._changed.wait(DEADLINE_S):
                    raise Unavailable(self._part, f"still in use after {DEADLINE_S} s")

    def _take(self, key: Key) -> _Slot[Item]:
        with self._changed:
            while (slot := self._slots.get(key)) is None and len(self._slots) >= self._most:
                if not self._close_idle() and not self._changed.wait(DEADLINE_S):
                    raise Unavailable(self._part, f"all {self._most} that may be open are in use")
            if slot is None:
                slot = self._slots[key] = _Slot()
            self._slots.move_to_end(key)
            slot.users += 1
            return slot

    def _give_back(self, key: Key, slot: _Slot[Item]) -> None:
        with self._changed:
            slot.users -= 1
            if slot.users == 0 and slot.item is None:
                del self._slots[key]  # it did not open, or is closed
            self._changed.notify_all()

    def _close_idle(self) -> bool:
        """Close the item that is idle for the longest time; report whether there was one.

        The pool is not locked meanwhile: closing takes some 70 ms, for which only those wait who want this item.
        """
        key = next((key for key, slot in self._slots.items() if slot.users == 0), None)
        if key is None:
            return False
        slot = self._slots[key]
        slot.users += 1
        self._changed.release()
        try:
            with slot.opening:
                item, slot.item = slot.item, None
                if item is not None:
                    self._close_one(key, item)
        finally:
            self._changed.acquire()
            self._give_back(key, slot)
        return True
