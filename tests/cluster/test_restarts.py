"""Field case 89: while parts of Serve are killed and restart, a client sees the answer or 503 with Retry-After."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from itertools import product

import httpx
import pytest

from tests.support.effort import IS_LONG
from tests.support.scratch import new_folder
from tests.support.service import Running, start

KILLS = 5 if IS_LONG else 1
CLIENTS = 6
CALM_S = 6.0 if IS_LONG else 4.0
"""Between two kills; a router or a proxy is back after about three seconds."""
HA_PROXY = ("true", "false") if IS_LONG else ("true",)
# A killed router takes the embedded indexes of a compact service along, and its successor opens them.
TOPOLOGIES = ("compact", "spread") if IS_LONG else ("compact",)
VICTIMS = ("ServeReplica:lamina:Router", "ServeController", "ProxyActor", "HAProxyManager")


@pytest.fixture(scope="module", params=product(HA_PROXY, TOPOLOGIES), ids=" ".join)
async def instance(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    ha_proxy, topology = request.param
    chosen = {
        "LAMINA_EMBEDDING__KIND": "hashing",
        "LAMINA_SERVE__HA_PROXY": ha_proxy,
        "LAMINA_SERVE__TOPOLOGY": topology,
    }
    with new_folder() as folder:
        running = await asyncio.to_thread(start, folder, **chosen)
        try:
            yield running
        finally:
            await asyncio.to_thread(running.stop)


class Load:
    """Clients that store notes and read until they are told to end, and repeat what was not answered."""

    def __init__(self, instance: Running) -> None:
        self._instance = instance
        self._numbers = iter(range(1_000_000))
        self.is_over = False
        self.stored: dict[int, str] = {}
        self.seen: Counter[str] = Counter()

    async def work(self) -> None:
        """Store one note after the other, each under a key of its own until it is acknowledged."""
        headers = {"Authorization": f"Bearer {self._instance.service.key}"}
        # A connection that outlives its proxy is another matter than an answer of it.
        async with httpx.AsyncClient(base_url=self._instance.service.url, headers=headers, timeout=60) as client:
            while not self.is_over:
                number = next(self._numbers)
                self.stored[number] = await self._store(client, number)

    async def _store(self, client: httpx.AsyncClient, number: int) -> str:
        while True:
            answer = await self._send(client, number)
            if answer is not None:
                return str(answer.json()["id"])
            await asyncio.sleep(0.1)

    async def _send(self, client: httpx.AsyncClient, number: int) -> httpx.Response | None:
        content = f"token{number:05d}x lies on shelf {number}"
        key = {"Idempotency-Key": f"note-{number}"}
        answer = await self._answer(client.post("/v1/notes", json={"content": content}, headers=key), {200, 201})
        await self._answer(client.get("/v1/notes", params={"limit": 1}), {200})
        await self._answer(client.get("/v1/nothing"), {404})
        return answer

    async def _answer(self, sending: Awaitable[httpx.Response], expected: set[int]) -> httpx.Response | None:
        try:
            answer = await sending
        except httpx.TransportError:
            self.seen["no connection"] += 1
            return None
        if answer.status_code in expected and (
            answer.status_code != 404 or "problem" in answer.headers["Content-Type"]
        ):
            self.seen["expected"] += 1
            return answer
        is_clear = answer.status_code == 503 and answer.headers.get("Retry-After", "").isdigit()
        self.seen["503" if is_clear else f"{answer.status_code} {answer.text[:200]}"] += 1
        return None


async def test_only_answers_and_503_are_seen_and_nothing_is_lost_or_stored_twice(instance: Running) -> None:
    load = Load(instance)
    workers = [asyncio.create_task(load.work()) for _ in range(CLIENTS)]
    killed: Counter[str] = Counter()
    for victim in VICTIMS * KILLS:
        await asyncio.sleep(CALM_S)
        killed[victim] += instance.kill(victim)
    await asyncio.sleep(CALM_S)
    before = len(load.stored)
    for _ in range(600):
        if len(load.stored) >= before + CLIENTS:
            break
        await asyncio.sleep(0.1)
    load.is_over = True
    await asyncio.wait_for(asyncio.gather(*workers), 180)

    headers = {"Authorization": f"Bearer {instance.service.key}"}
    listed: list[str] = []
    async with httpx.AsyncClient(base_url=instance.service.url, headers=headers, timeout=60) as client:
        for offset in range(0, len(load.stored) + 1000, 1000):
            page = await client.get("/v1/notes", params={"limit": 1000, "offset": offset})
            listed += [note["id"] for note in page.json()["notes"]]

    assert killed["ServeReplica:lamina:Router"] >= KILLS
    assert killed["ServeController"] >= KILLS
    assert killed["ProxyActor"] + killed["HAProxyManager"] >= KILLS
    assert set(load.seen) <= {"expected", "503", "no connection"}
    assert load.seen["expected"] > 100
    assert set(load.stored.values()) <= set(listed)
    assert len(listed) == len(set(listed)) == len(load.stored)
