"""No line of the log repeats what Postgres quotes of a row behind the first line of an error."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for room in ("lamina", "deployments", "actors", "jobs") for path in (ROOT / room).rglob("*.py"))


def whole_errors(source: str) -> Iterator[int]:
    """Yield the lines in which a logger gets a whole error that may be anybody's."""
    for handler in ast.walk(ast.parse(source)):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None or handler.type is None:
            continue
        caught = ast.unparse(handler.type)
        if "psycopg" not in caught and caught not in {"Exception", "BaseException"}:
            continue
        for call in ast.walk(handler):
            if isinstance(call, ast.Call) and "logger." in ast.unparse(call.func):
                yield from (one.lineno for one in call.args if isinstance(one, ast.Name) and one.id == handler.name)


@pytest.mark.parametrize(
    ("caught", "logged", "lines"),
    [
        ("Exception", "error", [4]),
        ("(OSError, psycopg.Error)", "error", [4]),
        ("Exception", "describe_error(error)", []),
        ("LaminaError", "error", []),
    ],
)
def test_a_whole_error_is_seen_where_it_may_be_anybodys(caught: str, logged: str, lines: list[int]) -> None:
    source = f"try:\n    work()\nexcept {caught} as error:\n    logger.warning('late: %s', {logged})\n"

    assert list(whole_errors(source)) == lines


def test_errors_of_others_are_logged_by_their_first_lines() -> None:
    found = {path.relative_to(ROOT): list(whole_errors(path.read_text())) for path in MODULES}

    assert {str(path): lines for path, lines in found.items() if lines} == {}
