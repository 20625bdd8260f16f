"""Health checks of parts, each within a deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from lamina.aio.deadline import time_limit
from lamina.errors import describe_error

OK = "ok"
Probe = Callable[[], Awaitable[object]]


async def state_of(probe: Probe, deadline_s: float) -> str:
    """Run a probe; return ``ok`` or the error that it raised, a timeout included."""
    try:
        async with time_limit(deadline_s):
            await probe()
    except Exception as error:  # noqa: BLE001 - the caller reports it, and does not fail
        return describe_error(error)
    return OK


async def states_of(probes: Mapping[str, Probe], deadline_s: float) -> dict[str, str]:
    """Run all probes at once; return the state of each part by its name."""
    states = await asyncio.gather(*(state_of(probe, deadline_s) for probe in probes.values()))
    return dict(zip(probes, states, strict=True))
