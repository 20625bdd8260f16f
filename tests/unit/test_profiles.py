import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.profiles import merge

Json = dict[str, Any]

SCALARS = st.sampled_from([True, False, 0, 1, 1.5, "", "a"])
KEYS = st.text("abc", min_size=1, max_size=1)


def documents(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    values = st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
    )
    return st.dictionaries(KEYS, values, max_size=3)


WITHOUT_NULL = documents(SCALARS)
WITH_NULL = documents(SCALARS | st.none())


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        pytest.param({}, {}, {}, id="nothing"),
        pytest.param({}, {"a": 1}, {"a": 1}, id="the first fact"),
        pytest.param({"a": 1}, {}, {"a": 1}, id="an empty patch"),
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="a scalar is replaced"),
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="what is not named stays"),
        pytest.param({"a": 1}, {"a": None}, {}, id="null deletes"),
        pytest.param({}, {"a": None}, {}, id="null deletes what is not there"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}, id="null deletes deep"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="null in a new object is no value"),
        pytest.param({"a": 7}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="an object replaces a scalar"),
        pytest.param({"a": {"b": 1}}, {"a": 7}, {"a": 7}, id="a scalar replaces an object"),
        pytest.param({"a": {"b": {"c": 1}}}, {"a": {"b": {"d": 2}}}, {"a": {"b": {"c": 1, "d": 2}}}, id="deep"),
        pytest.param({"a": [1, 2]}, {"a": [3, 2, 4]}, {"a": [1, 2, 3, 4]}, id="lists unite in order"),
        pytest.param({"a": [1]}, {"a": 7}, {"a": 7}, id="a scalar replaces a list"),
        pytest.param({"a": 7}, {"a": [1, 2]}, {"a": [1, 2]}, id="a list replaces a scalar"),
        pytest.param({"a": [1]}, {"a": []}, {"a": [1]}, id="an empty list adds nothing"),
        pytest.param(
            {"a": [{"b": 1}]}, {"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 2}]}, id="objects in lists"
        ),
        pytest.param({"a": [1, 1]}, {"a": [2]}, {"a": [1, 2]}, id="a union holds each once"),
        pytest.param({"a": False}, {"a": 0}, {"a": 0}, id="falsy values are values"),
        pytest.param({"a": "x"}, {"a": ""}, {"a": ""}, id="an empty text is a value"),
    ],
)
def test_a_patch_is_taken_in(document: Json, patch: Json, expected: Json) -> None:
    merged = merge(document, patch)

    assert merged == expected
    assert repr(merged) == repr(expected)


@pytest.mark.parametrize(
    ("old", "new"), [([True], [1]), ([0], [False]), ([""], [0]), ([[True]], [[1]]), ([{"a": True}], [{"a": 1}])]
)
def test_values_that_json_tells_apart_stay_apart_in_a_union(old: list[Any], new: list[Any]) -> None:
    merged = merge({"a": old}, {"a": new})

    assert repr(merged) == repr({"a": [*old, *new]})


def test_a_new_list_holds_each_item_once() -> None:
    assert merge({}, {"a": ["tea", "tea"]}) == {"a": ["tea"]}


@given(WITHOUT_NULL, WITHOUT_NULL)
def test_taking_the_same_patch_twice_is_taking_it_once(document: Json, patch: Json) -> None:
    once = merge(document, patch)

    assert repr(merge(once, patch)) == repr(once)


@given(WITH_NULL, WITH_NULL)
def test_neither_argument_changes(document: Json, patch: Json) -> None:
    before = copy.deepcopy((document, patch))

    merge(document, patch)

    assert repr((document, patch)) == repr(before)


@given(WITHOUT_NULL)
def test_an_empty_patch_changes_nothing(document: Json) -> None:
    assert merge(document, {}) == document


@given(WITH_NULL, WITH_NULL)
def test_no_object_holds_a_null_afterwards(document: Json, patch: Json) -> None:
    merged = merge(merge({}, document), patch)

    assert None not in _values_of_objects(merged)


@given(WITHOUT_NULL, WITHOUT_NULL)
def test_every_key_of_both_is_there_afterwards(document: Json, patch: Json) -> None:
    assert merge(document, patch).keys() == document.keys() | patch.keys()


def _values_of_objects(document: Json) -> list[Any]:
    inner = [value for value in document.values() if isinstance(value, dict)]
    return [*document.values(), *(value for item in inner for value in _values_of_objects(item))]
