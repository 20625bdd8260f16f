"""The table of the source documents: every statement once, and all that it names is there."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from lamina.api.search import ContextIn, SearchIn
from lamina.config_check.fields import field_paths
from lamina.settings.loading import Settings

ROOT = Path(__file__).resolve().parents[2]
STATEMENTS = 146
STATES = ("holds", "setting")
CALLS: Mapping[str, type[BaseModel]] = {"POST /v1/search": SearchIn, "POST /v1/context": ContextIn}
SETTINGS = {".".join(path) for path in field_paths(Settings)}
# A setting, or a field of a call; and what it is by default, where that is said.
_REFERENCE = re.compile(r"`([a-z_.]+)`(?: of `([A-Z]+ /[^`]+)`)?(?:: (?:`([^`]+)`|(not set)))?")
_OTHER_VALUE = re.compile(r"the document's `([^`]+)`")
_MODULE = re.compile(r"`((?:lamina|deployments|actors|jobs|benchmarks)/[^`]+)`")
_TEST = re.compile(r"`(tests/[^`]+\.py)::(test_\w+)`")
_ROW = re.compile(r"^\| (\d+\.\d+) \|(.*)\|$", re.MULTILINE)


@dataclass(frozen=True)
class Statement:
    """A row of the table."""

    number: str
    text: str
    state: str
    where: str
    tests: str


@dataclass(frozen=True)
class Reference:
    """A setting, or a field of a call, that a row names, and its default if it says so."""

    name: str
    call: str | None
    default: Any
    has_default: bool

    def is_there(self) -> bool:
        return self.name in CALLS[self.call].model_fields if self.call else self.name in SETTINGS

    def value(self) -> Any:
        if self.call:
            return CALLS[self.call].model_fields[self.name].default
        return reduce(getattr, self.name.split("."), Settings.model_construct())

    def take(self, value: Any) -> None:
        """Set another value, or raise ``ValidationError``."""
        if self.call:
            CALLS[self.call].model_validate({"query": "x", self.name: value})
            return
        path, _, name = self.name.rpartition(".")
        section = reduce(getattr, path.split("."), Settings.model_construct())
        type(section).model_validate({**section.model_dump(), name: value})


def statements() -> Iterator[Statement]:
    for number, cells in _ROW.findall((ROOT / "docs" / "source-documents.md").read_text()):
        text, state, where, tests = (cell.strip() for cell in cells.split("|"))
        yield Statement(number, text, state, where, tests)


def references(where: str) -> list[Reference]:
    found = [
        Reference(name, call or None, yaml.safe_load(default) if default else None, bool(default or unset))
        for name, call, default, unset in _REFERENCE.findall(where)
    ]
    return [one for one in found if one.call or "." in one.name]


ALL = list(statements())
EACH = pytest.mark.parametrize("statement", ALL, ids=lambda statement: statement.number)


def test_every_statement_stands_there_once_in_its_order() -> None:
    chapters = groupby((tuple(map(int, one.number.split("."))) for one in ALL), key=lambda number: number[0])
    places = {chapter: [place for _, place in numbers] for chapter, numbers in chapters}

    assert list(places) == [0, 1, 2, 3, 4, 5]
    assert places == {chapter: list(range(1, len(found) + 1)) for chapter, found in places.items()}
    assert len(ALL) == STATEMENTS


def test_every_statement_has_a_state() -> None:
    counted = Counter(one.state for one in ALL)
    print("; ".join(f"{state}: {counted[state]}" for state in STATES))  # noqa: T201 - for whoever counts

    assert set(counted) <= set(STATES)


@EACH
def test_every_module_and_test_of_a_statement_is_there(statement: Statement) -> None:
    modules, tests = _MODULE.findall(statement.where), _TEST.findall(statement.tests)

    assert [module for module in modules if not (ROOT / module).is_file()] == []
    assert [
        f"{file}::{name}"
        for file, name in tests
        if not (ROOT / file).is_file() or f"def {name}(" not in (ROOT / file).read_text()
    ] == []
    assert len(tests) == statement.tests.count("`") // 2
    assert statement.text
    if statement.state != "setting":
        assert modules
        assert tests
    else:
        assert statement.where


@EACH
def test_every_setting_of_a_statement_is_there_with_its_default(statement: Statement) -> None:
    named = references(statement.where)

    assert [one.name for one in named if not one.is_there()] == []
    assert [(one.name, one.value()) for one in named if one.has_default and one.value() != one.default] == []


@pytest.mark.parametrize(
    "statement", [one for one in ALL if one.state == "setting"], ids=lambda statement: statement.number
)
def test_a_setting_takes_the_documents_value_too(statement: Statement) -> None:
    setting, *_ = references(statement.where)
    [other] = _OTHER_VALUE.findall(statement.where)

    assert setting.has_default
    assert setting.default != yaml.safe_load(other)
    setting.take(yaml.safe_load(other))
