"""Wait for several calls at the same time."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")


async def together(calls: Sequence[Coroutine[Any, Any, Result]]) -> Sequence[Result]:
    """Return the results of calls in their order; a single one costs no task, which takes some 30 µs of the loop."""
    return [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)
