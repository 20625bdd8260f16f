"""`lamina up` that also redeploys its application when a file asks for it; the benchmark of rollouts starts it."""

import os
import threading
import time
from pathlib import Path

from deployments import up
from deployments.databases import Report
from lamina.cli.local import LocalService
from lamina.settings.loading import Settings

# Names the environment variable that names the folder of the files.
FOLDER = "REDEPLOYING_FOLDER"
WANTED, DONE = "wanted", "done"
POLL_INTERVAL_S = 0.1


def run(settings: Settings, report: Report, on_ready: up.OnReady) -> None:
    """Start everything, and deploy again at each request, until a signal.

    Args:
        settings: With Postgres and the graph as servers: an embedded one is started for the first application alone.
        report: Told of each stage.
        on_ready: Called once it answers.
    """

    def ready(service: LocalService, times: up.StartTimes) -> None:
        on_ready(service, times)
        threading.Thread(target=_redeploy_when_asked, args=(settings, Path(os.environ[FOLDER])), daemon=True).start()

    up.run(settings, report, ready)


def _redeploy_when_asked(settings: Settings, folder: Path) -> None:
    turn = 0
    while True:
        time.sleep(POLL_INTERVAL_S)
        if (folder / WANTED).exists():
            turn += 1
            (folder / WANTED).unlink()
            (folder / DONE).write_text(f"{_redeploy(changed(settings, turn)):.1f}")


def changed(settings: Settings, turn: int) -> Settings:
    """Return settings that differ from all before in a harmless value."""
    search = settings.search.model_copy(update={"limit": settings.search.limit + turn})
    return settings.model_copy(update={"search": search, "data_dir": settings.data_dir.resolve()})


def _redeploy(settings: Settings) -> float:
    """Deploy the application again and return the seconds until all of it runs."""
    from ray import serve  # noqa: PLC0415 - Ray's flags must be in the environment first

    from deployments.app import build  # noqa: PLC0415
    from deployments.starter import APPLICATION  # noqa: PLC0415

    begin = time.monotonic()
    serve.run(build(settings), name=APPLICATION, route_prefix="/", logging_config={"enable_access_log": False})
    return time.monotonic() - begin
