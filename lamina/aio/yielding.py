"""Work on many items of one request in the event loop, in steps between which other requests are worked on."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
STEP_S = 0.005
"""As long as a thread may hold the interpreter. A thousand notes with what each holds take a second in all."""


async def map_in_steps(convert: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Convert each item, in order; the first error ends it."""
    loop = asyncio.get_running_loop()
    converted: list[Result] = []
    end = loop.time() + STEP_S
    for item in items:
        converted.append(convert(item))
        if loop.time() > end:
            await asyncio.sleep(0)
            end = loop.time() + STEP_S
    return converted
