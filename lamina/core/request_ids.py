"""The id of the request that is worked on, for answers and logs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import uuid4

HEADER = "X-Request-Id"
# No character that a log, a header or a shell could take for more than an id.
_HARMLESS = re.compile(r"[A-Za-z0-9._-]{1,128}")
_current: ContextVar[str | None] = ContextVar("request_id", default=None)


def accepted_id(sent: str | None) -> str:
    """Return the id that a request was sent with, if it is harmless, or a new one."""
    return sent if sent is not None and _HARMLESS.fullmatch(sent) else uuid4().hex


@contextmanager
def of_request(id_: str) -> Iterator[None]:
    """Name the request within the block, in tasks that it starts, too."""
    token = _current.set(id_)
    try:
        yield
    finally:
        _current.reset(token)


def current_request() -> str | None:
    """Return the id of the request that is worked on; ``None`` outside of one."""
    return _current.get()
