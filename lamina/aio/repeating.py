"""Work without an end, through outages of the stores that it needs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from lamina.errors import describe_error

logger = logging.getLogger(__name__)
OF_THE_CODE = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
"""Errors that are no outage: the log tells their places in the code."""


async def repeat(turn: Callable[[], Awaitable[object]], trouble: str, *, every_s: float) -> None:
    """Take one turn after another until one returns ``True``; a failed one is logged, and the next follows.

    Nobody would start the task again: without this, one lost connection ends its work for the life of the process.

    Args:
        turn: One turn. It must leave what it could not do where the next one finds it.
        trouble: The log's words for a failure; the error follows.
        every_s: Pause from the end of a turn to the next.
    """
    while True:
        try:
            if await turn() is True:
                return
        except Exception as error:
            logger.warning("%s: %s", trouble, describe_error(error), exc_info=isinstance(error, OF_THE_CODE))
        await asyncio.sleep(every_s)
