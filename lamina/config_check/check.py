"""The check of configuration files of every kind: the kind is recognised by keys that no other kind has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamina.config_check.consistency import check_consistency
from lamina.config_check.documents import mapping_at, read_documents
from lamina.config_check.findings import Finding, under
from lamina.config_check.manifests import Surroundings, check_manifest
from lamina.config_check.metric_names import check_metric_names
from lamina.config_check.serve import SchemaCheck, check_serve, note_missing_schema
from lamina.config_check.settings_file import read_settings

_SERVE_KEYS = {"applications", "http_options", "proxy_location"}
# A key that only one kind of file has: the owner of the file's keys, and the way to check them.
_KEYS_OF_OTHERS: Mapping[str, tuple[str, str]] = {
    "services": ("Docker Compose", "run docker compose --file {} config --quiet"),
    "groups": ("Prometheus's rules", "run promtool check rules {}"),
    "scrape_configs": ("Prometheus", "run promtool check config {}"),
    "rule_files": ("Prometheus", "run promtool check config {}"),
    "panels": ("Grafana", "import it there"),
    "dashboard": ("Grafana", "import it there"),
    "providers": ("Grafana", "start it with them"),
    "datasources": ("Grafana", "start it with them"),
}


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file to check.

    Args:
        name: Its name in findings.
        text: Its content.
    """

    name: str
    text: str


def check_files(
    files: Sequence[ConfigFile], check_schema: SchemaCheck = note_missing_schema
) -> list[tuple[str, Finding]]:
    """Check files of any kind, and return the findings with their files' names.

    The ConfigMaps and NetworkPolicies of all files are known in each.

    Args:
        files: Settings, Serve's configuration, manifests of Kubernetes, and files in which others' keys are noted only.
        check_schema: Finds the mistakes of a Serve configuration against Ray's schema.
    """
    documents = [(file.name, read_documents(file.name, file.text)) for file in files]
    everything = [item for _, items in documents if isinstance(items, list) for item in items]
    config_maps = {
        str(mapping_at(item, "metadata").get("name")): mapping_at(item, "data")
        for item in everything
        if _is_manifest(item) and item["kind"] == "ConfigMap"
    }
    policies = [
        mapping_at(item, "spec") for item in everything if _is_manifest(item) and item["kind"] == "NetworkPolicy"
    ]
    around = Surroundings(config_maps, check_schema, policies)
    return [(name, finding) for name, items in documents for finding in _check_file(name, items, around)]


def _check_file(name: str, documents: list[Any] | Finding, around: Surroundings) -> Iterator[Finding]:
    if isinstance(documents, Finding):
        yield documents
    elif len(documents) > 1 and not all(_is_manifest(document) for document in documents):
        yield Finding((), f"holds {len(documents)} documents", "only manifests of Kubernetes may share a file")
    elif documents and _is_manifest(documents[0]):
        yield _note_unchecked(name, "Kubernetes and KubeRay", "run kubectl apply --dry-run=server --filename {}")
        for number, document in enumerate(documents):
            title = f"{document['kind']} {mapping_at(document, 'metadata').get('name', number)}"
            yield from under(check_manifest(document, around), *([title] if len(documents) > 1 else []))
    elif documents:
        yield from _check_document(name, documents[0], around)


def _check_document(name: str, document: Any, around: Surroundings) -> Iterator[Finding]:
    if not isinstance(document, Mapping):
        yield Finding((), "is no mapping", "write keys and what they hold")
    elif _SERVE_KEYS & document.keys():
        yield from check_serve(document, around.check_schema)
    elif owners := [owner for key, owner in _KEYS_OF_OTHERS.items() if key in document]:
        yield _note_unchecked(name, *owners[0])
        yield from check_metric_names(document)
    else:
        settings, found = read_settings(document)
        yield from found
        yield from check_consistency(settings) if settings is not None else ()


def _note_unchecked(name: str, owner: str, remedy: str) -> Finding:
    return Finding((), f"keys of {owner} are not checked here", remedy.format(name), "note")


def _is_manifest(document: Any) -> bool:
    return isinstance(document, Mapping) and "kind" in document and bool({"apiVersion", "metadata"} & document.keys())
