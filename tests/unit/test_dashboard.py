"""Every figure that the dashboard shows or an alert watches exists, and every figure that is told is shown."""

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import ray
import yaml

from deployments.metrics.caches import cache_families
from deployments.metrics.families import (
    build_families,
    generation_families,
    job_families,
    lag_families,
    size_families,
)
from deployments.metrics.scrape import ReadMetrics
from lamina.caching.shared_caches import CacheFigures
from lamina.core.cache_layers import Layer
from lamina.core.cache_stats import Holding, LayerCounts, ShardStats
from lamina.core.metrics import INSTRUMENTS
from lamina.core.runs import RunState
from lamina.settings.jobs import JobsSettings
from lamina.stores.postgres.builds import Build
from lamina.stores.postgres.database_metrics import GenerationFigures, JobFigures, Sizes
from lamina.stores.postgres.outbox import Lag
from tests.support.exported_metrics import exported_names

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 28, tzinfo=UTC)
OWN_LABELS = {"tier", "source", "projection", "job_name", "outcome", "layer", "part", "operation", "state"}
ADDED_BY_RAY = {"deployment", "application", "replica", "NodeAddress", "le"}
RAY_LABELS = {*ADDED_BY_RAY, "route", "error_code", "ip", "node_ip_address"}
# Prometheus gives these to every series, and renames a series' own.
TARGET_LABELS = {"job", "instance"}
METRIC_CLASSES = {"Counter": ("{0}_total",), "Gauge": ("{0}",), "Histogram": ("{0}_bucket", "{0}_count", "{0}_sum")}
FUNCTIONS = {"sum", "max", "min", "count", "rate", "delta", "histogram_quantile", "time", "vector", "absent"}
FUNCTIONS |= {"max_over_time", "min_over_time", "increase", "label_replace"}
PROMTOOL = shutil.which("promtool")
# What PromQL means by itself; a name that looks like them is none of a metric.
WORDS = {"by", "on", "without", "ignoring", "group_left", "group_right", "and", "or", "unless", "offset", "bool"}


@cache
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "configs/grafana/lamina.json").read_text())
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "configs/prometheus/alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> dict[str, str]:
    shown = {f"{panel['title']}.{target['refId']}": target["expr"] for panel in panels() for target in panel["targets"]}
    return shown | {rule["alert"]: rule["expr"] for rule in rules()}


def metrics_of(expression: str) -> set[str]:
    """Return the metrics that a PromQL expression names: what is left without texts, labels, ranges and functions."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\boffset\s+\w+", "", bare)
    names = re.findall(r"(?<![\w.])[A-Za-z_:][\w:]*(?!\w)(?!\s*\()", bare)
    return {name for name in names if name not in WORDS}


def labels_of(expression: str) -> set[str]:
    """Return the labels that an expression asks for."""
    matched = re.findall(r"[{,]\s*(\w+)\s*[=!]~?", re.sub(r'"[^"]*"', '""', expression))
    grouped = re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", expression)
    return {*matched, *(label.strip() for group in grouped for label in group.split(",") if label.strip())}


@cache
def collected() -> Mapping[str, set[str]]:
    """Return the labels of everything that `/metrics` can tell, by its name."""
    counts = dict.fromkeys(Layer, LayerCounts())
    figures = CacheFigures({}, {"cache-0": ShardStats(dict.fromkeys(Layer, Holding()), counts)})
    jobs = JobFigures({("audit", RunState.DONE): 1}, {"audit": NOW}, drift=1, audited=2)
    families = [
        *cache_families(figures),
        *lag_families({"notes": Lag(1, 2.0)}),
        *build_families([Build("notes", 1, 3)]),
        *size_families(Sizes({"notes": 1.0}, 2)),
        *generation_families(GenerationFigures(1, 0)),
        *job_families(jobs, JobsSettings(), NOW),
    ]
    samples = [sample for family in ReadMetrics([("all", families)]).collect() for sample in family.samples]
    return {sample.name: set(sample.labels) for sample in samples}


@cache
def recorded() -> Mapping[str, set[str]]:
    """Return the labels of everything that is recorded through Ray, by its names; Ray adds its own."""
    return {name: {*item.labels, *ADDED_BY_RAY} for item in INSTRUMENTS for name in exported_names(item)}


@cache
def names_of_ray() -> frozenset[str]:
    """Return what the installed Ray exports, as its source defines it."""
    package = Path(ray.__file__).parent
    files = [*(package / "serve/_private").rglob("*.py"), package / "dashboard/modules/reporter/reporter_agent.py"]
    return frozenset(name for file in files for name in _defined_in(ast.parse(file.read_text())))


def _defined_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        kind = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        named = [keyword.value for keyword in node.keywords if keyword.arg == "name"]
        for value in [*node.args[:1], *named]:
            if kind in METRIC_CLASSES and (name := _written(value)):
                yield from _exported(kind, name)


def _written(value: ast.AST) -> str:
    """Return a text as it stands in the source; what is put into it there is the protocol, HTTP for us."""
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_written(part) or "http" for part in parts)
        case _:
            return ""


def _exported(kind: str, name: str) -> list[str]:
    if kind == "Counter" and name.endswith("_total"):
        return [f"ray_{name}"]
    return [f"ray_{form.format(name)}" for form in METRIC_CLASSES[kind]]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("up", {"up"}),
        ('sum by (le, job) (rate(a_bucket{job="b",x!~"c"}[$__rate_interval]))', {"a_bucket"}),
        ("time() - max by (job) (a_b) > 3 * max(c)", {"a_b", "c"}),
        ("a / on (layer) group_left (d) b offset 30m unless c", {"a", "b", "c"}),
        ("increase((sum by (d) (a_total))[15m:1m]) > 1e3", {"a_total"}),
        ("histogram_quantile(0.95, max(a_bucket)) and b == 0", {"a_bucket", "b"}),
    ],
)
def test_the_metrics_of_an_expression_are_found(expression: str, names: set[str]) -> None:
    assert metrics_of(expression) == names


def test_rays_own_names_are_found_in_its_source() -> None:
    assert names_of_ray() >= {
        "ray_serve_deployment_queued_queries",
        "ray_serve_deployment_processing_latency_ms_bucket",
        "ray_serve_health_check_failures_total",
        "ray_serve_num_http_error_requests_total",
        "ray_node_mem_used",
    }


def known_labels(metric: str) -> set[str] | None:
    """Return the labels that a metric may have; ``None`` if there is no such metric."""
    if metric in names_of_ray():
        return RAY_LABELS
    return {"up": TARGET_LABELS, **collected(), **recorded()}.get(metric)


@pytest.mark.parametrize("expression", expressions().values(), ids=expressions())
def test_every_metric_that_is_shown_or_watched_exists_with_the_labels_it_is_asked_for(expression: str) -> None:
    known = {metric: known_labels(metric) for metric in metrics_of(expression)}

    assert known
    assert [metric for metric, labels in known.items() if labels is None] == []
    assert labels_of(expression) <= {label for labels in known.values() for label in labels or ()}


@pytest.mark.parametrize("expression", expressions().values(), ids=expressions())
def test_every_expression_is_balanced_and_calls_what_prometheus_has(expression: str) -> None:
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing)
    assert set(re.findall(r"(\w+)\s*\(", re.sub(r"\b(by|on)\s*\(", "", expression))) <= FUNCTIONS | {"and", "or"}


def test_every_metric_that_is_told_is_shown_or_watched() -> None:
    used = {name for expression in expressions().values() for name in metrics_of(expression)}
    families = {re.sub("_(bucket|count|sum)$", "", name) for name in collected()}

    assert [item.name for item in INSTRUMENTS if not used & set(exported_names(item))] == []
    assert [name for name in sorted(families) if not used & {name, f"{name}_bucket"}] == []


def test_what_is_told_has_bounded_labels_that_nobody_else_gives() -> None:
    labels = {label for labels in collected().values() for label in labels} - {"le"}
    labels |= {label for item in INSTRUMENTS for label in item.labels}

    assert labels == OWN_LABELS
    assert not labels & (TARGET_LABELS | RAY_LABELS)


def test_the_dashboard_is_found_again_and_takes_any_prometheus() -> None:
    board = dashboard()

    assert (board["uid"], board["id"], board["title"]) == ("lamina", None, "Lamina")
    assert board["schemaVersion"] >= 39
    assert [item["type"] for item in board["templating"]["list"]] == ["datasource"]
    assert {panel["datasource"]["uid"] for panel in panels()} == {"${datasource}"}
    assert all(target["datasource"]["uid"] == "${datasource}" for panel in panels() for target in panel["targets"])


def test_the_panels_are_described_and_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + right, place["y"] + down) for right in range(place["w"]) for down in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells

    numbers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert all(panel["description"].endswith(".") for panel in panels())


def test_the_rows_go_from_what_callers_see_to_what_runs_below() -> None:
    rows = [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]

    assert rows == [
        "Overview",
        "Searches",
        "Agents",
        "Sources",
        "Embedder",
        "Writes and indexer",
        "Caches",
        "Outbox and stores",
        "Jobs",
        "Saturation",
        "Ray Serve",
    ]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_how_grave_it_is_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert set(rule["annotations"]) == {"summary", "action"}
    assert "{{" in rule["annotations"]["summary"]
    assert len(rule["annotations"]["action"]) > 30


def test_the_alerts_are_all_different() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules()) >= 20


def test_prometheus_is_told_of_the_service_of_ray_and_of_the_alerts() -> None:
    scrape = yaml.safe_load((ROOT / "configs/prometheus/scrape.yaml").read_text())
    jobs = {job["job_name"]: job for job in scrape["scrape_configs"]}

    assert scrape["rule_files"] == ["alerts.yaml"]
    assert jobs["lamina"]["metrics_path"] == "/metrics"
    assert jobs["ray"]["file_sd_configs"][0]["files"] == ["/tmp/ray/prom_metrics_service_discovery.json"]  # noqa: S108


def test_on_kubernetes_the_same_is_scraped_from_pods_and_ports_that_there_are() -> None:
    monitors = yaml.safe_load_all((ROOT / "configs/prometheus/podmonitor.yaml").read_text())
    cluster = next(yaml.safe_load_all(_service_of_kuberay()))["spec"]["rayClusterConfig"]
    scrape = yaml.safe_load((ROOT / "configs/prometheus/scrape.yaml").read_text())
    pods = [group["template"] for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]]

    jobs = dict(_monitored(monitor, pods) for monitor in monitors)

    assert set(jobs) == {job["job_name"] for job in scrape["scrape_configs"]}
    assert jobs == {"lamina": {8000}, "ray": {8080}}


def _service_of_kuberay() -> str:
    documents = (ROOT / "configs/kuberay/service.yaml").read_text().split("\n---\n")
    return next(text for text in documents if "\nkind: RayService\n" in f"\n{text}")


def _monitored(monitor: dict[str, Any], pods: list[dict[str, Any]]) -> tuple[str, set[int]]:
    """Return the job of a monitor and the ports of the pods it selects; each has the one that it names."""
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (job,) = [item["replacement"] for item in endpoint["relabelings"] if item["targetLabel"] == "job"]
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    selected = [pod["spec"]["containers"][0]["ports"] for pod in pods if wanted <= pod["metadata"]["labels"].items()]
    named = [[port["containerPort"] for port in ports if port["name"] == endpoint["port"]] for ports in selected]
    assert all(len(found) == 1 for found in named)
    return job, {port for found in named for port in found}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool, which comes with Prometheus, is not installed")
def test_the_alerts_fire_when_they_should_and_only_then() -> None:
    cases = Path(__file__).with_name("alerts.yaml")

    ended = subprocess.run([str(PROMTOOL), "test", "rules", cases], capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr + ended.stdout
