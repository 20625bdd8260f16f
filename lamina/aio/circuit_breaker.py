"""A circuit breaker: calls have a deadline, and after several failures in a row none goes out for a while."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from lamina.aio.deadline import deadline
from lamina.errors import Overloaded

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """The failures after which a part is not called, and for how long.

    Args:
        deadline_s: Seconds after which a call counts as failed.
        failures: Failures in a row that open the breaker.
        pause_s: Seconds without calls. After them one trial goes out, and the next if the first has no outcome within
            another pause.
    """

    deadline_s: float
    failures: int
    pause_s: float


class BreakerState:
    """Count failures in a row, and decide by them whether a call may go out. Time is seconds since any origin.

    The outcome of a call that went out before the breaker opened counts, too.
    """

    def __init__(self, *, failures: int, pause_s: float) -> None:
        self._failures = failures
        self._pause_s = pause_s
        self._in_a_row = 0
        self._refuses_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the part failed so often that only a trial goes out now and then."""
        return self._in_a_row >= self._failures

    def refuses(self, now: float) -> bool:
        """Report whether a call would be refused; one that may go out is a trial if the breaker is open."""
        return self.is_open and now < self._refuses_until

    def allows(self, now: float) -> bool:
        """Decide whether a call may go out; an allowed trial must report its outcome."""
        if not self.is_open:
            return True
        if self.refuses(now):
            return False
        # Moved before the trial's outcome: calls that come meanwhile are refused, and a trial without an outcome, such
        # as a cancelled one, blocks the next for one pause only.
        self._refuses_until = now + self._pause_s
        return True

    def record_success(self) -> None:
        """Close the breaker."""
        self._in_a_row = 0

    def record_failure(self, now: float) -> None:
        """Count a failure; enough in a row open the breaker."""
        self._in_a_row += 1
        self._refuses_until = now + self._pause_s


class CircuitBreaker:
    """Give each call a deadline, and let none out for a while after several failed in a row.

    Args:
        part: Name of the called part, for errors and the log.
        policy: When the breaker opens, and for how long.
    """

    def __init__(self, part: str, policy: BreakerPolicy) -> None:
        self._part = part
        self._deadline_s = policy.deadline_s
        self._state = BreakerState(failures=policy.failures, pause_s=policy.pause_s)

    @property
    def is_open(self) -> bool:
        """Whether the part failed so often that only a trial goes out now and then."""
        return self._state.is_open

    @property
    def refuses(self) -> bool:
        """Whether a call would be refused now: not once the pause after the failures is over."""
        return self._state.refuses(time.monotonic())

    async def call(self, call: Callable[[], Awaitable[Result]], deadline_s: float | None = None) -> Result:
        """Call the part, unless the breaker is open.

        Raises:
            Overloaded: If the breaker is open.
            Unavailable: If it does not answer in time.
            Exception: Any error that the call raises.
        """
        if not self._state.allows(time.monotonic()):
            raise Overloaded(self._part, "it failed too often and is left alone for a while")
        try:
            async with deadline(self._part, deadline_s or self._deadline_s):
                result = await call()
        except Exception:  # Not of a cancellation: a caller that gives up says nothing about the part.
            was_open = self.is_open
            self._state.record_failure(time.monotonic())
            if self.is_open and not was_open:
                logger.warning("%s fails and is left alone for a while", self._part)
            raise
        if self.is_open:
            logger.info("%s answers again", self._part)
        self._state.record_success()
        return result
