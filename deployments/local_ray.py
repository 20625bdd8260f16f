"""Ray on this machine alone: the processes that serving needs, and no others.

Import it when Ray's flags stand in the environment: Ray reads them then.
"""

import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import ray
from ray._private.node import Node
from ray._private.parameter import RayParams
from ray._private.services import get_node

from deployments.environment import url_of
from deployments.fork_worker import open_job
from lamina.errors import Unavailable

OBJECT_STORE_BYTES = 150 * 1024 * 1024
NAMESPACE = "lamina"
REGISTRATION_S = 120.0
RAYLETS = 3
STEP_S = 0.1
SETUP_SCRIPT = Path(__file__).with_name("fork_worker.py")


class LeanNode(Node):
    """Ray's processes of a head node, without those that nobody asks for on one machine.

    Left out are the dashboard, which Ray starts even where none is wanted, the autoscaler's monitor, and the reader of
    logs for the driver: 3.5 s of CPU and 170 MB. Ray has switches for the last two, and none for the first.

    Args:
        parameters: Ray's own.
        forks: Folder of the fork server.
    """

    def __init__(self, parameters: RayParams, forks: Path) -> None:
        self._forks = forks
        super().__init__(parameters, head=True, shutdown_at_exit=False, spawn_reaper=True, ray_init_cluster=True)

    def start_api_server(self, **_: Any) -> None:
        """Start none."""

    def start_raylet(self, *arguments: Any, **named: Any) -> None:
        """Start the raylet, and another one where it ends because its agents, on a busy machine, come too late for it.

        While it waits for its agents, the server of the first job's workers imports Ray.

        Raises:
            Unavailable: If none stays.
        """
        for _ in range(RAYLETS):
            super().start_raylet(*arguments, **named)
            (raylet,) = self.all_processes["raylet"]
            first = {"RAY_JOB_ID": ray.JobID.from_int(1).hex(), "RAY_RAYLET_PID": str(raylet.process.pid)}
            Thread(target=_open_job, args=(self._forks, os.environ | first), daemon=True).start()
            self._await_registration()
            if raylet.process.poll() is None:
                return
            self.kill_raylet(check_alive=False)
        raise Unavailable("ray", f"its raylet ended {RAYLETS} times before it was ready; is the machine too busy?")

    def _await_registration(self) -> None:
        """Wait until the raylet has registered; Ray itself gives up after 30 s, which a very busy machine may take."""
        give_up = time.monotonic() + REGISTRATION_S
        while time.monotonic() < give_up and not self.dead_processes():  # type: ignore[no-untyped-call]  # Ray's own gap
            try:
                get_node(self.gcs_address, self.node_id)  # type: ignore[no-untyped-call]
            except RuntimeError:
                time.sleep(STEP_S)
            else:
                return


def _open_job(folder: Path, environment: Mapping[str, str]) -> None:
    with suppress(OSError):  # Without the server, Ray starts workers by itself.
        open_job(folder, environment)


class LocalRay:
    """Ray's processes on this machine, and this process's connection to them.

    Args:
        folder: Takes Ray's files.
        num_cpus: CPUs that Ray may use; all if not given.
    """

    def __init__(self, folder: Path, num_cpus: int | None) -> None:
        parameters = RayParams(
            num_cpus=num_cpus,
            object_store_memory=OBJECT_STORE_BYTES,
            include_dashboard=False,
            no_monitor=True,
            include_log_monitor=False,  # type: ignore[arg-type]  # Ray's own gap
            setup_worker_path=str(SETUP_SCRIPT),
            temp_dir=str(folder / "ray"),
        )
        self._node = LeanNode(parameters, folder)
        ray.init(
            address=self._node.gcs_address,
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
        )

    def metrics_url(self) -> str:
        """Return where Ray tells its metrics."""
        (node,) = ray.nodes()  # type: ignore[no-untyped-call]  # Ray's own gap
        return f"{url_of(node['NodeManagerAddress'], node['MetricsExportPort'])}/metrics"

    def is_gone(self) -> bool:
        """Report whether one of Ray's processes has ended."""
        return bool(self._node.dead_processes())  # type: ignore[no-untyped-call]  # Ray's own gap

    def stop(self) -> None:
        """End Ray at once.

        Everything acknowledged is durable: draining replicas first would cost seconds and win nothing.
        """
        ray.shutdown()
        self._node.kill_all_processes(check_alive=False, allow_graceful=True)
