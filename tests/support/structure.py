"""Count how the code is cut: rooms, the imports between them, functions, docstrings and comments.

``python -m tests.support.structure`` prints the counts of everything that ships; folders or files as arguments narrow
the counts of functions and docstrings to them, and ``--list short`` or ``--list what`` names the places.
A room is a package or a loose module directly under ``lamina/``, or another top-level package.
"""

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("lamina", "deployments", "actors", "jobs")
ROOMED = (*SHIPPED, "benchmarks")
SHORT_LINES = 3

Definition = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Definition | ast.ClassDef | ast.Module


@dataclass
class Counts:
    """Counts over some files; ``short`` and ``what`` hold the places of short functions and of such docstrings."""

    files: int = 0
    lines: int = 0
    comments: int = 0
    docstrings: int = 0
    spans: list[int] = field(default_factory=list)
    short: list[str] = field(default_factory=list)
    what: list[str] = field(default_factory=list)


def count(paths: Iterable[Path]) -> Counts:
    """Count the functions, docstrings and comments of Python files."""
    counts = Counts()
    for path in paths:
        source = path.read_text()
        counts.files += 1
        counts.lines += source.count("\n")
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        counts.comments += sum(token.type == tokenize.COMMENT for token in tokens)
        for node in ast.walk(ast.parse(source)):
            _count_node(counts, path.relative_to(ROOT), node)
    return counts


def _count_node(counts: Counts, path: Path, node: ast.AST) -> None:
    place = f"{path}:{getattr(node, 'lineno', 1)} {getattr(node, 'name', '')}"
    if isinstance(node, Definition):
        span = (node.end_lineno or node.lineno) - node.lineno + 1
        counts.spans.append(span)
        if span <= SHORT_LINES:
            counts.short.append(place)
    if isinstance(node, Documented) and (text := ast.get_docstring(node)):
        counts.docstrings += 1
        summary = text.partition("\n")[0]
        if re.search(r"\bwhat(ever)?\b|\bwhoever\b", summary, re.IGNORECASE):
            counts.what.append(f"{place}: {summary}")


def files_of(*places: str) -> list[Path]:
    """Return the Python files in folders of the repository, or the files themselves."""
    paths = [ROOT / place for place in places]
    return sorted(chain.from_iterable(path.rglob("*.py") if path.is_dir() else [path] for path in paths))


def room_of(path: Path) -> str | None:
    """Return the room that a file stands in; ``None`` for the face of the library itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] != "lamina":
        return parts[0]
    return None if parts[1] == "__init__" else f"lamina.{parts[1]}"


def imports_between_rooms() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    files = [(room, path) for path in files_of(*ROOMED) if (room := room_of(path))]
    rooms: dict[str, set[str]] = {room: set() for room, _ in files}
    for room, path in files:
        for name in _imported(ast.parse(path.read_text())):
            first, _, rest = name.partition(".")
            other = f"lamina.{rest.partition('.')[0]}" if first == "lamina" else first
            if other in rooms and other != room:
                rooms[room].add(other)
    return rooms


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def longest_chain(imports: Mapping[str, set[str]]) -> list[str]:
    """Return the rooms of the longest chain of imports, the importing one first; there is no circle."""

    @cache
    def below(room: str) -> tuple[str, ...]:
        return (room, *max((below(other) for other in imports[room]), key=len, default=()))

    return list(max(map(below, imports), key=len))


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", default=SHIPPED, help="folders or files; all that ships by default")
    parser.add_argument("--list", choices=["short", "what"], help="name the places instead")
    arguments = parser.parse_args()
    counts = count(files_of(*arguments.places))
    if arguments.list:
        print(*getattr(counts, arguments.list), sep="\n")
        return
    imports = imports_between_rooms()
    spans = sorted(counts.spans) or [0]
    deepest = longest_chain(imports)
    print(f"rooms {len(imports)}, imports between them {sum(map(len, imports.values()))}, longest chain {len(deepest)}")
    print(f"  {' > '.join(deepest)}")
    print(f"files {counts.files}, lines {counts.lines}, comments {counts.comments / max(1, counts.lines):.1%} of lines")
    print(
        f"functions {len(counts.spans)}: median {spans[len(spans) // 2]}, p90 {spans[len(spans) * 9 // 10]}, "
        f"longest {spans[-1]} lines; of {SHORT_LINES} lines or fewer {len(counts.short) / len(spans):.1%}"
    )
    what = len(counts.what) / max(1, counts.docstrings)
    print(f'docstrings {counts.docstrings}, with "what" in the first line {what:.1%}')


if __name__ == "__main__":
    main()
