"""Meters of replicas, and the measuring of writes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import ray

from actors.instruments import RayMeter
from lamina.core.metrics import UNMEASURED, WRITE_SECONDS, WRITES, WRITTEN, CallOutcome, Meter
from lamina.core.tiers import Tier
from lamina.errors import LaminaError, Unavailable


def replica_meter() -> Meter:
    """Return the meter of a replica; in Serve's local testing mode, where Ray does not run, it forgets everything."""
    return _ray_serve_meter() if ray.is_initialized() else UNMEASURED


@cache
def _ray_serve_meter() -> Meter:
    from ray.serve import metrics  # noqa: PLC0415 - reads the replica's context when it is used

    return RayMeter(metrics)


@contextmanager
def measured_write(meter: Meter, tier: Tier, count: int = 1) -> Iterator[None]:
    """Record a write of so many memories; one that is refused for its content is no failure, and not counted.

    Args:
        meter: Takes the figures.
        tier: The tier of the memories.
        count: How many there are.
    """
    name, began = tier.name.lower(), time.monotonic()
    try:
        yield
    except Exception as error:
        if not isinstance(error, LaminaError) or isinstance(error, Unavailable):
            meter.record(WRITES, tier=name, outcome=CallOutcome.FAILED)
        raise
    meter.record(WRITES, tier=name, outcome=CallOutcome.OK)
    meter.record(WRITE_SECONDS, time.monotonic() - began, tier=name)
    meter.record(WRITTEN, count, tier=name)
