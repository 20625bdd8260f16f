# ruff: noqa: E501 - a table of mistakes reads better whole

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from typer.testing import CliRunner

from deployments.serve_schema import check_serve_schema
from lamina.cli.commands import app
from lamina.config_check import ConfigFile, check_files, settings_as_yaml
from lamina.config_check import ray_variables as flags
from lamina.config_check.connections import DRIVEN_RUNS, STAMPS_POOL, connection_demands
from lamina.config_check.consistency import ACCELERATORS, TIERS_BY_STORE
from lamina.config_check.metric_names import SERIES
from lamina.config_check.ray_clusters import RAY_VERSION
from lamina.config_check.serve import BUILDER
from lamina.config_check.settings_file import read_settings, variable_names
from lamina.core.metrics import INSTRUMENTS
from lamina.settings.loading import Settings
from lamina.settings.stores import Neo4jServerSettings, PostgresServerSettings, QdrantServerSettings

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
FILES = sorted(path for path in CONFIGS.rglob("*") if path.suffix in {".yaml", ".yml", ".json"})
CLUSTER = "postgres: {kind: server}\ngraph: {kind: neo4j, url: 'neo4j://g'}\n"
QDRANT = "hybrid: {kind: qdrant, url: 'http://q'}\nvectors: {kind: qdrant, url: 'http://q'}\n"


def findings(*files: ConfigFile) -> list[str]:
    """Return errors and warnings, in one line each."""
    return [str(found) for _, found in check_files(files, check_serve_schema) if found.severity != "note"]


def notes(text: str, name: str) -> list[str]:
    return [str(found) for _, found in check_files([ConfigFile(name, text)]) if found.severity == "note"]


def findings_in(text: str, name: str = "file.yaml") -> list[str]:
    return findings(ConfigFile(name, text))


def only_finding(text: str, name: str = "file.yaml") -> str:
    (finding,) = findings_in(text, name)
    return finding


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CONFIGS)))
def test_nothing_is_wrong_with_a_file_that_is_shipped(path: Path) -> None:
    assert findings_in(path.read_text(), path.name) == []


def test_nothing_is_wrong_with_all_of_them_together() -> None:
    assert findings(*(ConfigFile(path.name, path.read_text()) for path in FILES)) == []


SETTINGS = {
    "serach: {limit: 5}": r"serach: is not known; did you mean search\?",
    "search: {limits: 5}": r"search\.limits: is not known; did you mean limit\?",
    "search: {max_size: 5}": r"search\.max_size: is not known; it stands in pool\.max_size",
    "search: {xyzzy: 5}": r"search\.xyzzy: is not known; remove it; known are .* and others",
    "search: {limit: 0}": r"search\.limit: is 0; it should be greater than or equal to 1 \(Fused hits returned",
    "search: {limit: many}": r"search\.limit: is 'many'; it should be a valid integer",
    "search: 5": r"search: is 5; it should be a valid dictionary",
    "graph: {kind: off}": r"graph\.kind: is false; write \"off\" in quotes",
    "postgres: {kind: sqlite}": r"postgres\.kind: is 'sqlite'; choose one of embedded, server",
    "graph: {kind: neo4j}": r"graph\.url: is missing; write it: Connection URL",
    "hybrid: {kind: meilisearch, url: 'redis://x'}": r"hybrid\.url: is 'redis://x'; string should match",
    "postgres: {kind: server, pooling: transactions}": r"postgres\.pooling: is 'transactions'; it should be 'session'",
    "serve: {searchers: {note: {max_replicas: 2}}}": r"serve\.searchers\.note: is not known; did you mean notes\?",
    "serve: {router: {min_replicas: 3}}": r"serve\.router: min_replicas is 3, more than max_replicas \(1\); correct one",
    "jobs: {schedule: {sweep: hourly}}": r"jobs\.schedule: sweep is 'hourly'; write five cron fields",
    "jobs: {schedule: {sweep: off}}": r"jobs\.schedule\.sweep: is False; it should be a valid string, in quotes",
    "jobs: {task_resources: {lamina_batch: much}}": r"jobs\.task_resources\.lamina_batch: is 'much'; it should be a valid",
    "embedding: {threads: 0}": r"embedding\.threads: is 0; it should be greater",
    "postgres: {kind: server, url: 'postgresql://me:s3cret@db/x'}": r"postgres\.url: warning: is a secret in a file; .*"
    r"LAMINA_POSTGRES__URL",
    "hybrid: {kind: qdrant, url: 'http://q', api_key: s3cret}": r"hybrid\.api_key: warning: is a secret in a file",
    "serve: {searchers: {notes: {max_replicas: 2}}}": r"serve\.searchers\.notes\.max_replicas: is 2, but hybrid\.kind keeps "
    r"the index in one process; write 1",
    "serve: {router: {target_ongoing_requests: 300}}": r"serve\.router\.target_ongoing_requests: is 300, more than a "
    r"replica accepts",
    "serve: {router: {max_replicas: 2, upscale_delay_s: 500}}": r"serve\.router\.downscale_delay_s: warning: is 120, less",
    "serve: {embedder: {health_check_timeout_s: 1}}": r"serve\.embedder\.health_check_timeout_s: warning: is 1, less than "
    r"search\.tier_deadline_s \(1\.5\)",
    "serve: {searchers: {graph: {drain_s: 0.5}}}": r"serve\.searchers\.graph\.drain_s: warning: is 0\.5, less",
    "search: {tier_deadline_s: 0.5}": r"search\.tier_deadline_s: warning: is 0\.5, less than search\.source_deadline_s",
    "pool: {timeout_s: 0.5}": r"pool\.timeout_s: warning: is 0\.5, less than search\.source_deadline_s",
    "postgres: {kind: server}\npool: {max_size: 20}": r"pool\.max_size: warning: is 20: all processes may open \d+ "
    r"connections \(routers 1 × 22, .*the server accepts 97",
    "postgres: {kind: server, url: 'mysql://db/x'}": r"postgres\.url: is 'mysql://db/x'; write postgresql://",
    "postgres: {kind: server, url: '${DATABASE_URL}'}": r"postgres\.url: is '\$\{DATABASE_URL\}', in which nobody fills .*"
    r"LAMINA_POSTGRES__URL",
    "postgres: {kind: server, url: 'postgresql://db/x?sslmod=require'}": r"postgres\.url: cannot be read: 'postgresql://db",
    "postgres: {kind: server, url: 'postgresql://db/x?sslmode=verify'}": r"postgres\.url: has sslmode=verify; did you mean",
    "postgres: {kind: server, url: 'postgresql://db:543222/x'}": r"postgres\.url: has the port 543222; write one of 1 to",
    "postgres: {kind: server, url: 'postgresql://a,b:1,b:x/x'}": r"postgres\.url: has the port x; write one of 1 to",
    "postgres: {kind: server, url: 'postgresql://me@s@db/x'}": r"postgres\.url: has an @ in its host, .*; write %40",
    "postgres: {kind: server, url: 'postgresql://db/x', pooling: transaction}": r"postgres\.direct_url: warning: is missing",
    "hybrid: {kind: qdrant, url: 'qdrant:6333'}": r"hybrid\.url: is 'qdrant:6333'; write http://host:6333",
    "vectors: {kind: qdrant, url: 'http://q:6333333'}": r"vectors\.url: is 'http://q:6333333'; write a port",
    "hybrid: {kind: qdrant, url: 'http://q:6334'}": r"hybrid\.url: warning: has the port 6334, on which Qdrant speaks gRPC",
    "graph: {kind: falkordb, url: 'falkor://h:6379'}": r"graph\.url: is 'falkor://h:6379'; write redis://host:6379",
    "jobs: {schedule: {sweep: '61 * * * *'}}": r"jobs\.schedule\.sweep: is '61 \* \* \* \*': .*; write minute hour",
    "write: {extraction: language_model}": r"language_model\.base_url: is missing, and write\.extraction is language_model",
    "jobs: {summaries: {by: language_model}}": r"language_model\.model: is missing, and jobs\.summaries\.by is",
    "serve: {embedder: {accelerator: nvidia-l4}}": r"serve\.embedder\.accelerator: warning: is nvidia-l4, .*; did you mean L4\?",
    "serve: {router: {resources: {CPU: 1}}}": r"serve\.router\.resources: CPU is counted by Ray itself; take it out, and set",
    "jobs: {task_resources: {memory: 1}}": r"jobs\.task_resources: memory is counted by Ray itself; take it out, and set",
    "search: {rrf_weights: {session_vector: 1}}": r"search\.rrf_weights\.session_vector\.\[key\]: is 'session_vector'; it",
    "search: [1": r"line 1: cannot be read: .*; correct the YAML",
    "a:\n  b: 1\n  b: 2": r"line 3: cannot be read: the key b stands twice",
    "- 1": r"document: is no mapping",
    "a: 2026-13-45": r"document: cannot be read: month must be in 1\.\.12; correct the YAML",
    "search: {limit: 1}\n---\nsearch: {limit: 2}": r"document: holds 2 documents",
}


@pytest.mark.parametrize("text", SETTINGS)
def test_a_mistake_in_the_settings_is_told_with_its_place_and_remedy(text: str) -> None:
    found = findings_in(text)

    assert any(re.match(SETTINGS[text], line) for line in found), found
    assert len(found) <= 2


def test_all_mistakes_of_a_file_are_told_at_once() -> None:
    found = findings_in("serach: 1\nsearch: {limit: 0, rrf_k: x}\ngraph: {kind: neo4j}")

    assert [line.partition(":")[0] for line in found] == ["graph.url", "search.limit", "search.rrf_k", "serach"]


@pytest.mark.parametrize(
    "text",
    [
        "postgres: {kind: server, url: 'postgresql://me:s3cret@db/x', extra: 's3cret'}",
        "hybrid: {kind: qdrant, api_kye: s3cret, url: 5}",
        "graph: {kind: neo4j, passwort: s3cret}",
        "graph: {password: s3cret}",
        "language_model: {api_key: [s3cret]}",
        "embedding: {kind: 'postgresql://me:s3cret@db/x'}",
    ],
)
def test_no_finding_tells_a_secret(text: str) -> None:
    found = findings_in(text)

    assert found
    assert "s3cret" not in " ".join(found)


def test_settings_that_leave_the_database_to_the_environment_are_right() -> None:
    assert findings_in(CLUSTER + QDRANT + "pool: {max_size: 2}") == []


def test_behind_a_pooler_the_sum_of_the_pools_does_not_matter() -> None:
    assert findings_in("postgres: {kind: server, pooling: transaction}\npool: {max_size: 50}") == []


SERVE = """
http_options: {request_timeout_s: 1300}
applications:
  - name: lamina
    import_path: deployments.app:build
"""
SERVING = {
    SERVE + "    route_prefx: /": r"applications\.0\.route_prefx: is not known; did you mean route_prefix\?",
    SERVE.replace("deployments.app:build", "deployments/app.py"): r"applications\.0\.import_path: warning: is "
    r"'deployments/app\.py', which is not Lamina's application; did you mean deployments\.app:build\?",
    SERVE + "    args: {serch: {limit: 2}}": r"applications\.0\.args\.serch: is not known; did you mean search\?",
    SERVE + "    args: {postgres: {kind: embedded}}": r"applications\.0\.args\.postgres\.kind: is embedded, which only",
    SERVE + "    args: {jobs: {parallelism: 2}}": r"applications\.0\.args\.jobs\.archival\.url: is not set: .*a folder of one node",
    SERVE + "    args: {jobs: {archival: {url: /data/archive}}}": r"applications\.0\.args\.jobs\.archival\.url: is /data/archive: it is",
    SERVE + "    args: {jobs: {archival: {url: 'file:///a'}}}": r"applications\.0\.args\.jobs\.archival\.url: is file:///a",
    SERVE + "    args: {graph: {kind: embedded}}": r"applications\.0\.args\.graph\.kind: is embedded, which only",
    SERVE + "    args: {serve: {searchers: {documents: {max_replicas: 2}}}}": r"applications\.0\.args\.serve\.searchers\.",
    SERVE + "    runtime_env: {working_dir: .}": r"applications\.0\.runtime_env: .*Expected URI",
    SERVE + "    runtime_env: {workingdir: 'local:///x'}": r"applications\.0\.runtime_env\.workingdir: is not known; did",
    SERVE + "    runtime_env: {env_vars: {RAY_SERVE_ENABLE_HAPROXY: '1'}}": r"applications\.0\.runtime_env\.env_vars\."
    r"RAY_SERVE_ENABLE_HAPROXY: is no variable of Ray's; did you mean RAY_SERVE_ENABLE_HA_PROXY",
    SERVE + "    runtime_env: {env_vars: {RAY_SERVE_ENABLE_HA_PROXY: '1'}}": r"applications\.0\.runtime_env\.env_vars\."
    r"RAY_SERVE_ENABLE_HA_PROXY: warning: comes too late",
    SERVE + "    deployments: [{name: Router, num_replica: 2}]": r"applications\.0\.deployments\.0\.num_replica: is not",
    SERVE + "    deployments: [{name: Router, max_surge_percent: 200}]": r"applications\.0\.deployments\.0\.max_surge_",
    SERVE + "    deployments: [{name: Router}]": r"applications\.0\.deployments: warning: goes before what `serve`",
    SERVE + "  - {name: lamina, import_path: 'a.b:c'}": r"applications: Found multiple configs for application",
    SERVE.replace("request_timeout_s: 1300", "port: 8000"): r"http_options\.request_timeout_s: warning: is missing",
    SERVE.replace("1300", "120"): r"http_options\.request_timeout_s: warning: is 120, less than write\.embed_deadline_s, "
    r"documents\.parse_deadline_s and documents\.embed_budget_s \(1290\); raise it",
    SERVE + "    args: {erasure: {wait_s: 4000}}": r"http_options\.request_timeout_s: warning: is 1300, less than erasure\.wait_s",
    SERVE.replace("request_timeout_s: 1300", "request_timeout_s: 1300, port: many"): r"http_options\.port: is 'many'; it",
    SERVE + "proxy_location: EveryNodes": r"proxy_location: is 'EveryNodes'; it should be 'Disabled', 'HeadOnly' or 'EveryNode'",
    SERVE.replace("app:build", "app.build") + "    args: {serch: {limit: 2}}": r"applications\.0\.args\.serch: is not known",
    "http_options: {request_timeout_s: 120}": r"applications: is missing",
}  # fmt: skip


@pytest.mark.parametrize("text", SERVING)
def test_a_mistake_in_serves_configuration_is_told(text: str) -> None:
    found = findings_in(text)

    assert any(re.match(SERVING[text], line) for line in found), found


def test_serves_configuration_may_name_a_folder_or_a_package() -> None:
    for uri in ("local:///lamina", "https://host/lamina.zip", "s3://bucket/lamina.tar.gz", "gs://b/l.whl"):
        assert findings_in(SERVE + f"    runtime_env: {{working_dir: '{uri}'}}") == []


def edited(name: str, before: str, after: str) -> str:
    text = (CONFIGS / name).read_text()
    assert before in text
    return text.replace(before, after, 1)


MANIFESTS = {
    ("kuberay/service.yaml", "      source_deadline_s: 1.0", "      source_deadlines_s: 1.0"): r"ConfigMap lamina-settings\."
    r"data\.settings\.yaml\.search\.source_deadlines_s: is not known; did you mean source_deadline_s",
    ("kuberay/service.yaml", "        args: {}", "        args: {serch: {}}"): r"RayService lamina\.spec\.serveConfigV2\."
    r"applications\.0\.args\.serch: is not known",
    ("kuberay/service.yaml", "      host: 0.0.0.0", "      host: 127.0.0.1"): r"RayService lamina\.spec\.serveConfigV2\."
    r"http_options\.host: is 127\.0\.0\.1: no other pod reaches it",
    ("kuberay/service.yaml", "      request_timeout_s: 1300", "      request_timeout_s: [1300"): r"RayService lamina\.spec\."
    r"serveConfigV2\.line \d+: cannot be read",
    ("kuberay/service.yaml", "LAMINA_HYBRID__API_KEY", "LAMINA_HYBRID__APIKEY"): r"RayService lamina\.spec\."
    r"rayClusterConfig\..*\.env\.LAMINA_HYBRID__APIKEY: sets nothing; did you mean LAMINA_HYBRID__API_KEY",
    ("kuberay/service.yaml", "name: LAMINA_POSTGRES__URL", "name: OTHER_URL"): r"RayService lamina\..*\.env\.LAMINA_POSTGRES__URL: is "
    r"missing, and postgres\.pooling is session",
    ("kuberay/service.yaml", "name: LAMINA_POSTGRES__DIRECT_URL", "name: LAMINA_POSTGRES__POOLING\n                  value: transaction\n                - name: OTHER"): r"RayService lamina\..*\.env\.LAMINA_POSTGRES__DIRECT_URL: is missing, and postgres\.pooling is transaction",
    ("kuberay/service.yaml", "{name: RAY_SERVE_ENABLE_HA_PROXY,", "{name: RAY_SERVE_ENABLE_HAPROXY,"): r"RayService lamina\."
    r".*\.env\.RAY_SERVE_ENABLE_HAPROXY: is no variable of Ray's; did you mean RAY_SERVE_ENABLE_HA_PROXY",
    ("kuberay/service.yaml", '{name: RAY_SERVE_THROUGHPUT_OPTIMIZED, value: "1"}', "{name: X, value: x}"): r"RayService "
    r"lamina\..*\.env: warning: lacks RAY_SERVE_THROUGHPUT_OPTIMIZED=1",
    ("kuberay/service.yaml", '{name: RAY_USAGE_STATS_ENABLED, value: "0"}', "{name: RAY_gcs_storge, value: x}"): r"RayService"
    r" lamina\..*\.env\.RAY_gcs_storge: is no variable of Ray's; did you mean RAY_gcs_storage",
    ("kuberay/service.yaml", ', lamina_serving: "1"}', "}"): r"RayService lamina\..*workerGroupSpecs: have no resource "
    r"lamina_serving, which serve\.router reserves",
    ("kuberay/service.yaml", ', lamina_batch: "4"}', "}"): r"RayService lamina\..*workerGroupSpecs: have no resource "
    r"lamina_batch, which jobs\.task_resources reserves",
    ("kuberay/service.yaml", 'GPU: "1", "accelerator_type:L4": "1"', 'GPU: "1"'): r"RayService lamina\..*warning: have no "
    r"resource accelerator_type:L4",
    ("kuberay/service.yaml", "{name: settings, mountPath", "{name: setings, mountPath"): r"RayService lamina\..*"
    r"LAMINA_CONFIG: warning: is /etc/lamina/settings\.yaml, where no ConfigMap is mounted",
    ("kuberay/service.yaml", "value: /etc/lamina/settings.yaml", "value: /etc/lamina/other.yaml"): r"RayService lamina\..*"
    r"LAMINA_CONFIG: is /etc/lamina/other\.yaml, but lamina-settings has no other\.yaml",
    ("kuberay/service.yaml", "value: /etc/lamina/settings.yaml", "value: /nowhere.yaml"): r"RayService lamina\..*"
    r"LAMINA_CONFIG: warning: is /nowhere\.yaml, where no ConfigMap is mounted",
    ("kuberay/service.yaml", "spec:\n            securityContext: *pod-security\n            automountServiceAccountToken: false\n            enableServiceLinks: false\n            terminationGracePeriodSeconds: 60", "spec:\n            terminationGracePeriodSeconds: 20"): r"RayService lamina\.spec\.rayClusterConfig\.workerGroupSpecs\.0\..*terminationGracePeriodSeconds: warning: is 20, less than",
    ("kuberay/service.yaml", "{name: PYTHONPATH, value: /lamina}", "{name: LAMINA_HYBRID__API_KEY, value: s3cret}"): r"RayService lamina\..*LAMINA_HYBRID__API_KEY: warning: is a secret in a file; take it from a Secret",
    ("kuberay/service.yaml", "env: *env", "env: [{name: RAY_SERVE_ENABLE_HA_PROXY, value: '0'}]"): r"RayService lamina\..*workerGroupSpecs\.0\.env\.RAY_SERVE_ENABLE_HA_PROXY: is 0 here and 1 in the head; set the same",
    ("kuberay/service.yaml", "      kind: neo4j", "      kind: embedded"): r"(ConfigMap|RayService) lamina.*graph\..*",
    ("kuberay/service.yaml", "configMap: {name: lamina-settings}", "configMap: {name: lamina-setting}"): r"RayService lamina\..*"
    r"env\.LAMINA_CONFIG: is .*, but no file holds the ConfigMap lamina-setting; did you mean lamina-settings",
    ("kuberay/service.yaml", "rayVersion: 2.60.0", "rayVersion: 2.9.0"): r"RayService lamina\.spec\.rayClusterConfig\."
    r"rayVersion: warning: is 2\.9\.0, but Lamina runs on",
    ("kuberay/service.yaml", "        gpu_fraction: 0.25", "        gpu_fraction: 0.5"): r"RayService lamina\..*workerGroupSpecs: "
    r"warning: have 2 GPUs at the most, and 8 replicas .* take 4",
    ("kuberay/service.yaml", "        gpu_fraction: 0.25", "        gpu_fraction: 0.6"): r"RayService lamina\..*workerGroupSpecs: "
    r"have 2 GPUs at the most, and 4 replicas .* take 4",
    ("kuberay/job.yaml", "entrypoint: python -m jobs dedup", "entrypoint: python -m jobs dedupe"): r"RayJob lamina-dedup\."
    r"spec\.entrypoint: runs no job there is: 'dedupe'; did you mean dedup",
    ("kuberay/job.yaml", "      mode: token", "      mode: disabled"): r"RayJob lamina-dedup\.spec\.rayClusterSpec\.authOptions: "
    r"lets everybody who reaches Ray's ports run code; set mode: token",
    ("kuberay/service.yaml", "    authOptions:\n      mode: token\n", "    other:\n"): r"RayService lamina\.spec\.rayClusterConfig\."
    r"authOptions: lets everybody who reaches",
}  # fmt: skip


@pytest.mark.parametrize("case", MANIFESTS, ids=lambda case: case[2].strip())
def test_a_mistake_in_a_manifest_is_told(case: tuple[str, str, str]) -> None:
    found = findings_in(edited(*case))

    assert any(re.match(MANIFESTS[case], line) for line in found), found


RULES = """
groups:
  - name: lamina
    rules:
      - alert: Slow
        expr: rate(lamina_searches_total{status="5.."}[5m]) > 1
        for: 5m
        labels: {severity: page}
        annotations: {summary: searches fail}
"""
DASHBOARD = '{"title": "t", "panels": [{"id": 1, "type": "timeseries", "title": "p", "targets": [{"expr": "up", "refId": "A"}]}]}'
METRICS = {
    ("r.yaml", RULES.replace("searches_total", "searchs_total")): r"groups\.0\.rules\.0\.expr: asks for "
    r"lamina_searchs_total, which nobody measures; did you mean lamina_searches_total",
    (
        "r.yaml",
        RULES.replace("lamina_searches_total", "ray_lamina_xyzzy"),
    ): r"groups\.0\.rules\.0\.expr: warning: asks for",
    ("g.json", DASHBOARD.replace('"up"', '"lamina_upp == 0"')): r"panels\.0\.targets\.0\.expr: asks for lamina_upp, ",
    ("g.json", DASHBOARD.replace("}]}]}", "}]}")): r"line 1: cannot be read",
    (
        "g.json",
        DASHBOARD.replace('"id": 1,', '"id": 1, "id": 2,'),
    ): r"document: cannot be read: the key id stands twice",
}


@pytest.mark.parametrize("case", METRICS, ids=lambda case: case[0])
def test_a_mistake_in_rules_and_dashboards_is_told(case: tuple[str, str]) -> None:
    name, text = case

    found = findings_in(text, name)

    assert any(re.match(METRICS[case], line) for line in found), found


def test_rules_in_a_manifest_are_read_like_those_in_a_file() -> None:
    rule = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": {"name": "lamina"}}
    right, wrong = ({**rule, "spec": yaml.safe_load(text)} for text in (RULES, RULES.replace("searches", "searchs")))

    assert findings_in(yaml.safe_dump(right)) == []
    assert only_finding(yaml.safe_dump(wrong)).startswith("spec.groups.0.rules.0.expr: asks for lamina_searchs_total")


def test_right_rules_and_dashboards_are_left_alone() -> None:
    row = DASHBOARD.replace('"panels": [', '"panels": [{"type": "row", "title": "r", "panels": []}, ')

    assert [*findings_in(RULES), *findings_in(DASHBOARD, "g.json"), *findings_in(row, "g.json")] == []


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("compose.yaml", "docker compose --file compose.yaml config"),
        ("grafana/lamina.json", "import it"),
        ("kuberay/service.yaml", "kubectl apply --dry-run=server --filename kuberay/service.yaml"),
        ("prometheus/alerts.yaml", "promtool check rules prometheus/alerts.yaml"),
        ("prometheus/podmonitor.yaml", "kubectl apply --dry-run=server"),
        ("prometheus/scrape.yaml", "promtool check config prometheus/scrape.yaml"),
        ("serve.yaml", "install lamina-memory[serve]"),
    ],
)
def test_a_file_whose_keys_are_another_tools_is_noted_with_that_tool(name: str, remedy: str) -> None:
    found = notes((CONFIGS / name).read_text(), name)

    assert any(re.match(f"document: note: keys of .*{re.escape(remedy)}", line) for line in found), found


def test_a_key_of_another_tools_file_is_none_of_laminas() -> None:
    for name in ("compose.yaml", "prometheus/alerts.yaml", "prometheus/scrape.yaml", "grafana/lamina.json"):
        assert not set(yaml.safe_load((CONFIGS / name).read_text())) & set(Settings.model_fields)


CRON = """
apiVersion: ray.io/v1
kind: RayCronJob
metadata: {name: lamina-dedup}
spec:
  schedule: "30 1 * * *"
  timeZone: Etc/UTC
  jobTemplate:
"""


def test_the_jobs_specification_is_one_for_a_ray_cron_job_too() -> None:
    (spec,) = [item["spec"] for item in manifests("kuberay/job.yaml") if item["kind"] == "RayJob"]
    cron = yaml.safe_load(CRON)
    cron["spec"]["jobTemplate"] = spec
    wrong = {**cron, "spec": {**cron["spec"], "jobTemplate": {**spec, "entrypoint": "python -m jobs dedupe"}}}

    # The policies stand in a document of their own.
    faults, (found,) = (
        [line for line in findings_in(yaml.safe_dump(document)) if "NetworkPolicy" not in line]
        for document in (cron, wrong)
    )
    assert faults == []
    assert found.startswith("spec.jobTemplate.entrypoint: runs no job there is: 'dedupe'")


def test_an_embedded_index_on_several_nodes_is_warned_of() -> None:
    text = edited(
        "kuberay/service.yaml", "      kind: qdrant\n      url: http://qdrant:6333\n", "      kind: qdrant_edge\n"
    )
    for line in ("      grpc_port: 6334\n", "      shards: 2\n", "      replicas: 2\n"):
        text = text.replace(line, "", 1)

    found = findings_in(text)

    assert any("hybrid.kind: warning: keeps its index within one process of one node" in line for line in found)
    assert any("max_replicas: is 4, but hybrid.kind keeps the index in one process" in line for line in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "serve: {topology: compact, router: {max_replicas: 4}}",
            [
                (
                    "serve.router.max_replicas: is 4, but serve.topology is compact and hybrid.kind keeps the index in one "
                    "process; write 1, write spread as serve.topology, or choose a server for hybrid and vectors"
                )
            ],
        ),
        (
            "serve: {topology: compact, searchers: {notes: {max_replicas: 3}}}",
            [
                (
                    "serve.searchers.notes.max_replicas: warning: is 3, but serve.topology is compact, which has as many of "
                    "them as routers; raise serve.router.max_replicas, or write spread as serve.topology"
                )
            ],
        ),
        (
            "{serve: {topology: compact, router: {max_replicas: 4}}, hybrid: {kind: qdrant}, vectors: {kind: qdrant}}",
            [],
        ),
        ("serve: {topology: compact}", []),
        ("serve: {topology: spread, router: {max_replicas: 4}}", []),
    ],
)
def test_scaling_that_a_compact_topology_cannot_have_is_named(text: str, said: list[str]) -> None:
    assert [line for line in findings_in(text) if line.startswith("serve.")] == said


def test_the_parts_of_a_compact_replica_share_connections() -> None:
    counts = {
        topology: {demand.who: demand.processes for demand in connection_demands(settings_of(text))}
        for topology in ("compact", "spread")
        for text in [f"serve: {{topology: {topology}, router: {{max_replicas: 3}}}}\ngraph: {{kind: 'off'}}"]
    }

    assert counts["compact"] | {"routers": 3, "searchers": 3, "indexer and scheduler": 4} == counts["compact"]
    assert counts["spread"] | {"routers": 3, "searchers": 4, "indexer and scheduler": 2} == counts["spread"]


JUNK = st.sampled_from(
    [None, 5, -1, "x", "", [], {}, [1], {"a": 1}, True, 1.5, [{}], {"kind": "x"}, [[]], {1: 2}, "{", "$(X)"]
)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield from places(value, (*path, key))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = document.copy()
    copy[path[0]] = replaced(document[path[0]], path[1:], value)
    return copy


@cache
def documents_in(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_no_document_however_strange_stops_the_check(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(FILES))
    documents = list(documents_in(path))
    number = data.draw(st.integers(0, len(documents) - 1))
    place = data.draw(st.sampled_from(list(places(documents[number]))))
    documents[number] = replaced(documents[number], place, data.draw(JUNK))

    assert all(": " in line for line in findings_in(yaml.safe_dump_all(documents)))


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((CONFIGS / name).read_text()))


@cache
def ray_folder() -> Path:
    import ray

    return Path(ray.__file__).parent


@cache
def named_in_ray() -> set[str]:
    """Return every name of a variable in the Python source of the installed Ray."""
    sources = (path.read_text(errors="ignore") for path in ray_folder().rglob("*.py"))
    return {name for source in sources for name in re.findall(r"\bRAY_[A-Za-z0-9_]+", source)}


@cache
def ray_core() -> bytes:
    core = ray_folder() / "core" / "src" / "ray"
    return b"".join(path.read_bytes() for path in (core / "gcs" / "gcs_server", core / "raylet" / "raylet"))


def is_of_ray(name: str) -> bool:
    """Tell whether the installed Ray reads a variable; its core reads `RAY_x` for each of its settings x."""
    return name in named_in_ray() or name.removeprefix("RAY_").encode() in ray_core()


def test_every_variable_that_counts_as_rays_is_the_installed_rays() -> None:
    assert [name for name in sorted(flags.KNOWN | flags.MEASURED.keys()) if not is_of_ray(name)] == []


def test_every_variable_that_serve_reads_is_known() -> None:
    sources = [path.read_text() for path in (ray_folder() / "serve").rglob("*.py")]
    reads = r'(?:get_env_\w+|environ\.get|getenv)\(\s*"(RAY_SERVE_[A-Z0-9_]+)"'
    read = {name for source in sources for name in re.findall(reads, source)}

    assert len(read) > 100
    assert read <= flags.SERVE


def test_every_variable_of_rays_in_a_shipped_file_is_the_installed_rays() -> None:
    named = {
        name
        for path in (*FILES, ROOT / "Containerfile")
        for name in re.findall(r"\bRAY_[A-Za-z_]+[A-Za-z]\b", path.read_text())
    }

    assert "RAY_SERVE_ENABLE_HA_PROXY" in named
    assert [name for name in sorted(named) if not is_of_ray(name)] == []


def test_what_this_package_knows_of_others_is_so() -> None:
    from actors.scheduler import MOST_DRIVEN
    from lamina.stores.postgres.stamps import MAX_IN_FLIGHT

    assert (STAMPS_POOL, DRIVEN_RUNS) == (MAX_IN_FLIGHT, MOST_DRIVEN)
    assert TIERS_BY_STORE == {"hybrid": ("sessions", "notes", "documents"), "vectors": ("notes",)}


def settings_of(text: str) -> Settings:
    settings, found = read_settings(yaml.safe_load(text))
    assert settings is not None, found
    return settings


def test_the_clusters_comment_says_the_sum_of_its_pools() -> None:
    text = (CONFIGS / "cluster.yaml").read_text()
    settings = settings_of(text)
    by_name = {demand.who: demand for demand in connection_demands(settings)}
    total = sum(demand.total for demand in by_name.values())
    twice = total + by_name["routers"].total + by_name["searchers"].total

    assert f"= {total}," in text
    assert f"and {twice} while" in text
    assert isinstance(settings.postgres, PostgresServerSettings)
    assert twice < settings.postgres.max_connections
    assert {"routers": (6, 6), "searchers": (15, 4)}.items() <= {
        name: (demand.processes, demand.each) for name, demand in by_name.items()
    }.items()


def test_the_cluster_uses_servers_keeps_batch_work_apart_and_scales_within_bounds() -> None:
    settings = settings_of((CONFIGS / "cluster.yaml").read_text())
    deployments = [settings.serve.router, settings.serve.embedder, *vars(settings.serve.searchers).values()]

    assert isinstance(settings.hybrid, QdrantServerSettings)
    assert isinstance(settings.vectors, QdrantServerSettings)
    assert isinstance(settings.graph, Neo4jServerSettings)
    assert all(item.max_replicas > item.min_replicas for item in deployments)
    assert all(item.downscale_delay_s >= 10 * item.upscale_delay_s for item in deployments)
    assert not settings.jobs.task_resources.keys() & {name for item in deployments for name in item.resources}


def test_the_command_tells_each_finding_in_a_line_and_fails_on_errors_alone(tmp_path: Path) -> None:
    wrong, weak = tmp_path / "wrong.yaml", tmp_path / "weak.yaml"
    wrong.write_text("serach: {}")
    weak.write_text("pool: {timeout_s: 0.5}")
    runner = CliRunner()

    failed = runner.invoke(app, ["config", "check", str(tmp_path)])
    passed = runner.invoke(app, ["config", "check", str(weak)])
    missing = runner.invoke(app, ["config", "check", str(tmp_path / "none.yaml")])

    assert failed.exit_code == 1
    assert f"{wrong}: serach: is not known; did you mean search?\n" in failed.output
    assert f"{weak}: pool.timeout_s: warning: is 0.5" in failed.output
    assert "2 files, 1 errors, 1 warnings" in failed.output
    assert (passed.exit_code, missing.exit_code) == (0, 1)
    assert "none.yaml cannot be read" in str(missing.exception)


def test_without_ray_all_is_checked_but_serves_own_keys(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(SERVE + "    route_prefx: /\n    args: {serch: {limit: 2}}")
    code = "import sys; sys.modules['ray'] = None; from lamina.cli import main; main()"

    ended = subprocess.run(
        [sys.executable, "-c", code, "config", "check", str(file)], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1
    assert f"{file}: document: note: keys of Ray Serve are not checked, for which Ray is needed" in ended.stdout
    assert "install lamina-memory[serve]" in ended.stdout
    assert f"{file}: applications.0.args.serch: is not known" in ended.stdout
    assert "route_prefx" not in ended.stdout


def test_what_is_shown_is_a_file_that_sets_the_same() -> None:
    settings = settings_of((CONFIGS / "cluster.yaml").read_text())
    lines = list(settings_as_yaml(settings))

    assert settings_of("\n".join(lines)) == settings
    assert "search:  # How a search is made and fused" in lines
    assert any(re.match(r"  max_connections: 300  # .*; by default 100$", line) for line in lines)


@pytest.mark.parametrize("url", [":memory:", "/var/qdrant", "https://q", "http://q:6333"])
def test_qdrant_may_be_a_server_a_folder_or_in_memory(url: str) -> None:
    assert findings_in(f"hybrid: {{kind: qdrant, url: '{url}'}}") == []


@pytest.mark.parametrize(
    "url",
    ["postgresql://db", "postgres://a,b:5433/x?sslmode=verify-full&target_session_attrs=read-write", "postgresql:///x"],
)
def test_urls_that_the_driver_reads_are_left_alone(url: str) -> None:
    assert findings_in(f"postgres: {{kind: server, url: '{url}', max_connections: 500}}") == []


def test_what_cannot_be_read_of_a_url_is_told_without_its_password() -> None:
    found = findings_in(
        "postgres: {kind: server, url: 'postgresql://me:p@s3cret@db/x?passwd=s3cret', max_connections: 500}"
    )

    assert any("cannot be read" in line for line in found)
    assert "s3cret" not in " ".join(found)


def test_gpus_and_the_version_are_rays() -> None:
    from importlib.metadata import version

    from ray.util.accelerators import accelerators

    named = {value for name, value in vars(accelerators).items() if name[0].isupper() and isinstance(value, str)}
    others = {
        name for name in named if name.startswith(("TPU", "M1", "M2", "M3", "MXC", "MOBI", "FUR", "Asc", "aws", "App"))
    }

    assert set(ACCELERATORS) == named - others
    assert version("ray") == RAY_VERSION
    assert f"ray=={RAY_VERSION}" in (ROOT / "constraints.txt").read_text()


def test_every_series_that_is_known_is_told_by_somebody() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "deployments" / "metrics").glob("*.py"))
    known = {re.sub("_(total|bucket|count|sum)$", "", name) for name in SERIES} | SERIES

    measured = {item.name for item in INSTRUMENTS} | set(re.findall(r'"(lamina_[a-z_]+[a-z])"', sources))

    assert measured - {"lamina_postgres", "lamina_outbox", "lamina_jobs"} <= known
    assert {re.sub("_(total|bucket|count|sum)$", "", name) for name in SERIES} <= measured | {"lamina_up"}


def test_a_secret_among_a_stores_options_is_not_shown() -> None:
    options = {"key": "s3cret", "client_secret": "s3cret", "endpoint_url": "https://me:s3cret@s3", "region": "eu"}
    lines = list(settings_as_yaml(settings_of(f"jobs: {{archival: {{options: {options}}}}}")))
    (line,) = [line for line in lines if line.strip().startswith("options:")]

    assert "s3cret" not in "\n".join(lines)
    assert "options: {region: eu}  # without key, client_secret, endpoint_url: set, and not shown" in line


def test_what_is_shown_holds_no_secret() -> None:
    settings = settings_of(CLUSTER).model_copy(
        update={
            "postgres": PostgresServerSettings(url="postgresql://me:s3cret@db/lamina"),
            "graph": Neo4jServerSettings(url="neo4j://g", password=SecretStr("s3cret")),
        }
    )

    lines = list(settings_as_yaml(settings))

    assert "s3cret" not in "\n".join(lines)
    assert "  # url: 'postgresql://…@db/lamina'" in " ".join(lines)
    assert any("# password: is set, and not shown" in line for line in lines)


def test_serve_reads_what_is_shipped() -> None:
    from ray.serve.schema import ServeDeploySchema

    (service,) = [item for item in manifests("kuberay/service.yaml") if item["kind"] == "RayService"]
    for text in ((CONFIGS / "serve.yaml").read_text(), service["spec"]["serveConfigV2"]):
        (application,) = ServeDeploySchema.model_validate(yaml.safe_load(text)).applications
        assert application.import_path == BUILDER


def test_settings_out_of_sight_are_not_guessed_at() -> None:
    text = (CONFIGS / "kuberay" / "service.yaml").read_text()
    alone = "\n---\n".join(text.split("\n---\n")[1:])

    assert findings_in(alone) == []


def test_serves_configuration_is_read_where_the_settings_are_out_of_sight() -> None:
    text = edited("kuberay/service.yaml", "        args: {}", "        arguments: {}")
    (finding,) = findings_in("\n---\n".join(text.split("\n---\n")[1:]))

    assert "serveConfigV2.applications.0.arguments: is not known" in finding


def test_what_is_wrong_in_a_config_map_is_told_once() -> None:
    (finding,) = findings_in(edited("kuberay/service.yaml", "      timeout_s: 5\n", "      timeout_s: 0.5\n"))

    assert finding.startswith("ConfigMap lamina-settings.data.settings.yaml.pool.timeout_s: warning: is 0.5")


def test_resources_may_stand_in_the_parameters_of_ray_start() -> None:
    text = edited(
        "kuberay/service.yaml",
        """        rayStartParams: {}
        resources: {CPU: "4", lamina_batch: "4"}
""",
        """        rayStartParams: {num-cpus: "4", resources: '"{\\"lamina_batch\\": 4}"'}
""",
    )

    assert findings_in(text) == []


def test_variables_are_known_by_name_where_the_settings_are_out_of_sight() -> None:
    text = edited("kuberay/service.yaml", "LAMINA_VECTORS__API_KEY", "LAMINA_VECTOR__API_KEY")
    alone = "\n---\n".join(text.split("\n---\n")[1:])

    found = findings_in(alone)

    assert len(found) == 4  # One for each group that has the variable.
    assert all("LAMINA_VECTOR__API_KEY: sets nothing; did you mean LAMINA_VECTORS__API_KEY" in line for line in found)


def test_workers_of_jobs_reserve_what_says_where_they_run() -> None:
    import ray

    from jobs.runner import work, worker_options

    limits = settings_of((CONFIGS / "cluster.yaml").read_text()).jobs
    task = ray.remote(**worker_options(limits))(work)

    assert worker_options(limits) == {"num_cpus": 1.0, "memory": 0, "resources": {"lamina_batch": 1.0}}
    assert task._default_options["resources"] == {"lamina_batch": 1.0}


def test_every_variable_has_the_name_of_a_setting() -> None:
    names = variable_names()

    assert {"LAMINA_POSTGRES__URL", "LAMINA_GRAPH__PASSWORD", "LAMINA_SERVE__ROUTER__MIN_REPLICAS"} <= set(names)
    assert all(name == name.upper() for name in names)


def test_the_image_has_what_its_build_takes_and_runs_without_privileges() -> None:
    text = (ROOT / "Containerfile").read_text()
    extras = re.search(r"^IMAGE_EXTRAS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    copied = [word for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE) for word in line.split()[:-1]]

    assert extras
    assert set(extras[1].split()) < _extras()
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    assert re.search(r"^USER 1000", text, re.MULTILINE)
    assert "--require-hashes" in text
    assert "HF_HUB_OFFLINE=1" in text


def _extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def test_the_servers_of_the_compose_file_are_those_that_make_asks_for() -> None:
    asked = set(re.findall(r"LAMINA_TEST_\w+_URL", (ROOT / "Makefile").read_text()))
    said = set(re.findall(r"LAMINA_TEST_\w+_URL", (CONFIGS / "compose.yaml").read_text()))

    assert asked == said
    assert {name.lower() for name in yaml.safe_load((CONFIGS / "compose.yaml").read_text())["services"]} == {
        name.removeprefix("LAMINA_TEST_").removesuffix("_URL").lower() for name in asked
    }
