"""Claims on responses: one caller makes a response, the others wait for it."""

from lamina.core.cache_layers import Space

MAX_CLAIMS = 1_000
ClaimName = tuple[Space, bytes]


class Claims:
    """Claims, each with a lease; plain, bounded, and without a clock.

    Args:
        most: Most claims; beyond it every caller makes its own response.
    """

    def __init__(self, most: int = MAX_CLAIMS) -> None:
        self._most = most
        self._until: dict[ClaimName, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def take(self, name: ClaimName, now: float, lease_s: float) -> float | None:
        """Claim a response, or return the end of another caller's lease.

        ``None`` means that the claim is this caller's for ``lease_s``. After the end of a lease the first to ask gets
        it.

        Args:
            name: Of the response.
            now: Seconds of a clock that never goes back.
            lease_s: Seconds.
        """
        until = self._until.get(name)
        if until is not None and until > now:
            return until
        # A lease that has ended gives its room to the new claim.
        if until is not None or self._has_room(now):
            self._until[name] = now + lease_s
        return None

    def settle(self, name: ClaimName) -> None:
        """Drop a claim: the response is there."""
        self._until.pop(name, None)

    def expire(self, now: float) -> None:
        """Drop claims whose lease has ended."""
        self._until = {name: until for name, until in self._until.items() if until > now}

    def _has_room(self, now: float) -> bool:
        if len(self._until) >= self._most:
            self.expire(now)
        return len(self._until) < self._most
