"""The Ray cluster of `python -m jobs`. Ray is imported in functions: it reads its flags when it is imported."""

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lamina.settings.loading import Settings
from lamina.settings.section import MIB

OBJECT_STORE_BYTES = 100 * MIB
ROOT = str(Path(__file__).resolve().parent.parent)


@contextmanager
def on_cluster(settings: Settings) -> Iterator[None]:
    """Join the cluster that RAY_ADDRESS names, or start Ray on this machine until the block ends."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray  # noqa: PLC0415 - after its flags

    with ExitStack() as stack:
        if os.environ.get("RAY_ADDRESS"):
            stack.callback(ray.shutdown)
            ray.init(namespace="lamina", log_to_driver=False, logging_level=logging.ERROR)
        else:
            # A short name: Ray puts sockets below it, and the path of a Unix socket has at most 107 bytes.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lm-", ignore_cleanup_errors=True))
            stack.callback(ray.shutdown)
            _start(settings, Path(folder) / "ray")
        yield


def _start(settings: Settings, folder: Path) -> None:
    import ray  # noqa: PLC0415 - after its flags

    ray.init(
        address="local",
        namespace="lamina",
        num_cpus=max(settings.jobs.parallelism, os.cpu_count() or 1),
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _temp_dir=str(folder),
    )
