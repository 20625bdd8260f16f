"""Ray's metrics as the library's Meter: records of a process leave it with Ray's own."""

import asyncio
import weakref
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, assert_never

import ray

from lamina.core.metrics import (
    LOOP_LAG,
    POOL_CONNECTIONS,
    POOL_IDLE,
    POOL_LIMIT,
    POOL_WAITING,
    UNMEASURED,
    Instrument,
    InstrumentKind,
    Meter,
)
from lamina.stores.postgres.connection import Pool

# Length of the waits that measure the event loop's lag.
STEP_S = 0.1
# So many of them lie between two records of the gauges: Ray forgets a gauge that is not set for 20 s.
POOL_STEPS = 10
Record = Callable[[float, dict[str, str]], None]


class RayMeter:
    """A meter over one of Ray's modules of metrics; each metric is made when it is first recorded.

    Args:
        metrics: ``ray.util.metrics``, or ``ray.serve.metrics``, which adds the deployment and the replica.
    """

    def __init__(self, metrics: Any) -> None:
        self._metrics = metrics
        self._records: dict[str, Record] = {}

    def record(self, instrument: Instrument, value: float = 1.0, **labels: str) -> None:
        """Add to a counter, set a gauge, or put a value into a histogram; about 4 µs."""
        if instrument.kind is InstrumentKind.COUNTER and value <= 0:
            return  # Ray refuses to add nothing.
        record = self._records.get(instrument.name)
        if record is None:
            record = self._records[instrument.name] = self._make(instrument)
        record(value, labels)

    def _make(self, instrument: Instrument) -> Record:
        name, description, labels = instrument.name, instrument.description, instrument.labels
        made: Record
        match instrument.kind:
            case InstrumentKind.COUNTER:
                made = self._metrics.Counter(name, description, tag_keys=labels).inc
            case InstrumentKind.GAUGE:
                made = self._metrics.Gauge(name, description, tag_keys=labels).set
            case InstrumentKind.HISTOGRAM:
                made = self._metrics.Histogram(name, description, list(instrument.bounds), tag_keys=labels).observe
            case _ as other:
                assert_never(other)
        return made


@cache
def _ray_meter(module: str) -> Meter:
    # Imported late: ray.serve.metrics reads the replica's context when it is used.
    return RayMeter(import_module(module))


def process_meter() -> Meter:
    """Return the meter of an actor or a task; where Ray does not run, it forgets everything."""
    return _ray_meter("ray.util.metrics") if ray.is_initialized() else UNMEASURED


def replica_meter() -> Meter:
    """Return the meter of a replica; in Serve's local testing mode, where Ray does not run, it forgets everything."""
    return _ray_meter("ray.serve.metrics") if ray.is_initialized() else UNMEASURED


def watch(
    owner: object, part: str, meter: Meter, pool: Pool | None = None, *, tell: Callable[[], None] | None = None
) -> None:
    """Measure the running event loop's lag, and the use of a pool, for as long as the owner lives.

    Args:
        owner: The watching ends with it, and holds no reference to it.
        part: Label of the figures.
        meter: Records them; nothing is watched for a meter that forgets.
        pool: Connections of this process.
        tell: Records further gauges each second; it must not hold the owner.
    """
    if meter is UNMEASURED:
        return
    loop = asyncio.get_running_loop()
    # The task holds no reference to the owner, or the owner would never be collected.
    task = loop.create_task(_watch(part, meter, pool, tell), name=f"watch {part}")
    # At the end of the process there is no loop any more that could cancel the task.
    weakref.finalize(owner, _end, loop, task).atexit = False


async def _watch(part: str, meter: Meter, pool: Pool | None, tell: Callable[[], None] | None) -> None:
    loop = asyncio.get_running_loop()
    while True:
        record_pool(part, meter, pool)
        if tell is not None:
            tell()
        for _ in range(POOL_STEPS):
            began = loop.time()
            await asyncio.sleep(STEP_S)
            meter.record(LOOP_LAG, max(0.0, loop.time() - began - STEP_S), part=part)


def record_pool(part: str, meter: Meter, pool: Pool | None) -> None:
    """Record how many connections are open and idle, those for look-ups by key too, and how many callers wait."""
    if pool is None or pool.closed:
        return
    pools = {pool, pool.lookups}  # They may be one.
    figures = Counter[str]()
    for each in pools:
        figures.update(each.get_stats())
    meter.record(POOL_CONNECTIONS, figures["pool_size"], part=part)
    meter.record(POOL_IDLE, figures["pool_available"], part=part)
    meter.record(POOL_WAITING, figures["requests_waiting"], part=part)
    meter.record(POOL_LIMIT, sum(each.max_size for each in pools), part=part)


def _end(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[None]") -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(task.cancel)
