"""The certificate authorities that clients of HTTPS trust, read once in a process.

Each client of httpx reads them anew otherwise, which takes 45 ms of CPU, in which an event loop stands still.
"""

import os
import ssl
from functools import lru_cache
from pathlib import Path

from lamina.errors import Misconfigured

_FILE, _FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"


def trusted_authorities() -> ssl.SSLContext:
    """Return the context that httpx makes for a client by itself, the same one for all of a process.

    It is of the authorities that SSL_CERT_FILE or SSL_CERT_DIR name, else of those of certifi. Another value of these
    variables, or a file that has changed since, makes another one.

    Raises:
        Misconfigured: If the authorities that the environment names cannot be read.
    """
    file, folder = os.environ.get(_FILE, ""), os.environ.get(_FOLDER, "")
    try:
        return _read(file, folder, Path(file).stat().st_mtime_ns if file else 0)
    except OSError as error:  # An ssl.SSLError is one, too.
        name, path = (_FILE, file) if file else (_FOLDER, folder)
        raise Misconfigured(
            f"{name} names {path}, of which no certificates can be read: {error.strerror or error}",
            f"correct {name}, or take it away",
        ) from error


@lru_cache(maxsize=4)
def _read(file: str, folder: str, changed_at_ns: int) -> ssl.SSLContext:  # noqa: ARG001 - they are the key
    import httpx  # noqa: PLC0415 - a third of a second, which a process without a client never needs

    return httpx.create_ssl_context()


def no_authorities() -> ssl.SSLContext:
    """Return a context that trusts nobody, for a client of plain HTTP: it costs nothing, and TLS fails with it."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
