"""The manifests for KubeRay say only what Lamina and Kubernetes know."""

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.runs import JOB_NAMES
from lamina.settings import (
    ENV_PREFIX,
    OTHER_VARIABLES,
    PostgresServerSettings,
    ScheduleSettings,
    Settings,
    load_settings,
)

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "kuberay"
FILES = sorted(FOLDER.glob("*.yaml"))
API_VERSIONS = {"ConfigMap": "v1", "RayJob": "ray.io/v1", "CronJob": "batch/v1"}
URL = "postgresql://me@db/lamina"


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [document for path in FILES for document in documents(path) if document["kind"] == kind]
    return found


def pods() -> Iterator[dict[str, Any]]:
    ray = of_kind("RayJob")["spec"]["rayClusterSpec"]
    yield ray["headGroupSpec"]["template"]["spec"]
    yield from (group["template"]["spec"] for group in ray["workerGroupSpecs"])
    yield of_kind("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def variables() -> dict[str, dict[str, Any]]:
    return {item["name"]: item for pod in pods() for container in pod["containers"] for item in container["env"]}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_document_has_its_kinds_version_and_a_name_that_kubernetes_takes(path: Path) -> None:
    for document in documents(path):
        assert document["apiVersion"] == API_VERSIONS[document["kind"]]
        assert re.fullmatch(r"[a-z][a-z0-9-]{0,50}", document["metadata"]["name"])


def test_the_jobs_are_ones_that_there_are() -> None:
    *command, job = of_kind("RayJob")["spec"]["entrypoint"].split()

    assert command == ["python", "-m", "jobs"]
    assert job in JOB_NAMES
    assert variables()["JOB"]["value"] in JOB_NAMES


def test_what_is_submitted_by_the_clock_is_the_command_line_with_its_variables() -> None:
    cron = of_kind("CronJob")
    (container,) = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    named = {item["name"] for item in container["env"]}
    line = [*container["command"], *container["args"]]

    assert line[:3] == ["ray", "job", "submit"]
    assert line[line.index("--") + 1 :] == ["python", "-m", "jobs", "$(JOB)"]
    assert set(re.findall(r"\$\((\w+)\)", " ".join(line))) == named
    assert cron["spec"]["schedule"] == getattr(ScheduleSettings(), variables()["JOB"]["value"])
    assert cron["metadata"]["labels"]["lamina.job"] == variables()["JOB"]["value"]


def test_every_variable_of_laminas_sets_something() -> None:
    names = [name for name in variables() if name.startswith(ENV_PREFIX) and not name.startswith(OTHER_VARIABLES)]

    assert names
    for name in names:
        section, field = name.removeprefix(ENV_PREFIX).lower().split("__")
        chosen = PostgresServerSettings if section == "postgres" else Settings.model_fields[section].annotation
        assert field in chosen.model_fields  # type: ignore[union-attr]


def test_the_settings_are_accepted_with_the_variables_and_lack_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(of_kind("ConfigMap")["data"]["settings.yaml"])
    monkeypatch.setenv("LAMINA_CONFIG", str(file))
    monkeypatch.setenv("LAMINA_POSTGRES__URL", URL)

    settings = load_settings()

    assert settings.postgres == PostgresServerSettings(url=URL)
    assert settings.jobs.partitions >= settings.jobs.parallelism


def test_the_settings_are_mounted_where_the_variable_looks_for_them() -> None:
    ray = of_kind("RayJob")["spec"]["rayClusterSpec"]
    for group in (ray["headGroupSpec"], *ray["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        (mount,) = container["volumeMounts"]
        (volume,) = pod["volumes"]

        assert mount["name"] == volume["name"]
        assert volume["configMap"]["name"] == of_kind("ConfigMap")["metadata"]["name"]
        assert variables()["LAMINA_CONFIG"]["value"] == f"{mount['mountPath']}/settings.yaml"
        assert container["workingDir"] == variables()["PYTHONPATH"]["value"]


def test_the_cluster_has_the_ray_that_lamina_is_tested_with() -> None:
    assert of_kind("RayJob")["spec"]["rayClusterSpec"]["rayVersion"] == version("ray")
