"""A key names everything that its value depends on, and nothing else has it."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.cache_layers import Layer
from lamina.policies.caching.cache_keys import digest, embedding_key

PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def written(part: Any) -> str:
    """A part as Python writes it, with members of mappings in order."""
    match part:
        case dict():
            return f"{{{sorted((key, written(value)) for key, value in part.items())}}}"
        case list():
            return f"[{', '.join(map(written, part))}]"
        case _:
            return repr(part)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "bc"), ("ab", "c")),
        (("a", "b"), ("ab",)),
        (("a", "b"), ('a","b',)),
        (("1",), (1,)),
        ((1,), (1.0,)),
        ((1,), (True,)),
        ((None,), ("null",)),
        ((None,), ()),
        (("",), ()),
        ((b"ab",), ("ab",)),
        ((b"ab",), ("6162",)),
        ((b"",), ("",)),
        ((["a"], "b"), (["a", "b"],)),
        ((("a",), "b"), ("a", ("b",))),
        (({"a": 1},), ({"a": "1"},)),
        (({"a": 1},), ("a", 1)),
        (("é",), ("e\u0301",)),
        (("\ud800",), ("\ud801",)),
    ],
)
def test_parts_that_differ_have_different_digests(one: Sequence[Any], other: Sequence[Any]) -> None:
    assert digest(*one) != digest(*other)


@given(st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4))
def test_equal_digests_mean_equal_parts(one: list[Any], other: list[Any]) -> None:
    assert (digest(*one) == digest(*other)) == (written(one) == written(other))


def test_the_order_of_a_mapping_does_not_matter_and_that_of_the_parts_does() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest("a", "b") != digest("b", "a")


def test_a_digest_has_32_bytes_and_is_the_same_in_every_process() -> None:
    assert digest("turn", 1, b"\x00\xff", None).hex() == (
        "8662fcbb940fd157e02eee160f8a879267298228ef888e1cf9f1c39da92a58c6"
    )


@pytest.mark.parametrize("part", [object(), {1, 2}, 1j])
def test_what_has_no_text_of_its_own_cannot_be_part_of_a_key(part: object) -> None:
    with pytest.raises(TypeError, match="a key cannot hold a"):
        digest("a", part)


def test_an_embedding_depends_on_generation_and_text() -> None:
    key = embedding_key(1, "tea?")

    assert key.layer is Layer.EMBEDDINGS
    assert key == embedding_key(1, "tea?")
    assert len({key, embedding_key(2, "tea?"), embedding_key(1, "tea"), embedding_key(1, "Tea?")}) == 4
