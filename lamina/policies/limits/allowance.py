"""The part of a limit that one replica may spend, granted in slices, so that all replicas keep the limit together.

A replica takes a slice from what is left of the window, atomically, and spends it without asking. What is known before
(a request) is never overspent. What is known afterwards (tokens) may be overspent by the requests that are under way
then, and is taken off the next slices.
"""

import math
from dataclasses import dataclass

SLICES = 16
"""A limit is granted in so many slices: at most one of them lies unused at each replica."""
RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Ask:
    """A question for a slice.

    Args:
        settled: Amount that was overspent, taken in any case.
        wanted: Amount that is wanted, taken as far as it is there.
        needed: Amount for a cost beyond that, taken whole or, where less is there, not at all.
    """

    settled: int
    wanted: int
    needed: int = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """An answer.

    Args:
        given: Amount of what was wanted, or of what was needed.
        left: Amount of the window that nobody has.
        ends_in_s: Seconds until the window ends.
    """

    given: int
    left: int
    ends_in_s: float


class Allowance:
    """The part of one limit that a replica may spend. Time is seconds of a clock that never goes back.

    Args:
        amount: The limit, for all replicas together.
    """

    def __init__(self, amount: int) -> None:
        self.amount = amount
        self._slice = max(1, amount // SLICES)
        self._balance = 0
        self._left = amount
        self._ends_at = self._asks_from = 0.0

    def covers(self, cost: int, now: float) -> bool:
        """Report whether a cost may be spent now."""
        return now < self._ends_at and self._balance >= cost

    def spend(self, cost: int) -> None:
        """Spend a cost, which may be more than there is."""
        self._balance -= cost

    def is_due(self, now: float, cost: int = 1) -> bool:
        """Report whether a slice must be asked for: too little is left for a cost, and there may be enough."""
        if now >= self._ends_at:
            return True
        may_be_enough = cost == 1 or cost - self._balance <= self._left
        return self._balance < cost and may_be_enough and now >= self._asks_from

    def runs_low(self, now: float) -> bool:
        """Report whether a slice should be asked for before the one that is there is spent."""
        return self._slice > 1 and self._balance * 2 < self._slice and now >= self._asks_from

    def ask(self, now: float, cost: int = 1) -> Ask:
        """Return the next request to the store, which also settles the overspent amount."""
        overspent = max(0, -self._balance)
        self._balance += overspent
        kept = self._balance if now < self._ends_at else 0
        # Who has enough for others takes no slice for a cost that may be refused: slices would gather here.
        return Ask(overspent, self._slice if kept * 2 < self._slice else 0, max(0, cost - kept))

    def refuse(self, ask: Ask) -> None:
        """Take back an ask that had no answer."""
        self._balance -= ask.settled

    def receive(self, grant: Grant, now: float) -> None:
        """Take a slice; the rest of one of an earlier window is gone with it."""
        ends_at = now + grant.ends_in_s
        if ends_at - self._ends_at > RETRY_S:
            self._balance = min(0, self._balance)
        self._balance += grant.given
        self._left, self._ends_at = grant.left, ends_at
        self._asks_from = now if grant.given or grant.left else min(ends_at, now + RETRY_S)

    def remaining(self, now: float) -> tuple[int, int]:
        """Return about how much is left for all replicas, and the seconds until the window ends."""
        if now >= self._ends_at:
            return self.amount, 0
        return max(0, self._left + self._balance), math.ceil(self._ends_at - now)
