"""Searchers that scale, and that are replaced, on a real Ray."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import kill

from lamina.errors import LaminaError
from tests.support.service import Running

SCALED = "ServeReplica:lamina:Procedures"
WORKSPACE = "scaled"
ASKING = 4
SOON_S = 180


@contextmanager
def asked(service: Running) -> Iterator[list[str]]:
    """Ask for procedures without a pause within the block; give what failed."""
    store_procedure(service)
    failures: list[str] = []
    is_over = threading.Event()

    def ask() -> None:
        with service.client(workspace=WORKSPACE) as client:
            while not is_over.is_set():
                try:
                    client.search("how do we ship?", tiers=["procedures"], cache=False)
                except LaminaError as error:
                    failures.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(ASKING)]
    for thread in threads:
        thread.start()
    try:
        yield failures
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def store_procedure(service: Running) -> None:
    """Have the workspace hold a procedure: a tier that holds nothing is not asked."""
    with service.client(workspace=WORKSPACE) as client:
        client.add_procedure("How do we ship?", "Run the script", idempotency_key=WORKSPACE)


def came(condition: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not (is_met := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return is_met


def test_searchers_come_with_the_load_and_go_with_it_and_no_request_fails(service: Running) -> None:
    with asked(service) as failures:
        rose = came(lambda: len(service.pids(SCALED)) == 2, SOON_S)
        time.sleep(2)
    fell = came(lambda: len(service.pids(SCALED)) == 1, SOON_S)

    assert (rose, fell) == (True, True)
    assert failures == []


def test_a_searcher_whose_process_is_stuck_is_replaced(service: Running) -> None:
    store_procedure(service)
    (stuck,) = service.pids(SCALED)

    kill(stuck, signal.SIGSTOP)
    is_replaced = came(lambda: len(found := service.pids(SCALED)) == 1 and stuck not in found, SOON_S)

    assert is_replaced
    with service.client(workspace=WORKSPACE) as client:
        assert came(lambda: client.search("how?", tiers=["procedures"], cache=False)["degraded"] == [], 60)
