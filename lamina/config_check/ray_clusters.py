"""Clusters of KubeRay: their groups, what outlives their head, and whether a service finds its place in them."""

import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from json import JSONDecodeError, loads
from typing import Any

from lamina.config_check.consistency import deployments_of
from lamina.config_check.containers import Container, at, groups_of
from lamina.config_check.findings import Finding, repeated, under, warning
from lamina.config_check.ray_variables import SERVE_PREFIX
from lamina.settings import EmbedderDeploymentSettings, Settings

GPU = "nvidia.com/gpu"
STANDARD = ("CPU", "GPU", "TPU")
"""Resources that Ray counts by itself, as its autoscaler writes them."""
DEFAULT_GRACE_S = 30
RAY_VERSION = "2.60.0"
"""The Ray that Lamina is built on; a test compares with what is pinned."""
SURGE = 2
"""How many times the replicas are there while new ones take the place of old ones."""
_ROUNDING = 1e-9
_STORAGE, _STORAGE_PATH = "RAY_gcs_storage", "RAY_gcs_storage_path"
_OF_REDIS = ("redisAddress", "redisPassword", "redisUsername", "externalStorageNamespace")


def check_cluster(cluster: Mapping[str, Any], *, is_lasting: bool) -> Iterator[Finding]:
    """Return what is wrong with a cluster by itself; one that lasts should outlive its head."""
    yield from _version(cluster)
    yield from _groups(cluster)
    yield from _fault_tolerance(cluster, is_lasting=is_lasting)
    yield from _same_flags(cluster)


def _version(cluster: Mapping[str, Any]) -> Iterator[Finding]:
    version = cluster.get("rayVersion")
    if version is not None and version != RAY_VERSION:
        yield warning(("rayVersion",), f"is {version}, but Lamina runs on {RAY_VERSION}", "write that of the image")


def _groups(cluster: Mapping[str, Any]) -> Iterator[Finding]:
    workers = cluster.get("workerGroupSpecs") or []
    yield from repeated([group["groupName"] for group in workers], ("workerGroupSpecs",), "groupName")
    for number, group in enumerate(workers):
        yield from under(_replicas(group), "workerGroupSpecs", number)
    for place, group in groups_of(cluster):
        yield from under(_resources(group), *place)


def _replicas(group: Mapping[str, Any]) -> Iterator[Finding]:
    least, most = group.get("minReplicas", 0), group.get("maxReplicas")
    if most is None:
        yield Finding(("maxReplicas",), "is missing", "write it, or the group never grows")
    elif least > most:
        yield Finding(("minReplicas",), f"is {least}, more than maxReplicas ({most})", "lower it")
    elif not least <= group.get("replicas", least) <= most:
        yield Finding(("replicas",), f"is {group['replicas']}, not in {least}..{most}", "choose one in between")


def _resources(group: Mapping[str, Any]) -> Iterator[Finding]:
    params = group.get("rayStartParams") or {}
    both = {"num-cpus", "num-gpus", "memory", "resources"} & params.keys()
    if both and group.get("resources"):
        yield Finding(("rayStartParams", min(both)), "stands beside `resources`", "KubeRay takes one of them: choose")
    for name in group.get("resources") or {}:
        if name not in STANDARD and name.upper() in STANDARD:
            yield Finding(("resources", name), "is another resource to the autoscaler", f"write {name.upper()}")
    if "labels" in params:
        yield Finding(("rayStartParams", "labels"), "is refused by KubeRay", "use `labels` of the group")


def _fault_tolerance(cluster: Mapping[str, Any], *, is_lasting: bool) -> Iterator[Finding]:
    options, head = cluster.get("gcsFaultToleranceOptions"), first_container(cluster)
    if options is None:
        yield from _by_variables(head) if is_lasting else ()
    elif options.get("backend") == "rocksdb":
        yield from under(_rocksdb(options), "gcsFaultToleranceOptions")
        yield from (
            Finding(("headGroupSpec", name), "is KubeRay's own to set with backend rocksdb", "take it out")
            for name in (_STORAGE, _STORAGE_PATH)
            if name in head.variables
        )
    else:
        yield from under(_redis(options), "gcsFaultToleranceOptions")


def _rocksdb(options: Mapping[str, Any]) -> Iterator[Finding]:
    for name in _OF_REDIS:
        if name in options:
            yield Finding((name,), "belongs to redis", "write backend: redis, or take it out")


def _redis(options: Mapping[str, Any]) -> Iterator[Finding]:
    if not options.get("redisAddress"):
        yield Finding(("redisAddress",), "is missing", "write Redis's host:port, or choose backend: rocksdb")
    if "storage" in options:
        yield Finding(("storage",), "belongs to rocksdb", "write backend: rocksdb, or take it out")


def _by_variables(head: Container) -> Iterator[Finding]:
    """Return why the head's variables do not make the control store outlive it."""
    variables = head.variables
    if variables.get(_STORAGE) != "rocksdb":
        yield warning(
            ("gcsFaultToleranceOptions",),
            "is missing: the whole cluster ends with its head",
            f"set backend: rocksdb or redisAddress, or {_STORAGE}=rocksdb and {_STORAGE_PATH} in the head",
        )
        return
    path = variables.get(_STORAGE_PATH)
    if not path:
        yield Finding(("headGroupSpec", _STORAGE_PATH), "is missing", "name a folder on a volume that lasts")
        return
    mounted = [mount for mount in head.spec.get("volumeMounts") or [] if f"{path}/".startswith(mount["mountPath"])]
    lasting = [mount for mount in mounted if "persistentVolumeClaim" in (head.volumes.get(mount["name"]) or {})]
    if not lasting:
        yield warning(
            ("headGroupSpec", _STORAGE_PATH),
            f"is {path}, on no volume that lasts",
            "mount a persistentVolumeClaim there",
        )


def first_container(cluster: Mapping[str, Any]) -> Container:
    """Return the head's container of Ray."""
    spec = cluster["headGroupSpec"]["template"]["spec"]
    volumes = {str(volume.get("name")): volume for volume in spec.get("volumes") or []}
    return Container(("headGroupSpec",), spec["containers"][0], volumes)


def _same_flags(cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Return the flags of serving that one group has otherwise than the head: every process reads them by itself."""
    head = _flags(cluster["headGroupSpec"])
    for place, group in groups_of(cluster):
        flags = _flags(group)
        for name in sorted(head.keys() | flags.keys()):
            if head.get(name) != flags.get(name):
                told = f"is {flags.get(name) or 'not set'} here and {head.get(name) or 'not set'} in the head"
                yield Finding((*place, "env", name), told, "set the same in every group")


def _flags(group: Mapping[str, Any]) -> dict[str, str | None]:
    env = group["template"]["spec"]["containers"][0].get("env") or []
    return {item["name"]: item.get("value") for item in env if item["name"].startswith(SERVE_PREFIX)}


def misplaced(settings: Settings, cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Return what keeps a service with these settings from running well on a cluster."""
    yield from _placement(settings, cluster)
    yield from _grace(settings, cluster)


def _grace(settings: Settings, cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Return the groups whose pods are killed before their replicas have finished what they began."""
    longest = max(item.drain_s for item in deployments_of(settings).values())
    for place, group in groups_of(cluster):
        grace = group["template"]["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
        if grace < longest and place != ("headGroupSpec",) and _serves(group, settings):
            yield warning(
                (*place, "template", "spec", "terminationGracePeriodSeconds"),
                f"is {grace}, less than the longest drain_s in `serve` ({longest:g})",
                "raise it: requests in flight would be cut off",
            )


def _serves(group: Mapping[str, Any], settings: Settings) -> bool:
    """Tell whether replicas may run on a group: any group, if nothing says where they belong."""
    wanted = set(chain.from_iterable(item.resources for item in deployments_of(settings).values()))
    offered = set(_offers(group))
    return not wanted or bool(wanted & offered) or "GPU" in offered


def _placement(settings: Settings, cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Return the resources that nobody in the cluster has, so that what reserves them never starts."""
    offered = set(chain.from_iterable(_offers(group) for _, group in groups_of(cluster)))
    wanted = {f"serve.{name}": item.resources for name, item in deployments_of(settings).items()}
    wanted["jobs.task_resources"] = settings.jobs.task_resources
    for who, resources in wanted.items():
        for name in resources.keys() - offered:
            yield Finding(
                ("workerGroupSpecs",),
                f"have no resource {name}, which {who} reserves",
                "give it to a group's `resources`",
            )
    yield from _gpu(settings.serve.embedder, offered)
    yield from _gpu_share(settings.serve.embedder, cluster)


def _gpu_share(embedder: EmbedderDeploymentSettings, cluster: Mapping[str, Any]) -> Iterator[Finding]:
    """Return whether the replicas of the embedder find room on the GPUs, once, and while a new version comes."""
    offered = _gpus(cluster, embedder.accelerator)
    if not offered or not embedder.gpu_fraction:
        return
    each = max(1, int(1 / embedder.gpu_fraction + _ROUNDING))
    for times in (1, SURGE):
        needed = math.ceil(embedder.max_replicas * times / each)
        if needed > offered:
            told = f"have {offered} GPUs at the most, and {embedder.max_replicas * times} replicas of the embedder "
            told += f"({'serve.embedder.max_replicas' if times == 1 else 'old and new ones during an update'}) at "
            told += f"gpu_fraction {embedder.gpu_fraction:g} take {needed}"
            remedy = "raise maxReplicas of the group, or lower gpu_fraction or serve.embedder.max_replicas"
            yield Finding(("workerGroupSpecs",), told, remedy, is_error=times == 1)
            return


def _gpus(cluster: Mapping[str, Any], accelerator: str | None) -> int:
    """Return how many GPUs the groups have when they are largest; of one type, where groups name it."""
    groups = [group for _, group in groups_of(cluster)]
    typed = [group for group in groups if f"accelerator_type:{accelerator}" in set(_offers(group))]
    return sum(_gpus_of(group) * group.get("maxReplicas", 1) * group.get("numOfHosts", 1) for group in typed or groups)


def _gpus_of(group: Mapping[str, Any]) -> int:
    limits = at(group["template"]["spec"]["containers"][0], ("resources", "limits")) or {}
    said = str((group.get("rayStartParams") or {}).get("num-gpus", limits.get(GPU, 0)))
    return int(said) if said.isdecimal() else 0


def _gpu(embedder: EmbedderDeploymentSettings, offered: AbstractSet[str]) -> Iterator[Finding]:
    if embedder.accelerator is None or embedder.gpu_fraction == 0:
        return
    told, kind = f"serve.embedder.accelerator is {embedder.accelerator}", f"accelerator_type:{embedder.accelerator}"
    if "GPU" not in offered:
        remedy = f"give a group the limit {GPU}, or leave accelerator out"
        yield Finding(("workerGroupSpecs",), f"have no GPU, but {told}", remedy)
    elif kind not in offered:
        what = f"have no resource {kind}, but {told}"
        yield warning(
            ("workerGroupSpecs",), what, "give it to a group's `resources`: the autoscaler looks for it there"
        )


def _offers(group: Mapping[str, Any]) -> Iterator[str]:
    yield from group.get("resources") or {}
    params = group.get("rayStartParams") or {}
    yield from _custom(params.get("resources", ""))
    limits = at(group["template"]["spec"]["containers"][0], ("resources", "limits")) or {}
    if GPU in limits or "num-gpus" in params:
        yield "GPU"


def _custom(said: str) -> list[str]:
    """Return the names in rayStartParams.resources, which is JSON in quotes of its own."""
    try:
        return list(loads(said.strip("'\"").replace('\\"', '"'))) if said else []
    except (JSONDecodeError, TypeError):
        return []
