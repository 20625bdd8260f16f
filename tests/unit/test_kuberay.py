import os
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from lamina import __version__
from lamina.config_check.containers import templates_of
from lamina.config_check.ray_variables import MEASURED
from lamina.core.runs import JOB_NAMES
from lamina.settings.jobs import ScheduleSettings
from lamina.settings.loading import ENV_PREFIX, OTHER_VARIABLES, Settings, load_settings
from lamina.settings.stores import PostgresServerSettings

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "configs" / "kuberay"
FILES = sorted(FOLDER.glob("*.yaml"))
API_VERSIONS = {
    "ConfigMap": "v1",
    "RayJob": "ray.io/v1",
    "RayService": "ray.io/v1",
    "CronJob": "batch/v1",
    "PodDisruptionBudget": "policy/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}
KUBERNETES = "1.34"
CRDS = os.environ.get("LAMINA_TEST_CRDS")
URL = "postgresql://me@db/lamina"
CLUSTERS = ("rayClusterConfig", "rayClusterSpec")
MOUNTING = ("service.yaml", "job.yaml")


@cache
def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def test_no_pod_gets_variables_for_the_services_around_it() -> None:
    found = [
        template["spec"].get("enableServiceLinks")
        for path in FILES
        for document in documents(path.name)
        for _, template in templates_of(document)
    ]

    assert len(found) > 6
    assert set(found) == {False}


def of_kind(kind: str, name: str) -> dict[str, Any]:
    (found,) = [document for document in documents(name) if document["kind"] == kind]
    return found


def clusters() -> Iterator[dict[str, Any]]:
    for path in FILES:
        for document in documents(path.name):
            yield from (document["spec"][key] for key in CLUSTERS if key in document.get("spec", {}))


def groups(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def pods() -> Iterator[dict[str, Any]]:
    yield from (group["template"]["spec"] for cluster in clusters() for group in groups(cluster))
    yield of_kind("CronJob", "cronjob.yaml")["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def containers() -> list[dict[str, Any]]:
    return [container for pod in pods() for container in pod["containers"]]


def variables(container: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in container["env"]}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_document_of_kubernetes_passes_its_own_schema(path: Path) -> None:
    for document in documents(path.name):
        if not document["apiVersion"].startswith("ray.io/"):
            kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_every_pod_of_a_cluster_passes_the_schema_of_kubernetes() -> None:
    templates = [group["template"] for cluster in clusters() for group in groups(cluster)]

    assert templates
    for template in templates:
        kubernetes_validate.validate(as_document(template), KUBERNETES, strict=True)


def test_the_schema_of_kubernetes_refuses_an_unknown_key_of_a_pod() -> None:
    (pod, *_) = (group["template"]["spec"] for cluster in clusters() for group in groups(cluster))

    with pytest.raises(kubernetes_validate.ValidationError, match="volume"):
        kubernetes_validate.validate(as_document({"spec": {**pod, "volume": []}}), KUBERNETES, strict=True)


def as_document(template: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "PodTemplate", "template": template}


@pytest.mark.skipif(CRDS is None, reason="LAMINA_TEST_CRDS names no folder with the CRDs of KubeRay and Prometheus")
def test_every_document_of_an_operator_passes_the_schema_of_its_crd() -> None:
    definitions = [yaml.load(path.read_text(), yaml.CSafeLoader)["spec"] for path in Path(str(CRDS)).glob("*.yaml")]
    schemas = {
        (f"{crd['group']}/{version['name']}", crd["names"]["kind"]): version["schema"]["openAPIV3Schema"]
        for crd in definitions
        for version in crd["versions"]
    }
    files = [*FILES, FOLDER.parent / "prometheus" / "podmonitor.yaml"]
    checked: set[str] = set()
    for document in (document for path in files for document in yaml.safe_load_all(path.read_text())):
        schema = without_unknown_keys(schemas.get((document["apiVersion"], document["kind"])))
        if schema is not None:
            schema["properties"]["metadata"] = {}
            jsonschema.validate(document, schema)
            checked.add(document["kind"])

    assert checked >= {"RayService", "RayJob"}


def without_unknown_keys(schema: Any) -> Any:
    """Return a schema in which every object refuses keys that it does not name, as an API server drops them."""
    if isinstance(schema, list):
        return [without_unknown_keys(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: without_unknown_keys(value) for key, value in schema.items()}
    is_closed = "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields")
    return {"additionalProperties": False, **strict} if is_closed else strict


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_document_has_its_kinds_version_and_a_name_that_kubernetes_takes(path: Path) -> None:
    for document in documents(path.name):
        assert document["apiVersion"] == API_VERSIONS[document["kind"]]
        assert re.fullmatch(r"[a-z][a-z0-9-]{0,50}", document["metadata"]["name"])


def test_no_two_config_maps_have_the_same_name() -> None:
    names = [item["metadata"]["name"] for path in FILES for item in documents(path.name) if item["kind"] == "ConfigMap"]

    assert len(names) == len(set(names)) == 2


def test_the_jobs_are_ones_that_there_are() -> None:
    *command, job = of_kind("RayJob", "job.yaml")["spec"]["entrypoint"].split()

    assert command == ["python", "-m", "jobs"]
    assert job in JOB_NAMES


def test_what_is_submitted_by_the_clock_is_the_command_line_with_its_variables() -> None:
    cron = of_kind("CronJob", "cronjob.yaml")
    (container,) = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    named = variables(container)
    line = [*container["command"], *container["args"]]
    job = named["JOB"]["value"]

    assert line[:3] == ["ray", "job", "submit"]
    assert line[line.index("--") + 1 :] == ["python", "-m", "jobs", "$(JOB)"]
    assert set(re.findall(r"\$\((\w+)\)", " ".join(line))) == {name for name in named if not name.startswith("RAY_")}
    assert job in JOB_NAMES
    assert cron["spec"]["schedule"] == getattr(ScheduleSettings(), job)
    assert cron["metadata"]["labels"]["lamina.job"] == job


def test_the_head_that_is_submitted_to_is_the_services_with_its_token() -> None:
    service = of_kind("RayService", "service.yaml")
    (container,) = of_kind("CronJob", "cronjob.yaml")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    named = variables(container)
    secret = named["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]["name"]

    assert named["HEAD"]["value"] == f"{service['metadata']['name']}-head-svc"
    assert secret == service["spec"]["rayClusterConfig"]["authOptions"]["secretName"]
    assert named["RAY_AUTH_MODE"]["value"] == service["spec"]["rayClusterConfig"]["authOptions"]["mode"]


def test_every_variable_of_laminas_sets_something() -> None:
    named = {name for container in containers() for name in variables(container)}
    names = [name for name in named if name.startswith(ENV_PREFIX) and not name.startswith(OTHER_VARIABLES)]

    assert names
    for name in names:
        section, field = name.removeprefix(ENV_PREFIX).lower().split("__")
        assert field in _fields_of(section)


def _fields_of(section: str) -> set[str]:
    annotation: Any = Settings.model_fields[section].annotation
    models = getattr(annotation, "__args__", (annotation,))
    return {field for model in models for field in model.model_fields}


@pytest.mark.parametrize("name", MOUNTING)
def test_the_settings_are_accepted_with_the_variables_and_lack_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(of_kind("ConfigMap", name)["data"]["settings.yaml"])
    monkeypatch.setenv("LAMINA_CONFIG", str(file))
    monkeypatch.setenv("LAMINA_POSTGRES__URL", URL)

    settings = load_settings()

    assert isinstance(settings.postgres, PostgresServerSettings)
    assert settings.postgres.url == URL
    assert settings.jobs.partitions >= settings.jobs.parallelism


def test_the_services_settings_are_those_of_the_shipped_file() -> None:
    shipped = yaml.safe_load((ROOT / "configs" / "cluster.yaml").read_text())

    assert yaml.safe_load(of_kind("ConfigMap", "service.yaml")["data"]["settings.yaml"]) == shipped


@pytest.mark.parametrize("name", MOUNTING)
def test_the_settings_are_mounted_where_the_variable_looks_for_them(name: str) -> None:
    spec = next(document["spec"] for document in documents(name) if document["kind"].startswith("Ray"))
    cluster = next(spec[key] for key in CLUSTERS if key in spec)
    for group in groups(cluster):
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == "settings"]
        (volume,) = [volume for volume in pod["volumes"] if "configMap" in volume]
        named = variables(container)

        assert mount["name"] == volume["name"]
        assert volume["configMap"]["name"] == of_kind("ConfigMap", name)["metadata"]["name"]
        assert named["LAMINA_CONFIG"]["value"] == f"{mount['mountPath']}/settings.yaml"
        assert container["workingDir"] == named["PYTHONPATH"]["value"]


def test_every_cluster_has_the_ray_that_lamina_is_tested_with() -> None:
    (pinned,) = re.findall(r"^ray==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)

    assert {cluster["rayVersion"] for cluster in clusters()} == {version("ray"), pinned}


def test_every_image_is_of_this_release_and_its_python_is_one_lamina_supports() -> None:
    text = (ROOT / "Containerfile").read_text()

    assert {container["image"].rpartition(":")[2] for container in containers()} == {__version__, f"{__version__}-gpu"}
    assert re.search(rf"--tag \S+:{re.escape(__version__)} ", text)
    assert re.search(r"^ARG BASE=python:3\.11-slim$", text, re.MULTILINE)


def test_the_nodes_with_a_gpu_and_no_others_have_the_image_with_torch() -> None:
    cluster = of_kind("RayService", "service.yaml")["spec"]["rayClusterConfig"]
    gpus = {
        container["image"]: group.get("resources", {}).get("GPU", "0") != "0"
        for group in groups(cluster)
        for container in group["template"]["spec"]["containers"]
    }

    assert {image.endswith("-gpu"): has_gpu for image, has_gpu in gpus.items()} == {True: True, False: False}


def test_every_process_of_the_service_has_the_environment_that_measured_well() -> None:
    cluster = of_kind("RayService", "service.yaml")["spec"]["rayClusterConfig"]
    for group in groups(cluster):
        (container,) = group["template"]["spec"]["containers"]
        named = {name: item.get("value") for name, item in variables(container).items()}

        assert MEASURED.items() <= named.items()


def test_the_environment_that_measured_well_stands_above_serves_configuration() -> None:
    text = (ROOT / "configs" / "serve.yaml").read_text()

    assert all(f" {name}={value}" in text for name, value in MEASURED.items())


def test_no_pod_runs_as_root_or_may_become_it() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_every_secret_comes_from_a_secret() -> None:
    for container in containers():
        for item in container["env"]:
            if re.search(r"KEY$|PASSWORD$|TOKEN$|POSTGRES__\w*URL$", item["name"]):
                assert "secretKeyRef" in item["valueFrom"]


def test_the_budget_selects_one_group() -> None:
    labels = [
        group["template"]["metadata"]["labels"]
        for group in groups(of_kind("RayService", "service.yaml")["spec"]["rayClusterConfig"])
    ]
    budget = of_kind("PodDisruptionBudget", "service.yaml")["spec"]["selector"]["matchLabels"]

    assert sum(budget.items() <= label.items() for label in labels) == 1


def test_no_pod_of_a_cluster_is_reached_from_everywhere() -> None:
    policies = [
        document["spec"]["podSelector"]["matchLabels"]
        for path in FILES
        for document in documents(path.name)
        if document["kind"] == "NetworkPolicy"
    ]
    templates = [group["template"] for cluster in clusters() for group in groups(cluster)]
    templates.append(of_kind("RayJob", "job.yaml")["spec"]["submitterPodTemplate"])

    for template in templates:
        assert any(policy.items() <= template["metadata"]["labels"].items() for policy in policies)


def test_every_cluster_asks_for_a_token() -> None:
    assert [cluster["authOptions"] for cluster in clusters()] == [
        {"mode": "token", "secretName": "lamina-ray-token"} for _ in clusters()
    ]
