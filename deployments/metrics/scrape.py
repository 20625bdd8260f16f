"""Collect the metrics that are read on request, for many scrapers at once."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lamina.aio.deadline import time_limit
from lamina.aio.single_flight import SingleFlight
from lamina.errors import describe_error

logger = logging.getLogger(__name__)
DEADLINE_S = 2.0
# How long a reading is repeated to other scrapers, which then costs nothing.
MAX_AGE_S = 1.0
Families = Sequence[Metric]


class Part:
    """Metrics that are read together.

    Args:
        name: Its name in ``lamina_up``.
        read: Reads them.
        max_age_s: How long a reading is repeated, and a part that failed is left alone.
        deadline_s: Seconds after which reading counts as failed.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Awaitable[Families]],
        *,
        max_age_s: float = MAX_AGE_S,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.name = name
        self._read = read
        self._max_age_s = max_age_s
        self._deadline_s = deadline_s
        self._flight = SingleFlight[str, None]()
        self._latest: Families | None = None
        self._read_at = float("-inf")
        self._is_down = False

    async def families(self) -> Families | None:
        """Return the part's metrics, or ``None`` if reading fails; many callers at once share one reading."""
        if time.monotonic() - self._read_at >= self._max_age_s:
            await self._flight.run(self.name, self._refresh)
        return self._latest

    async def close(self) -> None:
        """Cancel a reading."""
        await self._flight.close()

    async def _refresh(self) -> None:
        try:
            async with time_limit(self._deadline_s):
                self._latest = await self._read()
        except Exception as error:  # noqa: BLE001 - the other parts answer without it
            if not self._is_down:  # Once an outage, not once a scrape.
                logger.warning("metrics: %s does not answer: %s", self.name, describe_error(error))
            self._latest = None
        self._is_down = self._latest is None
        self._read_at = time.monotonic()


@dataclass(frozen=True, eq=False)  # A registry hashes its collectors.
class ReadMetrics(Collector):
    """Gives prometheus_client metrics that were read before.

    Args:
        parts: The metrics of each part; ``None`` for one that did not answer.
    """

    parts: Sequence[tuple[str, Families | None]]

    def collect(self) -> Iterable[Metric]:
        """Yield every metric, and which parts answered."""
        up = GaugeMetricFamily("lamina_up", "Whether a part of these figures could be read.", labels=["part"])
        for name, families in self.parts:
            up.add_metric([name], 0.0 if families is None else 1.0)
            yield from families or ()
        yield up


@dataclass(frozen=True, slots=True)
class Scrape:
    """Writes all parts in Prometheus's text format.

    Args:
        parts: In the order of the text.
    """

    parts: Sequence[Part]

    async def text(self) -> bytes:
        """Return the metrics; ``lamina_up`` names a part that failed or was late, whose metrics are missing."""
        families = await asyncio.gather(*(part.families() for part in self.parts))
        registry = CollectorRegistry(auto_describe=False)
        registry.register(ReadMetrics([(part.name, read) for part, read in zip(self.parts, families, strict=True)]))
        return generate_latest(registry)

    async def close(self) -> None:
        """Cancel readings."""
        await asyncio.gather(*(part.close() for part in self.parts))
