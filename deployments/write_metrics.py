"""Measure writes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lamina.core.agent_turns import AgentWork
from lamina.core.metrics import (
    AGENT_CACHED_TOKENS,
    AGENT_COST,
    AGENT_INPUT_TOKENS,
    AGENT_OUTPUT_TOKENS,
    AGENT_RUNS,
    AGENT_TOOL_CALLS,
    WRITE_SECONDS,
    WRITES,
    WRITTEN,
    CallOutcome,
    Meter,
)
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


def measure_work(meter: Meter, work: AgentWork) -> None:
    """Record the work of an agent in one turn."""
    if work.tool_calls:
        failed = sum(not call.succeeded for call in work.tool_calls)
        meter.record(AGENT_TOOL_CALLS, len(work.tool_calls) - failed, outcome=CallOutcome.OK)
        meter.record(AGENT_TOOL_CALLS, failed, outcome=CallOutcome.FAILED)
    if work.usage is not None:
        meter.record(AGENT_INPUT_TOKENS, work.usage.input_tokens)
        meter.record(AGENT_CACHED_TOKENS, work.usage.cached_tokens)
        meter.record(AGENT_OUTPUT_TOKENS, work.usage.output_tokens)
        meter.record(AGENT_COST, work.usage.cost)
    if work.outcome is not None:
        meter.record(AGENT_RUNS, outcome=CallOutcome.OK if work.outcome.succeeded else CallOutcome.FAILED)
