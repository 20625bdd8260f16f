"""The library of patterns, `regex`: Unicode's properties, which Python's own patterns lack.

Where the client alone is installed it is missing. The values and models of answers are read without it, so that it is
asked for when a pattern is used, and not when a module is imported.
"""

import re
from typing import Any, NoReturn

from lamina.errors import Misconfigured

__all__ = ["regex"]


class _Missing:
    """Stands for the library and each of its patterns, where it is not installed."""

    Match, Pattern = re.Match, re.Pattern
    IGNORECASE = VERSION1 = 0

    def compile(self, *_: object) -> "_Missing":
        """Return a pattern that cannot be used."""
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Misconfigured("this reads texts, but regex is missing", "install lamina-memory[all]")


try:
    import regex
except ModuleNotFoundError:
    missing: Any = _Missing()
    regex = missing
