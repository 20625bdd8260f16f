"""Times of the parts of one piece of work, however many tasks it takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_times: ContextVar[dict[str, float] | None] = ContextVar("part_times", default=None)


@contextmanager
def timing_parts() -> Iterator[dict[str, float]]:
    """Gather the milliseconds of each part that is timed within the block, in tasks that it starts, too."""
    gathered: dict[str, float] = {}
    token = _times.set(gathered)
    try:
        yield gathered
    finally:
        _times.reset(token)


@contextmanager
def timed_part(name: str) -> Iterator[None]:
    """Time a part; of one that runs several times, the longest counts."""
    began, gathered = time.monotonic(), _times.get()
    try:
        yield
    finally:
        if gathered is not None:
            gathered[name] = round(max(gathered.get(name, 0.0), 1000 * (time.monotonic() - began)), 1)
