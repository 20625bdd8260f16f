"""What a real Neo4j plans for our statements, and when."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import neo4j
import pytest

from lamina.core.links import Frontier
from lamina.core.scope import Scope
from lamina.errors import Unavailable
from lamina.settings.stores import Neo4jServerSettings
from lamina.stores.graph.neo4j import Neo4jEngine, _of_one_map, neo4j_graph
from lamina.stores.graph.store import CypherGraph, statement

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
FRONTIER = Frontier(Scope("acme", user="ada"), (uuid.uuid4(),), kinds=("about",), fan_out=10)
# Each stands for a size of list, or a type of parameter, for which Neo4j would plan once more.
FRONTIERS = (
    *(replace(FRONTIER, ids=tuple(uuid.uuid4() for _ in range(count))) for count in (1, 2, 10, 11, 101, 500)),
    replace(FRONTIER, scope=Scope("acme")),
    replace(FRONTIER, scope=Scope("a" * 128, "w" * 100, "n")),
    replace(FRONTIER, kinds=()),
    replace(FRONTIER, kinds=("about", "mentions", "similar")),
    replace(FRONTIER, as_of=MORNING),
    replace(FRONTIER, shared_only=True),
    replace(FRONTIER, fan_out=50),
)
SEEKING = ("expand", "put_nodes", "put_links", "drop_links", "drop_nodes", "list_links")


@pytest.fixture(scope="module")
async def driver(neo4j_server: Neo4jServerSettings) -> AsyncIterator[neo4j.AsyncDriver]:
    auth = (neo4j_server.user, neo4j_server.password.get_secret_value())
    async with neo4j.AsyncGraphDatabase.driver(neo4j_server.url, auth=auth) as driver:
        yield driver


@pytest.fixture
async def store(neo4j_server: Neo4jServerSettings) -> AsyncIterator[CypherGraph]:
    store = neo4j_graph(neo4j_server, read_deadline_s=60)
    yield store
    await store.close()


async def plans_after(settings: Neo4jServerSettings, driver: neo4j.AsyncDriver, frontiers: Sequence[Frontier]) -> int:
    """Return how many plans a server that had none has after the start of a service and these questions."""
    await driver.execute_query("CALL db.clearQueryCaches()", database_=settings.database)
    store = neo4j_graph(settings, read_deadline_s=60)
    await store.prepare()
    for frontier in frontiers:
        await store.expand(frontier)
    await store.close()
    told = await driver.execute_query("CALL db.clearQueryCaches()", database_=settings.database)
    return int(re.findall(r"\d+", told.records[0]["value"])[0])


async def test_every_frontier_is_asked_by_the_one_plan_that_was_made_before_the_service_was_ready(
    neo4j_server: Neo4jServerSettings, driver: neo4j.AsyncDriver
) -> None:
    await plans_after(neo4j_server, driver, FRONTIERS)  # Makes the indexes, which a plan depends on.

    without, asked = [await plans_after(neo4j_server, driver, frontiers) for frontiers in ((), FRONTIERS)]

    assert without == asked


@pytest.mark.parametrize("name", SEEKING)
async def test_every_statement_finds_its_nodes_by_the_index_though_planned_over_few(
    neo4j_server: Neo4jServerSettings, driver: neo4j.AsyncDriver, store: CypherGraph, name: str
) -> None:
    await store.prepare()
    text = "EXPLAIN " + _of_one_map(statement(name, "neo4j"))

    plan = (await driver.execute_query(text, {"given": {}}, database_=neo4j_server.database)).summary.plan

    operators = list(operators_of(plan))
    seeks = [one for one in operators if one.startswith("NodeUniqueIndexSeek")]
    assert seeks, operators
    assert not [one for one in operators if "Scan" in one or one.startswith("NodeIndexSeek")], operators


def operators_of(plan: Any) -> list[str]:
    return [plan["operatorType"], *(name for child in plan.get("children", ()) for name in operators_of(child))]


SLOW = "UNWIND range(1, $count) AS i WITH i WHERE i % 7 = 3 RETURN count(i)"


async def test_a_late_answer_is_waited_for_by_the_next_that_asks_the_same(
    neo4j_server: Neo4jServerSettings, store: CypherGraph
) -> None:
    engine = Neo4jEngine(neo4j_server, read_deadline_s=0.001)
    await engine.plan({})
    count = 1_000_000

    with pytest.raises(Unavailable, match="no answer within"):
        await engine.read(SLOW, {"count": count})
    while True:
        try:
            rows = await engine.read(SLOW, {"count": count})
            break
        except Unavailable:
            await asyncio.sleep(0)

    assert [list(row) for row in rows] == [[142_857]]
    await engine.close()


async def test_what_was_asked_before_a_change_does_not_answer_what_is_asked_after_it(
    neo4j_server: Neo4jServerSettings,
) -> None:
    engine = Neo4jEngine(neo4j_server, read_deadline_s=60)
    id_ = str(uuid.uuid4())
    text = "UNWIND range(1, 300000) AS i WITH count(i) AS n OPTIONAL MATCH (m:Node {id: $id}) RETURN m.id"

    early = asyncio.create_task(engine.read(text, {"id": id_}))
    await asyncio.sleep(0)
    await engine.write("MERGE (n:Node {id: $id})", {"id": id_})
    late = await engine.read(text, {"id": id_})
    await early
    await engine.write("MATCH (n:Node {id: $id}) DELETE n", {"id": id_})

    assert [list(row) for row in late] == [[id_]]
    await engine.close()
