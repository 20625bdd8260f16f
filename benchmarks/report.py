"""Output of a benchmark: stages and tables for people, one line of JSON for programs."""

import json
import math
import sys
import time
from collections.abc import Iterable
from typing import Any

from rich.markup import escape
from rich.table import Table

from lamina.cli.console import SafeConsole

WIDTH = 120
DECIMALS = 4
_BEGIN = time.monotonic()

console = SafeConsole(width=None if sys.stdout.isatty() else WIDTH)
errors = SafeConsole(stderr=True)


def stage(line: str) -> None:
    """Tell how far the benchmark is, with the seconds since its start."""
    console.print(f"[dim]{time.monotonic() - _BEGIN:6.1f} s[/]  {escape(line)}", highlight=False, soft_wrap=True)


def table(title: str, *columns: str) -> Table:
    """Return an empty table: the first column names the row, the others hold figures."""
    empty = Table(title=title, title_justify="left", min_width=len(title))
    for place, column in enumerate(columns):
        empty.add_column(column, justify="left" if place == 0 else "right", no_wrap=True)
    return empty


def publish(tables: Iterable[Table], figures: dict[str, Any]) -> None:
    """Show the tables, then print the figures as the last line."""
    for item in tables:
        console.print()
        console.print(item)
    print(json.dumps(rounded(figures)), flush=True)


def rounded(value: Any) -> Any:
    """Return the figures with four decimals, at any depth; what is infinite or no number is none."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case float():
            return round(value, DECIMALS)
        case dict():
            return {str(name): rounded(item) for name, item in value.items()}
        case _:
            return value
