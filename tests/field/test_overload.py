"""A service that is asked for more than it can do answers as much as before, and refuses the rest before it begins."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from lamina.core.ports import Embedder
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.policies.limits.concurrency import FIRST
from tests.support.application import Application, running, settings_for
from tests.support.embedders import WritesOnly


class Held(WritesOnly):
    """Holds every question until it is told to let them go."""

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self.may_go = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        await self.may_go.wait()
        return await self.inner.embed(texts)


@pytest.fixture
def held() -> Held:
    return Held(BatchingEmbedder(HashingModel()))


@pytest.fixture
async def crowded(database: str, tmp_path: Path, held: Held) -> AsyncIterator[Application]:
    """An application whose places are taken by searches that do not end."""
    settings = settings_for(database, tmp_path, search={"max_wait_s": 0.05, "embed_deadline_s": 60})
    async with running(settings, database, HashingModel(), embedder=held) as app:
        yield app


def ask(client: httpx.AsyncClient, number: int, path: str = "/v1/search") -> "asyncio.Task[httpx.Response]":
    return asyncio.create_task(client.post(path, json={"query": f"question {number}", "cache": False}))


async def test_what_would_wait_too_long_is_refused_with_a_time_and_all_else_is_answered(
    crowded: Application, held: Held
) -> None:
    client = crowded.client()
    searches = [ask(client, number) for number in range(2 * FIRST)]

    done, waiting = await asyncio.wait(searches, timeout=5, return_when=asyncio.FIRST_COMPLETED)
    while len(done) < FIRST:
        more, waiting = await asyncio.wait(waiting, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        done |= more
    refused = [search.result() for search in done]
    written = await client.post("/v1/notes", json={"content": "the boat is green"})
    alive = await client.get("/livez")
    context, other = await ask(client, 100, "/v1/context"), await ask(crowded.for_tenant("other").client(), 101)
    held.may_go.set()
    answers = [await search for search in waiting]
    after = await ask(client, 102)

    assert len(answers) == FIRST
    for answer in (*refused, context, other):
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert answer.json()["fields"]["part"] == "turn"
        assert "a search would wait" in answer.json()["detail"]
    assert (written.status_code, alive.status_code) == (201, 200)
    assert [answer.status_code for answer in (*answers, after)] == [200] * (FIRST + 1)


async def test_an_answer_of_a_cache_needs_no_place(crowded: Application, held: Held) -> None:
    client, body = crowded.client(), {"query": "where is the boat?"}
    held.may_go.set()
    first = await client.post("/v1/search", json=body)
    held.may_go.clear()
    searches = [ask(client, number) for number in range(FIRST + 1)]
    await asyncio.wait(searches, return_when=asyncio.FIRST_COMPLETED)

    again = await client.post("/v1/search", json=body)
    held.may_go.set()
    await asyncio.wait(searches)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["cache"]
    assert sorted(search.result().status_code for search in searches) == [200] * FIRST + [503]
