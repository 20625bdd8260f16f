"""Starts of `lamina up` without a store, or after its first raylet has ended."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
import pytest

from lamina.embedded import EmbeddedFalkorDB
from lamina.settings.stores import EmbeddedFalkorDBSettings
from tests.support.effort import IS_LONG
from tests.support.scratch import new_folder
from tests.support.service import Running, command_line, descendants, launch, running_service, until_it_says

PATIENCE_S = 120.0
Value = TypeVar("Value")


@pytest.mark.skipif(not IS_LONG, reason="Ray asks half a minute for a raylet that has ended: make test-long")
def test_a_start_whose_first_raylet_ends_before_it_has_registered_goes_on_with_another() -> None:
    with new_folder() as folder:
        started = launch(folder, LAMINA_EMBEDDING__KIND="hashing", LAMINA_GRAPH__KIND="off")
        (first,) = until(lambda: raylets_below(started[0].pid), lambda found: found or started[0].poll() is not None)
        os.kill(first, signal.SIGKILL)
        service = until_it_says("serving;", *started)
        with service.client(workspace="house") as client:
            client.add("The spare key hangs behind the barometer")
            found = client.search("where does the spare key hang?")
        second = raylets_below(service.process.pid)
        service.stop()

    assert [hit["tier"] for hit in found["results"]] == ["notes"]
    assert len(second) == 1
    assert second != [first]


def raylets_below(pid: int) -> list[int]:
    return [child for child in descendants(pid) if command_line(child).split(" ")[0].endswith("/raylet")]


def test_a_store_that_is_away_at_the_start_is_named_and_taken_in_when_it_comes() -> None:
    with new_folder() as folder:
        graph = EmbeddedFalkorDB(folder / "graph", EmbeddedFalkorDBSettings())
        url = f"unix://{graph._sockets / graph.socket_name}"
        with (
            running_service(folder / "data", LAMINA_GRAPH__KIND="falkordb", LAMINA_GRAPH__URL=url) as service,
            service.client(workspace="house") as client,
        ):
            try:
                until(lambda: ready_of(service), lambda told: told["ready"] and told["stores"].get("graph") == "failed")
                client.state_fact("Ann", "works at", "Boatyard")
                without = client.search("where does Ann work?")
                graph.start()
                until(lambda: ready_of(service)["stores"].get("graph") == "ok")
                whole = until(lambda: client.search("where does Ann work?"), lambda found: not found["degraded"])
                until(lambda: ready_of(service)["outbox"].get("graph", {}).get("pending") == 0)
                around = client.neighbours("Ann")
            finally:
                graph.stop()
        said = service.output.read_text()

    assert "graph away" in said
    assert (without["degraded"], whole["degraded"]) == (["graph"], [])
    assert "Boatyard" in str(around)


def ready_of(service: Running) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{service.service.url}/readyz", timeout=PATIENCE_S).json()
    return found


def until(read: Callable[[], Value], holds: Callable[[Value], object] = bool) -> Value:
    """Read a value again until it meets a condition, and return it."""
    give_up = time.monotonic() + PATIENCE_S
    while not holds(value := read()):
        assert time.monotonic() < give_up, value
        time.sleep(0.1)
    return value
