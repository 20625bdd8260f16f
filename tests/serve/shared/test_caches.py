"""The cache stack on a real Ray: two router replicas, one shard, and what happens when it is killed."""

import threading
import time
from typing import Any

import httpx

from lamina.client import Client
from tests.support.effort import IS_LONG
from tests.support.service import Running

ROUNDS = 100 if IS_LONG else 10
SHARD = "ray::CacheShardActor"


def layers(service: Running) -> dict[str, Any]:
    answer = httpx.get(f"{service.service.url}/cache/health")
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()["layers"]
    return found


def settled(client: Client) -> None:
    deadline = time.monotonic() + 60
    while any(item["pending"] for item in client.ready()["outbox"].values()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def contents(client: Client, query: str, **options: Any) -> list[str]:
    return [hit["content"] for hit in client.search(query, tiers=["notes"], **options)["results"]]


def test_two_clients_that_write_and_read_in_turns_never_see_anything_stale(service: Running) -> None:
    with service.client(workspace="turns", agent="one") as writer, service.client(workspace="turns") as reader:
        for number in range(ROUNDS):
            text = f"the lamp in room number{number} is lit"
            writer.add(text)
            assert text in contents(reader, f"room number{number}", limit=1000)
            assert text in contents(writer, f"room number{number}", limit=1000)


def test_what_was_found_and_cached_is_gone_from_every_replica_once_it_is_deleted(service: Running) -> None:
    with service.client(workspace="deleted") as client:
        for number in range(10):
            id_ = client.add(f"the key number{number} hangs behind the barometer")["id"]
            settled(client)
            cached = [client.search(f"key number{number}") for _ in range(4)]
            assert any(answer["cache"] for answer in cached)
            client.delete(id_)
            for _ in range(4):
                assert id_ not in [hit["id"] for hit in client.search(f"key number{number}")["results"]]


def test_sub_agents_on_any_replica_share_what_their_swarm_found(service: Running) -> None:
    with service.client(workspace="swarm", swarm="s", agent="first") as client:
        client.add("the spare key hangs behind the barometer")
        settled(client)
        client.search("where is the spare key?")
        deadline, asked = time.monotonic() + 60, 0
        while client.search("where is the spare key?", agent=f"early {asked}")["cache"] != ["swarm_l1"]:
            assert time.monotonic() < deadline, "nothing is shared"
            time.sleep(0.2)
            asked += 1
        answers = [client.search("where is the spare key?", agent=f"agent {number}") for number in range(6)]

    assert [answer["cache"] for answer in answers] == [["swarm_l1"]] * 6


def test_a_killed_shard_costs_misses_only(service: Running) -> None:
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            with service.client(workspace="killed") as client:
                while not done.is_set():
                    assert contents(client, "where is the spare key?") == ["the spare key hangs behind the barometer"]
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    with service.client(workspace="killed") as client:
        client.add("the spare key hangs behind the barometer")
        settled(client)
        reader = threading.Thread(target=read)
        reader.start()
        time.sleep(0.5)
        assert service.kill(SHARD) == 1
        time.sleep(3)
        done.set()
        reader.join()
        deadline = time.monotonic() + 90
        while not all(httpx.get(f"{service.service.url}/cache/health").json()["shards"].values()):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        asked = 0
        while client.search("where is the other key?", agent=f"agent {asked}", swarm="s")["cache"] != ["swarm_l1"]:
            assert time.monotonic() < deadline, "no router shares what it found"
            time.sleep(0.2)
            asked += 1

    assert not failures
    while layers(service)["turn_hash"]["entries"] == 0:  # Either router answers, and one may find the new shard later.
        assert time.monotonic() < deadline, "what is found is kept nowhere"
        time.sleep(0.2)


def test_health_is_open_and_metrics_count_all_replicas(service: Running) -> None:
    with service.client(workspace="counted") as client:
        client.add("one note")
        settled(client)
        for _ in range(10):
            client.search("one note")
        time.sleep(1.5)
        before = metric(service, 'lamina_cache_requests_total{layer="front",outcome="hits"}')
        for _ in range(10):
            client.search("one note")
        deadline = time.monotonic() + 60
        while metric(service, 'lamina_cache_requests_total{layer="front",outcome="hits"}') < before + 8:
            assert time.monotonic() < deadline, "the hits are not counted"
            time.sleep(0.2)


def metric(service: Running, name: str) -> float:
    text = httpx.get(f"{service.service.url}/metrics").text
    return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))


def test_the_caches_are_shown_cleared_and_purged_on_the_command_line(service: Running) -> None:
    with service.client(workspace="shown", agent="a") as client:
        client.put_response("where is the key?", "behind the barometer")
        found = client.look_up_response("where is the key?")

    shown = service.cli("caches", "show")
    cleared = service.cli("caches", "clear", "--workspace", "shown")
    purged = service.cli("caches", "purge")

    assert found["response"] == "behind the barometer"
    assert all(layer in shown.stdout for layer in ("turn_hash", "swarm_l1", "semantic", "agent_filter"))
    assert "semantic 1" in cleared.stdout
    assert "responses 0" in purged.stdout
    assert (shown.returncode, cleared.returncode, purged.returncode) == (0, 0, 0)
