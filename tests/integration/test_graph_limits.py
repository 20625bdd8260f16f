"""The graph's tables at their limits: long values, many mentions, many names, and who may raise what."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from lamina.core.links import LinkKind
from lamina.core.memories import MAX_SOURCE_CHARS, Chunk, Edge, Entity, Note, clean_note, new_id
from lamina.core.queries import Filters
from lamina.core.scope import Scope
from lamina.core.sharing import Share
from lamina.core.tiers import Segment, Tier
from lamina.errors import InvalidInput
from lamina.models.hashing import HashingModel
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres import links
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction, new_pool, scope_parameters
from lamina.stores.postgres.entities import Evidence, PreparedEntity, find_names, put_edges, put_entities
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.knowledge import KnowledgeReader
from lamina.stores.postgres.links import QUERIES, Mention, find_unlinked, put_mentions
from lamina.stores.postgres.notes import insert_notes, prepare_note
from lamina.stores.postgres.shares import Shares

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
SCOPE = Scope("acme", "desk")
VECTOR = np.eye(1, 384, dtype=np.float32).tobytes()


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    claim_generation(database, HashingModel().identity)
    async with new_pool(database, PoolSettings(min_size=0, max_size=4, timeout_s=60)) as opened:
        yield opened


@pytest.fixture
async def connection(pool: Pool) -> AsyncIterator[Connection]:
    async with pool.connection() as opened, opened.transaction():
        yield opened


def entity(name: str) -> PreparedEntity:
    return PreparedEntity(Entity(name), VECTOR, NOON)


def scattered(chars: int, start: int = 0x4E00, end: int = 0x9C00, seed: int = 0) -> str:
    """Return a text that hardly compresses: an index stores what compresses in less."""
    return "".join(map(chr, np.random.default_rng(seed).integers(start, end, chars)))


LONG = Scope(*(scattered(128, 0x20000, 0x2A6D0, seed) for seed in range(3)))


async def ask(connection: Connection, query: str) -> list[dict[str, Any]]:
    return await (await connection.execute(query.encode())).fetchall()


async def put_ann_knows_bob(connection: Connection, user: str | None, strength: float, confidence: float) -> None:
    ids = {
        key: put.id for key, put in (await put_entities(connection, SCOPE, [entity("ann"), entity("bob")], 1)).items()
    }
    edge = Edge("ann", "knows", "bob", strength, confidence)
    await put_edges(connection, SCOPE, [Evidence(edge, f"from {user}", None, user, NOON)], ids)


@pytest.mark.parametrize(
    "name", [scattered(128), scattered(128, 0x20000, 0x2A6D0), scattered(128, 0x3300, 0x3400), "\ufdfa" * 128]
)
async def test_a_name_whose_words_are_longer_than_an_index_holds_is_found(connection: Connection, name: str) -> None:
    put = await put_entities(connection, LONG, [entity(name)], 1)
    again = await put_entities(connection, LONG, [entity(name)], 1)

    key = Entity(name).key
    assert (again[key].id, again[key].existed) == (put[key].id, True)
    assert await find_names(connection, LONG, [key, "other"]) == {key: (put[key].id,)}


async def test_an_edge_from_the_longest_source_is_stored_and_counts_once(connection: Connection) -> None:
    put = await put_entities(connection, LONG, [entity("ann"), entity("bob")], 1)
    ids = {key: item.id for key, item in put.items()}
    told = Evidence(Edge("ann", "knows", "bob"), scattered(MAX_SOURCE_CHARS), None, None, NOON)

    for _ in range(2):
        await put_edges(connection, LONG, [told], ids)

    assert await ask(connection, "SELECT count(*) FROM edge_evidence") == [{"count": 1}]


async def test_a_share_of_as_many_long_tags_as_a_note_may_have_is_stored_once(pool: Pool) -> None:
    text = scattered(64 * 128)
    tags = tuple(text[start : start + 128] for start in range(0, len(text), 128))
    shares = Shares(pool)

    def share() -> Share:
        return Share(new_id(), LONG.workspace, LONG.namespace, "desk", Segment.NOTES, tags, "all", NOON)

    assert await shares.put(LONG.tenant, share()) == await shares.put(LONG.tenant, share())


def test_a_note_from_a_source_that_is_too_long_is_refused_by_name() -> None:
    assert clean_note(Note("x", source="s" * MAX_SOURCE_CHARS)).source == "s" * MAX_SOURCE_CHARS
    with pytest.raises(InvalidInput, match=r"^source: has 1025 characters; at most 1024 are accepted$"):
        clean_note(Note("x", source="s" * (MAX_SOURCE_CHARS + 1)))


async def test_what_is_too_long_for_an_index_is_no_reason_to_try_again(pool: Pool) -> None:
    too_long = b"SELECT to_tsvector('simple', string_agg(md5(n::text), ' ')) FROM generate_series(1, 60000) n"

    with pytest.raises(InvalidInput, match="too long to index; shorten it"):
        await in_transaction(pool, lambda connection: connection.execute(too_long))
    with pytest.raises(InvalidInput, match="too long to index; shorten it"):
        async with connect(pool) as connection:
            await connection.execute(too_long)


async def test_whether_a_source_is_new_to_an_entity_is_asked_of_an_index(connection: Connection) -> None:
    put = await put_entities(connection, SCOPE, [entity("ann")], 1)
    fill = """
    INSERT INTO memory_links
    SELECT gen_random_uuid(), %s, 'mentions', 2, 'acme', 'desk', 'default', NULL, 'source ' || n, 1, now()
    FROM generate_series(1, 20000) n
    """
    await connection.execute(fill.encode(), (put["ann"].id,))
    await connection.execute("ANALYZE memory_links")
    told = {
        **scope_parameters(SCOPE),
        "entity_ids": [put["ann"].id],
        "memory_ids": [new_id()],
        "sources": ["source 7"],
        "witnesses": [None],
        "times": [NOON],
        "kinds": ["mentions"],
        "tiers": [2],
        "owners": [None],
        "strengths": [1.0],
    }

    cursor = await connection.execute(b"EXPLAIN (ANALYZE) " + QUERIES["put_mentions"], told)
    plan = "\n".join([row["QUERY PLAN"] async for row in cursor])

    assert "memory_links_by_source" in plan
    assert "Seq Scan on memory_links" not in plan
    assert await ask(connection, "SELECT confidence FROM entities") == [{"confidence": 0.8}]


async def test_counting_mentions_stops_at_ten_thousand(pool: Pool) -> None:
    async with pool.connection() as connection:
        ann = (await put_entities(connection, SCOPE, [entity("ann")], 1))["ann"].id
        fill = """
        INSERT INTO memory_links
        SELECT gen_random_uuid(), %s, 'mentions', 2, 'acme', 'desk', 'default', NULL, 'book', 1, now()
        FROM generate_series(1, 10001)
        """
        await connection.execute(fill.encode(), (ann,))

    known = await KnowledgeReader(pool).entities(SCOPE, Filters(), [ann])

    assert known[ann].mentions == 10_000


@pytest.mark.parametrize("order", [(None, "ann"), ("ann", None)])
async def test_what_a_user_says_in_private_makes_an_edge_no_surer_for_others(
    connection: Connection, order: tuple[str | None, ...]
) -> None:
    for user in order:
        await put_ann_knows_bob(connection, user, *((0.3, 0.4) if user is None else (0.9, 0.95)))

    edges = await ask(connection, "SELECT strength, confidence FROM edges")
    assert edges == [{"strength": 0.3, "confidence": pytest.approx(0.4)}]


async def test_an_edge_that_only_users_tell_of_rests_on_what_they_say(connection: Connection) -> None:
    for strength in (0.5, 0.9):
        await put_ann_knows_bob(connection, "ann", strength, 0.6)

    edges = await ask(connection, "SELECT strength, confidence FROM edges")
    assert edges == [{"strength": 0.9, "confidence": pytest.approx(0.6)}]


async def test_many_new_names_lead_to_a_bounded_number_of_older_memories(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "MAX_UNLINKED", 7)
    texts = [f"{name} number {number}" for name in ("ann", "bob", "cleo") for number in range(5)]
    notes = [prepare_note(new_id(), Note(text), (Chunk(0, len(text), VECTOR),)) for text in texts]
    await insert_notes(connection, SCOPE, notes, 1, NOON)

    assert len(await find_unlinked(connection, SCOPE, ["ann"], 3)) == 3
    assert len(await find_unlinked(connection, SCOPE, ["ann", "bob", "cleo"], 5)) == 7


async def test_a_mention_of_no_entity_of_this_place_is_not_stored(connection: Connection) -> None:
    elsewhere = await put_entities(connection, LONG, [entity("ann")], 1)
    told = Mention(new_id(), Tier.NOTES, elsewhere["ann"].id, LinkKind.MENTIONS, "book", None, NOON)

    await put_mentions(connection, SCOPE, [told])

    assert await ask(connection, "SELECT to_id FROM memory_links") == []
