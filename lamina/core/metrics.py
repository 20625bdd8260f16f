"""Metrics: every instrument, and the port that records them.

Labels are bounded: what kind of thing, never whose. No tenant, user, agent, session, swarm or workspace is one.
`job` and `instance` are Prometheus's own, and the deployment and its replica Ray's, who adds them.
Nobody records once an item: a call or a batch is recorded once, with how much it was.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

# Upper bounds of waits of callers, in seconds.
FAST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# Upper bounds of runs of jobs, in seconds.
SLOW_S = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0)
# Upper bounds of numbers of things that travel together.
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


class InstrumentKind(StrEnum):
    """How the values of an instrument add up."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class CallOutcome(StrEnum):
    """Outcome of a call."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"
    REFUSED = "refused"
    """It did not go out: the part is left alone for a while, or its queue is full."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric.

    Args:
        name: Without the suffix that a counter gets.
        kind: How its values add up.
        description: In a line.
        labels: What its series differ in; each has few values.
        bounds: Upper bounds of a histogram's buckets.
    """

    name: str
    kind: InstrumentKind
    description: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


class Meter(Protocol):
    """Record measurements; recording never fails a call."""

    def record(self, instrument: Instrument, value: float = 1.0, **labels: str) -> None:
        """Add to a counter, set a gauge, or put a value into a histogram; cheap, and from any thread."""
        ...


class Unmeasured:
    """A meter that forgets everything."""

    def record(self, instrument: Instrument, value: float = 1.0, **labels: str) -> None:
        """Do nothing."""


UNMEASURED: Meter = Unmeasured()


@contextmanager
def timed(meter: Meter, seconds: Instrument, failures: Instrument, **labels: str) -> Iterator[None]:
    """Record how long the block takes, and a failure if it raises or is cancelled."""
    began = time.monotonic()
    try:
        yield
    except BaseException:
        meter.record(failures, 1.0, **labels)
        raise
    finally:
        meter.record(seconds, time.monotonic() - began, **labels)


def _counter(name: str, description: str, *labels: str) -> Instrument:
    return Instrument(name, InstrumentKind.COUNTER, description, labels)


def _gauge(name: str, description: str, *labels: str) -> Instrument:
    return Instrument(name, InstrumentKind.GAUGE, description, labels)


def _histogram(name: str, description: str, bounds: tuple[float, ...], *labels: str) -> Instrument:
    return Instrument(name, InstrumentKind.HISTOGRAM, description, labels, bounds)


SEARCHES = _counter("lamina_searches", "Searches that no cache answered whole, by outcome.", "outcome")
SEARCH_SECONDS = _histogram("lamina_search_seconds", "How long they took, in seconds.", FAST_S)
DEGRADED = _counter("lamina_degraded_answers", "Answers that lacked a source, by what was missing.", "source")
TIER_SECONDS = _histogram(
    "lamina_tier_seconds", "How long a tier took to answer the router, in seconds, however it ended.", FAST_S, "tier"
)
TIER_FAILURES = _counter("lamina_tier_failures", "Questions to a tier that failed whole, or were given up.", "tier")
SOURCE_SECONDS = _histogram("lamina_source_seconds", "How long a source took, in its own process.", FAST_S, "source")
SOURCE_FAILURES = _counter("lamina_source_failures", "Questions to a source that failed or took too long.", "source")

RERANKS = _counter("lamina_reranks", "Searches whose first hits a reranker was to order, by outcome.", "outcome")
RERANK_SECONDS = _histogram("lamina_rerank_seconds", "How long a search waited for it, in seconds.", FAST_S)

EMBEDDER_SECONDS = _histogram("lamina_embedder_batch_seconds", "How long the model took for a batch.", FAST_S)
EMBEDDER_BATCH = _histogram("lamina_embedder_batch_texts", "Chunks of texts in a batch.", SIZES)
EMBEDDER_TEXTS = _counter("lamina_embedder_texts", "Chunks of texts that were embedded.")
EMBEDDER_TOKENS = _counter("lamina_embedder_tokens", "Their tokens.")
EMBEDDER_PADDING = _counter("lamina_embedder_padding", "Tokens of padding, computed beside them for nothing.")
EMBEDDER_REMEMBERED = _counter("lamina_embedder_remembered", "Chunks whose vectors were still in memory.")
EMBEDDER_FAILURES = _counter("lamina_embedder_failures", "Batches that the model failed at.")
EMBEDDER_CALLS = _gauge("lamina_embedder_calls", "Calls that wait for the model's next batch, or are in it.")

WRITES = _counter("lamina_writes", "Writes, by the tier they are for and what came of them.", "tier", "outcome")
WRITE_SECONDS = _histogram("lamina_write_seconds", "How long a write took, in seconds.", FAST_S, "tier")
WRITTEN = _counter("lamina_memories_written", "Messages, notes and documents that were taken over.", "tier")

AGENT_TOOL_CALLS = _counter("lamina_agent_tool_calls", "Tool calls that turns told of, by outcome.", "outcome")
AGENT_INPUT_TOKENS = _counter("lamina_agent_input_tokens", "Tokens of prompts that turns told of.")
AGENT_CACHED_TOKENS = _counter("lamina_agent_cached_tokens", "Those of them that came from a provider's cache.")
AGENT_OUTPUT_TOKENS = _counter("lamina_agent_output_tokens", "Tokens that agents wrote, as turns told.")
AGENT_COST = _counter("lamina_agent_cost", "Cost that turns told of, in the callers' currency.")
AGENT_RUNS = _counter("lamina_agent_runs", "Runs of agents that ended with an outcome.", "outcome")

APPLIED = _counter("lamina_indexer_applied", "Changes that a projection took over.", "projection")
APPLY_SECONDS = _histogram("lamina_indexer_apply_seconds", "How long a batch of them took.", FAST_S, "projection")
APPLY_FAILURES = _counter("lamina_indexer_failures", "Batches that a projection did not take over.", "projection")

LOOP_LAG = _histogram(
    "lamina_loop_lag_seconds",
    "By how much a wait of 100 ms lasted longer: what blocks the event loop delays everybody on it.",
    FAST_S,
    "part",
)
POOL_CONNECTIONS = _gauge("lamina_pool_connections", "Connections to Postgres that a process has open.", "part")
POOL_IDLE = _gauge("lamina_pool_idle", "Those of them that nobody uses.", "part")
POOL_LIMIT = _gauge("lamina_pool_limit", "Most connections that it may open.", "part")
POOL_WAITING = _gauge("lamina_pool_waiting", "Callers that wait for a connection.", "part")
REFUSALS = _counter("lamina_refusals", "Requests refused because a queue was full, by whose.", "part")

SHARD_CALLS = _counter("lamina_shard_calls", "Calls that a cache shard served.", "operation", "outcome")

JOB_ORDERS = _counter(
    "lamina_job_orders", "Jobs that were due, and whether they could be ordered.", "job_name", "outcome"
)
JOB_ENDS = _counter("lamina_job_ends", "Runs that were driven, by how they ended.", "job_name", "outcome")
JOB_SECONDS = _histogram("lamina_job_seconds", "How long a run was driven, in seconds.", SLOW_S, "job_name")
JOB_ROWS = _counter("lamina_job_rows", "Rows that runs changed.", "job_name")

INSTRUMENTS = tuple(item for item in list(globals().values()) if isinstance(item, Instrument))
