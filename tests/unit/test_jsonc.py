import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.text.jsonc import parsed, with_item, with_member, without_item, without_member

NAMES = st.sampled_from(["a", "b", "mcpServers", "hooks", "ünter", 'quo"te', "//x", "/*"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["// no", "/* no */", ",}", ',"]']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
SERVER = {"command": "lamina", "args": ["mcp"]}
TEXTS = [
    "{}",
    "{ }\n",
    "{\n}\n",
    '{"mcpServers": {}}',
    '{\n  // mine\n  "a": 1, // one\n  "mcpServers": {\n    "x": {"command": "y"}, /* , } */\n  },\n}\n',
    '// first\n{\n\t"a": "// no comment", "b": ["/*", "*/",],\n}\n// last',
    '\r\n{\r\n  "a": 1\r\n}\r\n',
]


def is_ours(item: Any) -> bool:
    return isinstance(item, dict) and str(item.get("command", "")).startswith("lamina")


@pytest.mark.parametrize("text", TEXTS)
def test_a_member_is_put_in_once_and_taken_out_again_and_every_comment_stays(text: str) -> None:
    put = with_member(text, ("mcpServers", "lamina"), SERVER)

    assert parsed(put)["mcpServers"]["lamina"] == SERVER
    assert with_member(put, ("mcpServers", "lamina"), SERVER) == put
    assert {**parsed(put), "mcpServers": None} == {**parsed(text), "mcpServers": None}
    cut = without_member(put, ("mcpServers", "lamina"))
    if "mcpServers" in text:
        assert cut == text
    else:
        assert without_member(cut, ("mcpServers",)) == text


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.sampled_from([None, 2, "\t"]))
def test_a_new_member_changes_nothing_else(value: dict[str, Any], indent: Any) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)

    put = with_member(text, ("lamina", "x"), SERVER)

    assert parsed(put) == {**value, "lamina": {"x": SERVER}}
    assert without_member(put, ("lamina",)) == text


@given(st.lists(VALUES, max_size=4), st.sampled_from([None, 2]))
def test_an_item_is_put_behind_the_others_and_taken_out_again(items: list[Any], indent: Any) -> None:
    text = json.dumps({"hooks": {"Stop": items}}, indent=indent)
    new, newer = {"command": "lamina 1"}, {"command": "lamina 2"}

    put = with_item(text, ("hooks", "Stop"), new, is_ours)
    changed = with_item(put, ("hooks", "Stop"), newer, is_ours)

    assert parsed(put)["hooks"]["Stop"] == [*items, new]
    assert parsed(changed)["hooks"]["Stop"] == [*items, newer]
    assert with_item(put, ("hooks", "Stop"), new, is_ours) == put
    assert without_item(changed, ("hooks", "Stop"), is_ours) == text


def test_what_others_put_behind_it_and_their_comments_stay() -> None:
    put = with_member('{\n  "a": 1\n}', ("lamina",), 7)
    theirs = put.replace('"lamina"', '// why\n  "lamina"').replace("7", '7,\n  "z": 2 // last')

    cut = without_member(theirs, ("lamina",))

    assert parsed(cut) == {"a": 1, "z": 2}
    assert "// why" in cut
    assert "// last" in cut


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"a": 1 /* x, y */, "lamina": 2}', '{"a": 1 /* x, y */}'),
        ('{"a": 1, /* x, y */ "lamina": 2}', '{"a": 1 /* x, y */}'),
        ('{"a": "x, y" // x, y\n, "lamina": 2, "b": 3}', '{"a": "x, y" // x, y\n, "b": 3}'),
        ('{"lamina": 2 /* x, y */, "b": 3}', '{ /* x, y */"b": 3}'),
        ('{"lamina": 2 // x, y\n, "b": 3}', '{ // x, y\n"b": 3}'),
        ('{"lamina": 2,}', "{}"),
        ('{"lamina": 2 /* x, y */,}', "{ /* x, y */}"),
    ],
)
def test_the_comma_that_goes_is_no_comma_of_a_comment(text: str, left: str) -> None:
    cut = without_member(text, ("lamina",))

    assert parsed(cut) == {name: value for name, value in parsed(text).items() if name != "lamina"}
    assert cut.replace(" ", "") == left.replace(" ", "")


@pytest.mark.parametrize(
    "text", ["[]", "7", '{"a": ', '{"a": 1} {', '{"mcpServers": []}', '{"mcpServers": "x"}', "{'a': 1}"]
)
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises((ValueError, AttributeError)):
        with_member(text, ("mcpServers", "lamina"), SERVER)


def test_nothing_is_taken_out_of_a_text_that_has_nothing() -> None:
    for text in ("", "\n", "{}", '{"mcpServers": {"x": 1}}'):
        assert without_member(text, ("mcpServers", "lamina")) == text
        assert without_item(text, ("hooks", "Stop"), is_ours) == text
