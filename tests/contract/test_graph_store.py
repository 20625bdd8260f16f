import asyncio
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from redis.asyncio import Redis

from lamina.core.fingerprints import fingerprint
from lamina.core.links import FollowedLink, Frontier, Link, Node, NodeLabel
from lamina.core.ports import Change
from lamina.core.scope import Scope
from lamina.embedded import EmbeddedFalkorDB
from lamina.errors import Unavailable
from lamina.settings.stores import Neo4jServerSettings
from lamina.stores.graph import neo4j
from lamina.stores.graph.falkordb import GRAPH, falkordb_graph
from lamina.stores.graph.neo4j import neo4j_graph
from lamina.stores.graph.store import CypherGraph, statement
from tests.support.bolt import bolt_graph, bolt_server
from tests.support.servers import running_falkordb
from tests.support.tidying import tidy

MORNING = datetime(2026, 3, 1, 8, 0, 0, 123456, tzinfo=UTC)
EVENING = MORNING + timedelta(hours=12)
ENTITY, MEMORY = NodeLabel.ENTITY, NodeLabel.MEMORY
STRANGE = (
    "a-b",
    "_",
    "%",
    "123e4567-e89b-12d3-a456-426614174000",
    "x@y.z",
    "a&agent=b",
    "Ünïcode",
    "мой кот 🎉 שלום 今日は",
    "x" * 128,
    "`}) DETACH DELETE n //",
    "' OR 1=1 --",
    '"; MATCH (n) RETURN n; $ids',
    "back\\slash\\",
    "\\u0041\\n",
    "null",
    "é",
)
FALKORDB_URL = os.environ.get("LAMINA_TEST_FALKORDB_URL")
STORES = ("on_falkordb", "on_bolt", "on_neo4j")
# FalkorDB's Bolt port does not escape these in parameters; Neo4j has true parameters.
PLAIN = tuple(text for text in STRANGE if not {"'", "\\"} & set(text))


@pytest.fixture(scope="module")
def falkordb() -> Iterator[EmbeddedFalkorDB]:
    """A FalkorDB of this module: a fourth of its tests read every node that is there."""
    with running_falkordb() as server:
        yield server


@pytest.fixture(scope="module")
def falkordb_url(request: pytest.FixtureRequest) -> str:
    """The FalkorDB that is configured for tests, or the embedded one."""
    return FALKORDB_URL or request.getfixturevalue("falkordb").url


@pytest.fixture(scope="module")
async def on_falkordb(falkordb_url: str) -> AsyncIterator[CypherGraph]:
    """The store on FalkorDB; there messages may be large."""
    store = tidy(falkordb_graph(falkordb_url, connections=4, read_deadline_s=60))
    yield store
    await store.close()


@pytest.fixture(scope="module")
async def on_bolt() -> AsyncIterator[CypherGraph]:
    """The store for Neo4j on FalkorDB's Bolt port, which bears small messages alone."""
    with (
        tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder,
        bolt_server(Path(folder)) as url,
    ):
        store = bolt_graph(url)
        yield store
        await store.close()


@pytest.fixture(scope="module")
async def on_neo4j(neo4j_server: Neo4jServerSettings) -> AsyncIterator[CypherGraph]:
    """The store on a real Neo4j, which is left without what it was given."""
    store = tidy(neo4j_graph(neo4j_server, read_deadline_s=60))
    yield store
    await store.close()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> CypherGraph:
    chosen = request.getfixturevalue(request.param)
    assert isinstance(chosen, CypherGraph)
    return chosen


@dataclass
class World:
    """A tenant of its own, and short ways to say what is in it."""

    tenant: str = field(default_factory=lambda: f"tenant {uuid.uuid4()}")
    workspace: str = "w"
    namespace: str = "n"

    def entity(self, *links: Link, **values: Any) -> Node:
        return self._node(ENTITY, 4, "Ada", links, values)

    def memory(self, *links: Link, **values: Any) -> Node:
        return self._node(MEMORY, 2, None, links, values)

    def _node(self, label: NodeLabel, tier: int, name: str | None, links: tuple[Link, ...], values: Any) -> Node:
        node = Node(label, self.tenant, self.workspace, self.namespace, tier, None, name, MORNING, links)
        return replace(node, **values)

    def frontier(self, *ids: UUID, user: str | None = None, **values: Any) -> Frontier:
        scope = Scope(self.tenant, self.workspace, self.namespace, user=user)
        return replace(Frontier(scope, ids, kinds=(), fan_out=10), **values)


@pytest.fixture
def world() -> World:
    return World()


def link(source: UUID, target: UUID, strength: float = 0.5, **values: Any) -> Link:
    return replace(Link(source, target, "mentions", strength, None, MORNING), **values)


def ids(count: int) -> list[UUID]:
    return sorted(uuid.uuid4() for _ in range(count))


async def put(store: CypherGraph, nodes: dict[UUID, Node | None]) -> None:
    await store.apply([Change(id_, node) for id_, node in nodes.items()])


def ends(links: Sequence[FollowedLink]) -> list[UUID]:
    return [item.end for item in links]


async def all_nodes(store: CypherGraph, *, page: int = 40) -> dict[UUID, Node]:
    """Read all pages; small ones, for FalkorDB's Bolt port bears some 8 KB of ids."""
    found: list[tuple[UUID, Node]] = []
    while part := await store.nodes(found[-1][0] if found else None, page):
        assert not found or part[0][0] > found[-1][0]
        found += part
    assert [id_ for id_, _ in found] == sorted(id_ for id_, _ in found)
    return dict(found)


async def test_links_are_followed_in_both_directions(store: CypherGraph, world: World) -> None:
    note, ada = ids(2)
    await put(store, {note: world.memory(link(note, ada, 0.75, kind="about")), ada: world.entity()})

    found = await store.expand(world.frontier(note, ada))

    assert found == [
        FollowedLink(note, ada, ENTITY, 4, "about", 0.75, is_forward=True),
        FollowedLink(ada, note, MEMORY, 2, "about", 0.75, is_forward=False),
    ]


async def test_links_in_both_directions_between_two_nodes_are_kept_apart(store: CypherGraph, world: World) -> None:
    one, two = ids(2)
    there, more = link(one, two, 0.5, kind="knows"), link(one, two, 0.25, kind="likes")
    await put(store, {one: world.entity(there, more), two: world.entity(link(two, one, 0.75, kind="knows"))})

    found = await store.expand(world.frontier(one))

    assert [(item.kind, item.strength, item.is_forward) for item in found] == [
        ("knows", 0.75, False),
        ("knows", 0.5, True),
        ("likes", 0.25, True),
    ]


@pytest.mark.parametrize(
    ("hours", "is_ended"), [(-1, True), (0, False), (1, True), (2, False), (3, True), (None, True)]
)
async def test_an_edge_that_held_twice_is_ended_outside_of_both_intervals(
    store: CypherGraph, world: World, hours: int | None, is_ended: bool
) -> None:
    ann, paris = ids(2)
    at = [MORNING + timedelta(hours=number) for number in range(4)]
    early = MORNING - timedelta(days=1)
    lived = link(ann, paris, kind="lives_in", seen_at=early, held=((at[0], at[1]), (at[2], at[3])))
    await put(store, {ann: world.entity(lived, seen_at=early), paris: world.entity(seen_at=early)})

    as_of = None if hours is None else MORNING + timedelta(hours=hours)
    found = await store.expand(world.frontier(ann, as_of=as_of))

    assert [item.is_ended for item in found] == [is_ended]


async def test_an_edge_that_began_again_holds_and_is_read_back_with_its_intervals(
    store: CypherGraph, world: World
) -> None:
    ann, paris = ids(2)
    begun = MORNING + timedelta(hours=2)
    lived = link(ann, paris, kind="lives_in", held=((MORNING, MORNING + timedelta(hours=1)), (begun, None)))
    never_ended = link(ann, paris, kind="knows")
    await put(store, {ann: world.entity(lived, never_ended), paris: world.entity()})

    assert [item.is_ended for item in await store.expand(world.frontier(ann))] == [False, False]
    assert {item.kind: item.held for item in (await all_nodes(store))[ann].links} == {
        "lives_in": lived.held,
        "knows": (),
    }


async def test_each_node_gives_its_strongest_links_up_to_the_fan_out(store: CypherGraph, world: World) -> None:
    hub, other, *notes = ids(7)
    weak, strong, middle, incoming, last = notes
    await put(
        store,
        {
            hub: world.entity(link(hub, weak, 0.125), link(hub, strong, 1.0), link(hub, middle, 0.5)),
            other: world.entity(link(other, last, 0.25)),
            **dict.fromkeys((weak, strong, middle, last), world.memory()),
            incoming: world.memory(link(incoming, hub, 0.75)),
        },
    )

    found = await store.expand(world.frontier(other, hub, fan_out=3))

    assert ends(found) == [last, strong, incoming, middle]


async def test_links_of_equal_strength_come_in_the_order_of_ids(store: CypherGraph, world: World) -> None:
    upwards, downwards, *notes = ids(7)
    await put(store, dict.fromkeys(notes[2:], world.memory()) | dict.fromkeys(reversed(notes[:2]), world.memory()))
    await put(store, {upwards: world.entity(*(link(upwards, note) for note in notes))})
    await put(store, {downwards: world.entity(*(link(downwards, note) for note in reversed(notes)))})

    assert ends(await store.expand(world.frontier(upwards, fan_out=3))) == notes[:3]
    assert ends(await store.expand(world.frontier(downwards, fan_out=3))) == notes[:3]


async def test_a_node_that_is_asked_for_twice_answers_once(store: CypherGraph, world: World) -> None:
    note, ada = ids(2)
    await put(store, {note: world.memory(link(note, ada)), ada: world.entity()})

    assert len(await store.expand(world.frontier(ada, ada))) == 1


async def test_a_link_that_leads_back_to_its_start_is_not_followed(store: CypherGraph, world: World) -> None:
    one, two = ids(2)
    await put(store, {one: world.entity(link(one, one, 1.0), link(one, two, 0.5)), two: world.entity()})

    assert ends(await store.expand(world.frontier(one, fan_out=1))) == [two]


async def test_an_empty_frontier_leads_nowhere(store: CypherGraph, world: World) -> None:
    assert await store.expand(world.frontier()) == []


async def test_only_allowed_kinds_are_followed(store: CypherGraph, world: World) -> None:
    hub, one, two, three = ids(4)
    kinds = {one: "about", two: "similar", three: "works_at"}
    links = [link(hub, end, kind=kind) for end, kind in kinds.items()]
    await put(store, {hub: world.memory(*links), **dict.fromkeys(kinds, world.memory())})

    found = await store.expand(world.frontier(hub, kinds=("works_at", "about")))

    assert ends(found) == [one, three]


@pytest.mark.parametrize("part", ["tenant", "workspace", "namespace"])
async def test_links_to_and_from_another_scope_are_not_followed(store: CypherGraph, world: World, part: str) -> None:
    here, there, also_here = ids(3)
    foreign = world.memory(link(there, here), link(there, also_here), **{part: f"{getattr(world, part)}x"})
    await put(store, {here: world.entity(link(here, there)), there: foreign, also_here: world.entity()})

    assert await store.expand(world.frontier(here, there, also_here)) == []


async def test_a_user_sees_what_is_shared_and_what_is_his_or_hers(store: CypherGraph, world: World) -> None:
    hub, shared, mine, other = ids(4)
    owners = {shared: None, mine: "ada", other: "bob"}
    nodes = {end: world.memory(link(end, hub), user=user) for end, user in owners.items()}
    await put(store, {hub: world.entity(), **nodes})

    assert ends(await store.expand(world.frontier(hub, user="ada"))) == [shared, mine]
    assert ends(await store.expand(world.frontier(hub))) == [shared, mine, other]
    assert ends(await store.expand(world.frontier(hub, shared_only=True))) == [shared]
    assert ends(await store.expand(world.frontier(hub, user="ada", shared_only=True))) == [shared]
    assert await store.expand(world.frontier(other, user="ada")) == []
    assert await store.expand(world.frontier(mine, shared_only=True)) == []


async def test_a_user_follows_links_of_own_evidence_and_shared_ones(store: CypherGraph, world: World) -> None:
    hub, shared, mine, other, nobody = ids(5)
    evidence = {shared: None, mine: ("bob", "ada"), other: ("bob",), nobody: ()}
    links = [link(hub, end, users=users) for end, users in evidence.items()]
    await put(store, {hub: world.entity(*links), **dict.fromkeys(evidence, world.entity())})

    assert ends(await store.expand(world.frontier(hub, user="ada"))) == [shared, mine]
    assert ends(await store.expand(world.frontier(hub))) == [shared, mine, other, nobody]
    assert ends(await store.expand(world.frontier(hub, shared_only=True))) == [shared]


async def test_as_of_hides_links_and_memories_of_later(store: CypherGraph, world: World) -> None:
    hub, early, later_link, later_memory, later_entity = ids(5)
    await put(
        store,
        {
            hub: world.entity(
                link(hub, early),
                link(hub, later_link, seen_at=EVENING),
                link(hub, later_memory),
                link(hub, later_entity),
            ),
            early: world.memory(),
            later_link: world.memory(),
            later_memory: world.memory(seen_at=EVENING),
            later_entity: world.entity(seen_at=EVENING),
        },
    )

    assert ends(await store.expand(world.frontier(hub, as_of=MORNING))) == [early, later_entity]
    assert len(await store.expand(world.frontier(hub, as_of=EVENING))) == 4
    assert len(await store.expand(world.frontier(hub))) == 4
    assert await store.expand(world.frontier(later_memory, as_of=MORNING)) == []


async def test_a_target_is_seen_once_its_own_change_came(store: CypherGraph, world: World) -> None:
    note, ada = ids(2)
    await put(store, {note: world.memory(link(note, ada))})
    before = await store.expand(world.frontier(note))
    listed = await all_nodes(store)

    await put(store, {ada: world.entity()})

    assert before == []
    assert note in listed
    assert ada not in listed
    assert ends(await store.expand(world.frontier(note))) == [ada]


async def test_a_change_replaces_the_node_and_all_links_that_start_there(store: CypherGraph, world: World) -> None:
    note, ada, bob, third = ids(4)
    old = world.memory(link(note, ada), link(note, ada, kind="about"), link(note, bob), user="ada")
    new = world.memory(link(note, bob, 0.75, users=("ada",)), link(note, third), seen_at=EVENING)
    await put(store, {note: old, third: world.memory(link(third, note)), **dict.fromkeys((ada, bob), world.entity())})

    await put(store, {note: new})
    await put(store, {note: new})

    assert (await all_nodes(store))[note] == new
    assert ends(await store.expand(world.frontier(note))) == [bob, third, third]
    assert await store.expand(world.frontier(ada)) == []


async def test_of_two_changes_of_a_node_in_one_batch_the_last_counts(store: CypherGraph, world: World) -> None:
    note, ada, bob = ids(3)
    await put(store, dict.fromkeys((ada, bob), world.entity()))

    await store.apply([Change(note, world.memory(link(note, ada))), Change(note, world.memory(link(note, bob)))])

    assert ends(await store.expand(world.frontier(note))) == [bob]


async def test_deleting_a_node_takes_its_links_of_both_directions_along(store: CypherGraph, world: World) -> None:
    note, ada, other = ids(3)
    await put(
        store,
        {
            note: world.memory(link(note, ada)),
            ada: world.entity(link(ada, note)),
            other: world.memory(link(other, ada)),
        },
    )

    await put(store, {note: None})
    await put(store, {note: None})

    assert ends(await store.expand(world.frontier(note, ada))) == [other]
    assert note not in await all_nodes(store)


async def test_a_node_that_comes_back_has_the_links_of_others_once_they_are_applied(
    store: CypherGraph, world: World
) -> None:
    note, ada = ids(2)
    linked = world.memory(link(note, ada))
    await put(store, {note: linked, ada: world.entity()})
    await put(store, {ada: None})

    await put(store, {ada: world.entity()})
    alone = await store.expand(world.frontier(ada))
    await put(store, {note: linked})

    assert alone == []
    assert ends(await store.expand(world.frontier(ada))) == [note]


async def test_deleting_and_linking_in_one_batch_leaves_no_link_to_what_is_gone(
    store: CypherGraph, world: World
) -> None:
    note, gone = ids(2)
    await put(store, {note: world.memory(link(note, gone)), gone: world.memory()})

    await put(store, {gone: None, note: world.memory()})

    assert await store.expand(world.frontier(note)) == []


async def assert_round_trip(store: CypherGraph, text: str) -> None:
    world = World(tenant=f"{uuid.uuid4().hex} {text}"[:128], workspace=text, namespace=text)
    note, ada = ids(2)
    memory = world.memory(link(note, ada, kind=text, users=(text, "other")), user=text)
    entity = world.entity(name=text)
    await put(store, {note: memory, ada: entity})

    found = await store.expand(world.frontier(ada, user=text, kinds=(text,)))
    listed = await all_nodes(store)

    assert [(item.end, item.kind) for item in found] == [(note, text)]
    assert (listed[note], listed[ada]) == (memory, entity)


@pytest.mark.parametrize("text", STRANGE)
async def test_any_text_is_a_scope_a_user_a_kind_and_a_name(on_falkordb: CypherGraph, text: str) -> None:
    await assert_round_trip(on_falkordb, text)


@pytest.mark.parametrize("text", PLAIN)
async def test_any_text_is_a_scope_a_user_a_kind_and_a_name_over_bolt(on_bolt: CypherGraph, text: str) -> None:
    await assert_round_trip(on_bolt, text)


@pytest.mark.parametrize("text", STRANGE)
async def test_any_text_is_a_scope_a_user_a_kind_and_a_name_on_neo4j(on_neo4j: CypherGraph, text: str) -> None:
    await assert_round_trip(on_neo4j, text)


async def test_the_schema_on_neo4j_is_made_once_however_often(
    neo4j_server: Neo4jServerSettings, on_neo4j: CypherGraph, world: World
) -> None:
    other = tidy(neo4j_graph(neo4j_server, read_deadline_s=60))
    await asyncio.gather(*(put(store, {uuid.uuid4(): world.memory()}) for store in (on_neo4j, other)))

    made = await other._engine.read("SHOW INDEXES YIELD name WHERE name STARTS WITH 'lamina' RETURN name", {})

    assert sorted(row[0] for row in made) == ["lamina_node", "lamina_node_of_tenant"]
    await other.close()


async def test_strange_scopes_are_distinct(store: CypherGraph, world: World) -> None:
    worlds = {text: World(world.tenant, workspace=text) for text in PLAIN}
    pairs = {text: ids(2) for text in PLAIN}
    for text, (note, ada) in pairs.items():
        await put(store, {note: worlds[text].memory(link(note, ada)), ada: worlds[text].entity()})

    everything = [id_ for pair in pairs.values() for id_ in pair]
    for text, pair in pairs.items():
        found = await store.expand(worlds[text].frontier(*everything))
        assert {item.start for item in found} == set(pair)


async def test_times_and_strengths_come_back_as_they_went(store: CypherGraph, world: World) -> None:
    early, late, none = ids(3)
    first = datetime(1, 1, 1, tzinfo=UTC)
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    node = world.memory(link(early, late, 1.0, seen_at=last), link(early, none, 0.0, seen_at=first), seen_at=first)
    await put(store, {early: node, late: world.memory(seen_at=last)})

    listed = await all_nodes(store)

    assert listed[early] == node
    assert listed[late].seen_at == last


async def test_nodes_are_read_page_by_page(store: CypherGraph, world: World) -> None:
    everything = {id_: world.entity(name=str(id_)) for id_ in ids(12)}
    await put(store, {id_: replace(node, links=(link(id_, id_),)) for id_, node in everything.items()})

    by_fives, at_once = await all_nodes(store, page=5), await all_nodes(store)

    assert by_fives == at_once
    assert {id_: node.name for id_, node in at_once.items() if id_ in everything} == {
        id_: str(id_) for id_ in everything
    }


async def test_a_large_batch_comes_in_whole_and_goes_whole(store: CypherGraph, world: World) -> None:
    hub, *notes = ids(90)
    everything = {note: world.memory(link(note, hub), link(note, notes[0], kind="similar")) for note in notes}
    await put(store, everything | {hub: world.entity()})
    linked = await store.expand(world.frontier(hub, fan_out=100))
    inventory = await store.inventory(world.tenant)

    await put(store, dict.fromkeys(notes))

    assert sorted(ends(linked)) == notes
    assert set(inventory) == {hub, *notes}
    assert set(await store.inventory(world.tenant)) == {hub}


async def test_the_inventory_tells_the_states_of_a_tenants_nodes_alone(store: CypherGraph, world: World) -> None:
    note, ada, foreign, bare = ids(4)
    nodes = {note: world.memory(link(note, ada, 0.3), link(note, bare), user="ada"), ada: world.entity()}
    await put(store, nodes | {foreign: World().memory()})

    assert await store.inventory(world.tenant) == {id_: fingerprint(node) for id_, node in nodes.items()}
    assert await store.inventory("nobody") == {}


async def test_a_replay_ends_in_the_same_state_wherever_it_begins(store: CypherGraph, world: World) -> None:
    one, two, three = ids(3)
    history: list[tuple[UUID, Node | None]] = [
        (one, world.memory(link(one, two))),
        (two, world.entity()),
        (one, world.memory(link(one, three), link(one, two, 0.25))),
        (three, world.entity(link(three, one))),
        (two, None),
        (one, world.memory(link(one, three, 0.75))),
    ]
    for id_, node in history:
        await put(store, {id_: node})
    known = await store.inventory(world.tenant)
    found = await store.expand(world.frontier(one, three))
    last = dict(history)

    for begin in range(len(history)):
        # What the outbox still holds is read again: every memory as it is by now.
        await put(store, {id_: last[id_] for id_, _ in history[begin:]})

        assert await store.inventory(world.tenant) == known
        assert await store.expand(world.frontier(one, three)) == found


async def test_a_store_with_nodes_is_not_empty(store: CypherGraph, world: World) -> None:
    await put(store, {uuid.uuid4(): world.memory()})

    assert not await store.prepare()


async def test_applying_nothing_and_flushing_are_no_errors(store: CypherGraph) -> None:
    await store.apply([])
    await store.flush()


async def test_a_server_that_is_not_there_is_unavailable(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neo4j, "RETRY_WRITES_FOR_S", 0.2)
    stores = [
        falkordb_graph(f"unix://{tmp_path}/nothing", connections=1, read_deadline_s=1),
        neo4j_graph(Neo4jServerSettings(url="bolt://127.0.0.1:1"), read_deadline_s=1),
    ]
    for store in stores:
        with pytest.raises(Unavailable, match="graph is not available"):
            await store.expand(world.frontier(uuid.uuid4()))
        with pytest.raises(Unavailable, match="graph is not available"):
            await put(store, {uuid.uuid4(): world.memory()})
        await store.close()


MANY_NOTES = """
MATCH (hub:Node {id: $hub})
UNWIND range(1, $count) AS i
CREATE (n:Node {id: $prefix + toString(100000 + i), label: 'Memory', tier: 2, seen_at: 0,
                tenant: hub.tenant, workspace: hub.workspace, namespace: hub.namespace})
CREATE (n)-[:RELATES {kind: 'mentions', strength: i / 65536.0, users: ['ada'], shared: false, seen_at: 0}]->(hub)
"""


async def test_a_hub_of_many_links_gives_the_strongest_few(
    falkordb_url: str, on_falkordb: CypherGraph, world: World
) -> None:
    hub, prefix = uuid.uuid4(), str(uuid.uuid4())[:-6]
    await put(on_falkordb, {hub: world.entity()})
    await on_falkordb._engine.write(MANY_NOTES, {"hub": str(hub), "prefix": prefix, "count": 50_000})
    hasty = falkordb_graph(falkordb_url, connections=1, read_deadline_s=0.001)

    try:
        found = await on_falkordb.expand(world.frontier(hub, user="ada", fan_out=3, as_of=EVENING))
        with pytest.raises(Unavailable):
            await hasty.expand(world.frontier(hub, user="bob"))

        assert ends(found) == [UUID(f"{prefix}{100_000 + place}") for place in (50_000, 49_999, 49_998)]
        assert await on_falkordb.expand(world.frontier(hub, user="bob")) == []
    finally:
        await on_falkordb._engine.write("MATCH (n:Node {tenant: $tenant}) DETACH DELETE n", {"tenant": world.tenant})
        await hasty.close()


async def test_more_links_than_one_statement_takes_are_put_and_replaced(on_falkordb: CypherGraph, world: World) -> None:
    hub, *notes = ids(2_501)
    await put(on_falkordb, {hub: world.entity(*(link(hub, note) for note in notes))})
    await put(on_falkordb, dict.fromkeys(notes, world.memory()))
    everything = world.frontier(hub, fan_out=5_000)
    before = await on_falkordb.expand(everything)

    await put(on_falkordb, {hub: world.entity(*(link(hub, note) for note in notes[1_000:]))})

    assert ends(before) == notes
    assert ends(await on_falkordb.expand(everything)) == notes[1_000:]


async def test_more_callers_than_connections_wait_their_turn(falkordb: EmbeddedFalkorDB, world: World) -> None:
    store = falkordb_graph(falkordb.url, connections=2, read_deadline_s=60)
    note, ada = ids(2)
    await put(store, {note: world.memory(link(note, ada)), ada: world.entity()})

    answers = await asyncio.gather(*(store.expand(world.frontier(ada)) for _ in range(50)))

    assert [ends(answer) for answer in answers] == [[note]] * 50
    await store.close()


async def test_a_search_amid_a_change_misses_nothing_that_stays(on_falkordb: CypherGraph, world: World) -> None:
    note, ada = ids(2)
    node = world.memory(link(note, ada))
    await put(on_falkordb, {note: node, ada: world.entity()})

    async def change() -> None:
        for _ in range(30):
            await put(on_falkordb, {note: node})

    changing = asyncio.create_task(change())
    found = []
    while not changing.done():
        found.append(ends(await on_falkordb.expand(world.frontier(ada))))
    await changing

    assert found == [[note]] * len(found)


async def test_every_statement_finds_its_nodes_by_the_index(
    falkordb_url: str, on_falkordb: CypherGraph, world: World
) -> None:
    await put(on_falkordb, {uuid.uuid4(): world.memory()})
    values = (
        "CYPHER ids=['a'] nodes=[{id: 'a'}] links=[{source: 'a', target: 'b', kind: 'c'}] round=1 "
        "tenant='t' workspace='w' namespace='n' user='u' kinds=['c'] until=1 fan_out=1 "
        "always=false everyone=false every_kind=false "
    )
    names = ("expand", "put_nodes", "put_links", "drop_links", "drop_nodes", "list_links")
    async with Redis.from_url(falkordb_url, decode_responses=True) as client:
        for name in names:
            plan = await client.execute_command("GRAPH.EXPLAIN", GRAPH, values + statement(name, "falkordb"))
            assert any("Node By Index Scan" in line for line in plan), name
            assert not any("All Node Scan" in line or "Node By Label Scan" in line for line in plan), (name, plan)
