"""Asking parts whether they answer, without waiting long for those that do not."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from lamina.aio.deadline import time_limit
from lamina.errors import describe_error

OK = "ok"
Probe = Callable[[], Awaitable[object]]


async def state_of(probe: Probe, deadline_s: float) -> str:
    """Return ``ok`` if the probe returns in time, or what is wrong."""
    try:
        async with time_limit(deadline_s):
            await probe()
    except Exception as error:  # noqa: BLE001 - the caller reports it, and does not fail
        return describe_error(error)
    return OK


async def states_of(probes: Mapping[str, Probe], deadline_s: float) -> dict[str, str]:
    """Return the state of each part by its name; all are asked at once."""
    states = await asyncio.gather(*(state_of(probe, deadline_s) for probe in probes.values()))
    return dict(zip(probes, states, strict=True))
