"""Health checks of parts, each within a deadline.

A state is one of three words: an error's text names hosts, paths and users, which are for the log alone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from cachetools import TTLCache

from lamina.aio.deadline import time_limit
from lamina.errors import describe_error

logger = logging.getLogger(__name__)
OK = "ok"
LATE = "late"
FAILED = "failed"
STATES = (OK, LATE, FAILED)
REPEAT_LOG_S = 60.0
"""The same fault is logged once in this time, however often somebody without a key asks."""
Probe = Callable[[], Awaitable[object]]


_logged: TTLCache[str, None] = TTLCache(1000, REPEAT_LOG_S)


async def state_of(name: str, probe: Probe, deadline_s: float) -> str:
    """Run a part's probe; return its state, and log the error that it raised."""
    try:
        async with time_limit(deadline_s):
            await probe()
    except Exception as error:  # noqa: BLE001 - the caller reports it, and does not fail
        line = f"{name}: {describe_error(error)}"
        if line not in _logged:
            _logged[line] = None
            logger.warning("%s", line)
        return LATE if isinstance(error, TimeoutError) else FAILED
    return OK


async def states_of(probes: Mapping[str, Probe], deadline_s: float) -> dict[str, str]:
    """Run all probes at once; return the state of each part by its name."""
    states = await asyncio.gather(*(state_of(name, probe, deadline_s) for name, probe in probes.items()))
    return dict(zip(probes, states, strict=True))
