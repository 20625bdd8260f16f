"""Prometheus's rules and scrape configuration, and Grafana's dashboards."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lamina.config_check.findings import Finding, Place, nearest, repeated, under, warning
from lamina.config_check.shapes import (
    ANYTHING,
    COUNT,
    FLAG,
    LABELS,
    OPEN,
    TEXT,
    TEXTS,
    Either,
    Keyed,
    Listed,
    Mapped,
    Number,
    Text,
    keyed,
    unchecked,
)
from lamina.core.metrics import INSTRUMENTS, Kind

_UNIT = r"(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?"
DURATION = Text(pattern=rf"(?=\d)({_UNIT})|0", meaning="a duration, as in 30s or 5m")
_NAME = Text(pattern=r"[A-Za-z_:][A-Za-z0-9_:]*", meaning="a metric's name: letters, digits, _ and :")
_LABELS = Mapped(Either((TEXT, Number(), FLAG)))
RULE = keyed(
    "expr",
    alert=TEXT,
    record=_NAME,
    expr=Either((Text(pattern=r"(?s).*\S.*", meaning="an expression"), Number())),
    for_=DURATION,
    keep_firing_for=DURATION,
    labels=_LABELS,
    annotations=LABELS,
)
RULE = Keyed({key.rstrip("_"): shape for key, shape in RULE.keys.items()}, RULE.required)
GROUP = keyed(
    "name rules",
    name=TEXT,
    interval=DURATION,
    limit=COUNT,
    query_offset=DURATION,
    labels=LABELS,
    partial_response_strategy=TEXT,
    rules=Listed(RULE, least=1),
)
RULES = keyed("groups", groups=Listed(GROUP, least=1))
STATIC = keyed("targets", targets=TEXTS, labels=LABELS)
RELABEL = keyed(
    "",
    source_labels=TEXTS,
    separator=TEXT,
    target_label=TEXT,
    regex=Either((TEXT, Number())),
    modulus=COUNT,
    replacement=TEXT,
    action=Text(
        (
            "replace", "lowercase", "uppercase", "keep", "drop", "keepequal", "dropequal", "hashmod", "labelmap",
            "labeldrop", "labelkeep",
        )
    ),
)  # fmt: skip
_DISCOVERIES = "azure consul digitalocean dns docker dockerswarm ec2 eureka file gce hetzner http ionos kubernetes kuma"
SCRAPE = keyed(
    "job_name",
    job_name=TEXT,
    scrape_interval=DURATION,
    scrape_timeout=DURATION,
    metrics_path=Text(pattern=r"/\S*", meaning="a path that begins with /"),
    scheme=Text(("http", "https")),
    static_configs=Listed(STATIC),
    relabel_configs=Listed(RELABEL),
    metric_relabel_configs=Listed(RELABEL),
    honor_labels=FLAG,
    honor_timestamps=FLAG,
    params=OPEN,
    sample_limit=COUNT,
    label_limit=COUNT,
    **unchecked(" ".join(f"{name}_sd_configs" for name in _DISCOVERIES.split())),
    **unchecked(
        "basic_auth authorization oauth2 tls_config follow_redirects enable_http2 proxy_url body_size_limit "
        "target_limit label_name_length_limit label_value_length_limit scrape_protocols enable_compression "
        "track_timestamps_staleness scrape_fallback_protocol always_scrape_classic_histograms"
    ),
)
SCRAPING = keyed(
    "",
    scrape_configs=Listed(SCRAPE),
    rule_files=TEXTS,
    **{"global": keyed("", scrape_interval=DURATION, scrape_timeout=DURATION, evaluation_interval=DURATION,
                       external_labels=LABELS, **unchecked("query_log_file body_size_limit sample_limit"))},
    **unchecked("alerting remote_write remote_read storage tracing scrape_config_files runtime otlp"),
)  # fmt: skip
PROVISIONING = keyed("apiVersion", apiVersion=COUNT, **unchecked("providers datasources deleteDatasources prune"))
TARGET = Mapped(ANYTHING)
WITHOUT_TARGETS = ("row", "text", "news", "dashlist", "alertlist", "welcome", "gettingstarted", "pluginlist")
_SCRAPED = (
    "up database_bytes store_rows outbox_pending outbox_lag_seconds build_pending audit_drift audit_memories "
    "embedding_generation embedding_generations_building job_runs job_interval_seconds "
    "job_last_success_timestamp_seconds cache_bytes cache_entries cache_evictions_total cache_requests_total "
    "cache_seconds_bucket cache_seconds_count cache_seconds_sum cache_shards_unreachable"
)
"""What `/metrics` tells beside the instruments, without the prefix; a test compares with a real scrape."""
_SERIES: Mapping[Kind, tuple[str, ...]] = {
    Kind.COUNTER: ("_total",),
    Kind.GAUGE: ("",),
    Kind.HISTOGRAM: ("_bucket", "_count", "_sum"),
}
SERIES = frozenset(f"lamina_{name}" for name in _SCRAPED.split()) | {
    f"{item.name}{suffix}" for item in INSTRUMENTS for suffix in _SERIES[item.kind]
}
"""Every series of Lamina's; Ray puts `ray_` before those of the instruments."""
_OURS = re.compile(r"(?<![\w:])(?:ray_)?(lamina_\w+)(?![\w:])(?!\s*=[^=])")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`')


def check_rules(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return what is wrong with a file of alerting and recording rules."""
    found = list(RULES.check(document, ()))
    yield from found
    if not found:
        yield from contradictions_in(document)


def contradictions_in(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return what is wrong with rules that have their shape."""
    yield from repeated([group["name"] for group in document["groups"]], ("groups",), "name")
    for number, group in enumerate(document["groups"]):
        for position, rule in enumerate(group["rules"]):
            yield from under(_rule(rule), "groups", number, "rules", position)


def _rule(rule: Mapping[str, Any]) -> Iterator[Finding]:
    kinds = [name for name in ("alert", "record") if name in rule]
    if len(kinds) != 1:
        yield Finding((), "is neither an alert nor a recording" if not kinds else "is both", "write alert or record")
    if "record" in rule and ("for" in rule or "annotations" in rule):
        yield Finding((), "records, and has `for` or `annotations`", "they belong to alerts: take them out")
    if "alert" in rule and not (rule.get("annotations") or {}).get("summary"):
        yield warning(("annotations", "summary"), "is missing", "say what is wrong and what to do")
    yield from check_query(str(rule["expr"]), ("expr",))


def check_query(expression: str, place: Place) -> Iterator[Finding]:
    """Return what is wrong with a query: its brackets, and names of series that are nearly Lamina's."""
    yield from unbalanced(expression, place)
    for name in dict.fromkeys(_OURS.findall(_LITERAL.sub('""', expression))):
        close = None if name in SERIES else nearest(name, SERIES)
        if close is not None:
            yield Finding(place, f"asks for {name}, which nobody measures", f"did you mean {close}?")
        elif name not in SERIES:
            yield warning(place, f"asks for {name}, which is none of Lamina's", "correct the name, if it is to be")


def unbalanced(expression: str, place: Place) -> Iterator[Finding]:
    """Return the first bracket of a query that has no partner."""
    stack: list[str] = []
    for sign in _LITERAL.sub("", expression):
        if sign in "([{":
            stack.append(sign)
        elif sign in _PAIRS and (not stack or stack.pop() != _PAIRS[sign]):
            yield Finding(place, f"closes a {sign} that nothing opened", "correct the expression")
            return
    if stack:
        yield Finding(place, f"leaves {stack[-1]} open", "close it")


def check_scraping(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return what is wrong with Prometheus's own configuration."""
    yield from SCRAPING.check(document, ())
    jobs = document.get("scrape_configs")
    names = [job.get("job_name") for job in jobs if isinstance(job, Mapping)] if isinstance(jobs, list) else []
    yield from repeated(names, ("scrape_configs",), "job_name")


def check_dashboard(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return what is wrong with a Grafana dashboard, as it is exported or imported."""
    inner = document.get("dashboard")
    if isinstance(inner, Mapping):
        yield from under(check_dashboard(inner), "dashboard")
        return
    if not isinstance(document.get("title"), str):
        yield Finding(("title",), "is missing", "name the dashboard")
    panels = document.get("panels")
    if not isinstance(panels, list) or not panels:
        yield Finding(("panels",), "is no list of panels", "give the dashboard some")
        return
    for place, panel in _panels(panels, ("panels",)):
        yield from under(_panel(panel), *place)
    yield from repeated([panel.get("id") for _, panel in _panels(panels, ())], ("panels",), "id")


def _panels(panels: list[Any], place: Place) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Return the panels with those in rows, and where each stands."""
    for number, panel in enumerate(panels):
        if not isinstance(panel, Mapping):
            continue
        yield (*place, number), panel
        inner = panel.get("panels")
        if isinstance(inner, list):
            yield from _panels(inner, (*place, number, "panels"))


def _panel(panel: Mapping[str, Any]) -> Iterator[Finding]:
    if not isinstance(panel.get("type"), str):
        yield Finding(("type",), "is missing", "say what kind of panel it is, as in timeseries")
    if not panel.get("title") and panel.get("type") not in WITHOUT_TARGETS:
        yield warning(("title",), "is missing", "say what the panel shows")
    if panel.get("type") in WITHOUT_TARGETS:
        return
    targets = panel.get("targets")
    if not isinstance(targets, list) or not targets:
        yield Finding(("targets",), "is no list of queries", "give the panel one")
        return
    for number, target in enumerate(targets):
        yield from _target(target, ("targets", number))
    yield from repeated([item.get("refId") for item in targets if isinstance(item, Mapping)], ("targets",), "refId")


def _target(target: Any, place: Place) -> Iterator[Finding]:
    expression = target.get("expr") if isinstance(target, Mapping) else None
    if not isinstance(expression, str) or not expression.strip():
        yield Finding((*place, "expr"), "is missing", "write the query")
    else:
        yield from check_query(expression, (*place, "expr"))
