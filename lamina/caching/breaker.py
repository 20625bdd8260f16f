"""Leaving alone what fails, for a while."""


class Breaker:
    """Refuses calls to a part that failed several times in a row, then lets one through to see.

    Time is seconds since any origin. The outcome of a call that was let through before the part failed counts, too.

    Args:
        failures: So many in a row end the calls.
        pause_s: For how many seconds. After it one trial goes through, and the next if its outcome does not come
            within another pause.
    """

    def __init__(self, *, failures: int, pause_s: float) -> None:
        self._failures = failures
        self._pause_s = pause_s
        self._in_a_row = 0
        self._refuses_until = 0.0

    @property
    def is_closed(self) -> bool:
        """Whether calls go out as if nothing had happened."""
        return self._in_a_row < self._failures

    def allows(self, now: float) -> bool:
        """Return whether a call may go out; if it is the trial, it is the caller's, who tells its outcome."""
        if self.is_closed:
            return True
        if now < self._refuses_until:
            return False
        self._refuses_until = now + self._pause_s
        return True

    def succeeded(self) -> None:
        """Tell that a call was answered: all may go out again."""
        self._in_a_row = 0

    def failed(self, now: float) -> None:
        """Tell that a call failed."""
        self._in_a_row += 1
        self._refuses_until = now + self._pause_s
