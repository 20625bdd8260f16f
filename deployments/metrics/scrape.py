"""One collection for many scrapers: parts that are read together, each kept for a moment."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)
DEADLINE_S = 2.0
MAX_AGE_S = 1.0
"""For how long what was read is told again; whoever asks more often costs nothing."""
Families = Sequence[Metric]
Read = Callable[[], Awaitable[Families]]


class Part:
    """One part of the figures.

    Args:
        name: What it is called.
        read: Reads them.
        max_age_s: For how long they are told again, and for how long a part that failed is left alone.
        deadline_s: Seconds after which it counts as failed.
    """

    def __init__(self, name: str, read: Read, *, max_age_s: float = MAX_AGE_S, deadline_s: float = DEADLINE_S) -> None:
        self.name = name
        self._read = read
        self._max_age_s = max_age_s
        self._deadline_s = deadline_s
        self._reading: asyncio.Task[Families | None] | None = None
        self._read_at = float("-inf")
        self._is_down = False

    async def families(self) -> Families | None:
        """Return the part's metrics; ``None`` if they cannot be read. Many callers at once are one reading."""
        reading = self._reading
        if reading is None or (reading.done() and time.monotonic() - self._read_at >= self._max_age_s):
            reading = self._reading = asyncio.create_task(self._in_time())
        return await asyncio.shield(reading)

    async def close(self) -> None:
        """End what is being read."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading

    async def _in_time(self) -> Families | None:
        try:
            async with asyncio.timeout(self._deadline_s):
                found = await self._read()
        except Exception as error:  # noqa: BLE001 - the others are told without it
            if not self._is_down:  # Once an outage, not once a scrape.
                logger.warning("metrics: %s does not answer: %r", self.name, error)
            self._is_down = True
            return None
        else:
            self._is_down = False
            return found
        finally:
            self._read_at = time.monotonic()


class Collected(Collector):
    """Metrics that were read before.

    Args:
        found: Those of each part; ``None`` for one that did not answer.
    """

    def __init__(self, found: Sequence[tuple[str, Families | None]]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        """Yield every metric, and which parts answered."""
        up = GaugeMetricFamily("lamina_up", "Whether a part of these figures could be read.", labels=["part"])
        for name, families in self._found:
            up.add_metric([name], 0.0 if families is None else 1.0)
            yield from families or ()
        yield up


class Scrape:
    """All figures in Prometheus's text format.

    Args:
        parts: What they are made of, in their order.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    async def text(self) -> bytes:
        """Return the figures; a part that fails or is late is left out, and ``lamina_up`` says so."""
        found = await asyncio.gather(*(part.families() for part in self._parts))
        registry = CollectorRegistry(auto_describe=False)
        registry.register(Collected([(part.name, families) for part, families in zip(self._parts, found, strict=True)]))
        return generate_latest(registry)

    async def close(self) -> None:
        """End what is being read."""
        await asyncio.gather(*(part.close() for part in self._parts))
