"""Kubernetes manifests: shapes, and what they say about Lamina and Ray."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lamina.config_check.consistency import check_cron, disagreements, on_nodes
from lamina.config_check.containers import (
    PATHS_TO_CLUSTER,
    SETTINGS_SUFFIX,
    ConfigMaps,
    Container,
    at,
    check_container,
    check_settings_of,
    containers_of,
    file_of,
    is_out_of_sight,
)
from lamina.config_check.findings import Finding, Place, meant, under, warning
from lamina.config_check.kubernetes_shapes import KINDS
from lamina.config_check.parse import documents_of
from lamina.config_check.prometheus import contradictions_in
from lamina.config_check.ray_clusters import check_cluster, misplaced
from lamina.config_check.ray_variables import lacking
from lamina.config_check.serve import check_serve, reachable_host, served_settings
from lamina.config_check.settings_file import read_settings
from lamina.core.runs import JOB_NAMES
from lamina.settings import Settings

_PATHS_TO_ENTRYPOINT: Mapping[str, Place] = {
    "RayJob": ("spec", "entrypoint"),
    "RayCronJob": ("spec", "jobTemplate", "entrypoint"),
}
_SCHEDULED = ("CronJob", "RayCronJob")
_LASTING = ("RayService", "RayCluster")


def check_manifest(document: Mapping[str, Any], config_maps: ConfigMaps) -> Iterator[Finding]:
    """Return what is wrong with one manifest.

    Args:
        document: It.
        config_maps: What the ConfigMaps beside it hold, by name.
    """
    kind = str(document.get("kind"))
    if kind not in KINDS:
        yield warning(("kind",), f"is {kind}, which is not checked", meant(kind, sorted(KINDS)))
        return
    version, shape = KINDS[kind]
    if document.get("apiVersion") != version:
        yield Finding(("apiVersion",), f"is {document.get('apiVersion')!r}", f"write {version}")
    found = list(shape.check(document, ()))
    yield from found
    if not any(finding.is_error and not finding.what.startswith("is not known") for finding in found):
        yield from _meaning(kind, document, config_maps)


def _meaning(kind: str, document: Mapping[str, Any], config_maps: ConfigMaps) -> Iterator[Finding]:
    containers = list(containers_of(document))
    for container in containers:
        yield from check_container(container)
    yield from check_settings_of(containers, config_maps)
    if kind == "ConfigMap":
        yield from _config_map(document)
    if kind == "PrometheusRule":
        yield from under(contradictions_in(document["spec"]), "spec")
    if kind in _SCHEDULED and not document["spec"]["schedule"].startswith("@"):
        yield from check_cron(document["spec"]["schedule"], ("spec", "schedule"))
    if kind in _PATHS_TO_ENTRYPOINT:
        yield from _entrypoint(document, _PATHS_TO_ENTRYPOINT[kind])
    path = PATHS_TO_CLUSTER.get(kind, ())
    cluster = at(document, path) if path else None
    if cluster:
        yield from under(check_cluster(cluster, is_lasting=kind in _LASTING), *path)
    if kind == "RayService":
        yield from _service(document, containers, config_maps)


def _config_map(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return what is wrong with the settings files that a ConfigMap holds, as far as they tell by themselves."""
    for key, text in (document.get("data") or {}).items():
        if not key.endswith(SETTINGS_SUFFIX):
            continue
        read = documents_of(key, text)
        if isinstance(read, Finding):
            yield read.under("data", key)
            continue
        settings, found = read_settings(read[0] if read else None)
        yield from under(found, "data", key)
        if settings is not None:
            yield from under(disagreements(settings, is_service=False), "data", key)


def _entrypoint(document: Mapping[str, Any], place: Place) -> Iterator[Finding]:
    words = str(at(document, place)).split()
    if words[:3] == ["python", "-m", "jobs"]:
        job = words[3] if len(words) > 3 else ""  # noqa: PLR2004 - the fourth word
        if job not in JOB_NAMES:
            yield Finding(place, f"runs no job there is: {job!r}", meant(job, JOB_NAMES))


def _service(
    document: Mapping[str, Any], containers: Sequence[Container], config_maps: ConfigMaps
) -> Iterator[Finding]:
    cluster = document["spec"]["rayClusterConfig"]
    head = next(item for item in containers if "headGroupSpec" in item.place and "containers" in item.place)
    yield from lacking(head.variables, (*head.place, "env"))
    read = documents_of("serveConfigV2.yaml", document["spec"]["serveConfigV2"])
    place = ("spec", "serveConfigV2")
    if isinstance(read, Finding):
        yield read.under(*place)
        return
    if not read or not isinstance(read[0], Mapping):
        yield Finding(place, "is no mapping", "write `applications:`")
        return
    yield from under(_served(read[0], head, config_maps), *place)
    settings = _settings_of(read[0], head, config_maps)
    if settings is not None:
        yield from under(on_nodes(settings), *place)
        yield from under(misplaced(settings, cluster), "spec", "rayClusterConfig")


def _served(document: Mapping[str, Any], head: Container, config_maps: ConfigMaps) -> Iterator[Finding]:
    """Return what is wrong with the service's Serve configuration, apart from what is told elsewhere."""
    yield from reachable_host(document)
    if is_out_of_sight(head, config_maps):
        yield from check_serve(document)
        return
    file, variables = file_of(head, config_maps), head.variables
    known = {str(finding) for finding in _told_elsewhere(file, variables)}
    yield from (item for item in check_serve(document, file, variables) if _as_of_file(item) not in known)


def _settings_of(document: Mapping[str, Any], head: Container, config_maps: ConfigMaps) -> Settings | None:
    if is_out_of_sight(head, config_maps):
        return None
    return served_settings(document, file_of(head, config_maps), head.variables)


def _told_elsewhere(file: Any, variables: Mapping[str, str | None]) -> Iterator[Finding]:
    """Return what the settings file and the head's variables are found with where they stand."""
    settings, found = read_settings(file)
    yield from (*found, *read_settings(file, variables)[1])
    if settings is not None:
        yield from disagreements(settings, is_service=False)


def _as_of_file(finding: Finding) -> str:
    return str(Finding(finding.place[3:], finding.what, finding.remedy, finding.is_error))
