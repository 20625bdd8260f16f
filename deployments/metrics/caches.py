"""What the caches did and hold, as Prometheus reads it; collected when it is asked for."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lamina.caching.shared_caches import CacheFigures
from lamina.core.cache_layers import Layer
from lamina.core.cache_stats import LATENCY_BOUNDS_S, Counts, Holding, Outcome


class CacheCollector(Collector):
    """Turns figures into metrics; the layer is their only label beside the outcome, so that there are always as many.

    While a shard does not answer, there are no counts: some would be missing, and a counter that
    falls and rises again looks like a burst.

    Args:
        figures: Of all shards; every replica's counts are in there.
    """

    def __init__(self, figures: CacheFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """Yield every metric with a sample for each layer."""
        stats = self._figures.totals()
        if self._figures.is_complete:
            counts = {layer: stats.counts.get(layer, Counts()) for layer in Layer}
            yield from (_requests(counts), _seconds(counts))
            yield from _holdings(stats.holdings)
        unreachable = sum(item is None for item in self._figures.shards.values())
        yield GaugeMetricFamily("lamina_cache_shards_unreachable", "Cache shards that do not answer.", unreachable)


def exposition(figures: CacheFigures) -> bytes:
    """Return the metrics in Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CacheCollector(figures))
    return generate_latest(registry)


def _requests(counts: Mapping[Layer, Counts]) -> Metric:
    family = CounterMetricFamily(
        "lamina_cache_requests", "What came of asking a cache layer.", labels=["layer", "outcome"]
    )
    for layer, item in counts.items():
        for outcome in Outcome:
            family.add_metric([layer.value, outcome.value], getattr(item, outcome.value))
    return family


def _seconds(counts: Mapping[Layer, Counts]) -> Metric:
    family = HistogramMetricFamily(
        "lamina_cache_seconds", "How long a cache layer took to answer, in seconds.", labels=["layer"]
    )
    for layer, item in counts.items():
        bounds = (*map(str, LATENCY_BOUNDS_S), "+Inf")
        sums = [sum(item.buckets[: place + 1]) for place in range(len(bounds))]
        family.add_metric([layer.value], list(zip(bounds, sums, strict=True)), item.seconds)
    return family


def _holdings(holdings: Mapping[Layer, Holding]) -> Iterable[Metric]:
    entries = GaugeMetricFamily("lamina_cache_entries", "Entries that a cache layer holds.", labels=["layer"])
    size = GaugeMetricFamily("lamina_cache_bytes", "Bytes that they take, about.", labels=["layer"])
    evictions = CounterMetricFamily("lamina_cache_evictions", "Entries given up for want of room.", labels=["layer"])
    for layer, holding in holdings.items():
        entries.add_metric([layer.value], holding.entries)
        size.add_metric([layer.value], holding.size_bytes)
        evictions.add_metric([layer.value], holding.evictions)
    return entries, size, evictions
