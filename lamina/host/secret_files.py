"""Values of variables that a file holds: `NAME_FILE` is the path of the value of `NAME`."""

import os
from collections.abc import Mapping
from pathlib import Path

from lamina.errors import Misconfigured

FILE_SUFFIX = "_FILE"


def read_secret(variable: str, path: str) -> str:
    """Return the content of the file that a variable names, without the line's end that an editor leaves.

    Raises:
        Misconfigured: If it cannot be read, or is empty.
    """
    try:
        value = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no UTF-8 text"
        raise Misconfigured(
            f"{variable} names {path}, which cannot be read: {reason}", "mount the secret there"
        ) from error
    if not value:
        raise Misconfigured(f"{variable} names {path}, which is empty", "write the secret into it")
    return value


def variable_or_file(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the value of a variable, or of the file that `NAME_FILE` names; ``None`` if neither is set.

    Raises:
        Misconfigured: If both are set, or the file cannot be read.
    """
    value, path = environment.get(name), environment.get(name + FILE_SUFFIX)
    if value and path:
        raise Misconfigured(f"{name} and {name}{FILE_SUFFIX} are both set", "keep one of them")
    return read_secret(name + FILE_SUFFIX, path) if path else value
