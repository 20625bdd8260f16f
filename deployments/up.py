"""`lamina up`: embedded Postgres and FalkorDB, Ray and the application, in the foreground, until a signal.

They start side by side: the databases in a thread, Ray's processes and the fork server of its workers by themselves,
while this process imports Ray. Ray is imported inside functions: its flags must be in the environment first.
"""

import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Self

from actors.logs import PIPE
from deployments import fork_server
from deployments.databases import Databases, Report
from deployments.environment import can_run_ha_proxy, free_port, is_free, ray_environment, url_of
from deployments.first_answer import LATER, FirstAnswer, store_states
from deployments.preflight import refuse_contradictions, with_topology
from lamina.aio.probing import OK
from lamina.cli.local import LocalService, data_dir_lock
from lamina.core.tiers import TIERS
from lamina.errors import Misconfigured, Unavailable
from lamina.models.processors import processors
from lamina.settings.loading import Settings, kept_projections, served_tiers

if TYPE_CHECKING:
    from deployments.local_ray import LocalRay
    from deployments.starter import RemoteStarter

WATCH_INTERVAL_S = 0.5
START_STEP_S = 0.2
OUTAGE_S = 5.0
SIGNAL_STEP_S = 0.05
READ_BYTES = 64 * 1024
_STANDARD_ERROR = 2
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class StartTimes:
    """Seconds since the start.

    Args:
        ray_s: How long Ray itself took: its processes and Serve, without the application.
        first_answer_s: When the first search was answered, by words if the model was not loaded yet.
        whole_answer_s: When the first search was answered by every part.
    """

    ray_s: float
    first_answer_s: float
    whole_answer_s: float


OnReady = Callable[[LocalService, StartTimes], None]
"""Takes the running service and the times of its start."""


def run(settings: Settings, report: Report, on_ready: OnReady) -> None:
    """Start everything, call ``on_ready`` once every part answers, and serve until SIGINT or SIGTERM.

    Raises:
        Misconfigured: If the configuration contradicts the data or the machine.
        Unavailable: If Ray ends while serving.
    """
    begin = time.monotonic()
    settings = with_topology(settings, settings.serve.num_cpus or processors())
    refuse_contradictions(settings)
    with ExitStack() as stack:
        stop = stack.enter_context(StopSignal())
        stack.enter_context(data_dir_lock(settings.data_dir))
        _refuse_taken_port(settings)
        folder, ha_proxy = _prepare(settings, stack, report)
        databases = stack.enter_context(Databases(settings, report))
        databases.refuse_failure()
        report("starting ray")
        starting_ray = time.monotonic()
        ray = _start_ray(settings, folder, stack)
        databases.refuse_failure()
        starter, address = _start_serve(settings, ha_proxy=ha_proxy)
        ray_s = time.monotonic() - starting_ray
        stop.listen()  # Ray has put its own handlers in the place of ours
        stop.check()
        complete, key = databases.started()
        report(f"starting the deployments; ray tells its metrics at {ray.metrics_url()}")
        starter.deploy(complete)
        service = LocalService(url=address, key=key, pid=os.getpid())
        off = TIERS.keys() - set(served_tiers(settings))
        watch = partial(_watch, databases.revivals(), ray)
        first_s = _wait_for(FirstAnswer(service, LATER | off), starter, watch, stop, report) - begin
        stack.enter_context(service.announced(settings.data_dir))
        report(f"the first search is answered at {address}")
        whole_s = _wait_for(FirstAnswer(service, off), starter, watch, stop, report) - begin
        while not starter.has_deployed():  # What no search needs may still come: the indexer.
            stop.wait(START_STEP_S)
            stop.check()
            watch()
        if away := _stores_away(service, kept_projections(settings), watch, stop):
            report(f"{', '.join(away)} away: searches go without, changes wait, and it is taken in when it comes")
        on_ready(service, StartTimes(ray_s=ray_s, first_answer_s=first_s, whole_answer_s=whole_s))
        while not stop.wait(WATCH_INTERVAL_S):
            watch()
        report("stopping")


class StopSignal:
    """Set by the first SIGINT or SIGTERM; the second one interrupts."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._came = False
        self._before = {number: signal.getsignal(number) for number in self.NUMBERS}

    def __enter__(self) -> Self:
        self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def listen(self) -> None:
        """Install the handlers, also in place of another library's."""
        for number in self.NUMBERS:
            signal.signal(number, self._on_signal)

    def wait(self, seconds: float) -> bool:
        """Wait up to some seconds; report whether to stop."""
        deadline = time.monotonic() + seconds
        while not self._came and time.monotonic() < deadline:
            time.sleep(SIGNAL_STEP_S)
        return self._came

    def check(self) -> None:
        """Interrupt the start if a signal came meanwhile."""
        if self._came:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signal module's signature
        # No lock in here: the main thread may hold it when the signal comes.
        if self._came:
            raise KeyboardInterrupt
        self._came = True


def _refuse_taken_port(settings: Settings) -> None:
    port, host = settings.serve.port, settings.serve.host
    if not is_free(port, host):
        raise Misconfigured(f"port {port} of {host} is taken", "stop what listens there, or choose another --port")


def _prepare(settings: Settings, stack: ExitStack, report: Report) -> tuple[Path, bool]:
    """Set Ray's flags and start the fork server; return the instance's folder, and whether HAProxy serves."""
    # Of a short name: Ray and HAProxy put sockets deep below it, whose paths are limited.
    folder = Path(tempfile.mkdtemp(prefix="lm-"))
    stack.callback(_start_reaper(folder))
    ha_proxy = settings.serve.ha_proxy and can_run_ha_proxy(folder)
    if settings.serve.ha_proxy and not ha_proxy:
        report("HAProxy cannot run here; the Python proxy, which is slower, takes its place")
    os.environ.update(ray_environment(settings, folder, ha_proxy=ha_proxy))
    stack.callback(_show_log(folder))
    stack.callback(_fork_server(folder, report))
    return folder, ha_proxy


def _show_log(folder: Path) -> Callable[[], None]:
    """Show the log of the processes that are started from now on; the returned function ends that.

    Standard error may be closed, or a pipe that nobody reads: then the lines are lost, and nothing waits for them.
    """
    path = folder / "log"
    os.mkfifo(path, 0o600)
    os.environ[PIPE] = str(path)
    # To write, too: reading then neither waits for the first process nor ends with the last.
    pipe, (ended, end) = os.open(path, os.O_RDWR), os.pipe()

    def show() -> None:
        while pipe in select.select([pipe, ended], [], [])[0]:
            lines = os.read(pipe, READ_BYTES)
            with suppress(OSError):
                while lines:
                    lines = lines[os.write(_STANDARD_ERROR, lines) :]

    def stop() -> None:
        os.close(end)
        reader.join(WATCH_INTERVAL_S)

    reader = threading.Thread(target=show, daemon=True)
    reader.start()
    return stop


def _fork_server(folder: Path, report: Report) -> Callable[[], None]:
    """Start the process that forks Ray's workers; the returned function ends it. An end before that is reported."""
    server = fork_server.start(folder, os.environ)
    is_wanted = threading.Event()

    def watch() -> None:
        code = server.wait()
        if not is_wanted.is_set():
            report(f"the fork server ended with {code}: Ray starts further workers itself, 2 s of CPU and 90 MB each")

    def end() -> None:
        is_wanted.set()
        server.terminate()
        server.wait()

    threading.Thread(target=watch, daemon=True).start()
    return end


def _start_ray(settings: Settings, folder: Path, stack: ExitStack) -> "LocalRay":
    from deployments.local_ray import LocalRay  # noqa: PLC0415 - after the environment is set

    ray = LocalRay(folder, settings.serve.num_cpus)
    stack.callback(ray.stop)
    return ray


def _start_serve(settings: Settings, *, ha_proxy: bool) -> tuple["RemoteStarter", str]:
    from deployments.starter import RemoteStarter  # noqa: PLC0415 - after the environment is set

    port = settings.serve.port or free_port(settings.serve.host)
    starter = RemoteStarter()
    # HAProxy listens where the settings say, the replicas behind it where it alone reaches them.
    starter.start_serve(_LOOPBACK if ha_proxy else settings.serve.host, port)
    return starter, url_of(settings.serve.host, port)


def _wait_for(
    answer: FirstAnswer, starter: "RemoteStarter", watch: Callable[[], None], stop: StopSignal, report: Report
) -> float:
    """Return when a first search was answered, by the monotonic clock.

    Where every deployment runs, and a part still does not answer, it is a server that is away: others do without it.

    Raises:
        Misconfigured: If the deployments do not start.
    """
    give_up = math.inf
    while not answer.has_come():
        stop.wait(START_STEP_S)
        stop.check()
        watch()
        if starter.has_deployed():
            give_up = min(give_up, time.monotonic() + OUTAGE_S)
        if time.monotonic() > give_up:
            report(f"searches go without {', '.join(sorted(answer.missing)) or 'an answer'}")
            break
    return time.monotonic()


def _stores_away(
    service: LocalService, stores: Collection[str], watch: Callable[[], None], stop: StopSignal
) -> list[str]:
    """Return the stores that do not answer, which an empty workspace does not show: searches do without them.

    A store of which a busy searcher says nothing is asked for again, for some seconds.
    """
    give_up = time.monotonic() + OUTAGE_S
    while not (states := store_states(service)).keys() >= set(stores) and time.monotonic() < give_up:
        stop.wait(START_STEP_S)
        stop.check()
        watch()
    return sorted(name for name in stores if states.get(name) != OK)


def _watch(revivals: Sequence[Callable[[], None]], ray: "LocalRay") -> None:
    for revive in revivals:
        revive()
    if ray.is_gone():
        raise Unavailable("ray", "one of its processes ended; start Lamina again, nothing acknowledged is lost")


def _start_reaper(folder: Path) -> Callable[[], object]:
    """Start the process that clears up after this one, however it ends; the returned function has it do so now."""
    reaper = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-I", str(Path(__file__).with_name("reaper.py")), str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )

    return reaper.communicate
