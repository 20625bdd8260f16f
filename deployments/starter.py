"""Starts Serve and the application, in a worker of Ray: that has imported both already, and `lamina up` need not."""

import logging
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayTaskError

from lamina.errors import LaminaError, Misconfigured
from lamina.settings.loading import Settings

APPLICATION = "lamina"


class Starter:
    """Starts Serve, and the application on it."""

    def start_serve(self, host: str, port: int) -> None:
        """Start Serve's controller and proxies; return when they run."""
        from ray import serve  # noqa: PLC0415 - not in `lamina up`, which makes this an actor

        logging.getLogger("ray.serve").setLevel(logging.WARNING)
        serve.start(http_options=serve.HTTPOptions(host=host, port=port))

    def deploy(self, settings: Settings) -> None:
        """Start the application; return when all of it runs.

        Raises:
            Misconfigured: If the settings contradict the data, or a deployment does not start.
        """
        from ray import serve  # noqa: PLC0415

        from deployments.app import build  # noqa: PLC0415

        application = build(settings)
        try:
            serve.run(application, name=APPLICATION, route_prefix="/", logging_config={"enable_access_log": False})
        except RuntimeError as error:
            raise Misconfigured(
                f"the deployments do not start: {_reasons(error)}", "correct what the last line names"
            ) from error


class RemoteStarter:
    """The starter in a process of its own, which ends when all of the application runs."""

    def __init__(self) -> None:
        remote: Any = ray.remote(num_cpus=0)(Starter)
        self._actor: ActorHandle[Starter] = remote.remote()
        self._deployed: ray.ObjectRef[None] | None = None

    def start_serve(self, host: str, port: int) -> None:
        """Start Serve and wait for it."""
        ray.get(self._actor.start_serve.remote(host, port))

    def deploy(self, settings: Settings) -> None:
        """Have the application started; it comes up while this process goes on."""
        self._deployed = self._actor.deploy.remote(settings)

    def has_deployed(self) -> bool:
        """Report whether all of the application runs.

        Raises:
            Misconfigured: If it does not start.
        """
        if self._deployed is None:
            return True
        ready, _ = ray.wait([self._deployed], timeout=0)
        if not ready:
            return False
        try:
            ray.get(self._deployed)
        except RayTaskError as error:
            raise (error.cause if isinstance(error.cause, LaminaError) else error) from error
        self._deployed = None
        ray.kill(self._actor)
        return True


def _reasons(error: RuntimeError) -> str:
    """Return the last message of each deployment that failed."""
    from ray import serve  # noqa: PLC0415

    application = serve.status().applications.get(APPLICATION)
    deployments = application.deployments.items() if application else ()
    messages = (f"{name}: {_last_line(item.message)}" for name, item in deployments if item.message)
    return "; ".join(messages) or _last_line(str(error))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "lamina." in line]
    return (errors or lines or [text])[-1]
