"""Clusters of KubeRay: their Ray, and room for a service with its settings."""

import json
import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

from lamina.config_check.consistency import deployments_of
from lamina.config_check.documents import mapping_at, mappings_at
from lamina.config_check.findings import Finding, Place, warning
from lamina.config_check.ray_variables import SERVE_PREFIX
from lamina.settings.loading import Settings
from lamina.settings.serving import EmbedderDeploymentSettings

CLUSTER_PATHS: Mapping[str, tuple[str, ...]] = {
    "RayService": ("spec", "rayClusterConfig"),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
    "RayCluster": ("spec",),
}
HEAD = "headGroupSpec"
GPU = "nvidia.com/gpu"
# Kubernetes' own default.
DEFAULT_GRACE_S = 30
# The Ray that Lamina is built on; a test compares with the pinned one.
RAY_VERSION = "2.60.0"
# Times that all replicas are there while new ones take the place of old ones.
SURGE = 2
_ROUNDING = 1e-9  # 1 / 0.1 replicas of a GPU are 10, also where floats make them a little less.


def groups_of(cluster: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Return the groups of a cluster, the head's first, with their places."""
    if head := mapping_at(cluster, HEAD):
        yield (HEAD,), head
    for number, group in mappings_at(cluster, "workerGroupSpecs"):
        yield ("workerGroupSpecs", number), group


def check_cluster(cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Check a cluster's token and version of Ray, and that all its groups have the same flags of Serve."""
    if mapping_at(cluster, "authOptions").get("mode") != "token":
        fault = "lets everybody who reaches Ray's ports run code"
        yield Finding(("authOptions",), fault, "set mode: token, and the secretName of a Secret with auth_token")
    version = cluster.get("rayVersion")
    if version is not None and version != RAY_VERSION:
        yield warning(("rayVersion",), f"is {version}, but Lamina runs on {RAY_VERSION}", "write that of the image")
    head = _flags(mapping_at(cluster, HEAD))
    for place, group in groups_of(cluster):
        flags = _flags(group)
        for name in sorted(head.keys() | flags.keys()):
            # Every process of Ray reads them by itself: one that differs works another way than the head believes.
            if head.get(name) != flags.get(name):
                fault = f"is {flags.get(name) or 'not set'} here and {head.get(name) or 'not set'} in the head"
                yield Finding((*place, "env", name), fault, "set the same in every group")


def _ray_container(group: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return Ray's container of a group, which is the first one."""
    containers = mappings_at(group, "template", "spec", "containers")
    return containers[0][1] if containers else {}


def _flags(group: Mapping[str, Any]) -> dict[str, Any]:
    env = {str(item.get("name")): item.get("value") for _, item in mappings_at(_ray_container(group), "env")}
    return {name: value for name, value in env.items() if name.startswith(SERVE_PREFIX)}


def check_placement(settings: Settings, cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that a service with these settings finds its resources and its time to drain in a cluster."""
    yield from _check_resources(settings, cluster)
    yield from _check_grace(settings, cluster)


def _check_grace(settings: Settings, cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Warn of groups whose pods are killed before their replicas have drained."""
    longest = max(item.drain_s for item in deployments_of(settings).values())
    wanted = set(chain.from_iterable(item.resources for item in deployments_of(settings).values()))
    for place, group in groups_of(cluster):
        offered = _offers(group)
        may_serve = not wanted or bool(wanted & offered) or "GPU" in offered
        grace = mapping_at(group, "template", "spec").get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
        if isinstance(grace, int) and grace < longest and place != (HEAD,) and may_serve:
            yield warning(
                (*place, "template", "spec", "terminationGracePeriodSeconds"),
                f"is {grace}, less than the longest drain_s in `serve` ({longest:g})",
                "raise it: requests in flight would be cut off",
            )


def _check_resources(settings: Settings, cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Return the reserved resources that no group has, for which replicas would wait for ever."""
    offered = set(chain.from_iterable(_offers(group) for _, group in groups_of(cluster)))
    wanted = {f"serve.{name}": item.resources for name, item in deployments_of(settings).items()}
    wanted["jobs.task_resources"] = settings.jobs.task_resources
    for who, resources in wanted.items():
        for name in resources.keys() - offered:
            fault = f"have no resource {name}, which {who} reserves"
            yield Finding(("workerGroupSpecs",), fault, "give it to a group's `resources`")
    embedder = settings.serve.embedder
    if embedder.gpu_fraction:
        yield from _check_accelerator(embedder, offered)
        yield from _check_gpu_count(embedder, cluster)


def _check_accelerator(embedder: EmbedderDeploymentSettings, offered: AbstractSet[str]) -> Iterator[Finding]:
    if embedder.accelerator is None:
        return
    setting, kind = f"serve.embedder.accelerator is {embedder.accelerator}", f"accelerator_type:{embedder.accelerator}"
    if "GPU" not in offered:
        remedy = f"give a group the limit {GPU}, or leave accelerator out"
        yield Finding(("workerGroupSpecs",), f"have no GPU, but {setting}", remedy)
    elif kind not in offered:
        remedy = "give it to a group's `resources`: the autoscaler looks for it there"
        yield warning(("workerGroupSpecs",), f"have no resource {kind}, but {setting}", remedy)


def _check_gpu_count(embedder: EmbedderDeploymentSettings, cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that the embedder's replicas have room on the GPUs: alone, and during an update."""
    offered = _gpu_count(cluster, embedder.accelerator)
    each = max(1, int(1 / embedder.gpu_fraction + _ROUNDING))
    for times in (1, SURGE) if offered else ():
        replicas = embedder.max_replicas * times
        needed = math.ceil(replicas / each)
        if needed > offered:
            who = "serve.embedder.max_replicas" if times == 1 else "old and new ones during an update"
            fault = f"have {offered} GPUs at the most, and {replicas} replicas of the embedder ({who}) at "
            fault += f"gpu_fraction {embedder.gpu_fraction:g} take {needed}"
            remedy = "raise maxReplicas of the group, or lower gpu_fraction or serve.embedder.max_replicas"
            yield Finding(("workerGroupSpecs",), fault, remedy, "error" if times == 1 else "warning")
            return


def _gpu_count(cluster: Mapping[str, Any], accelerator: str | None) -> int:
    """Return the GPUs of the groups at their largest; only those of the accelerator's type, where groups name it."""
    groups = [group for _, group in groups_of(cluster)]
    typed = [group for group in groups if f"accelerator_type:{accelerator}" in _offers(group)]
    return sum(math.prod(_group_sizes(group)) for group in typed or groups)


def _group_sizes(group: Mapping[str, Any]) -> Iterator[int]:
    """Return the GPUs of a host, the hosts of a replica and the most replicas of a group."""
    limit = mapping_at(_ray_container(group), "resources", "limits").get(GPU, 0)
    for count in (mapping_at(group, "rayStartParams").get("num-gpus", limit), group.get("numOfHosts", 1)):
        yield int(count) if str(count).isdecimal() else 0
    most = group.get("maxReplicas", 1)
    yield most if isinstance(most, int) else 1


def _offers(group: Mapping[str, Any]) -> set[str]:
    """Return the names of a group's resources, as Ray has them."""
    params = mapping_at(group, "rayStartParams")
    offered = {*map(str, mapping_at(group, "resources")), *_parse_resources(params.get("resources"))}
    if "num-gpus" in params or GPU in mapping_at(_ray_container(group), "resources", "limits"):
        offered.add("GPU")
    return offered


def _parse_resources(text: Any) -> list[str]:
    """Return the names in `rayStartParams.resources`, which is JSON in quotes of its own."""
    try:
        return list(json.loads(str(text).strip("'\"").replace('\\"', '"')))
    except (json.JSONDecodeError, TypeError):
        return []
