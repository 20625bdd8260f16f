"""Containers of manifests: their places, their environment, and the ConfigMaps that are mounted in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lamina.config_check.documents import mapping_at, mappings_at
from lamina.config_check.findings import Place
from lamina.config_check.ray_clusters import CLUSTER_PATHS, HEAD, groups_of

_TEMPLATE_PATHS: Mapping[str, tuple[str, ...]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "Job": ("spec", "template"),
    "Deployment": ("spec", "template"),
    "RayJob": ("spec", "submitterPodTemplate"),
    "RayCronJob": ("spec", "jobTemplate", "submitterPodTemplate"),
}


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a manifest.

    Args:
        place: Its place in the document.
        spec: Its specification.
        pod: The specification of its pod.
    """

    place: Place
    spec: Mapping[str, Any]
    pod: Mapping[str, Any]

    @property
    def variables(self) -> dict[str, str | None]:
        """Its environment; ``None`` where the value comes from elsewhere."""
        items = ((item.get("name"), item.get("value")) for _, item in mappings_at(self.spec, "env"))
        return {name: value if isinstance(value, str) else None for name, value in items if isinstance(name, str)}

    @property
    def is_head(self) -> bool:
        """Whether it is Ray's container in the head of a cluster."""
        return HEAD in self.place and self.place[-2:] == ("containers", 0)

    def find_config_map(self, file: str) -> tuple[str, str] | None:
        """Return the ConfigMap and its key that a file in the container comes from."""
        volumes = {str(volume.get("name")): volume for _, volume in mappings_at(self.pod, "volumes")}
        for _, mount in mappings_at(self.spec, "volumeMounts"):
            folder = f"{str(mount.get('mountPath')).rstrip('/')}/"
            source = mapping_at(volumes.get(str(mount.get("name"))), "configMap")
            if source and file.startswith(folder):
                return str(source.get("name")), file.removeprefix(folder)
        return None


def containers_of(document: Mapping[str, Any]) -> Iterator[Container]:
    """Return every container of a manifest."""
    for place, template in templates_of(document):
        pod = mapping_at(template, "spec")
        for key in ("initContainers", "containers"):
            for number, container in mappings_at(pod, key):
                yield Container((*place, "spec", key, number), container, pod)


def templates_of(document: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Return every template of pods of a manifest, with its place."""
    kind = str(document.get("kind"))
    if kind in _TEMPLATE_PATHS:
        yield _TEMPLATE_PATHS[kind], mapping_at(document, *_TEMPLATE_PATHS[kind])
    if kind in CLUSTER_PATHS:
        path = CLUSTER_PATHS[kind]
        for place, group in groups_of(mapping_at(document, *path)):
            yield (*path, *place, "template"), mapping_at(group, "template")
