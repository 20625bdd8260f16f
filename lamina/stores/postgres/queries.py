"""Named statements, from the ``.sql`` file that lies beside a module."""

import re
from collections.abc import Mapping
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_MARGIN = re.compile(r"^\s+|^\s*--.*\n", re.MULTILINE)


def load_queries(file: str) -> Mapping[str, bytes]:
    """Read the statements of a file of this package, by name, without margins and lines of comment.

    psycopg reads a statement of more than 4 096 characters anew at each execution, for 0.4 ms.

    Args:
        file: For example ``notes.sql``. Each of its statements begins with a line ``-- name: insert_notes``.
    """
    _, *parts = _NAME.split(resources.files(__package__).joinpath(file).read_text(encoding="utf-8"))
    return {name: _MARGIN.sub("", text).encode() for name, text in zip(parts[::2], parts[1::2], strict=True)}
