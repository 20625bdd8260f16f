"""`lamina up`: embedded Postgres and FalkorDB, Ray and the application, in the foreground, until a signal.

Ray is imported inside functions: its flags must be in the environment first.
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Self

import psycopg

from deployments.environment import can_run_ha_proxy, free_port, is_free, ray_environment, url_of
from deployments.preflight import refuse_contradictions
from lamina.embedded import EmbeddedFalkorDB, EmbeddedPostgres
from lamina.errors import Misconfigured, Unavailable
from lamina.local import LocalService, data_dir_lock, ensure_local_key
from lamina.settings import (
    EmbeddedFalkorDBSettings,
    EmbeddedPostgresSettings,
    FalkorDBServerSettings,
    GraphSettings,
    PostgresServerSettings,
    Settings,
)
from lamina.stores.postgres.migrate import migrate
from lamina.stores.postgres.outbox import enqueue_all

OBJECT_STORE_BYTES = 150 * 1024 * 1024
WATCH_INTERVAL_S = 0.5
SIGNAL_STEP_S = 0.05
APPLICATION = "lamina"
_LOOPBACK = "127.0.0.1"
Report = Callable[[str], None]
OnReady = Callable[[LocalService, float], None]
"""Takes the running service and the seconds that its start took."""


def run(settings: Settings, report: Report, on_ready: OnReady) -> None:
    """Start everything, call ``on_ready``, and serve until SIGINT or SIGTERM.

    Raises:
        Misconfigured: If the configuration contradicts the data or the machine.
        Unavailable: If Ray ends while serving.
    """
    begin = time.monotonic()
    refuse_contradictions(settings)
    with ExitStack() as stack:
        stop = stack.enter_context(StopSignal())
        stack.enter_context(data_dir_lock(settings.data_dir))
        _refuse_taken_port(settings)
        postgres, server = _start_postgres(settings, stack, report)
        url = server.direct_url or server.url
        migrate(url)
        falkordb, graph = _start_graph(settings, stack, report)
        key = ensure_local_key(settings.data_dir, url)
        servers = {"postgres": server, "graph": graph, "data_dir": settings.data_dir.resolve()}
        address = _start_serving(settings.model_copy(update=servers), stack, report, stop)
        service = LocalService(url=address, key=key, pid=os.getpid())
        stack.enter_context(service.announced(settings.data_dir))
        on_ready(service, time.monotonic() - begin)
        _watch([_revive_postgres(postgres, report), _revive_graph(falkordb, url, report)], stop)
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


def _start_postgres(
    settings: Settings, stack: ExitStack, report: Report
) -> tuple[EmbeddedPostgres | None, PostgresServerSettings]:
    match settings.postgres:
        case PostgresServerSettings() as chosen:
            return None, chosen
        case EmbeddedPostgresSettings() as chosen:
            report("starting postgres")
            postgres = EmbeddedPostgres(settings.data_dir / "postgres", chosen)
            stack.callback(postgres.stop)
            return postgres, PostgresServerSettings(url=postgres.start())


def _start_graph(settings: Settings, stack: ExitStack, report: Report) -> tuple[EmbeddedFalkorDB | None, GraphSettings]:
    match settings.graph:
        case EmbeddedFalkorDBSettings() as chosen:
            report("starting falkordb")
            falkordb = EmbeddedFalkorDB(settings.data_dir / "graph", chosen)
            stack.callback(falkordb.stop)
            url = falkordb.start()
            if falkordb.set_aside:
                report(f"falkordb could not load its data, which are in {falkordb.set_aside} now; the graph is rebuilt")
            return falkordb, FalkorDBServerSettings(url=url, connections=chosen.connections)
        case chosen:
            return None, chosen


def _start_serving(settings: Settings, stack: ExitStack, report: Report, stop: StopSignal) -> str:
    # Of a short name: Ray and HAProxy put sockets deep below it, whose paths are limited.
    folder = Path(tempfile.mkdtemp(prefix="lm-"))
    stack.callback(_start_reaper(folder))
    ha_proxy = settings.serve.ha_proxy and can_run_ha_proxy(folder)
    if settings.serve.ha_proxy and not ha_proxy:
        report("HAProxy cannot run here; the Python proxy, which is slower, takes its place")
    os.environ.update(ray_environment(settings, folder, ha_proxy=ha_proxy))
    report("starting ray")
    _start_ray(settings, folder)
    stack.callback(_stop_ray)
    stop.listen()  # Ray has put its own handlers in the place of ours
    stop.check()
    report(f"starting the deployments; ray tells its metrics at {_metrics_url()}")
    address = _deploy(settings, ha_proxy=ha_proxy)
    stop.listen()
    stop.check()
    return address


def _start_ray(settings: Settings, folder: Path) -> None:
    import ray  # noqa: PLC0415 - after the environment is set

    ray.init(
        address="local",
        namespace="lamina",
        num_cpus=settings.serve.num_cpus,
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        configure_logging=False,
        _temp_dir=str(folder / "ray"),
    )


def _metrics_url() -> str:
    import ray  # noqa: PLC0415 - after the environment is set

    (node,) = ray.nodes()  # type: ignore[no-untyped-call]  # Ray's own gap
    return f"{url_of(node['NodeManagerAddress'], node['MetricsExportPort'])}/metrics"


def _deploy(settings: Settings, *, ha_proxy: bool) -> str:
    from ray import serve  # noqa: PLC0415 - after the environment is set

    from deployments.app import build  # noqa: PLC0415

    port = settings.serve.port or free_port(settings.serve.host)
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    # HAProxy listens where the settings say, the replicas behind it where it alone reaches them.
    host = _LOOPBACK if ha_proxy else settings.serve.host
    serve.start(http_options=serve.HTTPOptions(host=host, port=port))
    try:
        serve.run(build(settings), name=APPLICATION, route_prefix="/", logging_config={"enable_access_log": False})
    except RuntimeError as error:
        raise Misconfigured(
            f"the deployments do not start: {_reasons(error)}", "correct what the last line names"
        ) from error
    return url_of(settings.serve.host, port)


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


def _stop_ray() -> None:
    # Everything acknowledged is durable: draining replicas first would cost seconds and win nothing.
    import ray  # noqa: PLC0415

    ray.shutdown()


def _start_reaper(folder: Path) -> Callable[[], None]:
    """Start the process that clears up after this one, however it ends; the returned function has it do so now."""
    reaper = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-I", str(Path(__file__).with_name("reaper.py")), str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )

    def release() -> None:
        reaper.communicate()

    return release


def _watch(revivals: Sequence[Callable[[], None]], stop: StopSignal) -> None:
    while not stop.wait(WATCH_INTERVAL_S):
        for revive in revivals:
            revive()
        if _ray_is_gone():
            raise Unavailable("ray", "one of its processes ended; start Lamina again, nothing acknowledged is lost")


def _revive_postgres(postgres: EmbeddedPostgres | None, report: Report) -> Callable[[], None]:
    def revive() -> None:
        if postgres is not None and _was_revived(postgres, "postgres", report):
            report("postgres ended and was started again")

    return revive


def _revive_graph(falkordb: EmbeddedFalkorDB | None, postgres_url: str, report: Report) -> Callable[[], None]:
    """Return a function that restarts FalkorDB if it ended and, where its data were lost, has the graph rebuilt."""
    is_lost = False

    def revive() -> None:
        nonlocal is_lost
        if falkordb is not None and _was_revived(falkordb, "falkordb", report):
            is_lost = is_lost or falkordb.is_new
            report(f"falkordb ended and was started again{', empty; the graph is rebuilt' if is_lost else ''}")
        if is_lost:
            is_lost = not _enqueue_graph(postgres_url)

    return revive


def _enqueue_graph(postgres_url: str) -> bool:
    try:
        enqueue_all(postgres_url, "graph")
    except psycopg.OperationalError:
        return False  # Postgres ended with it, and is started again first.
    return True


def _was_revived(server: EmbeddedPostgres | EmbeddedFalkorDB, name: str, report: Report) -> bool:
    try:
        return server.ensure_running()
    except Misconfigured as error:
        report(f"{name} does not start again yet: {error}")
        return False


def _ray_is_gone() -> bool:
    from ray._private import worker  # noqa: PLC0415 - Ray has no public way to ask for its own processes

    node = worker._global_node  # noqa: SLF001
    return node is None or bool(node.dead_processes())
