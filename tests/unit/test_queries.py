import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.stores.postgres.queries import load_queries

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "lamina" / "stores" / "postgres"
MODULES = sorted(path.stem for path in STORE.glob("*.sql") if path.stem != "schema")
SHIPPED = ("lamina", "deployments", "actors", "jobs")


def names_in(module: str) -> list[str]:
    return re.findall(r"^-- name: (.*)$", (STORE / f"{module}.sql").read_text(), re.MULTILINE)


def nodes_of(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


def is_queries(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "QUERIES" and isinstance(node.ctx, ast.Load)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_uses_every_statement_of_its_file_and_no_other(module: str) -> None:
    nodes = list(nodes_of(STORE / f"{module}.py"))
    used = [node.slice for node in nodes if isinstance(node, ast.Subscript) and is_queries(node.value)]
    loaded = [ast.unparse(node) for node in nodes if isinstance(node, ast.Call) and "load_queries" in ast.unparse(node)]

    assert loaded == [f"load_queries('{module}.sql')"]
    assert len(used) == sum(map(is_queries, nodes)), "QUERIES is used otherwise than as QUERIES['name']"
    assert {ast.literal_eval(name) for name in used} == set(load_queries(f"{module}.sql")) == set(names_in(module))


def test_no_statement_is_defined_twice() -> None:
    counts = Counter(name for module in MODULES for name in names_in(module))

    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("module", MODULES)
def test_a_fragment_stands_before_the_statements_that_share_it(module: str) -> None:
    text = (STORE / f"{module}.sql").read_text()
    fragments = re.findall(r"^-- fragment: (.*)$", text, re.MULTILINE)
    read = b"".join(load_queries(f"{module}.sql").values()).decode()

    assert [name for name in fragments if text.count(f"/*{name}*/") < 2 or f"/*{name}*/" in read] == []


def test_a_file_begins_with_the_name_of_a_statement_and_holds_no_empty_one() -> None:
    assert all(re.match("-- (name|fragment): ", (STORE / f"{module}.sql").read_text()) for module in MODULES)
    assert all(text.strip() for module in MODULES for text in load_queries(f"{module}.sql").values())


def test_sql_is_loaded_and_run_in_stores_alone() -> None:
    paths = [path for folder in SHIPPED for path in (ROOT / folder).rglob("*.py")]
    outside = [path for path in paths if ROOT / "lamina" / "stores" not in path.parents]
    runs = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in outside
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr in {"execute", "executemany"}
    ]
    loads = [str(path.relative_to(ROOT)) for path in outside if re.search(r"QUERIES|load_queries", path.read_text())]

    assert (runs, loads) == ([], [])
