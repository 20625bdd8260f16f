"""Servers that are children of this process: they end with it, and each listens on a Unix socket of its own."""

import hashlib
import importlib.util
import logging
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from ctypes import CDLL
from pathlib import Path
from typing import ClassVar

from lamina.errors import Misconfigured
from lamina.host.private_files import OTHERS, close_to_others, every_path, make_private

logger = logging.getLogger(__name__)
STOP_TIMEOUT_S = 20.0
_PR_SET_PDEATHSIG = 1
# Linux allows 107 bytes, macOS 103.
_MAX_SOCKET_PATH = 100


class ChildServer(ABC):
    """A server that lives and dies with this process.

    It is asked to shut down cleanly when this process ends, however it ends: on Linux the kernel sends the signal, so
    that even `kill -9` of the parent leaves no server behind.

    Args:
        directory: Data directory.
    """

    name: ClassVar[str]
    socket_name: ClassVar[str]
    gentle_signal: ClassVar[signal.Signals]
    firm_signal: ClassVar[signal.Signals]

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._sockets = socket_directory(self.directory, self.socket_name)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """The connection URL; it holds while the server runs."""

    @abstractmethod
    def start(self) -> str:
        """Start the server and return its URL."""

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def ensure_running(self) -> bool:
        """Start the server again if it died; return whether it had."""
        if self.pid is not None:
            return False
        logger.warning("%s ended unexpectedly, starting it again", self.name)
        self.start()
        return True

    def stop(self) -> None:
        """Shut down cleanly, also with clients connected."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        stop_process(process, self.gentle_signal, self.firm_signal)
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _make_directories(self, owner: pwd.struct_passwd | None = None) -> None:
        """Make the directories of data and socket, accessible to their owner alone.

        Raises:
            Misconfigured: If one of them is a link or belongs to another user, who could lead the server elsewhere.
        """
        for directory in (self.directory, self._sockets):
            make_private(directory)
            found = directory.lstat()
            if stat.S_ISLNK(found.st_mode) or found.st_uid not in {os.geteuid(), owner and owner.pw_uid}:
                raise Misconfigured(
                    f"{directory} is a link or belongs to another user", "remove it, or choose another data_dir"
                )
            if owner:
                os.chown(directory, owner.pw_uid, owner.pw_gid)
            directory.chmod(stat.S_IRWXU)
        close_to_others(every_path(self.directory), denied=OTHERS)


def die_with_parent(parent: int, number: int) -> Callable[[], None] | None:
    """Return a `preexec_fn` with which the kernel sends the child a signal when its parent ends, however it ends."""
    if not sys.platform.startswith("linux"):
        return None
    # Looked up here: between fork and exec a child may not import, lock or allocate safely.
    prctl = CDLL(None).prctl

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, number)
        # The parent may have died between the fork and the call above, and the signal would never come.
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


def stop_process(process: "subprocess.Popen[bytes]", gentle: int, firm: int) -> None:
    """End a child with a gentle signal, and with a firm one if it takes too long."""
    process.send_signal(gentle)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(firm)
        process.wait()


def socket_directory(directory: Path, name: str) -> Path:
    """Return the directory for the socket of a data directory's server: short, and the same each time.

    Raises:
        Misconfigured: If the temporary directory makes the path of the socket too long for the system.
    """
    # Not in the data directory itself, whose path may be longer than a socket's may be.
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:12]
    path = Path(tempfile.gettempdir()) / f"lamina-{digest}"
    if len(str(path / name)) > _MAX_SOCKET_PATH:
        raise Misconfigured(
            f"the temporary directory {tempfile.gettempdir()} is too long for a socket", "set TMPDIR to a shorter path"
        )
    return path


def wheel_folder(module: str, setting: str, alternative: str) -> Path:
    """Return the folder of a wheel that holds a server's programs.

    Raises:
        Misconfigured: If it is not installed.
    """
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise Misconfigured(
            f"{setting} is embedded, but {module.replace('_', '-')} is missing",
            f"install lamina-memory[embedded], or set {setting} to {alternative}",
        )
    return Path(found.origin).parent
