"""Manifests of Kubernetes and KubeRay: the settings, variables, jobs and resources of Lamina in them.

All other keys are left to Kubernetes and its operators: `kubectl apply --dry-run=server`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lamina.config_check.consistency import check_consistency, warn_of_embedded_indexes
from lamina.config_check.containers import Container, containers_of
from lamina.config_check.documents import mapping_at, mappings_at, read_documents, value_at
from lamina.config_check.findings import Finding, suggest_name, under, warning
from lamina.config_check.hardening import check_privileges, check_reach, is_ours
from lamina.config_check.metric_names import check_metric_names
from lamina.config_check.ray_clusters import CLUSTER_PATHS, check_cluster, check_placement
from lamina.config_check.ray_variables import find_misspelt, warn_of_missing_flags
from lamina.config_check.serve import SchemaCheck, check_reachable_host, check_serve, served_settings
from lamina.config_check.settings_file import (
    DATABASE_PLACEHOLDER,
    Variables,
    find_unknown_variables,
    read_settings,
    setting_path,
)
from lamina.core.runs import JOB_NAMES
from lamina.settings.loading import Settings
from lamina.settings.stores import PostgresServerSettings

CONFIG_VARIABLE = "LAMINA_CONFIG"
SETTINGS_SUFFIX = "settings.yaml"
JOB_COMMAND = ["python", "-m", "jobs"]
_ENTRYPOINT_PATHS: Mapping[str, tuple[str, ...]] = {
    "RayJob": ("spec", "entrypoint"),
    "RayCronJob": ("spec", "jobTemplate", "entrypoint"),
}
# Data of the ConfigMaps that are checked together, by name.
ConfigMaps = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Knowledge from outside a document.

    Args:
        config_maps: The ConfigMaps of all files.
        policies: The specifications of the NetworkPolicies of all files.
        check_schema: Finds the mistakes of a Serve configuration against Ray's schema.
    """

    config_maps: ConfigMaps
    check_schema: SchemaCheck
    policies: Sequence[Mapping[str, Any]] = ()


def check_manifest(document: Mapping[str, Any], around: Surroundings) -> Iterator[Finding]:
    """Check Lamina's part of one manifest."""
    kind = str(document.get("kind"))
    containers = list(containers_of(document))
    for container in containers:
        yield from under(_check_container(container, around.config_maps), *container.place, "env")
        if is_ours(document, container):
            yield from under(check_privileges(container), *container.place)
    if kind == "ConfigMap":
        yield from _check_config_map(document)
    if kind == "PrometheusRule":
        yield from check_metric_names(document)
    if kind in _ENTRYPOINT_PATHS:
        yield from _check_entrypoint(document, _ENTRYPOINT_PATHS[kind])
    if kind in CLUSTER_PATHS:
        yield from under(check_cluster(mapping_at(document, *CLUSTER_PATHS[kind])), *CLUSTER_PATHS[kind])
        yield from check_reach(document, around.policies)
    head = next((item for item in containers if item.is_head), None)
    if kind == "RayService" and head is not None:
        yield from _check_service(document, head, around)


def _check_container(container: Container, config_maps: ConfigMaps) -> Iterator[Finding]:
    """Check the environment of a container: Ray's variables, and the settings that it reads."""
    yield from find_misspelt(container.variables)
    yield from _find_secrets(container)
    yield from _check_config_path(container, config_maps)
    if _reads_unknown_file(container, config_maps):
        yield from find_unknown_variables(container.variables)
        return
    file = _settings_file(container, config_maps)
    settings, found = read_settings(file, container.variables)
    # The faults of the file alone are reported where the file stands, in its ConfigMap.
    found_in_file = set(map(str, read_settings(file)[1]))
    yield from (finding for finding in found if str(finding) not in found_in_file)
    if settings is not None:
        yield from _check_database(settings)


def _find_secrets(container: Container) -> Iterator[Finding]:
    for _, item in mappings_at(container.spec, "env"):
        name, value = str(item.get("name")), str(item.get("value") or "")
        is_secret = name.endswith(("_KEY", "_PASSWORD")) or "@" in value.partition("://")[2]
        if setting_path(name) and value and is_secret:
            yield warning((name,), "is a secret in a file", "take it from a Secret: valueFrom.secretKeyRef")


def _check_config_path(container: Container, config_maps: ConfigMaps) -> Iterator[Finding]:
    """Check that the settings file of a container is in a ConfigMap; if there are none here, it may be elsewhere."""
    path = container.variables.get(CONFIG_VARIABLE)
    if path is None:
        return
    mounted = container.find_config_map(path)
    if mounted is None:
        yield warning((CONFIG_VARIABLE,), f"is {path}, where no ConfigMap is mounted", "mount one there")
        return
    name, key = mounted
    if name not in config_maps and config_maps:
        fault = f"is {path}, but no file holds the ConfigMap {name}"
        yield Finding((CONFIG_VARIABLE,), fault, suggest_name(name, sorted(config_maps)))
    elif name in config_maps and key not in config_maps[name]:
        fault = f"is {path}, but {name} has no {key}"
        yield Finding((CONFIG_VARIABLE,), fault, suggest_name(key, sorted(map(str, config_maps[name]))))


def _settings_file(container: Container, config_maps: ConfigMaps) -> Any:
    """Return the settings file that a container reads; ``None`` if its ConfigMap is not here or unreadable."""
    path = container.variables.get(CONFIG_VARIABLE)
    mounted = container.find_config_map(path) if path else None
    text = config_maps.get(mounted[0], {}).get(mounted[1]) if mounted else None
    documents = read_documents(SETTINGS_SUFFIX, text) if isinstance(text, str) else None
    return documents[0] if isinstance(documents, list) and documents else None


def _reads_unknown_file(container: Container, config_maps: ConfigMaps) -> bool:
    """Report whether a container reads a settings file that is not here, so that its settings are unknown."""
    return CONFIG_VARIABLE in container.variables and _settings_file(container, config_maps) is None


def _check_database(settings: Settings) -> Iterator[Finding]:
    postgres = settings.postgres
    if not isinstance(postgres, PostgresServerSettings):
        return
    for name in ("url", "direct_url"):
        if getattr(postgres, name) == DATABASE_PLACEHOLDER:
            fault = f"is missing, and postgres.pooling is {postgres.pooling}"
            yield Finding((f"LAMINA_POSTGRES__{name.upper()}",), fault, "take it from a Secret")


def _check_config_map(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the settings files in a ConfigMap, as far as they do not depend on the environment."""
    for key, text in mapping_at(document, "data").items():
        if not str(key).endswith(SETTINGS_SUFFIX) or not isinstance(text, str):
            continue
        documents = read_documents(SETTINGS_SUFFIX, text)
        if isinstance(documents, Finding):
            yield documents.under("data", key)
            continue
        settings, found = read_settings(documents[0] if documents else None)
        yield from under(found, "data", key)
        if settings is not None:
            yield from under(check_consistency(settings, is_service=False), "data", key)


def _check_entrypoint(document: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Finding]:
    words = str(value_at(document, *path)).split()
    if words[: len(JOB_COMMAND)] == JOB_COMMAND:
        job = next(iter(words[len(JOB_COMMAND) :]), "")
        if job not in JOB_NAMES:
            yield Finding(path, f"runs no job there is: {job!r}", suggest_name(job, JOB_NAMES))


def _check_service(document: Mapping[str, Any], head: Container, around: Surroundings) -> Iterator[Finding]:
    yield from warn_of_missing_flags(head.variables, (*head.place, "env"))
    place, text = ("spec", "serveConfigV2"), value_at(document, "spec", "serveConfigV2")
    documents = read_documents("serveConfigV2.yaml", text) if isinstance(text, str) else []
    if isinstance(documents, Finding):
        yield documents.under(*place)
        return
    served = mapping_at(documents[0]) if documents else {}
    yield from under(check_reachable_host(served), *place)
    if _reads_unknown_file(head, around.config_maps):
        yield from under(check_serve(served, around.check_schema), *place)
        return
    file, variables = _settings_file(head, around.config_maps), head.variables
    # Faults of the ConfigMap and of the environment are reported there, and would be repeated for the arguments.
    reported_elsewhere = _settings_findings(file, variables)
    for finding in check_serve(served, around.check_schema, file, variables):
        in_arguments = replace(finding, place=finding.place[len(("applications", 0, "args")) :])
        if in_arguments not in reported_elsewhere:
            yield finding.under(*place)
    settings = served_settings(served, file, variables)
    if settings is not None:
        yield from under(warn_of_embedded_indexes(settings), *place)
        cluster = CLUSTER_PATHS["RayService"]
        yield from under(check_placement(settings, mapping_at(document, *cluster)), *cluster)


def _settings_findings(file: Any, variables: Variables) -> list[Finding]:
    """Return the findings that the check of a settings file and of the variables over it gives."""
    settings, found = read_settings(file)
    consistency = check_consistency(settings, is_service=False) if settings is not None else ()
    return [*found, *read_settings(file, variables)[1], *consistency]
