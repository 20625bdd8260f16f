"""The Ray task that the scheduler starts for each run."""

from typing import Any
from uuid import UUID

import ray

from jobs.runner import TRIES, process_loop, resume
from lamina.host.private_files import deny_others
from lamina.settings.jobs import JobsSettings
from lamina.settings.loading import Settings


def launch(settings: Settings, run: UUID) -> "ray.ObjectRef[None]":
    """Start the driver of a run; Ray starts a driver that dies again.

    The task ends with the calling process. The scheduler's successor finds the run interrupted and starts a new one.
    """
    task: Any = ray.remote(**driver_options(settings.jobs))(drive)
    reference: ray.ObjectRef[None] = task.remote(settings, run)
    return reference


def driver_options(jobs: JobsSettings) -> dict[str, Any]:
    """Return the resources and the retries of a driver."""
    # No CPU: a driver only waits for its workers, and would otherwise take one from them.
    return {"num_cpus": 0, "resources": jobs.driver_resources, "max_retries": TRIES}


def drive(settings: Settings, run: UUID) -> None:
    """Drive a run to its end."""
    deny_others()
    process_loop().run(resume(settings, run))
