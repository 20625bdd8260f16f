"""Lamina's metrics in queries: names that are misspelt, in alerting rules and dashboards."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lamina.config_check.findings import Finding, Place, nearest_name, warning
from lamina.core.metrics import INSTRUMENTS, InstrumentKind

# Series of `/metrics` beside those of the instruments, without the prefix; a test compares with a real scrape.
_SCRAPED = (
    "up database_bytes store_rows outbox_pending outbox_lag_seconds build_pending audit_drift audit_memories "
    "embedding_generation embedding_generations_building job_runs job_interval_seconds "
    "job_last_success_timestamp_seconds cache_bytes cache_entries cache_evictions_total cache_requests_total "
    "cache_seconds_bucket cache_seconds_count cache_seconds_sum cache_shards_unreachable"
)
_SUFFIXES: Mapping[InstrumentKind, tuple[str, ...]] = {
    InstrumentKind.COUNTER: ("_total",),
    InstrumentKind.GAUGE: ("",),
    InstrumentKind.HISTOGRAM: ("_bucket", "_count", "_sum"),
}
# Every series of Lamina's; Ray puts `ray_` before those of the instruments.
SERIES = frozenset(f"lamina_{name}" for name in _SCRAPED.split()) | {
    f"{item.name}{suffix}" for item in INSTRUMENTS for suffix in _SUFFIXES[item.kind]
}
# A name, unless it is a label that is compared.
_NAME = re.compile(r"(?<![\w:])(?:ray_)?(lamina_\w+)(?![\w:])(?!\s*=[^=])")
_LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`')


def check_metric_names(document: Any) -> Iterator[Finding]:
    """Check the names of Lamina's metrics in every query of rules or a dashboard."""
    for place, query in _queries_in(document, ()):
        for name in dict.fromkeys(_NAME.findall(_LITERAL.sub('""', query))):
            close = nearest_name(name, SERIES)
            if name in SERIES:
                continue
            if close is not None:
                yield Finding(place, f"asks for {name}, which nobody measures", f"did you mean {close}?")
            else:
                yield warning(place, f"asks for {name}, which is none of Lamina's", "correct the name, if it is to be")


def _queries_in(document: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Return the text under each key `expr`, with its place."""
    items = document.items() if isinstance(document, Mapping) else ()
    for key, value in enumerate(document) if isinstance(document, list) else items:
        inner: Place = (*place, key if isinstance(key, int) else str(key))
        if key == "expr" and isinstance(value, str):
            yield inner, value
        else:
            yield from _queries_in(value, inner)
