"""Where replicas listen for each other's calls, on a machine that is alone."""

import os
import sys
from typing import Any

ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's variable for a cluster of one machine, by its origin; 0 has all of Ray listen on the loopback address."""
_EVERYWHERE = "[::]:"


def listen_on_loopback() -> None:
    """Let the server of this replica, which Serve starts after its constructor, listen on the loopback address alone.

    It asks for Ray's token; Serve would have it listen on every address all the same, and has no setting for that.
    """
    replica: Any = sys.modules.get("ray.serve._private.replica")
    if replica is None or os.environ.get(ALONE) != "0":
        return
    listen = replica.add_port_to_grpc_server
    replica.add_port_to_grpc_server = lambda server, address: listen(server, address.replace(_EVERYWHERE, "127.0.0.1:"))
