"""Volumes of pods: whether the ConfigMaps and Secrets that they take files from are among those at hand."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lamina.config_check.containers import ConfigMaps, containers_of
from lamina.config_check.findings import Finding, Place, meant


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands in the manifests that are checked together.

    Args:
        config_maps: What the ConfigMaps hold, by name.
        secrets: The names of the Secrets.
    """

    config_maps: ConfigMaps
    secrets: Collection[str]


def check_volumes(document: Mapping[str, Any], beside: Beside) -> Iterator[Finding]:
    """Return the volumes of a manifest whose source is none of those at hand.

    Where there is none of a kind at hand, they are kept elsewhere, and nothing is known. A Secret may be in the
    cluster already, though others stand here: that is only a warning.
    """
    seen: set[Place] = set()
    for container in containers_of(document):
        place = (*container.place[:-2], "volumes")
        if place in seen:
            continue
        seen.add(place)
        for name, volume in container.volumes.items():
            yield from _source((*place, name), volume, beside)


def _source(place: Place, volume: Mapping[str, Any], beside: Beside) -> Iterator[Finding]:
    for key, name_key, known in (
        ("configMap", "name", list(beside.config_maps)),
        ("secret", "secretName", list(beside.secrets)),
    ):
        source = volume.get(key)
        if not isinstance(source, Mapping) or source.get("optional") or not known:
            continue
        name = str(source.get(name_key))
        if name not in known:
            yield Finding(
                (*place, key, name_key), f"is {name}, which no file holds", meant(name, known), key != "secret"
            )
