"""A service moves from embedded stores to servers and back; the same searches give the same answers.

Of the servers, Qdrant's is its client's own stand-in and Neo4j's is FalkorDB's Bolt port, which bears small messages.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lamina.cli import sample
from lamina.cli.projections import fill_store
from lamina.core.ports import Model
from lamina.core.principals import KeyRole
from lamina.core.tiers import TierName
from lamina.embedded import EmbeddedFalkorDB
from lamina.projections.filling import FillReport
from lamina.projections.ownership import claim_projection, is_kept_here
from lamina.settings.loading import Settings
from lamina.settings.stores import (
    FalkorDBServerSettings,
    Neo4jServerSettings,
    PostgresServerSettings,
    QdrantEdgeSettings,
    QdrantServerSettings,
)
from lamina.stores.graph.store import CypherGraph
from lamina.stores.postgres.generations import claim_generation
from lamina.wiring import projections
from tests.support.application import Application, running, settings_for
from tests.support.bolt import bolt_graph, bolt_server

SESSIONS = 3
QUESTIONS = (
    "Why did no data come through after the blackout in March?",
    "What happened to LFP-2291-07?",
    "Who is Mira and where does she live?",
    "what did we decide about the battery",
    "Where is the spare key?",
    "the clock of the Pi",
)
NOTES = (
    {"content": "We decided to replace the battery before winter", "category": "decision", "tags": ["power"]},
    {"content": "The spare key hangs behind the barometer", "tags": ["keys"]},
    {"content": "LFP-2291-07 was returned to the supplier", "category": "outcome", "importance": 0.9},
    {"content": "Mira lives in Sistranda", "user": "mira"},
)
HANDBOOK = "# Station handbook\n\nThe Pi has no clock of its own.\n\n## Power\n\nThe battery feeds the Pi for two days."


@asynccontextmanager
async def on(settings: Settings, url: str, model: Model) -> AsyncIterator[Application]:
    async with running(settings, url, model, follow=False) as app:
        for parts in app.tiers.values():
            for projection in parts.projections:
                await asyncio.to_thread(
                    claim_projection, settings, url, projection, None, is_new=projection in parts.new
                )
        await app.indexed()
        yield app


async def write(app: Application) -> None:
    client = app.client()
    conversation = sample.load()
    scope = {"workspace": "w", "user": conversation.user, "agent": conversation.agent}
    for session, messages in conversation.sessions[:SESSIONS]:
        body = {**scope, "session": session, "messages": list(messages)[:16]}
        assert (await client.post("/v1/turns", json=body)).status_code == 200
    for note in NOTES:
        assert (await client.post("/v1/notes", json={"workspace": "w", **note})).status_code in {200, 201}
    document = {
        "workspace": "w",
        "key": "handbook",
        "title": "Handbook",
        "content": HANDBOOK,
        "media_type": "text/markdown",
    }
    assert (await client.post("/v1/documents", json=document)).status_code in {200, 201}
    await app.indexed()


async def answers(app: Application) -> list[Any]:
    """What every question finds: memories in order, with scores and each source's rank and figures, rounded."""
    found = []
    for question in QUESTIONS:
        for fusion in ("rrf", "weighted"):
            body = {"workspace": "w", "query": question, "limit": 15, "explain": True, "cache": False, "fusion": fusion}
            answer = (await app.client().post("/v1/search", json=body)).json()
            assert answer["degraded"] == [], answer
            found.append([_told(hit) for hit in answer["results"]])
    return found


def _told(hit: dict[str, Any]) -> Any:
    return hit["id"], round(hit["score"], 4), _rounded(hit["explain"])


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, 3)
        case dict():
            return {name: _rounded(item) for name, item in value.items()}
        case list():
            return [_rounded(item) for item in value]
        case _:
            return value


async def audited(app: Application) -> dict[str, Any]:
    key = app.new_key(app.tenant, role=KeyRole.ADMIN)
    report: dict[str, Any] = (await app.client(key).post("/v1/audit", json={})).json()
    return report


@pytest.fixture
async def configurations(
    database: str, tmp_path: Path, home: Path, falkordb: EmbeddedFalkorDB, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sequence[Settings]]:
    """Embedded stores, servers, and embedded stores again, on other files."""

    def embedded(folder: str) -> Settings:
        graph = FalkorDBServerSettings(url=falkordb.url)
        return settings_for(database, tmp_path / folder, graph=graph)

    # FalkorDB speaks Bolt, but with small messages, its own schema, and to one connection after the other only once.
    monkeypatch.setattr("lamina.stores.graph.neo4j.neo4j_graph", _by_bolt)
    known = projections.is_new_store
    monkeypatch.setattr(projections, "is_new_store", lambda make: make.func is _by_bolt or known(make))
    with bolt_server(home) as url:
        neo4j = Neo4jServerSettings(url=url)
        qdrant = QdrantServerSettings(url=str(tmp_path / "qdrant"))
        servers = settings_for(
            database,
            tmp_path / "servers",
            hybrid=qdrant,
            vectors=qdrant.model_copy(update={"url": str(tmp_path / "cold")}),
            graph=neo4j,
            search={"source_deadline_s": 60, "tier_deadline_s": 60},
        )
        yield embedded("one"), servers, embedded("two")


def _by_bolt(settings: Neo4jServerSettings, **_: Any) -> CypherGraph:
    return bolt_graph(settings.url, connections=1)


async def test_the_same_searches_give_the_same_answers_wherever_the_projections_are(
    database: str, configurations: Sequence[Settings], minilm: Model
) -> None:
    first, servers, last = configurations
    async with on(first, database, minilm) as app:
        await write(app)
        before = await answers(app)

    async with on(servers, database, minilm) as app:
        elsewhere = await answers(app)
        consistent = await audited(app)
    async with on(last, database, minilm) as app:
        back = await answers(app)

    assert sum(map(len, before)) > 60
    assert elsewhere == before
    assert back == before
    # Over its Bolt port FalkorDB tells some strengths to six digits, where the audit compares nine.
    drifts = consistent["projections"]
    assert {(drift["missing"], drift["surplus"]) for drift in drifts.values()} == {(0, 0)}
    assert {name for name, drift in drifts.items() if drift["different"]} <= {"graph"}
    assert set(drifts) == {"messages", "notes", "cold", "documents", "graph"}


async def test_a_place_that_was_filled_beforehand_answers_from_the_first_moment_and_misses_nothing(
    database: str, configurations: Sequence[Settings], minilm: Model
) -> None:
    first, servers, _ = configurations
    names: tuple[TierName, ...] = ("sessions", "notes", "documents")
    async with on(first, database, minilm) as app:
        await write(app)
        told: list[int] = []
        generation = claim_generation(database, minilm.identity)
        served = [is_kept_here(settings, database, "notes", None) for settings in (first, servers)]
        filled = {
            name: await fill_store(servers, name, generation, told.append)
            for name in ("messages", "notes", "documents")
        }
        await app.client().post("/v1/notes", json={"workspace": "w", "content": "The spare key is lost"})
        await app.indexed()
        before = await answers(app)

    assert served == [True, False]
    assert all(result.memories > 0 for result in filled.values())
    assert {(result.removed, result.differing) for result in filled.values()} == {(0, 0)}
    assert sum(told) == sum(result.memories for result in filled.values())
    async with running(servers, database, minilm, follow=False) as app:
        new = {projection for name in names for projection in app.tiers[name].new}
        at_once = await audited(app)
        for name in names:
            for projection in app.tiers[name].projections:
                await asyncio.to_thread(
                    claim_projection, servers, database, projection, None, is_new=projection in app.tiers[name].new
                )
        await asyncio.to_thread(claim_projection, servers, database, "graph", None, is_new=True)
        await app.indexed()
        after = await answers(app)

    assert new == {"cold"}  # There is no cold note yet.
    assert at_once["projections"]["notes"]["missing"] == 1
    assert at_once["projections"]["messages"]["missing"] == at_once["projections"]["documents"]["missing"] == 0
    assert after == before


async def test_what_postgres_does_not_know_is_removed_from_a_place_that_is_filled(
    database: str, configurations: Sequence[Settings], minilm: Model
) -> None:
    first, servers, _ = configurations
    async with on(first, database, minilm) as app:
        stored = await app.client().post("/v1/notes", json={"workspace": "w", "content": "a passing thought"})
        await app.indexed()
        generation = claim_generation(database, minilm.identity)
        await fill_store(servers, "notes", generation, lambda _: None)
        deleted = await app.client().delete(f"/v1/notes/{stored.json()['id']}")

        again = await fill_store(servers, "notes", generation, lambda _: None)
        at_last = await fill_store(servers, "notes", generation, lambda _: None)

    assert deleted.status_code == 204
    assert again == FillReport(memories=0, removed=1, differing=0)
    assert at_last.removed == 0


def test_embedded_and_servers_can_be_chosen_one_by_one(tmp_path: Path) -> None:
    mixed = Settings(
        data_dir=tmp_path,
        postgres=PostgresServerSettings(url="postgresql://x"),
        hybrid=QdrantEdgeSettings(),
        vectors=QdrantServerSettings(url="http://x"),
        graph=FalkorDBServerSettings(url="redis://x"),
    )

    assert (mixed.hybrid.kind, mixed.vectors.kind, mixed.graph.kind) == ("qdrant_edge", "qdrant", "falkordb")
