"""A run as a task of the cluster: what the scheduler starts."""

from typing import Any
from uuid import UUID

import ray

from jobs.runner import TRIES, go_on, of_this_process
from lamina.settings import Settings


def launch(settings: Settings, run: UUID) -> "ray.ObjectRef[None]":
    """Start what drives a run; a driver that dies is started again.

    It ends with the process that called this, whose own successor finds the run interrupted.
    """
    task: Any = ray.remote(num_cpus=0, max_retries=TRIES)(drive)
    reference: ray.ObjectRef[None] = task.remote(settings, run)
    return reference


def drive(settings: Settings, run: UUID) -> None:
    """Bring a run to its end."""
    of_this_process().run(go_on(settings, run))
