"""Runs a test in a time of its own, which passes only where the test has nothing to do but to wait.

A deadline of a part that hangs then costs nothing and is never missed by the others, however busy the machine is.
"""

import asyncio
import functools
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

# Of a test that waits for what never comes.
END_S = 1_000_000.0


class _Skipping(selectors.DefaultSelector):
    """Ends each wait for a timer at once, and says that the time has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select()
        events = super().select(0)
        if not events:
            self.now += max(timeout, 0)
        return events


class _VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer; for code without threads and sockets."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on a loop of its own, whose time and ``time.monotonic`` leap from timer to timer.

    Fixtures that are coroutines run on another loop: make what they would make within the test.
    """

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(END_S):
                await test(*args, **kwargs)

        with asyncio.Runner(loop_factory=_VirtualLoop) as runner, pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "monotonic", runner.get_loop().time)
            runner.run(bounded())

    return run
