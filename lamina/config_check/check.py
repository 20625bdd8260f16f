"""Which kind of file it is, and what is wrong with it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamina.config_check.compose import check_compose
from lamina.config_check.consistency import disagreements
from lamina.config_check.findings import Finding
from lamina.config_check.kubernetes import check_manifest
from lamina.config_check.parse import documents_of
from lamina.config_check.prometheus import PROVISIONING, check_dashboard, check_rules, check_scraping
from lamina.config_check.serve import check_serve
from lamina.config_check.settings_file import read_settings
from lamina.config_check.volumes import Beside, check_volumes


@dataclass(frozen=True, slots=True)
class Source:
    """A file to check.

    Args:
        name: How it is called in what is told.
        text: What stands in it.
    """

    name: str
    text: str


Found = tuple[str, Finding]
Check = Callable[[Mapping[str, Any]], Iterator[Finding]]


def check(sources: Sequence[Source]) -> list[Found]:
    """Return what is wrong with files, each finding with its file's name, in their order.

    They may be of any kind: settings, Serve's configuration, Kubernetes and KubeRay manifests, Prometheus's rules and
    configuration, Grafana's dashboards, compose files. ConfigMaps in one are known to the others.
    """
    read = [(source.name, documents_of(source.name, source.text)) for source in sources]
    everything = [item for _, items in read if isinstance(items, list) for item in items]
    beside = Beside(_config_maps(everything), _secrets(everything))
    return [(name, finding) for name, items in read for finding in _check_file(items, beside)]


def _check_file(items: list[Any] | Finding, beside: Beside) -> Iterator[Finding]:
    if isinstance(items, Finding):
        yield items
        return
    if len(items) > 1 and not all(_is_manifest(item) for item in items):
        yield Finding((), f"holds {len(items)} documents", "only manifests of Kubernetes may share a file")
        return
    yield from () if items else read_settings(None)[1]
    for number, item in enumerate(items):
        found = _check_manifest(item, beside) if _is_manifest(item) else _check_document(item)
        label = (f"{item['kind']} {_name_of(item, number)}",) if len(items) > 1 else ()
        yield from (finding.under(*label) for finding in found)


def _check_manifest(item: Mapping[str, Any], beside: Beside) -> Iterator[Finding]:
    found = list(check_manifest(item, beside.config_maps))
    yield from found
    if not any(finding.is_error for finding in found):
        yield from check_volumes(item, beside)


def _check_document(item: Any) -> Iterator[Finding]:
    if not isinstance(item, Mapping):
        return iter([Finding((), "is no mapping", "write keys and what they hold")])
    for keys, chosen in _KINDS.items():
        if any(key in item for key in keys):
            return chosen(item)
    return _check_settings(item)


def _check_settings(item: Mapping[str, Any]) -> Iterator[Finding]:
    settings, found = read_settings(item)
    yield from found
    if settings is not None:
        yield from disagreements(settings)


def _is_manifest(item: Any) -> bool:
    return isinstance(item, Mapping) and "kind" in item and isinstance(item.get("apiVersion", ""), str)


def _name_of(item: Mapping[str, Any], number: int) -> str:
    metadata = item.get("metadata")
    return str(metadata.get("name", number) if isinstance(metadata, Mapping) else number)


def _config_maps(items: Sequence[Any]) -> dict[str, Mapping[str, str]]:
    return {
        _name_of(item, 0): item["data"]
        for item in items
        if _is_manifest(item) and item["kind"] == "ConfigMap" and isinstance(item.get("data"), Mapping)
    }


def _secrets(items: Sequence[Any]) -> list[str]:
    return [_name_of(item, 0) for item in items if _is_manifest(item) and item["kind"] == "Secret"]


def _check_provisioning(item: Mapping[str, Any]) -> Iterator[Finding]:
    return PROVISIONING.check(item, ())


_KINDS: Mapping[tuple[str, ...], Check] = {
    ("applications", "http_options", "proxy_location"): check_serve,
    ("services",): check_compose,
    ("groups",): check_rules,
    ("scrape_configs", "rule_files"): check_scraping,
    ("panels", "dashboard"): check_dashboard,
    ("providers", "datasources"): _check_provisioning,
}
"""How each kind of document is known: by a key that no other kind has."""
