"""Files of a local instance in its data directory: its lock, its key, and its address for the CLI."""

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from lamina.core.principals import KeyRole
from lamina.errors import Misconfigured
from lamina.host.private_files import OTHERS, close_to_others, every_path, make_private, private_opener
from lamina.stores.postgres.keys import create_key, key_is_valid

LOCAL_TENANT = "local"
_KEY_FILE = "local.key"
_SERVICE_FILE = "service.json"
_LOCK_FILE = "lock"
# By name: a folder that was given as data directory may hold what is not ours. Embedded servers close their own.
_OURS = (_KEY_FILE, _SERVICE_FILE, _LOCK_FILE, "receipts.pem", "graph.unreadable", "edge", "archive")
LOCK_ATTEMPTS = 10
LOCK_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class LocalService:
    """A running instance.

    Args:
        url: Where it listens.
        key: The local admin key.
        pid: Process of `lamina up`.
    """

    url: str
    key: str
    pid: int

    @contextmanager
    def announced(self, data_dir: Path) -> Iterator[None]:
        """Keep address and pid in a file of the data directory while the instance runs."""
        file = data_dir / _SERVICE_FILE
        with open(file, "w", opener=private_opener) as opened:
            json.dump({name: value for name, value in asdict(self).items() if name != "key"}, opened)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def find_service(data_dir: Path) -> LocalService | None:
    """Return the instance that runs on this data directory, or ``None``."""
    try:
        found = json.loads((data_dir / _SERVICE_FILE).read_text())
        key = (data_dir / _KEY_FILE).read_text().strip()
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return LocalService(found["url"], key, found["pid"]) if _is_locked(data_dir) else None


def _is_locked(data_dir: Path) -> bool:
    """Report whether a process holds the directory: a lock ends with its process, a process id is used again."""
    try:
        with (data_dir / _LOCK_FILE).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


@contextmanager
def data_dir_lock(data_dir: Path) -> Iterator[None]:
    """Lock the data directory for this process alone, and close its files to other users of the machine.

    Raises:
        Misconfigured: If another process holds it.
    """
    make_private(data_dir)
    with open(data_dir / _LOCK_FILE, "w", opener=private_opener) as lock:
        if not _try_lock(lock):
            raise Misconfigured(f"another Lamina runs on {data_dir.resolve()}", "stop it, or choose another data_dir")
        close_to_others([path for name in _OURS for path in every_path(data_dir / name)], denied=OTHERS)
        # Of an instance that was killed: another program may have its port by now, and would get the key.
        (data_dir / _SERVICE_FILE).unlink(missing_ok=True)
        yield


def _try_lock(lock: IO[str]) -> bool:
    """Take the lock; try again, since a process that only asks whether it is held takes it for a moment, too."""
    for _ in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_S)
        else:
            return True
    return False


def ensure_local_key(data_dir: Path, url: str) -> str:
    """Return the local admin key, which is made the first time and kept in a file that only its owner can read."""
    file = data_dir / _KEY_FILE
    if file.exists() and key_is_valid(url, file.read_text().strip()):
        return file.read_text().strip()
    key = create_key(url, tenant=LOCAL_TENANT, role=KeyRole.ADMIN, name="local")
    with open(file, "w", opener=private_opener) as opened:
        opened.write(key)
    return key
