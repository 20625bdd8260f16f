"""The end of tasks that may lose a cancellation."""

import asyncio
from collections.abc import Collection
from typing import Any

STEP_S = 0.2


async def cancel_all(tasks: Collection["asyncio.Task[Any]"]) -> None:
    """Cancel tasks until they have ended; their errors are dropped.

    In Python 3.11 a ``wait_for`` whose result comes together with a cancellation returns the result and forgets the
    cancellation. A pool of connections waits so: a task that was to end went on for ever, and so did who waited for it.

    Raises:
        asyncio.CancelledError: Once all have ended, if the caller was cancelled meanwhile.
    """
    cancelled: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        try:
            await asyncio.wait(pending, timeout=STEP_S)
        except asyncio.CancelledError as error:
            cancelled = error
    await asyncio.gather(*tasks, return_exceptions=True)
    if cancelled is not None:
        raise cancelled
