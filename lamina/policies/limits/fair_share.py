"""Which requests a router works on when several tenants ask: no tenant, and no key, takes all of it."""

from collections import Counter, OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

from lamina.policies.limits.recent_work import RecentWork

Name = TypeVar("Name", bound=Hashable)
# The latest tenant, and the latest of all others: enough to say of each whether another one is there.
_LATEST = 2


@dataclass(frozen=True, slots=True)
class FairShareLimits:
    """Shares of a router.

    Args:
        of_key: Most requests of one key that are in hand.
        of_tenant: Most requests of one tenant that are in hand while another tenant asks.
        of_tenant_alone: The same while none does: who comes next finds a place, however long those in hand take.
        worked_on: Most of those that are worked on at the same time; the others wait. A large one is worked on alone.
            Of the tenant that was worked on longest lately, half as many are.
        active_s: Seconds after its last request for which a tenant counts as asking.
    """

    of_key: int
    of_tenant: int
    of_tenant_alone: int
    worked_on: int
    active_s: float


class FairShare:
    """Counts requests by tenant and key; plain, bounded by what is in hand, and without a clock.

    A tenant that is alone may take nearly everything. Time is seconds of a clock that never goes back.
    """

    def __init__(self, limits: FairShareLimits) -> None:
        self._limits = limits
        self._in_hand: Counter[str] = Counter()
        self._of_key: Counter[Hashable] = Counter()
        self._worked_on: Counter[str] = Counter()
        self._latest: OrderedDict[str, float] = OrderedDict()
        self._work = RecentWork(limits.active_s)

    def refusal(self, tenant: str, key: Hashable, now: float) -> tuple[str, int] | None:
        """Note that a tenant asks; return whose share is used up, ``key`` or ``tenant``, and how much it is."""
        self._latest[tenant] = now
        self._latest.move_to_end(tenant)
        if len(self._latest) > _LATEST:
            self._latest.popitem(last=False)
        if self._of_key[key] >= self._limits.of_key:
            return "key", self._limits.of_key
        most = self._limits.of_tenant if self.is_shared(tenant, now) else self._limits.of_tenant_alone
        return ("tenant", most) if self._in_hand[tenant] >= most else None

    def take(self, tenant: str, key: Hashable) -> None:
        """Take a request in hand."""
        self._in_hand[tenant] += 1
        self._of_key[key] += 1

    def give_up(self, tenant: str, key: Hashable) -> None:
        """Have a request in hand no longer."""
        _lower(self._in_hand, tenant)
        _lower(self._of_key, key)

    def may_work(self, tenant: str, now: float, *, is_large: bool = False) -> bool:
        """Report whether one more request of a tenant may be worked on."""
        if not self.is_shared(tenant, now) or not self._worked_on[tenant] or self._is_quiet(tenant):
            return True
        most = max(1, self._limits.worked_on // 2) if self._work.is_heavy(tenant, now) else self._limits.worked_on
        return self._worked_on[tenant] + self._weight(is_large=is_large) <= most

    def begin(self, tenant: str, *, is_large: bool = False) -> None:
        """Begin to work on a request."""
        self._worked_on[tenant] += self._weight(is_large=is_large)

    def end(self, tenant: str, *, is_large: bool = False) -> None:
        """End the work on a request."""
        _lower(self._worked_on, tenant, self._weight(is_large=is_large))

    def count(self, tenant: str, seconds: float, now: float) -> None:
        """Count how long a request was worked on."""
        self._work.add(tenant, seconds, now)

    def _is_quiet(self, tenant: str) -> bool:
        """Report whether a tenant has at most half as many requests in hand as another one: none of its own wait.

        Otherwise it would wait for itself where the other one makes its requests slow.
        """
        most_of_others = max((count for other, count in self._in_hand.items() if other != tenant), default=0)
        return self._in_hand[tenant] * 2 <= most_of_others

    def _weight(self, *, is_large: bool) -> int:
        return self._limits.worked_on if is_large else 1

    def is_shared(self, tenant: str, now: float) -> bool:
        """Report whether another tenant asks, too."""
        return any(other != tenant and now - at < self._limits.active_s for other, at in self._latest.items())


def _lower(counter: Counter[Name], name: Name, amount: int = 1) -> None:
    """Count less; a name without any takes no room."""
    counter[name] -= amount
    if counter[name] <= 0:
        del counter[name]
