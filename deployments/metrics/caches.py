"""Write the counts and holdings of the cache layers as metrics."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from lamina.caching.shared_caches import CacheFigures
from lamina.core.cache_layers import Layer
from lamina.core.cache_stats import LATENCY_BOUNDS_S, Holding, LayerCounts, LayerOutcome


def cache_families(figures: CacheFigures) -> Iterable[Metric]:
    """Yield every metric with a sample for each layer: the number of series never depends on the traffic.

    While a shard does not answer, there are no counts: some would be missing, and a counter that
    falls and rises again looks like a burst.

    Args:
        figures: Of all shards, with the counts of every replica.
    """
    stats = figures.totals()
    if figures.is_complete:
        counts = {layer: stats.counts.get(layer, LayerCounts()) for layer in Layer}
        yield from (_requests(counts), _seconds(counts))
        yield from _holdings(stats.holdings)
    unreachable = sum(item is None for item in figures.shards.values())
    yield GaugeMetricFamily("lamina_cache_shards_unreachable", "Cache shards that do not answer.", unreachable)


def _requests(counts: Mapping[Layer, LayerCounts]) -> Metric:
    family = CounterMetricFamily(
        "lamina_cache_requests", "What came of asking a cache layer.", labels=["layer", "outcome"]
    )
    for layer, item in counts.items():
        for outcome in LayerOutcome:
            family.add_metric([layer.value, outcome.value], getattr(item, outcome.value))
    return family


def _seconds(counts: Mapping[Layer, LayerCounts]) -> Metric:
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
