"""A least-recently-used cache with a time to live for each entry, bounded by entries and by bytes."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from lamina.core.cache_stats import Holding

K = TypeVar("K")
V = TypeVar("V")


class TtlLru(Generic[K, V]):
    """Entries with a time to live each; the least recently used ones are evicted when room is short.

    Everything takes constant time but :meth:`drop_where` and :meth:`expire`, which look at every entry. An expired
    entry takes room until it is asked for, evicted or swept by :meth:`expire`. Time is seconds since any origin.

    Not ``cachetools.TLRUCache`` (8.0): it has one bound, on entries or on bytes; it reads a clock of its own, and every
    ``len`` sweeps; it derives an entry's end and size from its value where these are known to the caller; it raises
    for a value that is too large, and leaves the older value of that key in its place; it keeps a heap of all ends.

    Args:
        max_entries: Most entries.
        max_bytes: Most bytes of all of them together; no bound if not given.

    Attributes:
        size_bytes: The entries' sizes, added up.
        evictions: How many were evicted for want of room before their end.
    """

    def __init__(self, *, max_entries: int, max_bytes: int | None = None) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[K, tuple[V, float, int]] = OrderedDict()
        self.size_bytes = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K, now: float) -> V | None:
        """Return a key's value, now the most recently used one, or ``None`` if it has none or it expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, ends_at, _ = entry
        if now >= ends_at:
            self.drop(key)
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V, *, now: float, ttl_s: float, size_bytes: int = 0) -> None:
        """Keep a value in place of its key's older one, and evict until both bounds hold.

        A value that exceeds the bound on bytes by itself is not kept and evicts nothing; its key has none then.
        """
        self.drop(key)
        if self._max_bytes is not None and size_bytes > self._max_bytes:
            return
        self._entries[key] = (value, now + ttl_s, size_bytes)
        self.size_bytes += size_bytes
        while self._is_too_large():
            self._evict(now)

    def holding(self) -> Holding:
        """Return the size, and how many entries were evicted."""
        return Holding(len(self), self.size_bytes, self.evictions)

    def drop(self, key: K) -> bool:
        """Drop a key; return whether it had an entry."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        self.size_bytes -= entry[2]
        return True

    def drop_where(self, predicate: Callable[[K], bool]) -> int:
        """Drop the keys for which a predicate holds; return how many."""
        return self._drop_all([key for key in self._entries if predicate(key)])

    def expire(self, now: float) -> int:
        """Drop expired entries; return how many."""
        return self._drop_all([key for key, (_, ends_at, _) in self._entries.items() if now >= ends_at])

    def _drop_all(self, keys: list[K]) -> int:
        for key in keys:
            self.drop(key)
        return len(keys)

    def _is_too_large(self) -> bool:
        if len(self._entries) > self._max_entries:
            return True
        return self._max_bytes is not None and self.size_bytes > self._max_bytes

    def _evict(self, now: float) -> None:
        _, (_, ends_at, size_bytes) = self._entries.popitem(last=False)
        self.size_bytes -= size_bytes
        # An entry that had expired would have gone anyway: it says nothing about the room.
        self.evictions += int(now < ends_at)
