"""Deadlines: every wait has one, and a late answer is said in the same words everywhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lamina.errors import Unavailable


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Bound a wait; its ``TimeoutError`` carries the text that a caller is shown.

    A ``TimeoutError`` that the body raises by itself, as drivers do, is given the same text.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise TimeoutError(f"no answer within {seconds:g} s") from error


@asynccontextmanager
async def deadline(part: str, seconds: float) -> AsyncIterator[None]:
    """Bound the wait for a part that the call cannot do without.

    Raises:
        Unavailable: If the body does not end in time.
    """
    try:
        async with time_limit(seconds):
            yield
    except TimeoutError as error:
        raise Unavailable(part, str(error)) from error
