"""FalkorDB is disposable: killed during a load, or emptied, it is whole again from Postgres."""

import os
import signal
import time

from lamina.client import Client
from tests.support.service import Running, command_line, descendants

TIMEOUT_S = 180.0
NOTES = 300


def falkordb_of(service: Running) -> int:
    (pid,) = [pid for pid in descendants(service.process.pid) if "redis-server" in command_line(pid)]
    return pid


def wait_until_indexed(client: Client) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while any(lag["pending"] for lag in client.ready()["outbox"].values()):
        assert time.monotonic() < deadline, client.ready()
        time.sleep(0.2)


def test_a_graph_killed_during_a_load_loses_nothing_and_an_emptied_one_is_rebuilt(service: Running) -> None:
    with service.client() as client:
        for start in range(0, NOTES, 50):
            client.add_many(
                [f"Agent Number{place} reported to Control Room {place % 7}" for place in range(start, start + 50)]
            )
            if start in (100, 200):
                os.kill(falkordb_of(service), signal.SIGKILL)
        wait_until_indexed(client)

        audited = service.cli("audit")
        assert audited.returncode == 0, audited.stdout
        assert client.audit()["projections"]["graph"]["found"] > NOTES

        emptied = service.cli("reindex", "graph")
        assert "memories; the running service applies them" in emptied.stdout
        wait_until_indexed(client)
        assert service.cli("audit").returncode == 0
        assert client.traverse(["Control Room 3"], depth=1)["nodes"]
