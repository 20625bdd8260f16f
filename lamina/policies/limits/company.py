"""How long a pass of questions waits for more of them."""

HAIR_S = 0.005
"""Seconds; a question alone takes 7 ms of a processor, one of four together 4.8, one of sixteen 4.3."""
ENOUGH = 8
"""Questions of a pass from which a further one makes it hardly cheaper for each."""
SHARED = 1.5
"""Questions that the last passes had on average, from which it is likely that another comes."""
_NEWEST = 0.2


class Company:
    """Has a pass wait only while waiting pays: after passes that several callers shared.

    Who asks one question after the other is never in a pass with itself, and so never waits.
    """

    def __init__(self) -> None:
        self._mean = 1.0

    def add(self, callers: int) -> None:
        """Take the number of callers that shared a pass."""
        self._mean += _NEWEST * (callers - self._mean)

    def wait_s(self, callers: int, waited_s: float) -> float:
        """Return the seconds that a pass of as many callers still waits, whose first one has waited so long."""
        return max(0.0, HAIR_S - waited_s) if self._mean >= SHARED and 0 < callers < ENOUGH else 0.0
