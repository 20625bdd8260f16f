"""Named statements, from the ``.sql`` file that lies beside a module."""

import re
from collections.abc import Mapping
from importlib import resources

_NAME = re.compile(r"^-- (name|fragment): (\w+)\n", re.MULTILINE)
_MARGIN = re.compile(r"^\s+|^\s*--.*\n", re.MULTILINE)


def load_queries(file: str) -> Mapping[str, bytes]:
    """Read the statements of a file of this package, by name, without margins and lines of comment.

    What several of them share stands once, under ``-- fragment: chosen``, before them; in each it is ``/*chosen*/``.

    psycopg reads a statement of more than 4 096 characters anew at each execution, for 0.4 ms.

    Args:
        file: For example ``notes.sql``. Each of its statements begins with a line ``-- name: insert_notes``.
    """
    _, *parts = _NAME.split(resources.files(__package__).joinpath(file).read_text(encoding="utf-8"))
    fragments: dict[str, str] = {}
    statements: dict[str, bytes] = {}
    for kind, name, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        whole = _MARGIN.sub("", text)
        for fragment, shared in fragments.items():
            whole = whole.replace(f"/*{fragment}*/", shared)
        if kind == "fragment":
            fragments[name] = whole.rstrip()
        else:
            statements[name] = whole.encode()
    return statements
