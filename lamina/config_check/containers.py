"""The containers of manifests: where they stand, what is in their environment, which settings they read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from lamina.config_check.findings import Finding, Place, meant, under, warning
from lamina.config_check.parse import documents_of
from lamina.config_check.ray_variables import misspelt
from lamina.config_check.settings_file import DATABASE, path_of, read_settings, unknown_variables
from lamina.settings import PostgresServerSettings, Settings

CONFIG_VARIABLE = "LAMINA_CONFIG"
SETTINGS_SUFFIX = "settings.yaml"
ConfigMaps = Mapping[str, Mapping[str, str]]
"""What the ConfigMaps at hand hold, by name."""
PATHS_TO_CLUSTER: Mapping[str, Place] = {
    "RayService": ("spec", "rayClusterConfig"),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
    "RayCluster": ("spec",),
}
_PATHS_TO_TEMPLATE: Mapping[str, Place] = {
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
        place: Where it stands.
        spec: What it is.
        volumes: The volumes of its pod, by name.
    """

    place: Place
    spec: Mapping[str, Any]
    volumes: Mapping[str, Mapping[str, Any]]

    @property
    def variables(self) -> dict[str, str | None]:
        """Its environment; ``None`` where the value comes from elsewhere."""
        return {item["name"]: item.get("value") for item in self.spec.get("env") or []}

    def config_map_of(self, file: str) -> tuple[str, str] | None:
        """Return the ConfigMap and the key in it that stand for a file in the container."""
        for mount in self.spec.get("volumeMounts") or []:
            folder = f"{str(mount['mountPath']).rstrip('/')}/"
            chosen = (self.volumes.get(mount["name"]) or {}).get("configMap")
            if isinstance(chosen, Mapping) and file.startswith(folder):
                return str(chosen.get("name")), file.removeprefix(folder)
        return None


def at(document: Any, place: Place) -> Any:
    """Return what stands at a place; ``None`` if nothing does."""
    for part in place:
        if not isinstance(document, Mapping):
            return None
        document = document.get(part)
    return document


def containers_of(document: Mapping[str, Any]) -> Iterator[Container]:
    """Return every container of a manifest, those of the head first."""
    kind = str(document.get("kind"))
    for path, template in chain(_own_templates(kind, document), _cluster_templates(kind, document)):
        spec = template["spec"]
        volumes = {str(volume.get("name")): volume for volume in spec.get("volumes") or []}
        for key in ("initContainers", "containers"):
            for number, container in enumerate(spec.get(key) or []):
                yield Container((*path, "spec", key, number), container, volumes)


def _own_templates(kind: str, document: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    path = _PATHS_TO_TEMPLATE.get(kind)
    template = at(document, path) if path else None
    if path and template:
        yield path, template


def _cluster_templates(kind: str, document: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    path = PATHS_TO_CLUSTER.get(kind)
    cluster = at(document, path) if path else None
    if path and cluster:
        for place, group in groups_of(cluster):
            yield (*path, *place, "template"), group["template"]


def groups_of(cluster: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Return the head's group and those of the workers."""
    yield ("headGroupSpec",), cluster["headGroupSpec"]
    for number, group in enumerate(cluster.get("workerGroupSpecs") or []):
        yield ("workerGroupSpecs", number), group


def check_container(container: Container) -> Iterator[Finding]:
    """Return what is wrong with one container by itself."""
    yield from under(_environment(container), *container.place)
    yield from under(_mounts(container), *container.place)


def _environment(container: Container) -> Iterator[Finding]:
    names = [item["name"] for item in container.spec.get("env") or []]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield Finding(("env", number, name), "stands twice", "take one of them out")
    yield from misspelt(container.variables, ("env",))
    for item in container.spec.get("env") or []:
        if ("value" in item) == ("valueFrom" in item):
            yield Finding(("env", item["name"]), "has not exactly one of value and valueFrom", "give it one")
        yield from _secret_value(item)


def _secret_value(item: Mapping[str, Any]) -> Iterator[Finding]:
    name, value = item["name"], item.get("value") or ""
    if path_of(name) and value and (name.endswith(("_KEY", "_PASSWORD")) or "@" in value.partition("://")[2]):
        yield warning(("env", name), "is a secret in a file", "take it from a Secret: valueFrom.secretKeyRef")


def _mounts(container: Container) -> Iterator[Finding]:
    for number, mount in enumerate(container.spec.get("volumeMounts") or []):
        if mount["name"] not in container.volumes:
            yield Finding(
                ("volumeMounts", number, "name"), f"is {mount['name']}", meant(mount["name"], sorted(container.volumes))
            )


def file_of(container: Container, config_maps: ConfigMaps) -> Any:
    """Return the settings that a container reads, if the ConfigMap is at hand and readable."""
    path = container.variables.get(CONFIG_VARIABLE)
    chosen = container.config_map_of(path) if path else None
    text = config_maps.get(chosen[0], {}).get(chosen[1]) if chosen else None
    read = documents_of(SETTINGS_SUFFIX, text) if isinstance(text, str) else None
    return read[0] if isinstance(read, list) and read else None


def is_out_of_sight(container: Container, config_maps: ConfigMaps) -> bool:
    """Tell whether the settings are in a file that is not at hand, so that nothing is known of what they say."""
    return CONFIG_VARIABLE in container.variables and file_of(container, config_maps) is None


def check_settings_of(containers: Sequence[Container], config_maps: ConfigMaps) -> Iterator[Finding]:
    """Return what is wrong with the settings that containers read, once their variables have gone before them."""
    for container in containers:
        found = (*_config_path(container, config_maps), *_overlay(container, config_maps))
        yield from under(found, *container.place, "env")


def _overlay(container: Container, config_maps: ConfigMaps) -> Iterator[Finding]:
    """Return what the variables make of the settings file, beyond what is wrong with the file itself."""
    file, variables = file_of(container, config_maps), container.variables
    if is_out_of_sight(container, config_maps):
        yield from unknown_variables(variables)
        return
    settings, found = read_settings(file, variables)
    known = set(map(str, read_settings(file)[1]))
    yield from (finding for finding in found if str(finding) not in known)
    if settings is not None:
        yield from _without_database(settings)


def _config_path(container: Container, config_maps: ConfigMaps) -> Iterator[Finding]:
    path = container.variables.get(CONFIG_VARIABLE)
    if path is None:
        return
    chosen = container.config_map_of(path)
    if chosen is None:
        yield warning((CONFIG_VARIABLE,), f"is {path}, where no ConfigMap is mounted", "mount one there")
    elif chosen[0] in config_maps and chosen[1] not in config_maps[chosen[0]]:
        known = sorted(config_maps[chosen[0]])
        yield Finding((CONFIG_VARIABLE,), f"is {path}, but {chosen[0]} has no {chosen[1]}", meant(chosen[1], known))


def _without_database(settings: Settings) -> Iterator[Finding]:
    postgres = settings.postgres
    if not isinstance(postgres, PostgresServerSettings):
        return
    for name in ("url", "direct_url"):
        if getattr(postgres, name) == DATABASE:
            variable = f"LAMINA_POSTGRES__{name.upper()}"
            yield Finding(
                (variable,), f"is missing, and postgres.pooling is {postgres.pooling}", "take it from a Secret"
            )
