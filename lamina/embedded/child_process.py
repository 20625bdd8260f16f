"""What every server that is a child of this process needs: to end with it, and a socket of its own."""

import hashlib
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from ctypes import CDLL
from pathlib import Path

from lamina.errors import Misconfigured

STOP_TIMEOUT_S = 20.0
_PR_SET_PDEATHSIG = 1
_LONGEST_SOCKET_PATH = 100


def die_with_parent(parent: int, number: int) -> Callable[[], None] | None:
    """Return what a child runs first so that the kernel sends it a signal when its parent ends, however it ends."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = CDLL(None).prctl

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


def end(process: "subprocess.Popen[bytes]", gently: int, firmly: int) -> None:
    """End a child with one signal, and with the other if it takes too long."""
    process.send_signal(gently)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(firmly)
        process.wait()


def socket_directory(directory: Path, name: str) -> Path:
    """Return where the server of a data directory has its socket: short, and the same each time.

    Raises:
        Misconfigured: If the temporary directory makes the path of the socket too long for the system.
    """
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:12]
    path = Path(tempfile.gettempdir()) / f"lamina-{digest}"
    if len(str(path / name)) > _LONGEST_SOCKET_PATH:
        raise Misconfigured(
            f"the temporary directory {tempfile.gettempdir()} is too long for a socket", "set TMPDIR to a shorter path"
        )
    return path


def refuse_foreign(directory: Path, uid: int | None) -> None:
    """Refuse a directory that is a link or belongs to another user: its owner could lead us elsewhere."""
    found = directory.lstat()
    if stat.S_ISLNK(found.st_mode) or found.st_uid not in {os.geteuid(), uid}:
        raise Misconfigured(
            f"{directory} is a link or belongs to another user", "remove it, or choose another data_dir"
        )
