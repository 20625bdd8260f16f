"""A run as a task of the cluster: what the scheduler starts."""

from typing import Any
from uuid import UUID

import ray

from jobs.runner import TRIES, go_on, of_this_process
from lamina.settings import JobsSettings, Settings


def launch(settings: Settings, run: UUID) -> "ray.ObjectRef[None]":
    """Start what drives a run; a driver that dies is started again.

    It ends with the process that called this, whose own successor finds the run interrupted.
    """
    task: Any = ray.remote(**driver_options(settings.jobs))(drive)
    reference: ray.ObjectRef[None] = task.remote(settings, run)
    return reference


def driver_options(jobs: JobsSettings) -> dict[str, Any]:
    """Return what a driver reserves, and how often it is started again."""
    return {"num_cpus": 0, "resources": jobs.driver_resources, "max_retries": TRIES}


def drive(settings: Settings, run: UUID) -> None:
    """Bring a run to its end."""
    of_this_process().run(go_on(settings, run))
