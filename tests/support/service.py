"""`lamina up` as a user runs it: a process of its own, with a real Ray."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deployments.environment import INSTANCE
from lamina.cli import main
from lamina.cli.common import console
from lamina.cli.local import LocalService, find_service
from lamina.client import Client
from tests.support.forks import Fork

ROOT = Path(__file__).resolve().parents[2]
LAMINA = Path(sys.executable).with_name("lamina")
START_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 120.0
CLI_TIMEOUT_S = 120.0
# On a machine that is busy with other tests a search waits long for its turn, and for its sources and caches.
PATIENT = {
    "LAMINA_SEARCH__MAX_WAIT_S": "30",
    **{f"LAMINA_SEARCH__{name}_DEADLINE_S": "20" for name in ("SOURCE", "TIER", "EMBED")},
    "LAMINA_CACHES__DEADLINE_S": "2",
}


@dataclass
class Running:
    """A running instance and its process."""

    process: subprocess.Popen[str]
    data_dir: Path
    service: LocalService
    output: Path

    def client(self, **scope: str) -> Client:
        """Return a client with the local key."""
        return Client(self.service.url, self.service.key, scope=dict(scope))

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line against this instance, in a fork."""
        return run_cli(self.data_dir, *arguments)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command line against this instance in a process of its own."""
        return run_command(self.data_dir, *arguments)

    def pids(self, part: str) -> list[int]:
        """Return the processes of this instance whose command line contains a text."""
        tree = descendants(self.process.pid)
        return [pid for pid in tree if part in command_line(pid)]

    def kill(self, part: str) -> int:
        """End the processes of this instance with such a command line, without a chance to clean up."""
        pids = self.pids(part)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return len(pids)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask the instance to end and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_TIMEOUT_S)


def environment(data_dir: Path) -> dict[str, str]:
    """Return a user's environment: nothing of the tests' own, and output as wide as it needs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "LAMINA_"))}
    return {**kept, "LAMINA_DATA_DIR": str(data_dir), "COLUMNS": "200", "NO_COLOR": "1"}


def run_command(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does; what starts Ray needs it, whose flags are read when it is imported."""
    return subprocess.run(
        [LAMINA, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment(data_dir),
        timeout=START_TIMEOUT_S,
    )


def run_cli(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a fork and return what it printed."""
    with tempfile.TemporaryDirectory(prefix="lamina-test-") as folder:
        return Fork(_wide_main, arguments, environment(data_dir), Path(folder)).wait(CLI_TIMEOUT_S)


def _wide_main() -> None:
    console.width = int(os.environ["COLUMNS"])  # A console reads its width when it is made, in the forks' parent.
    main()


def start(data_dir: Path, *arguments: str, **settings: str) -> Running:
    """Start `lamina up` on a free port and return once it is announced and ready."""
    return until_it_says("serving;", *launch(data_dir, *arguments, **settings))


def launch(data_dir: Path, *arguments: str, **settings: str) -> tuple[subprocess.Popen[str], Path, Path]:
    """Start `lamina up` on a free port; return its process, its data directory and the file of its output."""
    data_dir.mkdir(parents=True, exist_ok=True)
    output = data_dir / f"up-{time.monotonic_ns()}.log"
    with output.open("w") as log:
        process = subprocess.Popen(
            [LAMINA, "up", "--port", "0", *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=environment(data_dir) | PATIENT | settings,
        )
    return process, data_dir, output


def until_it_says(words: str, process: subprocess.Popen[str], data_dir: Path, output: Path) -> Running:
    """Return the instance once it is announced and its output has these words."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        found = find_service(data_dir)
        if found is not None and found.pid == process.pid and words in output.read_text():
            return Running(process, data_dir, found, output)
        time.sleep(0.1)
    process.kill()
    raise AssertionError(f"lamina up did not start:\n{output.read_text()}")


@contextmanager
def running_service(data_dir: Path, *arguments: str, **settings: str) -> Iterator[Running]:
    """Run an instance and stop it at the end."""
    instance = start(data_dir, *arguments, **settings)
    try:
        yield instance
    finally:
        instance.stop()


def descendants(pid: int) -> list[int]:
    """Return all processes below a process."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (parent := parent_of(int(folder.name))) is not None:
            children.setdefault(parent, []).append(int(folder.name))
    found: list[int] = []
    todo = [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def parent_of(pid: int) -> int | None:
    """Return a process's parent; ``None`` if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def command_line(pid: int) -> str:
    """Return a process's command line; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def instance_folder(pid: int) -> str:
    """Return the folder of the instance that a process belongs to; empty if it names none."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    prefix = f"{INSTANCE}=".encode()
    return next((item.removeprefix(prefix).decode() for item in variables if item.startswith(prefix)), "")


def left_of(pids: list[int], within_s: float = 120.0) -> list[str]:
    """Return the command lines of those processes that do not end within some seconds; a zombie has ended."""
    deadline = time.monotonic() + within_s
    before = {pid: command_line(pid) for pid in pids}
    while left := [line for pid, line in before.items() if line and command_line(pid) == line]:
        if time.monotonic() > deadline:
            return left
        time.sleep(0.1)
    return []
