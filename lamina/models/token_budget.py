"""Count the tokens that a process may still spend today."""

from datetime import date

from lamina.core.ports import Clock


class TokenBudget:
    """Counts tokens per day of UTC; a new day starts with the whole budget.

    Args:
        daily_tokens: Most tokens of a day.
        clock: The time of day.
    """

    def __init__(self, daily_tokens: int, clock: Clock) -> None:
        self._daily_tokens = daily_tokens
        self._clock = clock
        self._day = date.min
        self._used = 0

    def take(self, tokens: int) -> bool:
        """Set tokens aside for a call and return True, or return False if the day has not that many left."""
        if self._used_today() + tokens > self._daily_tokens:
            return False
        self._used += tokens
        return True

    def settle(self, taken: int, used: int) -> None:
        """Replace the tokens that were set aside for a call by those that it used."""
        self._used = max(0, self._used_today() + used - taken)

    @property
    def left(self) -> int:
        """Return the tokens that are left today; never below 0, though an answer may overdraw the day."""
        return max(0, self._daily_tokens - self._used_today())

    def _used_today(self) -> int:
        today = self._clock().date()
        if today != self._day:
            self._day, self._used = today, 0
        return self._used
