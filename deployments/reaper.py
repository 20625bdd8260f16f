"""Clear up after a killed `lamina up`, in a process of its own that outlives it for some seconds.

Ray's processes end with their parent, HAProxy does not: left alone, it would hold the port. Run as
a script, with the standard library alone; standard input ends when the parent does.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

GRACE_S = 2.0
STEP_S = 0.1


def processes_of(folder: str) -> list[int]:
    """Return the processes whose environment names the instance's folder, this one excepted."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _belongs(pid, folder.encode())]


def _belongs(pid: int, folder: bytes) -> bool:
    try:
        return folder in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def end_all(folder: str) -> None:
    """End the processes that are left of the instance: wait for them, then SIGTERM, then SIGKILL."""
    _wait_for_end(folder)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in processes_of(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        _wait_for_end(folder)


def _wait_for_end(folder: str) -> None:
    deadline = time.monotonic() + GRACE_S
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(STEP_S)


def main() -> None:
    """Wait for the parent to end, then clear up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    folder = sys.argv[1]
    sys.stdin.buffer.read()
    end_all(folder)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
