"""Libraries that come with an extra: which one to install where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from lamina.errors import Misconfigured


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Name the extra if a library of it cannot be imported within.

    Args:
        extra: Its name in pyproject.toml.
        what: The part that needs the library, or the setting that chose it.

    Raises:
        Misconfigured: If a library is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library == "lamina":
            raise
        raise Misconfigured(f"{what}, but {library} is missing", f"install lamina-memory[{extra}]") from error


def are_installed(*libraries: str) -> bool:
    """Return whether libraries are installed; imports none of them."""
    return all(find_spec(library) is not None for library in libraries)
