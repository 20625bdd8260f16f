"""The service under measurement: one that runs already, or a fresh one for the time of a benchmark."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import stage
from lamina.cli.local import find_service
from lamina.errors import Unavailable

REPOSITORY = Path(__file__).resolve().parents[1]
LAMINA = Path(sys.executable).parent / "lamina"
START_DEADLINE_S = 180.0
STOP_DEADLINE_S = 60.0
POLL_INTERVAL_S = 0.2
TAIL_CHARS = 2000


class Endpoint(NamedTuple):
    """Where a service listens, and the key it accepts."""

    url: str
    key: str


@contextmanager
def service(url: str | None, key: str | None, **variables: str) -> Iterator[Endpoint]:
    """Give the running service that is named, or start one on a temporary folder and stop it afterwards.

    Args:
        url: Where one runs already.
        key: Its key.
        variables: Settings of the one that is started, by environment variable.

    Raises:
        Unavailable: If the service that was started does not answer in time.
    """
    if url is not None:
        yield Endpoint(url, key or "")
        return
    with (
        tempfile.TemporaryDirectory(prefix="lamina-benchmark-") as folder,
        started(Path(folder), variables) as endpoint,
    ):
        yield endpoint


@contextmanager
def started(folder: Path, variables: Mapping[str, str]) -> Iterator[Endpoint]:
    """Start a service whose log and ``data`` lie in a folder, and stop it afterwards.

    Raises:
        Unavailable: If it does not answer in time.
    """
    data_dir, log = folder / "data", folder / "log"
    command = [str(LAMINA), "up", "--port", "0", "--data-dir", str(data_dir)]
    with log.open("wb") as output:
        # A session of its own: a Ctrl-C in the terminal reaches the benchmark, which then stops the service once.
        process = subprocess.Popen(  # noqa: S603 - our own command line
            command,
            cwd=REPOSITORY,
            env={**os.environ, **variables},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield _announced(process, data_dir, log)
        finally:
            _stop(process)


def _announced(process: subprocess.Popen[bytes], data_dir: Path, log: Path) -> Endpoint:
    begin = time.monotonic()
    while time.monotonic() - begin < START_DEADLINE_S:
        if process.poll() is not None:
            raise Unavailable("lamina", f"`lamina up` ended with {process.returncode}: {_tail(log)}")
        found = find_service(data_dir)
        # It is announced with its first answer, and measured once every part answers.
        if found is not None and b"serving;" in log.read_bytes():
            stage(f"lamina answers at {found.url} after {time.monotonic() - begin:.1f} s")
            return Endpoint(found.url, found.key)
        time.sleep(POLL_INTERVAL_S)
    raise Unavailable("lamina", f"`lamina up` did not answer within {START_DEADLINE_S:.0f} s: {_tail(log)}")


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-TAIL_CHARS:].strip()


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        stage(f"lamina did not stop within {STOP_DEADLINE_S:.0f} s and is killed")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
