"""`GET /metrics`: what is collected when it is asked for, beside the metrics that Ray exports."""

from deployments.metrics.caches import exposition
from deployments.metrics.families import store_parts
from deployments.metrics.scrape import Part, Scrape

__all__ = ["Part", "Scrape", "exposition", "store_parts"]
