import json
import time
import tracemalloc
from collections.abc import Callable

import pytest

from lamina.core.json_values import MAX_DEPTH, MAX_VALUES, read_json
from lamina.errors import InvalidInput

# Made where one is tried: they are 150 MB.
BOMBS: dict[str, Callable[[], bytes]] = {
    "a million numbers": lambda: b"[" + b"1," * 1_000_000 + b"1]",
    "empty objects": lambda: b"[" + b"{}," * 1_000_000 + b"{}]",
    "empty lists": lambda: b"[" + b"[]," * 1_000_000 + b"[]]",
    "empty texts": lambda: b"[" + b'"",' * 8_000_000 + b'""]',
    "objects of one key": lambda: b"[" + b'{"a":1},' * 1_000_000 + b"1]",
    "keys": lambda: b"{" + b",".join(b'"%d":1' % number for number in range(1_000_000)) + b"}",
    "in UTF-16": lambda: ("[" + "{}," * 1_000_000 + "{}]").encode("utf-16"),
    "in UTF-16, behind a quotation mark's byte": lambda: ('["\u2200",' + "{}," * 1_000_000 + "{}]").encode("utf-16"),
    "in UTF-32": lambda: ("[" + "1," * 1_000_000 + "1]").encode("utf-32"),
    "behind an escape": lambda: b'["\\\\",' + b"{}," * 1_000_000 + b"{}]",
    "behind an escaped mark": lambda: b'["\\"",' + b"{}," * 1_000_000 + b"{}]",
    "nested lists": lambda: b"[" * 1_000_000,
    "nested objects": lambda: b'{"a":' * 200_000,
    "lists in lists": lambda: b"[" * 81 + b"]" * 81,
}


@pytest.mark.parametrize("name", BOMBS)
def test_json_of_too_many_values_or_levels_is_refused_before_anything_is_made_of_it(name: str) -> None:
    text = BOMBS[name]()
    tracemalloc.start()
    begin = time.process_time()

    with pytest.raises(InvalidInput, match=r"body: (has more than 500000 values|is nested too deeply)"):
        read_json(text, "body")

    seconds, (_, peak) = time.process_time() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 30
    assert peak < 4 * len(text) + 80_000_000


@pytest.mark.parametrize(
    "value",
    [
        [1] * (MAX_VALUES - 2),
        ['He said "a, b, [c], {d}" \\ ' * 100_000],
        [{"content": "x, y", "tags": ["a", "b"]}] * 1000,
        "[" * 200_000,
        ['\\"[{,' * 200_000, "\u2200\u2200 ∀ \u0222"],
    ],
    ids=["numbers", "a long text", "a batch", "brackets in a text", "escapes"],
)
@pytest.mark.parametrize("coding", ["utf-8", "utf-16", "utf-32"])
def test_json_below_the_limits_is_read(value: object, coding: str) -> None:
    assert read_json(json.dumps(value).encode(coding), "body") == value
    assert read_json(json.dumps(value, ensure_ascii=False), "body") == value


def test_json_is_read_to_its_deepest_level() -> None:
    text = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH

    assert json.dumps(read_json(text, "body")).encode() == text
