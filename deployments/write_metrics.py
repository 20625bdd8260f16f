"""Measure writes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lamina.core.metrics import WRITE_SECONDS, WRITES, WRITTEN, CallOutcome, Meter
from lamina.core.quotas import Resource, spend
from lamina.core.tiers import Tier
from lamina.errors import LaminaError, Unavailable


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
    spend(Resource.ROWS, count)
    if tier is Tier.DOCUMENTS:
        spend(Resource.DOCUMENTS, count)
