"""The law by which a profile takes in a patch."""

from collections.abc import Mapping
from typing import Any

from lamina.core.json_values import canonical_json


def merge(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document after a patch; neither argument changes.

    Objects merge deeply, scalars are replaced, lists become an ordered union, ``null`` deletes.
    """
    merged = {key: value for key, value in document.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if value is not None:
            merged[key] = _merge_value(merged.get(key), value)
    return merged


def _merge_value(old: object, new: object) -> object:
    match old, new:
        case dict(), dict():
            return merge(old, new)
        case _, dict():
            return merge({}, new)
        case list(), list():
            return _ordered_union(old, new)
        case _, list():
            return _ordered_union([], new)
        case _:
            return new


def _ordered_union(old: list[Any], new: list[Any]) -> list[Any]:
    """Return each item once, where it came first; items are the same if their JSON is."""
    union = {canonical_json(item): item for item in reversed((*old, *new))}
    return [union.pop(key) for item in (*old, *new) if (key := canonical_json(item)) in union]
