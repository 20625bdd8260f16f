"""What tests make on servers goes with them; what else is there stays."""

import uuid
from collections import Counter
from datetime import UTC, datetime

import pytest
from qdrant_client import AsyncQdrantClient, models

from lamina.core.links import Link, Node, NodeLabel
from lamina.core.ports import Change
from lamina.embedded import EmbeddedFalkorDB
from lamina.settings.stores import MeilisearchSettings
from lamina.stores.graph.falkordb import falkordb_graph
from lamina.stores.index.meilisearch.client import MeilisearchServer
from tests.support import tidying
from tests.support.meilisearch import Kept, Wire, served
from tests.support.tidying import remove_collections, remove_indexes, tidy

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)


@pytest.fixture(autouse=True)
def removed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The counts of this test alone."""
    counts: Counter[str] = Counter()
    monkeypatch.setattr(tidying, "REMOVED", counts)
    return counts


async def test_collections_of_a_test_go_with_their_builds_and_others_stay(removed: Counter[str]) -> None:
    client = AsyncQdrantClient(":memory:")
    for name in ("test_a.0", "test_a.3", "test_a-acme.0", "lamina_notes.0", "test_b.0"):
        await client.create_collection(name, models.VectorParams(size=2, distance=models.Distance.COSINE))
    alias = models.CreateAlias(collection_name="test_a.3", alias_name="test_a")
    await client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])

    count = await remove_collections(client, {"test_a"})

    assert count == removed["collections of Qdrant"] == 3
    assert {item.name for item in (await client.get_collections()).collections} == {"lamina_notes.0", "test_b.0"}
    assert (await client.get_aliases()).aliases == []
    await client.close()


async def test_indexes_of_a_test_go_with_their_builds_and_others_stay(removed: Counter[str]) -> None:
    wire = Wire()
    wire.indexes = {name: Kept() for name in ("test_a", "test_a-build-3", "lamina_notes")}
    with served(wire) as url:
        server = MeilisearchServer(MeilisearchSettings(url=url))
        count = await remove_indexes(server, {"test_a"})
        await server.close()

    assert count == removed["indexes of Meilisearch"] == 2
    assert set(wire.indexes) == {"lamina_notes"}


async def test_nodes_of_a_test_go_with_the_bare_targets_of_their_links_and_others_stay(
    falkordb: EmbeddedFalkorDB,
) -> None:
    tenant = f"tenant {uuid.uuid4()}"
    mine, target, other = (uuid.uuid4() for _ in range(3))

    def node(*links: Link) -> Node:
        return Node(NodeLabel.MEMORY, tenant, "w", "n", 2, None, None, MORNING, links)

    kept = falkordb_graph(falkordb.url, connections=1, read_deadline_s=60)
    await kept.apply([Change(other, node())])
    store = tidy(falkordb_graph(falkordb.url, connections=1, read_deadline_s=60))
    await store.apply([Change(mine, node(Link(mine, target, "about", 0.5, None, MORNING)))])

    await store.close()

    bare = await kept._engine.read("MATCH (n:Node) WHERE n.id IN $ids RETURN n.id", {"ids": [str(mine), str(target)]})
    assert (set(await kept.inventory(tenant)), list(bare)) == ({other}, [])
    await kept.apply([Change(other, None)])
    await kept.close()
