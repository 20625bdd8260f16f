"""The whole application over a real Neo4j."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from lamina.core.ports import Change, Inventory
from lamina.models.hashing import HashingModel
from lamina.projections.audit import audit
from lamina.settings.stores import Neo4jServerSettings
from lamina.stores.graph.neo4j import neo4j_graph
from lamina.stores.postgres.outbox import Outbox
from tests.support.application import Application, running, settings_for


@pytest.fixture
async def over_neo4j(neo4j_server: Neo4jServerSettings, database: str, tmp_path: Path) -> AsyncIterator[Application]:
    """An application of this test alone, whose nodes are removed afterwards."""
    async with running(settings_for(database, tmp_path, graph=neo4j_server), database, HashingModel()) as app:
        mine = app.for_tenant(f"tenant {uuid.uuid4()}")
        yield mine
        await mine.close_clients()
        store = neo4j_graph(neo4j_server, read_deadline_s=60)
        await store.apply([Change(id_, None) for id_ in await store.inventory(mine.tenant)])
        await store.close()


def graph_of(app: Application) -> Inventory:
    return cast("Inventory", app.tiers["graph"].projections["graph"])


async def search(app: Application, question: str) -> dict[str, Any]:
    answer = await app.client().post("/v1/search", json={"query": question, "tiers": ["graph"], "min_confidence": 0})
    assert answer.is_success, answer.text
    return dict(answer.json())


async def test_what_is_written_is_found_along_links_audited_and_forgotten(over_neo4j: Application) -> None:
    client = over_neo4j.client()
    edges = [
        {"subject": "Mira", "type": "works_at", "object": "Orion Labs"},
        {"subject": "Orion Labs", "type": "based_in", "object": "Lyon"},
    ]
    assert (await client.post("/v1/graph/edges", json={"edges": edges})).is_success
    note = (await client.post("/v1/notes", json={"content": "Orion Labs moved to the old mill."})).json()["id"]
    await over_neo4j.indexed()

    answer = await search(over_neo4j, "Where does Mira work?")
    walk = (await client.post("/v1/graph/traverse", json={"names": ["Mira"], "depth": 2})).json()
    drift = await audit(Outbox(over_neo4j.pool), "graph", graph_of(over_neo4j), over_neo4j.tenant)
    await client.delete(f"/v1/notes/{note}")
    await over_neo4j.indexed()
    left = await graph_of(over_neo4j).inventory(over_neo4j.tenant)

    assert answer["degraded"] == []
    assert any("Orion Labs" in str(hit) for hit in answer["results"])
    assert all(name in str(walk["nodes"]) for name in ("Orion Labs", "Lyon"))
    assert (drift.ids(), note in {str(id_) for id_ in left}) == ((), False)
