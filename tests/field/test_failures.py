"""Field cases 48, 50, 52, 54 and 55: what fails is said, and nothing else fails with it."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from cachetools import TTLCache
from numpy.typing import NDArray

from lamina.embedded import EmbeddedPostgres
from lamina.errors import Misconfigured
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.settings.stores import EmbeddedPostgresSettings, QdrantServerSettings
from lamina.stores.postgres import connection
from lamina.stores.postgres.migrate import migrate
from tests.support.application import (
    PATIENCE_S,
    Application,
    giving_up_the_embedder,
    running,
    settings_for,
)
from tests.support.embedders import Down, Switchable

TIERS = ["sessions", "notes"]  # These applications run without a graph, which would be named as degraded.


async def test_a_write_without_an_embedder_is_unavailable_and_stores_nothing(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path), database, HashingModel(), embedder=Down()) as app:
        client = app.client()

        answers = [
            await client.post("/v1/notes", json={"content": "x"}),
            await client.post("/v1/notes/batch", json={"notes": ["x"]}),
            await client.post("/v1/turns", json={"session": "s", "messages": [{"content": "x"}]}),
        ]

        assert [answer.status_code for answer in answers] == [503] * 3
        assert all(answer.headers["retry-after"] == "1" for answer in answers)
        assert (await client.get("/v1/notes")).json()["notes"] == []
        assert (await client.get("/v1/sessions/s/messages")).json()["messages"] == []


@pytest.mark.parametrize("state", ["down", "hanging"])
async def test_a_search_without_an_embedder_is_answered_by_words_and_recovers(
    database: str, tmp_path: Path, state: str
) -> None:
    embedder = Switchable(BatchingEmbedder(HashingModel()))
    async with running(settings_for(database, tmp_path), database, HashingModel(), embedder=embedder) as app:
        client = app.client()
        await client.post("/v1/notes", json={"content": "the anchor is rusty"})
        await client.post("/v1/turns", json={"session": "s", "messages": [{"content": "a rusty anchor chain"}]})
        await app.indexed()

        embedder.state = state
        begin = time.monotonic()
        with giving_up_the_embedder(app):
            degraded = (
                await client.post("/v1/search", json={"query": "rusty anchor", "tiers": TIERS, "explain": True})
            ).json()
        took_s = time.monotonic() - begin
        embedder.state = "up"
        healthy = (await client.post("/v1/search", json={"query": "rusty anchor", "tiers": TIERS})).json()

    assert degraded["degraded"] == ["embedder"]
    assert len(degraded["results"]) == 2
    assert took_s < PATIENCE_S
    assert healthy["degraded"] == []


class FailingIndex:
    """Stands in for an index whose engine fails or hangs."""

    def __init__(self, *, hangs: bool) -> None:
        self.hangs = hangs

    async def by_both(self, query: object) -> object:
        if self.hangs:
            await asyncio.sleep(3600)
        raise OSError("disk on fire")


@pytest.mark.parametrize("hangs", [False, True])
async def test_an_index_that_fails_degrades_its_source_only_and_recovers(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, hangs: bool
) -> None:
    deadlines = {"source_deadline_s": 2, "tier_deadline_s": 3, "embed_deadline_s": 4}
    settings = settings_for(database, tmp_path, search=deadlines if hangs else {})
    async with running(settings, database, HashingModel()) as app:
        client = app.client()
        await client.post("/v1/notes", json={"content": "the anchor is rusty"})
        await app.indexed()
        with monkeypatch.context() as patched:
            patched.setattr(app.tiers["notes"].searcher.joint, "_index", FailingIndex(hangs=hangs))
            degraded = (
                await client.post("/v1/search", json={"query": "rusty anchor", "tiers": TIERS, "explain": True})
            ).json()
        healthy = (
            await client.post("/v1/search", json={"query": "rusty anchor", "tiers": TIERS, "explain": True})
        ).json()

    assert degraded["degraded"] == ["notes_hybrid"]
    assert ("no answer within" if hangs else "disk on fire") in degraded["reasons"]["notes_hybrid"]
    assert [list(hit["explain"]) for hit in degraded["results"]] == [["notes_warm"]]
    assert healthy["degraded"] == []
    assert set(healthy["results"][0]["explain"]) == {"notes_hybrid", "notes_warm"}


@pytest.fixture
def own_postgres(home: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(home / "postgres", EmbeddedPostgresSettings())


@pytest.fixture
async def fragile(own_postgres: EmbeddedPostgres, tmp_path: Path) -> AsyncIterator[Application]:
    """An application over a Postgres of its own, to stop and start."""
    url = own_postgres.start()
    migrate(url)
    pool = {"min_size": 1, "max_size": 4, "timeout_s": 1}
    settings = settings_for(url, tmp_path, pool=pool)
    async with running(settings, url, HashingModel()) as app:
        # For longer than a setting allows: or the check of the key alone would answer 503.
        app.services.key_check._trusted = TTLCache(100, 60)
        yield app
    own_postgres.stop()


async def test_without_postgres_nothing_is_pretended_and_it_recovers_without_a_restart(
    monkeypatch: pytest.MonkeyPatch, fragile: Application, own_postgres: EmbeddedPostgres
) -> None:
    client = fragile.client()
    await client.post("/v1/notes", json={"content": "the anchor is rusty"})
    await fragile.indexed()

    own_postgres.stop()
    with monkeypatch.context() as patch:
        # They wait for a connection many times, one after the other, and Postgres does not come back meanwhile.
        patch.setattr(connection, "OUTAGE_TIMEOUT_S", 0.1)
        begin = time.monotonic()
        answers = [
            await client.post("/v1/search", json={"query": "rusty anchor", "tiers": TIERS}),
            await client.post("/v1/notes", json={"content": "lost?"}),
        ]
        took_s = time.monotonic() - begin
        begin = time.monotonic()
        answers.append(await client.get("/readyz"))
        readiness_took_s = time.monotonic() - begin
    own_postgres.start()
    after = await client.post("/v1/search", json={"query": "rusty anchor", "tiers": TIERS})
    written = await client.post("/v1/notes", json={"content": "the chain is new"})
    await _eventually_indexed(fragile)

    assert [answer.status_code for answer in answers] == [503] * 3
    assert took_s < PATIENCE_S
    assert readiness_took_s < PATIENCE_S
    assert after.json()["degraded"] == []
    assert [hit["content"] for hit in after.json()["results"]] == ["the anchor is rusty"]
    assert written.status_code == 201
    assert (await client.get("/readyz")).json()["ready"]


@pytest.mark.parametrize("path", ["/v1/search", "/v1/context"])
async def test_the_moment_postgres_ends_an_empty_index_is_not_taken_for_an_answer(
    monkeypatch: pytest.MonkeyPatch, fragile: Application, own_postgres: EmbeddedPostgres, path: str
) -> None:
    client = fragile.client()
    await client.post("/v1/notes", json={"content": "the anchor is rusty"})
    await fragile.indexed()
    await client.post(path, json={"query": "rusty anchor"})

    # A search waits for a connection five times, one after the other; Postgres does not come back here.
    monkeypatch.setattr(connection, "OUTAGE_TIMEOUT_S", 0.1)
    own_postgres.stop()
    answers = [await client.post(path, json={"query": "rusty anchor"}) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [503] * 3
    assert all(answer.headers["retry-after"] == "1" for answer in answers)


async def test_a_server_of_an_index_that_is_away_is_named_and_the_service_is_ready(
    database: str, tmp_path: Path
) -> None:
    away = QdrantServerSettings(url="http://127.0.0.1:1", grpc_port=None)
    async with running(settings_for(database, tmp_path, hybrid=away), database, HashingModel(), follow=False) as app:
        answer = await app.client().get("/readyz")

    said = answer.json()
    assert answer.status_code == 200
    assert said["ready"]
    assert {name: state == "ok" for name, state in said["stores"].items()} == {
        "messages": False,
        "notes": False,
        "documents": False,
        "cold": True,
    }
    assert said["stores"]["notes"] == "failed"


async def _eventually_indexed(app: Application) -> None:
    """Wait until the indexer itself, not the test, has applied the outbox."""
    for _ in range(600):
        lag = await app.services.reads.outbox.lag()
        if all(item.pending == 0 for item in lag.values()):
            return
        await asyncio.sleep(0.1)
    pytest.fail("the indexer did not recover")


@pytest.mark.parametrize(
    "url", ["postgresql://nobody@127.0.0.1:1/nowhere", "postgresql:///lamina?host=/nonexistent/socket"]
)
def test_a_wrong_database_url_is_refused_quickly_with_the_remedy(url: str) -> None:
    begin = time.monotonic()

    with pytest.raises(Misconfigured, match=r"postgres does not answer.*LAMINA_POSTGRES__URL"):
        migrate(url)

    assert time.monotonic() - begin < 60


class SlowModel(HashingModel):
    """Takes its time, so that calls queue into one batch."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        time.sleep(0.2)
        return super().encode(texts)


async def test_a_request_cancelled_in_a_batch_leaves_the_others_answered(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path), database, SlowModel()) as app:
        client = app.client()
        running_writes = [
            asyncio.create_task(client.post("/v1/notes", json={"content": f"note {number}"})) for number in range(8)
        ]
        await asyncio.sleep(0.3)

        running_writes[3].cancel()
        outcomes = await asyncio.gather(*running_writes, return_exceptions=True)

    assert isinstance(outcomes[3], asyncio.CancelledError)
    answered = [outcome for place, outcome in enumerate(outcomes) if place != 3]
    assert [getattr(answer, "status_code", answer) for answer in answered] == [201] * 7


class RemoteModel(HashingModel):
    """Takes long for long texts, without this process's processor, as a deployment of its own does."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        time.sleep(0.01 * len(texts))
        return np.eye(1, self.identity.dimension, dtype=np.float32).repeat(len(texts), axis=0)


async def test_long_texts_never_hold_up_the_event_loop(database: str, tmp_path: Path) -> None:
    sentences = "We decided to print the tide tables of the harbour. I like the small press that prints them. "
    long_texts = [f"{number} {sentences * 1000}" for number in range(3)]
    async with running(settings_for(database, tmp_path), database, RemoteModel(), follow=False) as app:
        client = app.client()
        gaps: list[float] = []
        held: list[float] = []
        beating = asyncio.create_task(_heartbeat(gaps, held))

        writes = [client.post("/v1/notes", json={"content": text}) for text in long_texts]
        turn = {"session": "s", "messages": [{"content": long_texts[0]}]}
        answers = await asyncio.gather(*writes, client.post("/v1/turns", json=turn))
        beating.cancel()

    assert [answer.status_code for answer in answers] == [201, 201, 201, 200]
    assert len(gaps) > 20
    assert sorted(held)[int(len(held) * 0.95)] < 0.05
    assert median(gaps) < 0.5  # Beside other work the loop waits for a processor now and then.


async def _heartbeat(gaps: list[float], held: list[float]) -> None:
    """Note how long each 10 ms sleep really took, and how long the loop worked meanwhile."""
    while True:
        begin, worked = time.perf_counter(), time.thread_time()
        await asyncio.sleep(0.01)
        gaps.append(time.perf_counter() - begin)
        held.append(time.thread_time() - worked)
