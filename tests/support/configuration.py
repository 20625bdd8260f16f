"""The reference of all settings, `docs/configuration.md`, written from the settings by `make docs`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from lamina.config_check.fields import models_in
from lamina.config_check.settings_yaml import format_inline, summary_of
from lamina.settings.loading import Settings

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
_INTRODUCTION = """\
# Configuration

<!-- Written by `make docs` from lamina/settings/, compared by a test. -->

Every setting has a default. A value comes from the strongest of these sources that gives one:

1. arguments, such as `lamina up --port 8000`, or `args` in a Serve configuration;
2. environment variables: `LAMINA_`, then the setting's path in capitals with `__` between its parts, as in
   `LAMINA_SEARCH__RRF_K=30`; mappings and lists are JSON. `_FILE` after the name of any of them
   gives the path of a file with the value, as in `LAMINA_POSTGRES__URL_FILE=/run/secrets/postgres-url`;
3. the YAML file that `--config` or `LAMINA_CONFIG` names;
4. the default.

Three names of the source documents are taken as well, where Lamina's own is not given: `SEMANTIC_CACHE_ENABLED` for
`LAMINA_CACHES__SEMANTIC__ENABLED`, `NOVAMEM_DECAY_DAYS` for `LAMINA_COLD__DAYS_PER_DOUBLING`, and
`NOVAMEM_GRAPH_ENABLED=false` for `LAMINA_GRAPH__KIND=off`.

A key or variable that is not a setting is refused when Lamina starts. Secrets belong in files of
their own (`_FILE`) or in the environment, not in the YAML file.

- `lamina config show` prints the settings in effect as a YAML file, without secrets.
- `lamina config check FILE…` says offline what is wrong with Lamina's part of a configuration: settings and how they
  fit together, also inside Serve's files, ConfigMaps and the environment of containers. Serve's own keys are checked
  where Ray is installed; for files of other tools it names the command that checks them.

A section with a `kind` has other settings for each kind. Examples are in `configs/`: `local.yaml` for one machine,
`cluster.yaml` for servers, `serve.yaml` for a Ray cluster, and `kuberay/` for Kubernetes.
"""
_TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
_TYPES |= {"object": "mapping", "array": "list"}
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def reference() -> str:
    """Return the reference in Markdown."""
    return "\n".join([_INTRODUCTION, *_sections(Settings)])


def _sections(model: type[BaseModel]) -> Iterator[str]:
    """Return a heading and a table for each section; sections of one type at the same depth share them."""
    yield from ["## Top level\n", *_table(model)]
    paths: dict[type[BaseModel], list[str]] = {}
    for path, section in _walk(model):
        paths.setdefault(section, []).append(path)
    for section, places in paths.items():
        heading = ", ".join(f"`{place}`" for place in places)
        if kind := section.model_fields.get("kind"):
            is_default = isinstance(model.model_fields[places[0]].default, section)
            heading += f", kind `{kind.default}`{' (the default)' if is_default else ''}"
        yield from [f"## {heading}\n", f"{summary_of(section)}.\n", *_table(section)]


def _walk(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in model.model_fields.items():
        for section in models_in(field.annotation):
            yield f"{prefix}{name}", section
            yield from _walk(section, f"{prefix}{name}.")


def _table(model: type[BaseModel]) -> Iterator[str]:
    schema = model.model_json_schema()
    fields = {name: field for name, field in model.model_fields.items() if not list(models_in(field.annotation))}
    rows = [
        _row(name, field, _values(schema["properties"][name], schema.get("$defs", {})))
        for name, field in fields.items()
        if name != "kind"
    ]
    if rows:
        yield from ["| setting | values | default | |", "|---|---|---|---|", *rows, ""]


def _row(name: str, field: FieldInfo, values: str) -> str:
    default = field.get_default()
    if field.is_required():
        shown = "required"
    elif default is None:
        shown = "not set"
    else:
        shown = "empty" if isinstance(default, SecretStr) else f"`{format_inline(default)}`"
    return f"| `{name}` | {values} | {shown} | {field.description} |"


def _values(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return the values that a JSON schema allows, in words."""
    if "$ref" in schema:
        return _values(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return " or ".join(_values(choice, definitions) for choice in schema["anyOf"] if choice.get("type") != "null")
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = "secret" if schema.get("format") == "password" else _TYPES[schema["type"]]
    if "propertyNames" in schema:
        kind += f" from {_values(schema['propertyNames'], definitions)}"
    return ", ".join([kind, *(f"{word} {schema[bound]:g}" for bound, word in _BOUNDS.items() if bound in schema)])


def main() -> None:
    """Write the reference anew."""
    REFERENCE.parent.mkdir(exist_ok=True)
    REFERENCE.write_text(reference())


if __name__ == "__main__":
    main()
