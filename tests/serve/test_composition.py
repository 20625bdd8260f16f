"""The composed application in one process, in Serve's local testing mode: the same deployments, no cluster."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import ray
from ray import serve
from redis import Redis

from deployments.app import build
from deployments.indexer import IndexerDeployment
from deployments.searcher import SearcherDeployment
from lamina.core.principals import KeyRole
from lamina.core.tiers import TIERS
from lamina.embedded import EmbeddedFalkorDB
from lamina.errors import Misconfigured
from lamina.models.hashing import HashingModel
from lamina.settings.loading import Settings
from lamina.settings.models import CrossEncoderSettings
from lamina.settings.stores import EmbeddedPostgresSettings, FalkorDBServerSettings
from lamina.stores.graph.falkordb import INSTALLATION
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.keys import create_key
from tests.support.application import running, settings_for
from tests.support.small_cross_encoders import make_cross_encoder


@pytest.fixture(params=["spread", "compact"])
async def client(
    database: str, falkordb: EmbeddedFalkorDB, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client of the router, whose parts it reaches through deployment handles, or in its own process."""
    key = create_key(database, tenant="acme", role=KeyRole.WRITER, name="test")
    with Redis(unix_socket_path=falkordb.url.removeprefix("unix://")) as server:
        server.delete(INSTALLATION)  # Each test has a database of its own, and all of them have one graph.
    graph = FalkorDBServerSettings(url=falkordb.url)
    settings = settings_for(database, tmp_path, graph=graph)
    serving = settings.serve.model_copy(update={"topology": request.param})
    settings = settings.model_copy(update={"serve": serving})
    handle = serve.run(build(settings), name="lamina", _local_testing_mode=True)
    router: Any = handle._init_router()._user_callable_wrapper.user_callable  # type: ignore[attr-defined]
    transport = httpx.ASGITransport(router.__serve_build_asgi_app__())
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://lamina", headers=headers) as http:
        yield http
    await router._services.reads.notes._pool.close()
    _end_followers()


def _end_followers() -> None:
    """End the indexers, which otherwise try for ever to reach a database that is gone; local mode ends no replica."""
    # By their types: asked for their class, some proxies of other libraries warn, or are dead.
    for indexer in (thing for thing in gc.get_objects() if type(thing) is IndexerDeployment):
        if indexer._following is not None:
            indexer._following.get_loop().call_soon_threadsafe(indexer._following.cancel)


@pytest.fixture
def reader(database: str) -> Iterator[psycopg.Connection]:
    """A transaction for which each build of an index waits, where one by IVFFlat is to go."""
    lists = "CREATE INDEX message_chunks_embedding_lists ON message_chunks USING ivfflat (embedding vector_cosine_ops)"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP INDEX message_chunks_embedding")
        connection.execute(lists)
    with psycopg.connect(database) as connection:
        connection.execute("SELECT FROM message_chunks")
        yield connection


async def test_an_index_of_vectors_is_built_beside_the_running_service(
    reader: psycopg.Connection, client: httpx.AsyncClient, database: str
) -> None:
    indexes = "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'message_chunks_embedding%'"
    with psycopg.connect(database, autocommit=True) as connection:
        turn = {"session": "s", "messages": [{"content": "We decided to paint the boat green."}]}
        recorded = await client.post("/v1/turns", json=turn)
        before = connection.execute(indexes).fetchall()
        reader.rollback()
        async with asyncio.timeout(120):
            while connection.execute(indexes).fetchall() != [("message_chunks_embedding",)]:
                await client.get("/readyz")
                await asyncio.sleep(0.05)

    assert recorded.status_code == 200
    assert ("message_chunks_embedding_lists",) in before


async def test_a_turn_travels_through_every_deployment_and_is_found(client: httpx.AsyncClient) -> None:
    ready = (await client.get("/readyz")).json()
    turn = {"session": "s", "user": "ann", "messages": [{"content": "We decided to paint the boat green."}]}

    recorded = await client.post("/v1/turns", json=turn)
    await _until_indexed(client)
    found = (await client.post("/v1/search", json={"query": "paint the boat", "explain": True})).json()

    assert ready["parts"] == dict.fromkeys(("postgres", "embedder", *TIERS, "indexer"), "ok")
    assert ready["stores"] == dict.fromkeys(("messages", "notes", "cold", "graph", "documents"), "ok")
    assert recorded.status_code == 200
    assert found["degraded"] == []
    assert {hit["tier"] for hit in found["results"]} == {"sessions", "notes"}
    assert {source for hit in found["results"] for source in hit["explain"]} == {
        "session_vectors",
        "session_words",
        "session_context",
        "notes_hybrid",
        "notes_warm",
    }


async def test_a_reranker_in_a_deployment_of_its_own_orders_what_is_found(database: str, tmp_path: Path) -> None:
    key = create_key(database, tenant="acme", role=KeyRole.WRITER, name="test")
    rerank = CrossEncoderSettings(model=str(make_cross_encoder(tmp_path / "model")), deadline_s=60)
    handle = serve.run(build(settings_for(database, tmp_path, rerank=rerank)), name="lamina", _local_testing_mode=True)
    router: Any = handle._init_router()._user_callable_wrapper.user_callable  # type: ignore[attr-defined]
    transport = httpx.ASGITransport(router.__serve_build_asgi_app__())
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://lamina", headers=headers) as client:
        turn = {
            "session": "s",
            "messages": [{"content": "Boats are painted."}, {"content": "We paint the boat green."}],
        }
        await client.post("/v1/turns", json=turn)
        await _until_indexed(client)
        found = (await client.post("/v1/search", json={"query": "paint the boat", "explain": True})).json()
    await router._services.reads.notes._pool.close()
    _end_followers()

    assert "reranker" not in found["degraded"]
    assert found["results"][0]["content"] == "We paint the boat green."
    assert found["results"][0]["explain"]["reranker"]["raw"]["raw"] == 2.0


async def test_an_error_of_the_library_crosses_a_handle_as_itself(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/search", json={"query": "\u200b"})

    assert answer.status_code == 422
    assert "is blank" in answer.json()["detail"]


def test_embedded_postgres_is_refused_without_lamina_up(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, postgres=EmbeddedPostgresSettings())

    with pytest.raises(Misconfigured, match="which only `lamina up` starts"):
        build(settings)


async def test_an_index_whose_files_are_lost_is_filled_again_from_postgres(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path / "before"), database, HashingModel()) as app:
        for number in range(3):
            await app.client().post("/v1/notes", json={"content": f"note {number}"})
        await app.indexed()

    generation = claim_generation(database, HashingModel().identity)
    SearcherDeployment("notes", settings_for(database, tmp_path / "lost"), generation)

    with psycopg.connect(database) as connection:
        queued = connection.execute("SELECT count(*) FROM outbox WHERE projection = 'notes'").fetchone()
    assert queued == (3,)


async def _until_indexed(client: httpx.AsyncClient) -> None:
    for _ in range(1_200):
        outbox = (await client.get("/readyz")).json()["outbox"]
        if outbox and all(lag["pending"] == 0 for lag in outbox.values()):
            return
        await asyncio.sleep(0.05)
    pytest.fail("the outbox is not applied")


async def test_local_testing_mode_has_caches_and_starts_no_ray(client: httpx.AsyncClient) -> None:
    await client.post("/v1/notes", json={"content": "the key hangs behind the barometer", "workspace": "cached"})
    health = (await client.get("/cache/health")).json()

    assert all(health["shards"].values())
    assert not ray.is_initialized()
