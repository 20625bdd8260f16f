"""How long each tenant's requests were worked on lately: who takes most gives way first."""

import math
from collections import OrderedDict

MOST_TENANTS = 64
HEAVY_TIMES = 1.5
"""A tenant that is held up takes longer itself: twice as much is not reached by one that takes all it can."""
LEAST_S = 1.0
"""Of work, below which no tenant is heavy: its first requests say nothing."""


class RecentWork:
    """Seconds of work by tenant, of which half is forgotten in each half-life; plain, bounded, and without a clock.

    Args:
        half_life_s: Seconds.
    """

    def __init__(self, half_life_s: float) -> None:
        self._half_life_s = half_life_s
        self._work: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def add(self, tenant: str, seconds: float, now: float) -> None:
        """Count work that has ended."""
        self._work[tenant] = self.of(tenant, now) + seconds, now
        self._work.move_to_end(tenant)
        if len(self._work) > MOST_TENANTS:
            self._work.popitem(last=False)

    def of(self, tenant: str, now: float) -> float:
        """Return the seconds that count of a tenant's work."""
        seconds, at = self._work.get(tenant, (0.0, now))
        return seconds * math.pow(0.5, (now - at) / self._half_life_s)

    def is_heavy(self, tenant: str, now: float) -> bool:
        """Report whether a tenant has taken more than half as much again as each other one."""
        most_of_others = max((self.of(other, now) for other in self._work if other != tenant), default=0.0)
        return self.of(tenant, now) > max(LEAST_S, HEAVY_TIMES * most_of_others)
