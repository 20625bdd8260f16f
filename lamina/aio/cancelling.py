"""The end of tasks that may lose a cancellation."""

import asyncio
from collections.abc import Collection
from typing import Any

FIRST_STEP_S, LONGEST_STEP_S = 0.2, 1.0
"""Seconds until tasks that have not ended are cancelled again, which breaks off whatever they were cleaning up."""


async def cancel_all(tasks: Collection["asyncio.Task[Any]"]) -> None:
    """Cancel tasks until they have ended; their errors are dropped.

    In Python 3.11 a ``wait_for`` whose result comes together with a cancellation returns the result and forgets the
    cancellation. A pool of connections waits so: a task that was to end went on for ever, and so did who waited for it.

    Raises:
        asyncio.CancelledError: Once all have ended, if the caller was cancelled meanwhile.
    """
    clock, step_s = asyncio.get_running_loop().time, FIRST_STEP_S
    cancelled: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        again_at, step_s = clock() + step_s, min(2 * step_s, LONGEST_STEP_S)
        # The caller may be cancelled in every turn of the loop, as a scope of anyio does; its tasks are not.
        while (left_s := again_at - clock()) > 0 and not all(task.done() for task in pending):
            try:
                await asyncio.wait(pending, timeout=left_s)
            except asyncio.CancelledError as error:
                cancelled = error
    await asyncio.gather(*tasks, return_exceptions=True)
    if cancelled is not None:
        raise cancelled
