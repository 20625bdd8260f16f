"""Documents of configuration files: read from YAML and JSON, and walked without trust in their shape."""

import json
from collections.abc import Hashable, Mapping
from typing import Any

import yaml

from lamina.config_check.findings import Finding

MERGE_TAG = "tag:yaml.org,2002:merge"


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML whose keys are unique: of two equal keys, the plain loader silently takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return a mapping, or fail on a key that it holds twice."""
        seen: set[Any] = set()
        for key, _ in node.value:
            if key.tag == MERGE_TAG or not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value} stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


class _DuplicateKeyError(ValueError):
    pass


def read_documents(name: str, text: str) -> list[Any] | Finding:
    """Return the documents of a file, or the reason why it cannot be read.

    Args:
        name: The file's name; `.json` is read as JSON.
        text: Its content.
    """
    if name.endswith(".json"):
        return _read_json(text)
    try:
        return [document for document in yaml.load_all(text, _UniqueKeyLoader) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = () if mark is None else (f"line {mark.line + 1}",)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        return Finding(place, f"cannot be read: {problem}", "correct the YAML")
    except (ValueError, RecursionError) as error:  # As of a date that no calendar has.
        return Finding((), f"cannot be read: {error}", "correct the YAML")


def _read_json(text: str) -> list[Any] | Finding:
    try:
        return [json.loads(text, object_pairs_hook=_unique_pairs)]
    except json.JSONDecodeError as error:
        return Finding((f"line {error.lineno}",), f"cannot be read: {error.msg.lower()}", "correct the JSON")
    except _DuplicateKeyError as error:
        return Finding((), f"cannot be read: the key {error} stands twice", "take one of them out")
    except (ValueError, RecursionError) as error:  # As of a number with thousands of digits.
        return Finding((), f"cannot be read: {error}", "correct the JSON")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateKeyError(next(name for name in names if names.count(name) > 1))
    return found


def value_at(document: Any, *path: str) -> Any:
    """Return the value at a path of keys, or ``None``."""
    for key in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document


def mapping_at(document: Any, *path: str) -> Mapping[str, Any]:
    """Return the mapping at a path of keys; an empty one if anything else is there."""
    value = value_at(document, *path)
    return value if isinstance(value, Mapping) else {}


def mappings_at(document: Any, *path: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the mappings of the list at a path of keys, with their positions."""
    value = value_at(document, *path)
    items = enumerate(value) if isinstance(value, list) else ()
    return [(number, item) for number, item in items if isinstance(item, Mapping)]
