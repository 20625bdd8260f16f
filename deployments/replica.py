"""How every process of a replica begins: where it listens, how its threads take turns, and how it writes its log."""

import os
import sys
from typing import Any

from actors import logs
from lamina.settings.logs import LogsSettings

ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's variable for a cluster of one machine, by its origin; 0 has all of Ray listen on the loopback address."""
SWITCH_S = 0.001
"""A loop waits for the interpreter whenever something has arrived; beside a thread that reads a long text, 5 ms, as
Python has it, make 200 ms of a search that waits forty times."""
_EVERYWHERE = "[::]:"


def begin_replica(settings: LogsSettings) -> None:
    """Have this process listen on the loopback address on a machine alone, take short turns, and write its log."""
    _listen_on_loopback()
    sys.setswitchinterval(SWITCH_S)
    logs.install(settings)


def _listen_on_loopback() -> None:
    """Let the server of this replica, which Serve starts after its constructor, listen on the loopback address alone.

    It asks for Ray's token; Serve would have it listen on every address all the same, and has no setting for that.
    """
    replica: Any = sys.modules.get("ray.serve._private.replica")
    if replica is None or os.environ.get(ALONE) != "0":
        return
    listen = replica.add_port_to_grpc_server
    replica.add_port_to_grpc_server = lambda server, address: listen(server, address.replace(_EVERYWHERE, "127.0.0.1:"))
