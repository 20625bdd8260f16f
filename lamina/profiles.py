"""The law by which a profile takes in a patch."""

from collections.abc import Mapping
from typing import Any


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
        case _:
            return new


def _ordered_union(old: list[Any], new: list[Any]) -> list[Any]:
    union: list[Any] = []
    for item in (*old, *new):
        if not any(_is_same(item, known) for known in union):
            union.append(item)
    return union


def _is_same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other
