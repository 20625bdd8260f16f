"""How many searches run at the same time, by the measured times of the last ones."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

FEWEST, FIRST = 2, 8
"""Places that are never taken away, and those of a process that has measured nothing yet."""
FEW_QUEUED, MANY_QUEUED = 6.0, 12.0
"""Searches that wait for each other inside the parts: below the first there is room for more, above the second none.

Fewer would leave processors idle while an answer travels, and batches of statements and questions small. On two cores
this is some twelve searches at the same time, each of which takes a third of a second.
"""
SHRINK = 0.9
SAMPLES = 8
"""Searches of a round, at least; as many as have places if those are more."""
KEPT_S = 30.0
"""Seconds after which a shortest time is forgotten, twice as many at most: stores grow, and machines change.

As often, if all places were taken meanwhile, one round is made with the fewest places: otherwise the time of a crowd
would become the shortest one there is.
"""
MOST_KINDS = 128
_MEAN_OF = 16
_TWICE = 2.0


@dataclass(slots=True)
class _Shortest:
    """The shortest time of a kind of search: that of this period, and of the one before."""

    began_at: float
    now_s: float
    before_s: float

    def take(self, elapsed_s: float, now: float) -> float:
        """Take a measured time; return the shortest one."""
        if now - self.began_at >= KEPT_S:
            is_next = now - self.began_at < 2 * KEPT_S
            self.before_s, self.now_s, self.began_at = self.now_s if is_next else elapsed_s, elapsed_s, now
        self.now_s = min(self.now_s, elapsed_s)
        return min(self.now_s, self.before_s)


class ConcurrencyLimit:
    """A number of places that follows the measured times; plain, bounded, and without a clock.

    A search that takes longer than the shortest one of its kind has waited for others inside the parts: for locks,
    connections, processors. By Little's law those that wait are a share of those that run: `running * (1 - shortest /
    time)`. The number of places is raised while few wait and all places are taken, and lowered while many do. Time is
    seconds of a clock that never goes back.

    Args:
        most: Most places.
        late_s: Time of a search from which its sources are near their deadlines: then, where it waits for others for
            more than half of it, fewer run at the same time.

    Source:
        Brakmo and Peterson, TCP Vegas, IEEE JSAC 1995; Netflix's concurrency-limits, which applies it to requests.
    """

    def __init__(self, most: int, late_s: float) -> None:
        self._most = most
        self.late_s = late_s
        self.places = min(FIRST, most)
        self.mean_s = 0.0
        self._shortest: OrderedDict[Hashable, _Shortest] = OrderedDict()
        self._samples = 0
        self._elapsed_s = self._slowdown = self._running = 0.0
        self._was_full = False
        self._probed_at: float | None = None
        self._resumed: int | None = None

    def record(self, kind: Hashable, elapsed_s: float, running: int, now: float) -> None:
        """Take the time of a search.

        Args:
            kind: Searches of a kind take about as long.
            elapsed_s: Without its wait for a place.
            running: How many had places when it ended, itself among them.
            now: The present time.
        """
        self.mean_s += (elapsed_s - self.mean_s) / (_MEAN_OF if self.mean_s else 1)
        slowdown = elapsed_s / max(self._shortest_s(kind, elapsed_s, now), 1e-6)
        if self._resumed is not None and running > self.places:
            return  # It began before the round with the fewest places did.
        self._samples += 1
        self._elapsed_s += elapsed_s
        self._slowdown += slowdown
        self._running += running
        self._was_full |= running >= self.places
        if self._samples >= max(SAMPLES, self.places):
            self._adjust(now)

    def wait_s(self, ahead: int) -> float:
        """Return how long a search waits that is to begin after so many that wait."""
        return (ahead + 1) * self.mean_s / self.places

    def _shortest_s(self, kind: Hashable, elapsed_s: float, now: float) -> float:
        shortest = self._shortest.get(kind)
        if shortest is None:
            shortest = self._shortest[kind] = _Shortest(now, elapsed_s, elapsed_s)
            if len(self._shortest) > MOST_KINDS:
                self._shortest.popitem(last=False)
        self._shortest.move_to_end(kind)
        return shortest.take(elapsed_s, now)

    def _adjust(self, now: float) -> None:
        if self._resumed is not None:
            self.places, self._resumed, self._probed_at = self._resumed, None, now
        else:
            self.places = self._next_places()
            if self._probed_at is None or not self._was_full:
                self._probed_at = now
            elif now - self._probed_at >= KEPT_S and self.places > FEWEST:
                self._resumed, self.places = self.places, FEWEST
        self._samples, self._was_full = 0, False
        self._elapsed_s = self._slowdown = self._running = 0.0

    def _next_places(self) -> int:
        slowdown, running = self._slowdown / self._samples, self._running / self._samples
        queued = running * (1 - 1 / slowdown)
        is_late = self._elapsed_s / self._samples > self.late_s and slowdown > _TWICE
        if queued > MANY_QUEUED or is_late:
            return max(min(FEWEST, self._most), int(self.places * SHRINK))
        return min(self._most, self.places + 1) if queued < FEW_QUEUED and self._was_full else self.places
