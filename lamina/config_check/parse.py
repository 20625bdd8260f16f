"""From text to documents: YAML and JSON, with line numbers where they cannot be read."""

import json
from collections.abc import Hashable
from typing import Any

import yaml

from lamina.config_check.findings import Finding

MERGE_TAG = "tag:yaml.org,2002:merge"


class _Strict(yaml.SafeLoader):
    """YAML whose keys stand once: the plain loader lets the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return a mapping, unless a key stands twice in it."""
        seen: set[Any] = set()
        for key, _ in node.value:
            if key.tag == MERGE_TAG or not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value} stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def documents_of(name: str, text: str) -> list[Any] | Finding:
    """Return the documents of a file, or why it has none.

    Args:
        name: The file's name; `.json` is read as JSON.
        text: What stands in it.
    """
    return _json(text) if name.endswith(".json") else _yaml(text)


def _yaml(text: str) -> list[Any] | Finding:
    try:
        return [document for document in yaml.load_all(text, _Strict) if document is not None]
    except yaml.YAMLError as error:
        return _unreadable(error)


def _unreadable(error: yaml.YAMLError) -> Finding:
    mark = getattr(error, "problem_mark", None)
    place = () if mark is None else (f"line {mark.line + 1}",)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return Finding(place, f"cannot be read: {problem}", "correct the YAML")


def _json(text: str) -> list[Any] | Finding:
    try:
        return [json.loads(text, object_pairs_hook=_once)]
    except json.JSONDecodeError as error:
        return Finding((f"line {error.lineno}",), f"cannot be read: {error.msg.lower()}", "correct the JSON")
    except _TwiceError as error:
        return Finding((), f"cannot be read: the key {error} stands twice", "take one of them out")


class _TwiceError(ValueError):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, unless a key stands twice in it: the plain reader lets the last one win."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return found
