"""Searchers that scale, and that are replaced, on a real Ray."""

import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import kill
from pathlib import Path

import pytest

from lamina.errors import LaminaError
from tests.support.service import Running, running_service

SCALED = "ServeReplica:lamina:Procedures"
LIMITS = {
    "MAX_REPLICAS": "2",
    "TARGET_ONGOING_REQUESTS": "0.05",
    "UPSCALE_DELAY_S": "0.5",
    "DOWNSCALE_DELAY_S": "3",
    "LOOK_BACK_S": "2",
    "HEALTH_CHECK_PERIOD_S": "1",
    "HEALTH_CHECK_TIMEOUT_S": "1",
    "DRAIN_S": "1",
}
ASKING = 4

# A machine that starts replicas beside other tests answers late: that is no failure of the scaling.
PATIENT = {f"LAMINA_SEARCH__{name}_DEADLINE_S": "20" for name in ("SOURCE", "TIER", "EMBED")}
SOON_S = 60


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    """One instance whose procedures scale soon."""
    limits = {f"LAMINA_SERVE__SEARCHERS__PROCEDURES__{name}": value for name, value in LIMITS.items()}
    with (
        tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder,
        running_service(
            Path(folder), LAMINA_EMBEDDING__KIND="hashing", LAMINA_GRAPH__KIND="off", **PATIENT, **limits
        ) as (instance),
    ):
        yield instance


@contextmanager
def asked(service: Running) -> Iterator[list[str]]:
    """Ask for procedures without a pause within the block; give what failed."""
    failures: list[str] = []
    is_over = threading.Event()

    def ask() -> None:
        with service.client(workspace="scaled") as client:
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
    (stuck,) = service.pids(SCALED)

    kill(stuck, signal.SIGSTOP)
    is_replaced = came(lambda: len(found := service.pids(SCALED)) == 1 and stuck not in found, SOON_S)

    assert is_replaced
    with service.client() as client:
        assert came(lambda: client.search("how?", tiers=["procedures"], cache=False)["degraded"] == [], 10)
