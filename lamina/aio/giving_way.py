"""Let a long request pause between its steps while others that take less are worked on."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Pause = Callable[[], Awaitable[None]]
_current: ContextVar[Pause | None] = ContextVar("pause", default=None)


@contextmanager
def pausing(pause: Pause) -> Iterator[None]:
    """Have :func:`give_way` pause so within the block, in tasks that it starts, too."""
    before = _current.get()
    _current.set(pause)
    try:
        yield
    finally:
        _current.set(before)  # By its value: a task that is thrown away ends in another context.


async def give_way() -> None:
    """Pause if the request that is worked on should; called where it holds no connection, lock or place of a search."""
    pause = _current.get()
    if pause is not None:
        await pause()
