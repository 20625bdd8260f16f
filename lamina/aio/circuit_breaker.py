"""Circuit breaker: calls with a deadline, and none for a while after several failed in a row."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from lamina.errors import Overloaded, Unavailable

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


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


@dataclass(frozen=True, slots=True)
class Guard:
    """When a part is left alone.

    Args:
        deadline_s: Seconds after which an answer comes too late.
        failures: Failures in a row after which it is not asked for a while.
        pause_s: That while, in seconds.
    """

    deadline_s: float
    failures: int
    pause_s: float


class Guarded:
    """Gives each call a deadline, and lets none out for a while after several have failed in a row.

    Args:
        part: What is called, for errors and the log.
        guard: When it is left alone.
    """

    def __init__(self, part: str, guard: Guard) -> None:
        self._part = part
        self._deadline_s = guard.deadline_s
        self._breaker = Breaker(failures=guard.failures, pause_s=guard.pause_s)

    @property
    def is_left_alone(self) -> bool:
        """Whether it failed so often that only a trial goes out now and then."""
        return not self._breaker.is_closed

    async def call(self, call: Callable[[], Awaitable[Result]], deadline_s: float | None = None) -> Result:
        """Return what the call returns, if it may go out and is answered in time.

        Raises:
            Overloaded: If the part is left alone.
            Unavailable: If it does not answer in time.
            Exception: Whatever the call raises.
        """
        if not self._breaker.allows(time.monotonic()):
            raise Overloaded(self._part, "it failed too often and is left alone for a while")
        limit_s = deadline_s or self._deadline_s
        try:
            async with asyncio.timeout(limit_s):
                result = await call()
        except TimeoutError:
            self._failed()
            raise Unavailable(self._part, f"no answer within {limit_s} s") from None
        except Exception:
            self._failed()
            raise
        self._succeeded()
        return result

    def _failed(self) -> None:
        was_left_alone = self.is_left_alone
        self._breaker.failed(time.monotonic())
        if self.is_left_alone and not was_left_alone:
            logger.warning("%s fails and is left alone for a while", self._part)

    def _succeeded(self) -> None:
        if self.is_left_alone:
            logger.info("%s answers again", self._part)
        self._breaker.succeeded()
