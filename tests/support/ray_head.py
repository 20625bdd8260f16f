"""A Ray that is started by hand, as on a cluster, with ports and folders of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from deployments.environment import free_ports
from lamina.embedded.child_process import die_with_parent
from tests.support.service import descendants

RAY = Path(sys.executable).with_name("ray")
START_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class RayHead:
    process: "subprocess.Popen[bytes]"
    address: str
    dashboard: str


@contextmanager
def ray_head(
    folder: Path, variables: Mapping[str, str], *options: str, ray: Path = RAY, cwd: Path | None = None
) -> Iterator[RayHead]:
    """Run `ray start --head` with this environment, all it writes in this folder of a short name.

    Its workers find modules in the directory where it was started, too.
    """
    port, dashboard, *others = free_ports(4)
    ports = {"--port": port, "--dashboard-port": dashboard}
    ports |= dict(zip(("--dashboard-agent-listen-port", "--ray-client-server-port"), others, strict=True))
    chosen = {
        **ports,
        "--dashboard-host": "127.0.0.1",
        "--temp-dir": folder / "ray",
        "--object-store-memory": 100_000_000,
    }
    arguments = [str(part) for option in chosen.items() for part in option]
    command = [ray, "start", "--head", "--block", "--disable-usage-stats", *arguments, *options]
    log = folder / "ray.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            command,
            stdout=file,
            stderr=file,
            env=dict(variables),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=die_with_parent(os.getpid(), signal.SIGTERM),  # noqa: PLW1509 - calls one system call
        )
    try:
        _wait_until_started(log)
        yield RayHead(process, f"127.0.0.1:{port}", f"http://127.0.0.1:{dashboard}")
    finally:
        _kill(process)


def _wait_until_started(log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while "Ray runtime started" not in (said := log.read_text()):
        assert time.monotonic() < deadline, said
        time.sleep(0.1)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End it with all below it at once: asked to end, Ray takes half a minute to part from what was deployed."""
    for pid in [*descendants(process.pid), process.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
