"""Single flight: concurrent calls of the same name share one task."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from lamina.aio.cancelling import cancel_all

Name = TypeVar("Name", bound=Hashable)
Result = TypeVar("Result")


class SingleFlight(Generic[Name, Result]):
    """Runs one task a name at a time and gives its result to every caller.

    A task has no owner among its callers: it goes on when all of them give up.
    """

    def __init__(self) -> None:
        self._joinable: dict[Name, asyncio.Task[Result]] = {}
        # References of our own: the event loop holds tasks weakly, and those without callers could be collected.
        self._running: set[asyncio.Task[Result]] = set()

    async def run(
        self, name: Name, start: Callable[[], Coroutine[Any, Any, Result]], *, is_joinable: bool = True
    ) -> Result:
        """Return the result of the running task of this name, or of a new one.

        A task that was running before the call may have waited for too long. If it fails, the callers that had joined
        it try once more, together.

        Args:
            name: Callers with the same name want the same thing.
            start: Makes the coroutine of a new task.
            is_joinable: Whether later callers may join the new task.

        Raises:
            Exception: From the task that this call started, or joined at its second try.
        """
        running = self._running_task(name)
        if running is not None:
            try:
                # Shielded: one caller that is cancelled must not cancel the task that others wait for.
                return await asyncio.shield(running)
            except Exception:  # noqa: BLE001 - the second try raises
                running = self._running_task(name)
        return await asyncio.shield(running or self._start(name, start, is_joinable=is_joinable))

    async def close(self, within_s: float = 0.0) -> None:
        """Wait so many seconds for the running tasks, then cancel the rest."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=within_s)
            await cancel_all(late)

    def _running_task(self, name: Name) -> asyncio.Task[Result] | None:
        task = self._joinable.get(name)
        # One that has ended is still there until the loop's next turn.
        return None if task is None or task.done() else task

    def _start(
        self, name: Name, start: Callable[[], Coroutine[Any, Any, Result]], *, is_joinable: bool
    ) -> asyncio.Task[Result]:
        task = asyncio.create_task(start())
        self._running.add(task)
        if is_joinable:
            self._joinable[name] = task
        task.add_done_callback(partial(self._forget, name))
        return task

    def _forget(self, name: Name, task: asyncio.Task[Result]) -> None:
        self._running.discard(task)
        if self._joinable.get(name) is task:  # A later task of this name may have taken the place.
            del self._joinable[name]
        if not task.cancelled():
            task.exception()  # Retrieved here, or asyncio logs an error that no caller waits for any more.
