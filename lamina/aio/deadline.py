"""Deadlines, with one wording of a timeout everywhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lamina.errors import Unavailable


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Bound a wait; the text of its ``TimeoutError`` is fit for a caller.

    A ``TimeoutError`` that the body raises itself, as drivers do, gets the same text.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise TimeoutError(f"no answer within {seconds:.3g} s") from error


@asynccontextmanager
async def deadline(part: str, seconds: float) -> AsyncIterator[None]:
    """Bound the wait for a part without which the call fails.

    Raises:
        Unavailable: If the body does not end in time.
    """
    try:
        async with time_limit(seconds):
            yield
    except TimeoutError as error:
        raise Unavailable(part, str(error)) from error
